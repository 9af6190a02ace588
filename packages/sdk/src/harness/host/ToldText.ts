/**
 * Text of a turn that was told before the turn was taken up. A runtime that closes ends the part it is in (RT-206), and
 * the host, which knows nothing of that, ends it later with its whole text: then only the rest is new.
 */
import type { HarnessEvent } from "@tackroom/protocol/events"
import { Effect } from "effect"
import type { HarnessContext, TurnInput } from "../Harness.ts"

export interface ToldText {
  /** Reads what the journal has of the turn. */
  readonly load: Effect.Effect<void>
  /** The event without what was told already. */
  readonly rest: (event: HarnessEvent) => HarnessEvent
}

export const makeToldText = (turn: TurnInput, context: HarnessContext): ToldText => {
  const parts = new Map<string, string>()

  /** A part that goes on after its end has a name of its own each time: the same, and one more underscore. */
  const before = (partId: string): string => {
    const text = parts.get(partId)
    return text === undefined ? "" : text + before(`${partId}_`)
  }

  const load = Effect.gen(function* () {
    let after = turn.startCursor
    while (true) {
      const page = yield* context.journal.read(turn.binding.sessionId, after, 500)
      for (const { payload, seq, turnId } of page.events) {
        after = seq
        if (turnId === turn.turnId && payload.type === "text-end") parts.set(payload.partId, payload.text)
      }
      if (page.events.length === 0 || after >= page.head) return
    }
  })

  return {
    load: load.pipe(
      Effect.catch((error) => Effect.logWarning("What a turn had told could not be read", error.message))
    ),
    rest: (event) => {
      if (event.type !== "text-end") return event
      const told = before(event.partId)
      return told !== "" && event.text.startsWith(told) ? { ...event, text: event.text.slice(told.length) } : event
    }
  }
}
