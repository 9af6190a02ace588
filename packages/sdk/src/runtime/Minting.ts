/**
 * New ids and the time, from the machine the options name and the clock of the context. Synchronous, because ids and times
 * are needed inside the store's decisions.
 *
 * @since 0.1.0
 */
import { mintId, mintMessageId, uuidV4, type IdKind } from "@tackroom/protocol"
import { Clock, Context, Effect, Layer } from "effect"
import { Options } from "./Options.ts"

let latest = { millis: 0, text: new Date(0).toISOString() }

/** A time as it appears in rows and events: UTC with milliseconds. The events of one commit mostly have one time. */
export const timestamp = (millis: number): string => {
  if (millis !== latest.millis) latest = { millis, text: new Date(millis).toISOString() }
  return latest.text
}

export class Minting extends Context.Service<
  Minting,
  {
    readonly now: () => number
    readonly id: (kind: IdKind) => string
    readonly messageId: () => string
    readonly uuid: () => string
  }
>()("@tackroom/sdk/runtime/Minting") {
  static readonly layer = Layer.effect(
    Minting,
    Effect.gen(function* () {
      const options = yield* Options
      const clock = yield* Clock.Clock
      const random = options.machine.random
      const now = () => clock.currentTimeMillisUnsafe()
      return Minting.of({
        now,
        id: (kind) => mintId(kind, now(), random(10)),
        messageId: () => mintMessageId(random(16)),
        uuid: () => uuidV4(random(16))
      })
    })
  )
}
