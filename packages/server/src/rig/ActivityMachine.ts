/**
 * What a seat's activity reads, decided from posts, asks and the screen. Pure: state and input in, state out.
 *
 * It interprets `ActivityTable`. It owns which posts count (6.2, 6.3) and what the fields read (6.4); it does not own who
 * occupies a seat, nor when timers fire. Times are milliseconds of the service's steady clock, which never steps back;
 * only the key of a post is a time of the runner's clock.
 */
import {
  type ActivityKind,
  type ActivitySource,
  type ActivityValue,
  type BeatCause,
  beatLiveness,
  type CountWord,
  idleLiveness,
  seatLimits
} from "@tackroom/protocol/seat"
import { readings, type Transition, type TransitionName, transitions } from "./ActivityTable.ts"

/** Where a post stands among those of its generation. */
export interface PostKey {
  readonly at: number
  readonly sequence: number | null
}

/** What is committed with the post that changes it. */
export interface DurableActivity {
  /** Key of the last post that counted. */
  readonly last: PostKey | null
  /** The highest sequence that counted. */
  readonly highest: number | null
  readonly attentionPost: boolean
  readonly attentionAsks: ReadonlyArray<string>
  readonly workingUntil: number
  readonly beatUntil: number
  /** `null` is none, `forever` has no end. */
  readonly idleUntil: number | null
  readonly exited: boolean
}

/** What is known since the service started. */
export interface VolatileActivity {
  readonly turn: { readonly turnId: string; readonly withGeneration: boolean; readonly closed: boolean } | null
  readonly screenUntil: number
}

export interface ActivityState extends DurableActivity, VolatileActivity {}

/** The end of an idle report that states no liveness. */
export const forever = Number.MAX_SAFE_INTEGER

export const initialActivity: ActivityState = {
  last: null,
  highest: null,
  attentionPost: false,
  attentionAsks: [],
  workingUntil: 0,
  beatUntil: 0,
  idleUntil: null,
  exited: false,
  turn: null,
  screenUntil: 0
}

/** What an input carries beside its kind. */
export interface InputDetails {
  readonly now: number
  readonly turnId?: string
  readonly withGeneration?: boolean
  readonly liveness?: unknown
  readonly askId?: string
}

/** Which of the seat's open asks an input ends, and how. */
export type AskEnding =
  | { readonly _tag: "Keep" }
  | { readonly _tag: "Withdraw"; readonly which: "all"; readonly reason: "turn_ended" | "exited" }
  | {
      readonly _tag: "Withdraw"
      readonly which: "other_turns" | "turn"
      readonly turnId: string
      readonly reason: "turn_ended" | "exited"
    }
  | { readonly _tag: "Stale" }

export interface Applied {
  readonly state: ActivityState
  readonly asks: AskEnding
}

const seconds = 1_000

const attention = (row: Transition, state: ActivityState, askId: string | undefined): Partial<ActivityState> => {
  switch (row.attention) {
    case "keep":
      return {}
    case "clear":
      return { attentionPost: false, attentionAsks: [] }
    case "raise":
      return { attentionPost: true }
    case "add_ask":
      return askId === undefined || state.attentionAsks.includes(askId)
        ? {}
        : { attentionAsks: [...state.attentionAsks, askId] }
    case "remove_ask":
      return { attentionAsks: state.attentionAsks.filter((id) => id !== askId) }
  }
}

const turn = (row: Transition, state: ActivityState, details: InputDetails): ActivityState["turn"] => {
  const open = state.turn
  switch (row.turn) {
    case "keep":
      return open
    case "open":
      return {
        turnId: details.turnId ?? "",
        withGeneration: details.withGeneration ?? false,
        closed: false
      }
    case "close":
      return open === null ? null : { ...open, closed: true }
    case "close_own":
      return open !== null && (details.turnId === undefined || details.turnId === open.turnId)
        ? { ...open, closed: true }
        : open
    case "forget":
      return null
  }
}

