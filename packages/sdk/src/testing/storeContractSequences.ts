/**
 * The long case of the store contract: many calls drawn from a seed, made on the store under test and on a memory store.
 * Both must answer every call alike, hold the same rows at the end, and rebuild them from their journals.
 */
import type { EventPayload } from "@tackroom/protocol/events"
import { Cause, Effect, Exit } from "effect"
import { createMemoryRuntimeStore } from "../store/memory/MemoryStore.ts"
import type { NewEntry, QueueChange, RuntimeStore } from "../store/RuntimeStore.ts"
import {
  admission,
  breakdown,
  canonical,
  completion,
  created,
  createSession,
  entry,
  note,
  notesForMemory,
  putNote,
  queueUpdate,
  readAll,
  refuseNote,
  same,
  testCase,
  turnNames,
  type Bench,
  type TurnNames
} from "./storeContractKit.ts"
import { rebuilds } from "./storeContractReads.ts"

/** Numbers from a seed (mulberry32). */
const numbers = (seed: number) => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (n: number): number => Math.floor(next() * n)
  return { below, pick: <A>(values: ReadonlyArray<A>): A => values[below(values.length)] as A }
}

type Numbers = ReturnType<typeof numbers>

const sessions = ["ses_0", "ses_1", "ses_2", "ses_3"]
const words = ["a", "bé", "\ud800", "\0", "😀", "long ".repeat(40), ""]

const payloadOf = (draw: Numbers, names: TurnNames): EventPayload => {
  const text = draw.pick(words)
  const partId = `p${draw.below(3)}`
  const toolCallId = `c${draw.below(3)}`
  const requestId = `int_${names.turnId}_${draw.below(2)}`
  const messageId = names.assistantId
  return draw.pick<() => EventPayload>([
    () => ({ type: "text-delta", delta: text, messageId, partId }),
    () => ({ type: "text-delta", delta: text, messageId, partId }),
    () => ({ type: "thinking-delta", delta: text, messageId, partId: `t${partId}` }),
    () => ({ type: "text-end", messageId, partId, channel: "text", text }),
    () => ({ type: "text-delta", delta: text, messageId: `other_${names.turnId}`, partId }),
    () => ({ type: "tool-start", toolCallId, toolName: `tool ${text}` }),
    () => ({ type: "tool-input", toolCallId, input: { text } }),
    () => ({ type: "tool-status", toolCallId, status: draw.pick(["pending", "running", "failed", "uncertain"]) }),
    () => ({ type: "tool-output", toolCallId, output: text }),
    () => ({ type: "tool-output-delta", toolCallId, delta: text, stream: "stdout" }),
    () => ({ type: "file-diff", toolCallId, path: partId, oldText: "a\nb\n", newText: text }),
    () => ({
      type: "todo-update",
      todos: Array.from({ length: draw.below(4) }, () => ({ content: text, status: "pending" }))
    }),
    () => ({ type: "session-title", title: `t ${text}`, titleSource: draw.pick(["prompt", "harness", "user"]) }),
    () => ({ type: "session-info", tags: [text], archived: draw.below(2) === 0 }),
    () => ({ type: "response-start", responseId: `r${draw.below(3)}` }),
    () => ({ type: "response-retracted", responseIds: ["r1"], reason: "x" }),
    () => ({ type: "question", requestId, questions: [{ question: text, options: [] }] }),
    () => ({ type: "question-answered", requestId, answers: [[text]], origin: "person" }),
    () => ({ type: "interaction-withdrawn", requestId, kind: "question", reason: "expired" }),
    () => ({ type: "session-status", status: draw.pick(["busy", "idle", "error", "recovering"]) }),
    () => ({
      type: "usage",
      observation: {
        kind: draw.pick(["delta", "cumulative"]),
        tokens: { input: draw.below(9), output: null, reasoning: null, cache: { read: null, write: null } }
      }
    })
  ])()
}

const entriesOf = (draw: Numbers, names: TurnNames): ReadonlyArray<NewEntry> =>
  Array.from({ length: draw.below(4) }, () => ({
    ...entry(payloadOf(draw, names)),
    ...draw.pick([{ turnId: names.turnId }, { turnId: names.turnId }, { afterTurn: names.turnId }, {}])
  }))

type Call = (store: RuntimeStore) => Effect.Effect<unknown, unknown>

