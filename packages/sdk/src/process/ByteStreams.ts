/**
 * A child's output as a stream of byte chunks, pulled: nothing is read from the pipe before the consumer asks, so a slow
 * consumer slows the child and no buffer grows (HRN-011 is the reader's to keep: it must keep asking).
 */
import type { Readable } from "node:stream"
import { Cause, Effect, Stream } from "effect"
import type * as Pull from "effect/Pull"
import { sleep } from "./internal/RealTime.ts"

/** When a byte stream may end before its pipe does. */
export interface ByteStreamOptions {
  /**
   * Ends when nothing more can be expected: from then on the stream ends as soon as `quietMs` pass without a byte.
   * For a child this is "its group is gone": a process that left the group may hold the pipe open for ever.
   */
  readonly ended?: Effect.Effect<unknown>
  /** Real milliseconds, default 100. */
  readonly quietMs?: number
}

/** Waits until the readable has something to say: bytes, its end, or its destruction. */
const nextSignal = (readable: Readable): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const done = (): void => {
      detach()
      resume(Effect.void)
    }
    const detach = (): void => {
      readable.off("readable", done)
      readable.off("end", done)
      readable.off("close", done)
      readable.off("error", done)
    }
    readable.on("readable", done)
    readable.on("end", done)
    readable.on("close", done)
    readable.on("error", done)
    return Effect.sync(detach)
  })

/**
 * Reads a Node readable chunk by chunk. It has one consumer; a read error ends the stream as the end of the pipe does,
 * because what a child's death means is said by its exit, not by its pipe.
 */
export const fromReadable = (readable: Readable, options?: ByteStreamOptions): Stream.Stream<Uint8Array> => {
  const quietMs = options?.quietMs ?? 100
  const ended = options?.ended
  const quiet = ended === undefined ? undefined : Effect.andThen(ended, sleep(quietMs))
  // Without a listener an `error` event would end the process.
  readable.on("error", () => undefined)
  const pull: Pull.Pull<readonly [Uint8Array, ...Array<Uint8Array>]> = Effect.suspend(() => {
    const chunk: unknown = readable.read()
    if (chunk instanceof Uint8Array) return Effect.succeed([chunk] as const)
    if (readable.readableEnded || readable.destroyed || readable.errored !== null) return Cause.done()
    if (quiet === undefined) return Effect.andThen(nextSignal(readable), pull)
    return Effect.flatMap(Effect.raceFirst(Effect.as(nextSignal(readable), true), Effect.as(quiet, false)), (more) =>
      more ? pull : Cause.done()
    )
  })
  return Stream.fromPull(Effect.succeed(pull))
}