const asks = (row: Transition, turnId: string | undefined): AskEnding => {
  const reason = row.reason ?? "turn_ended"
  switch (row.asks) {
    case "keep":
      return { _tag: "Keep" }
    case "withdraw_all":
      return { _tag: "Withdraw", which: "all", reason }
    case "withdraw_other_turns":
      return turnId === undefined
        ? { _tag: "Withdraw", which: "all", reason }
        : { _tag: "Withdraw", which: "other_turns", turnId, reason }
    case "withdraw_turn":
      return turnId === undefined
        ? { _tag: "Withdraw", which: "all", reason }
        : { _tag: "Withdraw", which: "turn", turnId, reason }
    case "stale_earlier":
      return { _tag: "Stale" }
  }
}

/** What one input does. */
export const apply = (state: ActivityState, name: TransitionName, details: InputDetails): Applied => {
  const row: Transition = transitions[name]
  const { now } = details
  const idle = idleLiveness(details.liveness)
  const next: ActivityState = {
    ...(row.resets === true ? initialActivity : state),
    ...(row.resets === true ? {} : attention(row, state, details.askId)),
    workingUntil:
      row.working === "start"
        ? now + seatLimits.workingSeconds * seconds
        : row.working === "end"
          ? 0
          : state.workingUntil,
    beatUntil:
      row.beat === "start" ? now + beatLiveness(details.liveness) * seconds : row.beat === "end" ? 0 : state.beatUntil,
    idleUntil:
      row.idle === "start"
        ? idle === undefined
          ? forever
          : now + 2 * idle * seconds
        : row.idle === "none"
          ? null
          : state.idleUntil,
    exited: row.exited === "keep" ? state.exited : row.exited === "yes",
    turn: turn(row, state, details)
  }
  return { state: next, asks: asks(row, details.turnId) }
}

/** A post as it is judged. */
export interface JudgedPost {
  readonly kind: ActivityKind
  readonly key: PostKey
  readonly turnId: string | undefined
  readonly liveness: unknown
  /** Whether the post's generation is the live one, another one, or was not given. */
  readonly generation: "live" | "other" | "absent"
}

/** What is known of the seat's occupant when a post is judged. */
export interface Occupancy {
  readonly live: boolean
  /** The post names an occupant that is reserved and has not registered. */
  readonly pending: boolean
  readonly runner: boolean
}

/** Whether a post is newer than the last that counted; without a sequence on both sides arrival decides (S5). */
const isNewer = (key: PostKey, last: PostKey | null): boolean => {
  if (last === null) return true
  if (key.at !== last.at) return key.at > last.at
  return key.sequence === null || last.sequence === null || key.sequence > last.sequence
}

const hasAttention = (state: ActivityState): boolean => state.attentionPost || state.attentionAsks.length > 0

/** The first condition of a working beat that fails (6.3). */
const beatCause = (state: ActivityState, post: JudgedPost): BeatCause | undefined => {
  const { turn: open } = state
  if (post.generation !== "live") return "no_generation"
  if (hasAttention(state)) return "attention"
  if (open === null) return "turn_unknown"
  if (!open.withGeneration) return "opener_without_generation"
  if (post.turnId !== open.turnId) return "wrong_turn"
  if (open.closed) return "turn_closed"
  if (post.key.sequence === null) return "no_sequence"
  if (state.highest !== null && post.key.sequence <= state.highest) return "sequence_not_higher"
  return undefined
}

/** Whether a post counts, or why it does not (S1 to S6). */
export const judge = (state: ActivityState, occupancy: Occupancy, post: JudgedPost): CountWord => {
  if (occupancy.pending) return "generation_pending"
  if (!occupancy.live) return "no_occupant"
  if (!occupancy.runner) return "plain_seat"
  if (post.generation === "other") return "other_generation"
  if (post.kind === "runtime_error") return "recorded_only"
  if (post.kind === "unmapped") return "unmapped"
  if (!isNewer(post.key, state.last)) return "older"
  if (post.kind === "beat") {
    const cause = beatCause(state, post)
    if (cause !== undefined) return `beat_ignored:${cause}`
  }
  return "counted"
}

/** The last key and the highest sequence after a post that counted. */
const counted = (state: ActivityState, key: PostKey): ActivityState => ({
  ...state,
  last: key,
  highest: key.sequence === null ? state.highest : Math.max(key.sequence, state.highest ?? 0)
})