/** One call, drawn once and made on both stores. */
const drawCall = (draw: Numbers): Call => {
  const sessionId = draw.pick(sessions)
  const n = draw.below(12)
  const names = turnNames(sessionId, n)
  const fence = 1 + draw.below(6)
  const entries = entriesOf(draw, names)
  const ops = draw.pick([undefined, undefined, [putNote(`n${n}`)], [putNote(`n${n}`), refuseNote("r")]])
  const options = ops === undefined ? undefined : { ops }
  const others = draw.below(4) === 0 ? [{ sessionId: draw.pick(sessions), entries: entriesOf(draw, names) }] : undefined
  const change = draw.pick<QueueChange>([
    { _tag: "Remove", messageId: names.messageId },
    { _tag: "Move", messageId: names.messageId, before: turnNames(sessionId, draw.below(12)).messageId },
    { _tag: "Move", messageId: names.messageId, before: null },
    { _tag: "Edit", messageId: names.messageId, prompt: { text: "edited" }, digest: "edited" },
    { _tag: "Release" }
  ])
  const fenceOf = (store: RuntimeStore) => Effect.map(store.getSession(sessionId), (row) => row?.fence ?? 0)
  return draw.pick<Call>([
    (store) => createSession(store, sessionId, { title: "t", titleSource: "prompt" }),
    (store) => store.admit(sessionId, names.messageId, admission(sessionId, names, `text ${n}`), options),
    (store) => store.admit(sessionId, names.messageId, admission(sessionId, names, `text ${n}`)),
    (store) => store.append(sessionId, fence, entries, { ...options, ...(others === undefined ? {} : { others }) }),
    (store) => Effect.flatMap(fenceOf(store), (current) => store.append(sessionId, current, entries, options)),
    (store) => Effect.flatMap(fenceOf(store), (current) => store.append(sessionId, current, entries)),
    (store) => Effect.flatMap(fenceOf(store), (current) => store.append(sessionId, current, entries)),
    (store) => store.appendUnfenced(sessionId, entries, options),
    (store) =>
      Effect.flatMap(store.openTurns({ sessionId }), ([turn]): Effect.Effect<unknown, unknown> => {
        if (turn === undefined) return Effect.succeed("no turn")
        const open = { turnId: turn.id, messageId: turn.messageId, assistantId: turn.assistantId }
        return store.settle(sessionId, turn.fence, n % 2 === 0 ? completion(sessionId, open) : breakdown(open), options)
      }),
    (store) =>
      store.queueChange(
        sessionId,
        change,
        undefined,
        (queue) => [queueUpdate(queue.entries, queue.revision, queue.held)],
        options
      ),
    (store) => store.acquireLease(sessionId, { leaseId: `l${n}`, owner: `ins_${n % 2}`, ttlMs: 5 }),
    (store) => store.releaseLease(sessionId, `l${n}`),
    (store) => store.renewLeases(`ins_${n % 2}`, 5),
    (store) => store.updateSession(sessionId, { metadata: { n } }, [created]),
    (store) => store.withdrawInteractions([`int_${names.turnId}_0`, `int_${names.turnId}_1`], "restart", options),
    (store) => (n === 0 ? store.deleteSession(sessionId) : store.read(sessionId, n, 3)),
    (store) => store.messages(sessionId, { limit: 1 + n }),
    (store) => store.listSessions({ limit: 3 }),
    (store) => store.expiredLeases
  ])
}

/** How a call ended, as text: its value, or the tag of its failure. */
const answer = (exit: Exit.Exit<unknown, unknown>): string => {
  if (Exit.isSuccess(exit)) return canonical(exit.value)
  const failed = exit.cause.reasons.find(Cause.isFailReason)?.error
  return typeof failed === "object" && failed !== null && "_tag" in failed
    ? `failed: ${String(failed._tag)}`
    : `died: ${Cause.pretty(exit.cause)}`
}

const sequence = Effect.fnUntraced(function* ({ clock, reopen, store }: Bench, seed: number, calls: number) {
  const draw = numbers(seed)
  const memory = createMemoryRuntimeStore({ extensions: [notesForMemory] })
  let tested = store
  for (let i = 0; i < calls; i++) {
    clock.advance(draw.below(4))
    const call = drawCall(draw)
    const [found, expected] = [answer(yield* Effect.exit(call(tested))), answer(yield* Effect.exit(call(memory)))]
    yield* same(`seed ${seed}, call ${i}`, found, expected)
    if (found.startsWith("died")) yield* same(`seed ${seed}, call ${i}`, found, "an answer or a failure")
    if (i === calls >> 1) tested = yield* reopen(tested)
  }
  for (const id of sessions) {
    yield* same(`seed ${seed}, ${id}`, yield* readAll(tested, id), yield* readAll(memory, id))
  }
  for (let n = 0; n < 12; n++) {
    yield* same(`seed ${seed}, note ${n}`, yield* note(tested, `n${n}`), yield* note(memory, `n${n}`))
  }
  return tested
})

export const sequenceCases = [
  testCase(["STO-020", "STO-001"], "a long random sequence answers and ends as in memory", (bench) =>
    Effect.gen(function* () {
      yield* sequence(bench, 20_261, 1200)
    })
  ),
  testCase(["STO-005"], "rows rebuild after a random sequence of turns", ({ clock, store }) =>
    Effect.gen(function* () {
      const draw = numbers(7)
      yield* createSession(store, "ses_0")
      for (let n = 0; n < 25; n++) {
        const names = turnNames("ses_0", n)
        clock.advance(3)
        const admitted = yield* store.admit("ses_0", names.messageId, admission("ses_0", names, `text ${n}`))
        const fence = admitted.value._tag === "Started" ? admitted.value.lease.fence : 0
        for (let i = 0; i < 12; i++) {
          clock.advance(1)
          yield* store.append("ses_0", fence, entriesOf(draw, names))
        }
        yield* store.settle("ses_0", fence, n % 3 === 0 ? breakdown(names) : completion("ses_0", names))
      }
      yield* rebuilds(store, "ses_0")
    })
  )
]
