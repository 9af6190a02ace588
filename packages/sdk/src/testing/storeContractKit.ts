/**
 * What the cases of the store contract are made of: values, checks, a clock that moves by hand, and the extension that
 * every store under test registers.
 */
import type { EventPayload, TurnOutcome } from "@tackroom/protocol/events"
import { Clock, Data, Duration, Effect, Exit, type Scope } from "effect"
import type { MemoryStoreExtension } from "../store/memory/MemoryStore.ts"
import type { EventRow, SessionRow, TurnRow } from "../store/Rows.ts"
import type { AdmissionDecision, AdmissionState, NewEntry, RuntimeStore, SettleRequest } from "../store/RuntimeStore.ts"
import type { SqliteStoreExtension } from "../store/sqlite/Extension.ts"
import type { StoreCase, StoreEnvironment } from "./storeContract.ts"

/** A check that failed. */
export class CheckFailed extends Data.TaggedError("CheckFailed")<{ readonly message: string }> {}

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, sorted(member)])
  )
}

/** A value as text that does not depend on the order of members. */
export const canonical = (value: unknown): string => JSON.stringify(sorted(value)) ?? "undefined"

/** Fails unless both values are the same JSON. */
export const same = (what: string, actual: unknown, expected: unknown): Effect.Effect<void, CheckFailed> =>
  canonical(actual) === canonical(expected)
    ? Effect.void
    : Effect.fail(
        new CheckFailed({ message: `${what}:\n  expected ${canonical(expected)}\n  found    ${canonical(actual)}` })
      )

/** Fails unless the condition holds. */
export const check = (what: string, isTrue: boolean): Effect.Effect<void, CheckFailed> =>
  isTrue ? Effect.void : Effect.fail(new CheckFailed({ message: what }))

/** Runs an effect that must fail and answers its error. */
export const failure = <A, E, R>(what: string, effect: Effect.Effect<A, E, R>): Effect.Effect<E, CheckFailed, R> =>
  Effect.matchEffect(effect, {
    onSuccess: () => Effect.fail(new CheckFailed({ message: `${what} should have failed` })),
    onFailure: (error) => Effect.succeed(error)
  })

