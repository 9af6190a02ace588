/**
 * The activity state machine of a seat as data (seat contract 6.4): what each input does to each field, and what the
 * fields read. `ActivityMachine` interprets these tables and the documents draw them; nothing else knows a transition.
 */
import type { ActivitySource, ActivityValue } from "@tackroom/protocol/seat"

/** What an input does with attention. */
export type AttentionStep = "keep" | "clear" | "raise" | "add_ask" | "remove_ask"
/** What it does with the asks of the seat that are open. */
export type AsksStep = "keep" | "withdraw_other_turns" | "withdraw_turn" | "withdraw_all" | "stale_earlier"

export interface Transition {
  readonly id: string
  readonly input: string
  readonly attention: AttentionStep
  /** End of working evidence. */
  readonly working: "keep" | "start" | "end"
  /** End of the last beat. */
  readonly beat: "keep" | "start" | "end"
  readonly idle: "keep" | "none" | "start"
  readonly exited: "keep" | "yes" | "no"
  readonly turn: "keep" | "open" | "close" | "close_own" | "forget"
  readonly asks: AsksStep
  /** Why asks that it withdraws end. */
  readonly reason?: "turn_ended" | "exited"
  /** Every field is as at the start. */
  readonly resets?: true
  /** What the seat reads after it when nothing else holds; absent where that is as before. */
  readonly reads?: ActivityValue
}

const nothing = {
  attention: "keep",
  working: "keep",
  beat: "keep",
  idle: "keep",
  exited: "keep",
  turn: "keep",
  asks: "keep"
} as const

const works = {
  ...nothing,
  attention: "clear",
  working: "start",
  idle: "none",
  exited: "no",
  reads: "working"
} as const

const initial = {
  attention: "clear",
  working: "end",
  beat: "end",
  idle: "none",
  exited: "no",
  turn: "forget",
  resets: true,
  reads: "unknown"
} as const

export const transitions = {
  accepted: {
    ...works,
    id: "D1",
    input: "prompt accepted",
    beat: "end",
    turn: "open",
    asks: "withdraw_other_turns",
    reason: "turn_ended"
  },
  agent_message: { ...works, id: "D2", input: "agent text" },
  tool: { ...works, id: "D3", input: "tool use" },
  permission_resolved: { ...works, id: "D4", input: "permission resolved" },
  beat: { ...nothing, id: "D5", input: "beat", beat: "start", reads: "working" },
  permission_prompt: {
    ...nothing,
    id: "D6",
    input: "permission prompt",
    attention: "raise",
    beat: "end",
    reads: "needs_input"
  },
  stop: {
    ...nothing,
    id: "D7",
    input: "stop",
    attention: "clear",
    working: "end",
    beat: "end",
    idle: "start",
    turn: "close_own",
    asks: "withdraw_turn",
    reason: "turn_ended",
    reads: "idle"
  },
  idle_heartbeat: {
    ...nothing,
    id: "D8",
    input: "idle heartbeat",
    attention: "clear",
    working: "end",
    beat: "end",
    idle: "start",
    turn: "close",
    reads: "idle"
  },
  exit: {
    ...nothing,
    id: "D9",
    input: "exit",
    attention: "clear",
    working: "end",
    beat: "end",
    idle: "none",
    exited: "yes",
    turn: "close",
    asks: "withdraw_all",
    reason: "exited",
    reads: "unknown"
  },
  ignored: { ...nothing, id: "D10", input: "what does not count" },
  ask_opened: {
    ...nothing,
    id: "D11",
    input: "ask opened",
    attention: "add_ask",
    beat: "end",
    reads: "needs_input"
  },
  ask_ended: { ...nothing, id: "D12", input: "ask refused, withdrawn or stale", attention: "remove_ask" },
  ask_granted: { ...nothing, id: "D13", input: "ask answered or permitted" },
  attention_cleared: { ...nothing, id: "D14", input: "operator clears attention", attention: "clear" },
  registered: { ...initial, id: "D15", input: "another occupant registers", asks: "stale_earlier" },
  ended: { ...initial, id: "D16", input: "occupant ends", asks: "withdraw_all", reason: "exited" }
} as const satisfies Readonly<Record<string, Transition>>

export type TransitionName = keyof typeof transitions

/** The order in which a reading is decided: the first that holds. */
export const readings = [
  { id: "R1", when: "no_occupant", value: "unknown", source: "none" },
  { id: "R2", when: "attention", value: "needs_input", source: "post" },
  { id: "R3", when: "exited", value: "unknown", source: "exit" },
  { id: "R4", when: "working", value: "working", source: "post" },
  { id: "R5", when: "idle", value: "idle", source: "post" },
  { id: "R6", when: "screen", value: "working", source: "screen" },
  { id: "R7", when: "otherwise", value: "unknown", source: "none" }
] as const satisfies ReadonlyArray<{
  readonly id: string
  readonly when: string
  readonly value: ActivityValue
  readonly source: ActivitySource
}>