/** What a post does, and why it counts or does not. */
export const applyPost = (
  state: ActivityState,
  occupancy: Occupancy,
  post: JudgedPost,
  now: number
): Applied & { readonly why: CountWord } => {
  const why = judge(state, occupancy, post)
  if (why !== "counted" || post.kind === "runtime_error" || post.kind === "unmapped") {
    return { ...apply(state, "ignored", { now }), why }
  }
  const applied = apply(state, post.kind, {
    now,
    liveness: post.liveness,
    withGeneration: post.generation === "live",
    ...(post.turnId === undefined ? {} : { turnId: post.turnId })
  })
  return { ...applied, state: counted(applied.state, post.key), why }
}

/**
 * What an ask does that opens: it stands among the posts at the submit's time, so that a working post from before the
 * request cannot clear it. Attention is raised also when that time is older.
 */
export const openAsk = (state: ActivityState, askId: string, at: number, now: number): ActivityState => {
  const opened = apply(state, "ask_opened", { now, askId }).state
  const key = { at, sequence: state.last?.sequence ?? null }
  return state.last === null || at > state.last.at ? { ...opened, last: key } : opened
}

/** What a screen that changed does (6.5). */
export const screenChanged = (state: ActivityState, now: number): ActivityState => ({
  ...state,
  screenUntil: now + seatLimits.screenSeconds * seconds
})

/** What a seat reads, why, and until when without newer evidence. */
export interface Reading {
  readonly value: ActivityValue
  readonly source: ActivitySource
  readonly until: number | null
}

type Condition = (typeof readings)[number]["when"]

const holds: Readonly<Record<Condition, (state: ActivityState, live: boolean, now: number) => boolean>> = {
  no_occupant: (_, live) => !live,
  attention: hasAttention,
  exited: (state) => state.exited,
  working: (state, _, now) => now < state.workingUntil || now < state.beatUntil,
  idle: (state, _, now) => state.idleUntil !== null && now < state.idleUntil,
  screen: (state, _, now) => now < state.screenUntil,
  otherwise: () => true
}

const sourceOf = (when: Condition, source: ActivitySource, state: ActivityState, now: number): ActivitySource =>
  when === "attention" && !state.attentionPost
    ? "ask"
    : when === "working" && now >= state.workingUntil
      ? "beat"
      : source

const endOf = (when: Condition, state: ActivityState): number | null => {
  switch (when) {
    case "working":
      return Math.max(state.workingUntil, state.beatUntil)
    case "idle":
      return state.idleUntil === forever ? null : state.idleUntil
    case "screen":
      return state.screenUntil
    default:
      return null
  }
}

/** What the fields read at a moment (R1 to R7). */
export const read = (state: ActivityState, live: boolean, now: number): Reading => {
  const row = readings.find(({ when }) => holds[when](state, live, now)) ?? readings[6]
  return { value: row.value, source: sourceOf(row.when, row.source, state, now), until: endOf(row.when, state) }
}

/** The next moment at which the reading may change by itself, if there is one. */
export const nextChange = (state: ActivityState, now: number): number | undefined => {
  const ends = [state.workingUntil, state.beatUntil, state.idleUntil ?? 0, state.screenUntil].filter(
    (end) => end > now && end !== forever
  )
  return ends.length === 0 ? undefined : Math.min(...ends)
}

/** Whether a changed screen could change the reading (6.5): no stronger evidence decides it. */
export const screenMatters = (state: ActivityState, now: number): boolean =>
  !hasAttention(state) &&
  !state.exited &&
  now >= state.workingUntil &&
  now >= state.beatUntil &&
  (state.idleUntil === null || now >= state.idleUntil)

const longestIdle = 2 * seatLimits.idleLivenessSeconds

/** Stored deadlines after a restart: each at most its full length from now, so that a clock that went back stretches none. */
export const afterRestart = (stored: DurableActivity, now: number): ActivityState => {
  const cut = (until: number, length: number): number => Math.min(until, now + length * seconds)
  return {
    ...stored,
    workingUntil: cut(stored.workingUntil, seatLimits.workingSeconds),
    beatUntil: cut(stored.beatUntil, seatLimits.beatSecondsMax),
    idleUntil:
      stored.idleUntil === null || stored.idleUntil === forever ? stored.idleUntil : cut(stored.idleUntil, longestIdle),
    turn: null,
    screenUntil: 0
  }
}
