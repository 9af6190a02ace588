/**
 * Replays an exported session (HRN-281): turn by turn, each event after the time that had passed in the original, or at
 * once with `speed: 0`. What belongs to the runtime is left out, because the runtime of the replay writes its own; a
 * permission or question is asked again, and the recorded course follows whatever the answer is.
 */
import type { HarnessError } from "@tackroom/protocol"
import {
  type Envelope,
  type EventPayload,
  type HarnessEvent,
  isHarnessEvent,
  isTerminal
} from "@tackroom/protocol/events"
import { Effect } from "effect"
import type { HarnessContext, TurnInput } from "../Harness.ts"
import type { TurnOutput } from "./CallPlayer.ts"

/**
 * An exported session: its events in order. `at` is ISO 8601 UTC.
 *
 * @since 0.1.0
 */
export interface Fixture {
  readonly events: ReadonlyArray<Pick<Envelope, "at" | "payload"> & { readonly turnId?: string }>
}

/** The recorded turns in order, each from its first event on. */
const turnsOf = (fixture: Fixture): ReadonlyArray<ReadonlyArray<Fixture["events"][number]>> => {
  const turns = new Map<string, Array<Fixture["events"][number]>>()
  for (const event of fixture.events) {
    if (event.turnId === undefined) continue
    const turn = turns.get(event.turnId)
    if (turn === undefined) turns.set(event.turnId, [event])
    else turn.push(event)
  }
  return [...turns.values()]
}

/** Replaces the recording's own ids where a payload names them. */
const renamed = (payload: HarnessEvent, names: ReadonlyMap<string, string>): HarnessEvent => {
  const entries = Object.entries(payload).map(([key, value]) => [
    key,
    key.endsWith("essageId") || key === "sessionId" ? (names.get(String(value)) ?? value) : value
  ])
  return Object.fromEntries(entries) as HarnessEvent
}

const recordedNames = (
  events: ReadonlyArray<{ readonly payload: EventPayload }>,
  turn: TurnInput
): ReadonlyMap<string, string> => {
  const names = new Map<string, string>()
  for (const { payload } of events) {
    if (payload.type === "turn-start") {
      names.set(payload.messageId, turn.messageId)
      names.set(payload.assistantMessageId, turn.assistantMessageId)
    }
    if (payload.type === "finish" || payload.type === "cancelled" || payload.type === "error") {
      names.set(payload.assistantMessageId, turn.assistantMessageId)
      if (payload.type !== "error") names.set(payload.sessionId, turn.binding.sessionId)
    }
  }
  return names
}

/** What the replay of one turn needs. */
export interface FixtureInput extends TurnOutput {
  readonly context: HarnessContext
  readonly turn: TurnInput
  readonly fixture: Fixture
  /** Turns of this session before this one. */
  readonly index: number
  readonly closing: () => void
}

/** Plays one turn of a fixture; emits one terminal event, also when the recording has none. */
export const playFixture = Effect.fnUntraced(function* (input: FixtureInput): Effect.fn.Return<void, HarnessError> {
  const { turn, emit, context } = input
  const events = turnsOf(input.fixture)[input.index]
  const broken = (error: string) =>
    Effect.suspend(() => {
      input.closing()
      return emit({ type: "error", error, code: "harness_error", assistantMessageId: turn.assistantMessageId })
    })
  if (events === undefined) return yield* broken(`The scripted recording has ${input.index} turns and all were played.`)
  const names = recordedNames(events, turn)
  const base = { sessionId: turn.binding.sessionId, turnId: turn.turnId }
  let before = Date.parse(events[0]?.at ?? "")
  for (const { at, payload } of events) {
    const now = Date.parse(at)
    if (now > before) yield* input.wait(now - before)
    before = Math.max(before, now)
    if (!isHarnessEvent(payload)) continue
    if (payload.type === "permission-request") {
      yield* input.durable
      const { type: _, requestId, ...subject } = payload
      yield* Effect.ignore(context.ask.permission({ ...base, ...subject, nativeRequestId: requestId }))
      continue
    }
    if (payload.type === "question") {
      yield* input.durable
      const { type: _, requestId, ...subject } = payload
      yield* Effect.ignore(context.ask.question({ ...base, ...subject, nativeRequestId: requestId }))
      continue
    }
    if (isTerminal(payload)) {
      input.closing()
      return yield* emit(renamed(payload, names))
    }
    yield* emit(renamed(payload, names))
  }
  return yield* broken("The scripted recording ends in the middle of this turn.")
})