/** Runs an effect that must fail with the tag. */
export const failsWith = <A, E extends { readonly _tag: string }, R>(
  what: string,
  tag: string,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<E, CheckFailed, R> =>
  Effect.tap(failure(what, effect), (error) => same(`${what} fails with`, error._tag, tag))

/** A clock that stands still until it is moved. */
export interface ManualClock extends Clock.Clock {
  readonly advance: (ms: number) => void
}

/** Makes a clock at a fixed time. */
export const manualClock = (start: number): ManualClock => {
  let now = start
  const nanos = () => BigInt(now) * 1_000_000n
  return {
    advance: (ms) => {
      now += ms
    },
    currentTimeMillisUnsafe: () => now,
    currentTimeMillis: Effect.sync(() => now),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: nanos,
    monotonicTimeNanos: Effect.sync(nanos),
    sleep: (duration) =>
      Effect.sync(() => {
        now += Duration.toMillis(duration)
      })
  }
}

/** What a case works with. */
export interface Bench {
  readonly store: RuntimeStore
  readonly clock: ManualClock
  readonly reopen: (store: RuntimeStore) => Effect.Effect<RuntimeStore, never, Scope.Scope>
}

/** The time at which every case starts. */
export const startOfTime = 1_790_000_000_000

/** A case over a fresh store and a clock of its own. */
export const testCase =
  (ids: ReadonlyArray<string>, title: string, body: (bench: Bench) => Effect.Effect<void, unknown, Scope.Scope>) =>
  (environment: StoreEnvironment): StoreCase => ({
    ids,
    title: `${title} [${ids.join(", ")}]`,
    run: Effect.suspend(() => {
      const clock = manualClock(startOfTime)
      return environment.make.pipe(
        Effect.flatMap((store) => body({ store, clock, reopen: environment.reopen })),
        Effect.scoped,
        Effect.provideService(Clock.Clock, clock)
      )
    })
  })

/** The harness of every session here. */
export const harness = { id: "scripted", access: "native" } as const

/**
 * A session row with nothing special, to fill a store with.
 *
 * @since 0.1.0
 */
export const sessionOf = (id: string, overrides: Partial<SessionRow> = {}): Omit<SessionRow, "head" | "fence"> => {
  const { head: _head, fence: _fence, ...rest } = overrides
  return {
    id,
    workspaceId: "default",
    directory: "/srv/app",
    harnessId: harness.id,
    access: harness.access,
    parentId: null,
    rootId: id,
    toolCallId: null,
    title: null,
    titleSource: null,
    status: null,
    phase: null,
    lastTurn: null,
    config: { harness },
    metadata: null,
    tags: [],
    harnessPayload: null,
    commands: null,
    owner: null,
    queueRevision: 0,
    queueHeld: null,
    createdAt: startOfTime,
    updatedAt: startOfTime,
    archivedAt: null,
    closedAt: null,
    ...rest
  }
}

/** The first event of a journal. */
export const created: NewEntry = { payload: { type: "session-created", harness } }

/** Makes a session with its first event. */
export const createSession = (store: RuntimeStore, id: string, overrides: Partial<SessionRow> = {}) =>
  Effect.map(store.createSessions([{ row: sessionOf(id, overrides), entries: [created] }]), (done) => done.value)

/** Names of one turn. */
export interface TurnNames {
  readonly turnId: string
  readonly messageId: string
  readonly assistantId: string
}

/** The names of the turn of a number. */
export const turnNames = (sessionId: string, n: number): TurnNames => ({
  turnId: `trn_${sessionId.replaceAll(/[^A-Za-z0-9]/gu, "_")}_${n}`,
  messageId: `${sessionId}-msg-${n}`,
  assistantId: `${sessionId}-msg-${n}_r`
})

/** An entry of a turn. */
export const entry = (payload: EventPayload, turnId?: string): NewEntry =>
  turnId === undefined ? { payload } : { payload, turnId }

/** The receipt of a submission. */
export const receiptOf = (sessionId: string, messageId: string, digest: string, turnId: string | null) => ({
  sessionId,
  messageId,
  digest,
  turnId,
  endSeq: null,
  outcome: null
})

/** The row of a turn that begins. */
export const turnRow = (
  sessionId: string,
  names: TurnNames,
  text: string,
  now: number
): Omit<TurnRow, "fence" | "startSeq"> => ({
  id: names.turnId,
  sessionId,
  messageId: names.messageId,
  assistantId: names.assistantId,
  origin: "user",
  state: "admitted",
  handedOver: false,
  outcome: null,
  endSeq: null,
  prompt: { text },
  recoveries: 0,
  cancelRequested: false,
  peerCursor: null,
  createdAt: now,
  endedAt: null
})

/** The entries with which a turn opens (RT-085). */
export const opening = (
  names: TurnNames,
  text: string,
  delivery: "start" | "queue" = "start"
): ReadonlyArray<NewEntry> => [
  entry({ type: "user-message", messageId: names.messageId, parts: [{ type: "text", text }], delivery }, names.turnId),
  entry({ type: "session-status", status: "busy", phase: "starting" }, names.turnId),
  entry(
    {
      type: "turn-start",
      messageId: names.messageId,
      assistantMessageId: names.assistantId,
      origin: delivery === "queue" ? "queue" : "user"
    },
    names.turnId
  )
]

/** A decision in the manner of table 5.1: start when idle, the stored receipt when known, else queue. */
export const admission =
  (sessionId: string, names: TurnNames, text: string, owner = "ins_a") =>
  (state: AdmissionState): AdmissionDecision => {
    if (state.receipt !== undefined) return { _tag: "Duplicate", receipt: state.receipt }
    if (state.openTurn === undefined) {
      return {
        _tag: "Started",
        turn: turnRow(sessionId, names, text, state.now),
        receipt: { ...receiptOf(sessionId, names.messageId, text, names.turnId), state: "admitted" },
        lease: { leaseId: `lse_${names.turnId}`, owner, ttlMs: 30_000 },
        entries: opening(names, text),
        session: {}
      }
    }
    return {
      _tag: "Queued",
      row: {
        sessionId,
        messageId: names.messageId,
        prompt: { text },
        parts: [{ type: "text", text }],
        author: null,
        delivery: "queue",
        digest: text,
        createdAt: state.now
      },
      receipt: { ...receiptOf(sessionId, names.messageId, text, null), state: "queued" },
      entries: (queue, revision) => [queueUpdate(queue, revision, state.session.queueHeld)]
    }
  }

/** The event of a queue's state. */
export const queueUpdate = (
  queue: ReadonlyArray<{ readonly messageId: string; readonly position: number; readonly delivery: "queue" | "steer" }>,
  revision: number,
  held: "turn_failed" | "turn_cancelled" | null
): NewEntry => ({
  payload: {
    type: "queue-update",
    entries: queue.map(({ delivery, messageId, position }) => ({ messageId, position, preview: "", delivery })),
    revision,
    held: held !== null,
    ...(held === null ? {} : { heldReason: held })
  }
})

/** Starts turn `n` of a session and answers its names and token. */
export const startTurn = Effect.fnUntraced(function* (store: RuntimeStore, sessionId: string, n = 1, owner = "ins_a") {
  const names = turnNames(sessionId, n)
  const { value } = yield* store.admit(sessionId, names.messageId, admission(sessionId, names, `text ${n}`, owner))
  if (value._tag !== "Started") return yield* Effect.die(new Error(`turn ${n} was ${value._tag}`))
  return { ...names, fence: value.lease.fence, leaseId: value.lease.leaseId, startSeq: value.turn.startSeq }
})

/** A delta of a part of the turn's answer. */
export const delta = (names: TurnNames, text: string, partId = "part_1"): NewEntry =>
  entry({ type: "text-delta", delta: text, messageId: names.assistantId, partId }, names.turnId)

/** A settlement that completes the turn. */
export const completion = (sessionId: string, names: TurnNames): SettleRequest => ({
  turnId: names.turnId,
  outcome: outcomeOf(names, "completed"),
  entries: [
    entry({ type: "finish", sessionId, assistantMessageId: names.assistantId, reason: "end_turn" }, names.turnId),
    entry({ type: "session-status", status: "idle" })
  ],
  session: {}
})

/** A settlement that fails the turn, and holds a queue that is not empty. */
export const breakdown = (names: TurnNames): SettleRequest => ({
  turnId: names.turnId,
  outcome: outcomeOf(names, "failed"),
  entries: [
    entry(
      { type: "error", error: "it broke", code: "harness_error", assistantMessageId: names.assistantId },
      names.turnId
    ),
    entry({ type: "session-status", status: "error" })
  ],
  session: {},
  holdQueue: "turn_failed",
  holdEntries: (queue) => [queueUpdate(queue.entries, queue.revision, queue.held)]
})

const outcomeOf = (names: TurnNames, status: "completed" | "failed"): TurnOutcome => {
  const base = {
    turnId: names.turnId,
    messageId: names.messageId,
    assistantMessageId: names.assistantId,
    completedAt: new Date(startOfTime).toISOString()
  }
  return status === "completed"
    ? { status, reason: "end_turn", ...base }
    : { status, error: { code: "harness_error", message: "it broke" }, ...base }
}

/** All events of a session. */
export const journalOf = Effect.fnUntraced(function* (store: RuntimeStore, sessionId: string) {
  const events: Array<EventRow> = []
  for (;;) {
    const page: { readonly events: ReadonlyArray<EventRow>; readonly head: number } = yield* store.read(
      sessionId,
      events.length,
      1000
    )
    events.push(...page.events)
    if (events.length >= page.head) return events
  }
})

/** Everything that can be read of a session, to compare two stores or two moments. */
export const readAll = Effect.fnUntraced(function* (store: RuntimeStore, sessionId: string) {
  const session = yield* Effect.exit(store.getSession(sessionId))
  if (Exit.isFailure(session) || session.value === undefined) return undefined
  return {
    session: session.value,
    journal: yield* journalOf(store, sessionId),
    messages: yield* store.messages(sessionId, { limit: 500 }),
    todos: yield* store.todos(sessionId),
    interactions: yield* store.interactions({ sessionId }),
    queue: yield* store.queue(sessionId),
    turns: yield* store.turnsOf(sessionId, 500),
    lease: yield* store.lease(sessionId),
    usage: yield* store.usage(sessionId),
    binding: yield* store.binding(sessionId)
  }
})

/** The name of the extension that every store under test registers. @since 0.1.0 */
export const notesName = "notes"

/** The refusal of the op `refuse`. */
export class NoteRefused extends Data.TaggedError("NoteRefused")<{ readonly key: string }> {}

interface Note {
  readonly key: string
  readonly text: string
}

/**
 * The contract's extension for memory: ops `put {key, text}` (answers how often the key was put) and `refuse {key}` (writes
 * and then refuses), query `get {key}`.
 *
 * @since 0.1.0
 */
export const notesForMemory: MemoryStoreExtension = {
  name: notesName,
  tables: ["note"],
  ops: {
    put: (tables, args: Note) => {
      const before = tables("note").get(args.key) as { readonly puts: number } | undefined
      const puts = (before?.puts ?? 0) + 1
      tables("note").put(args.key, { text: args.text, puts })
      return puts
    },
    refuse: (tables, args: Note) => {
      tables("note").put(args.key, { text: "refused", puts: 0 })
      throw new NoteRefused({ key: args.key })
    }
  },
  queries: {
    get: (tables, args: Note) => tables("note").get(args.key) ?? null
  }
}

/** The same extension for SQLite. @since 0.1.0 */
export const notesForSqlite: SqliteStoreExtension = {
  name: notesName,
  migrations: [
    {
      id: "0001",
      name: "note",
      sql: "CREATE TABLE nt_note (key TEXT NOT NULL PRIMARY KEY, text TEXT NOT NULL, puts INTEGER NOT NULL) STRICT"
    }
  ],
  ops: {
    put: (tables, args: Note) => {
      const row = tables.get<{ puts: number }>(
        `INSERT INTO nt_note (key, text, puts) VALUES (?, ?, 1)
         ON CONFLICT (key) DO UPDATE SET text = excluded.text, puts = puts + 1 RETURNING puts`,
        args.key,
        args.text
      )
      return row?.puts
    },
    refuse: (tables, args: Note) => {
      tables.run("INSERT OR REPLACE INTO nt_note (key, text, puts) VALUES (?, 'refused', 0)", args.key)
      throw new NoteRefused({ key: args.key })
    }
  },
  queries: {
    get: (tables, args: Note) =>
      tables.get<{ text: string; puts: number }>("SELECT text, puts FROM nt_note WHERE key = ?", args.key) ?? null
  }
}

/** Reads a note. */
export const note = (store: RuntimeStore, key: string) => store.query(notesName, "get", { key })

/** An op that puts a note. */
export const putNote = (key: string, text = "kept") => ({ extension: notesName, op: "put", args: { key, text } })

/** An op that writes and then refuses. */
export const refuseNote = (key: string) => ({ extension: notesName, op: "refuse", args: { key, text: "" } })
