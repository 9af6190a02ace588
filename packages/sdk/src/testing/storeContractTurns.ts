/** Cases of the store contract about admission, appending, settling, extensions and `others`. */
import { Effect } from "effect"
import {
  admission,
  breakdown,
  canonical,
  check,
  completion,
  created,
  createSession,
  delta,
  entry,
  failsWith,
  journalOf,
  note,
  putNote,
  queueUpdate,
  readAll,
  receiptOf,
  refuseNote,
  same,
  startOfTime,
  startTurn,
  testCase,
  turnNames
} from "./storeContractKit.ts"

export const turnCases = [
  testCase(["RT-080", "RT-085"], "an admission stores receipt, turn, lease, messages and events at once", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const names = turnNames("ses_a", 1)
      const done = yield* store.admit("ses_a", names.messageId, admission("ses_a", names, "hello"))
      const { value } = done
      yield* check("it started", value._tag === "Started")
      if (value._tag !== "Started") return
      yield* same(
        "events",
        done.events.map((event) => [event.seq, event.type]),
        [
          [2, "user-message"],
          [3, "session-status"],
          [4, "turn-start"]
        ]
      )
      yield* same("cursor before them", [value.turn.startSeq, value.receipt.startSeq], [1, 1])
      yield* same("turn", yield* store.turn(names.turnId), value.turn)
      yield* same("receipt", yield* store.receipt("ses_a", names.messageId), value.receipt)
      yield* same("lease", yield* store.lease("ses_a"), value.lease)
      yield* same("session", [value.session.status, value.session.phase, value.session.head], ["busy", "starting", 4])
      yield* same(
        "open turns",
        (yield* store.openTurns({ sessionId: "ses_a" })).map((turn) => turn.id),
        [names.turnId]
      )
      const messages = yield* store.messages("ses_a", { limit: 10 })
      yield* same(
        "messages",
        messages.map(({ message }) => [message.id, message.role, message.parentId]),
        [
          [names.messageId, "user", null],
          [names.assistantId, "assistant", names.messageId]
        ]
      )
      yield* same(
        "user text",
        messages[0]?.parts.map((part) => part.data),
        [{ id: `${names.messageId}:0`, messageId: names.messageId, type: "text", text: "hello" }]
      )
    })
  ),

  testCase(["RT-081"], "50 equal submissions at once make one turn and one user message", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const names = turnNames("ses_a", 1)
      const submit = store.admit("ses_a", names.messageId, admission("ses_a", names, "once"))
      const done = yield* Effect.all(
        Array.from({ length: 50 }, () => submit),
        { concurrency: "unbounded" }
      )
      const tags = done.map(({ value }) => value._tag)
      yield* same("started", tags.filter((tag) => tag === "Started").length, 1)
      yield* same("duplicates", tags.filter((tag) => tag === "Duplicate").length, 49)
      yield* check(
        "duplicates say nothing",
        done.every(({ events, value }) => value._tag === "Started" || events.length === 0)
      )
      const events = yield* journalOf(store, "ses_a")
      yield* same("user messages", events.filter((event) => event.type === "user-message").length, 1)
    })
  ),

  testCase(["RT-082", "RT-083"], "a refused or failing admission leaves nothing and may be repeated", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const before = yield* readAll(store, "ses_a")
      const names = turnNames("ses_a", 1)
      const start = admission("ses_a", names, "text")
      const refusal = yield* Effect.flip(store.getSession("ses_a").pipe(Effect.andThen(store.head("ses_unknown"))))
      yield* failsWith(
        "a refusal",
        "SessionNotFound",
        store.admit("ses_a", names.messageId, () => ({ _tag: "Refused", error: refusal }))
      )
      yield* failsWith(
        "a refused op",
        "OpFailed",
        store.admit("ses_a", names.messageId, start, { ops: [refuseNote("n")] })
      )
      yield* same("nothing changed", yield* readAll(store, "ses_a"), before)
      yield* same("no receipt", yield* store.receipt("ses_a", names.messageId), undefined)
      yield* same("no note", yield* note(store, "n"), null)
      const done = yield* store.admit("ses_a", names.messageId, start, {
        ops: (outcome) => [putNote("n", outcome._tag)]
      })
      yield* same(
        "cursors go on without a gap",
        done.events.map((event) => event.seq),
        [2, 3, 4]
      )
      yield* same("token", done.value._tag === "Started" ? done.value.lease.fence : undefined, 1)
      yield* same("ops answer", done.ops, [1])
      yield* same("note", yield* note(store, "n"), { text: "Started", puts: 1 })
      const again = yield* store.admit("ses_a", names.messageId, start, { ops: [putNote("n", "again")] })
      yield* same("a duplicate runs no op", [again.value._tag, again.ops.length], ["Duplicate", 0])
      yield* same("note", yield* note(store, "n"), { text: "Started", puts: 1 })
    })
  ),

  testCase(["RT-087", "RT-088"], "a steer's receipt moves on with its event, and may end in the queue", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const turn = yield* startTurn(store, "ses_a")
      const steer = turnNames("ses_a", 2)
      const done = yield* store.admit("ses_a", steer.messageId, (state) => ({
        _tag: "Steering",
        turn: state.openTurn!,
        receipt: { ...receiptOf("ses_a", steer.messageId, "d", turn.turnId), state: "steering" }
      }))
      yield* same("steering", [done.value._tag, done.events.length], ["Steering", 0])
      const before = yield* store.receipt("ses_a", steer.messageId)
      const steered = yield* store.updateReceipt("ses_a", steer.messageId, "steered", [
        entry(
          { type: "user-message", messageId: steer.messageId, parts: [{ type: "text", text: "x" }], delivery: "steer" },
          turn.turnId
        )
      ])
      yield* same("receipt", steered.value, { ...before, state: "steered" })
      const second = turnNames("ses_a", 3)
      yield* store.admit("ses_a", second.messageId, (state) => ({
        _tag: "Steering",
        turn: state.openTurn!,
        receipt: { ...receiptOf("ses_a", second.messageId, "text 3", turn.turnId), state: "steering" }
      }))
      const first = yield* store.receipt("ses_a", second.messageId)
      const queued = yield* store.admit("ses_a", second.messageId, (state) =>
        admission("ses_a", second, "text 3")({ ...state, receipt: undefined })
      )
      yield* same("queued", queued.value._tag, "Queued")
      const receipt = yield* store.receipt("ses_a", second.messageId)
      yield* same("same first cursor", [receipt?.state, receipt?.startSeq], ["queued", first?.startSeq])
    })
  ),

  testCase(["STO-002", "RT-180"], "appends at the same moment share no number and leave no gap", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      yield* createSession(store, "ses_b")
      const turn = yield* startTurn(store, "ses_a")
      const other = yield* startTurn(store, "ses_b")
      const before = yield* store.head("ses_a")
      const calls = Array.from({ length: 100 }, (_, i) => {
        if (i % 10 === 3)
          return Effect.exit(store.append("ses_a", turn.fence, [delta(turn, "lost")], { ops: [refuseNote("n")] }))
        if (i % 10 === 7) return Effect.exit(store.append("ses_a", turn.fence - 1, [delta(turn, "stale")]))
        return Effect.exit(
          i % 2 === 0
            ? store.append("ses_a", turn.fence, [delta(turn, `${i},`), delta(turn, "|")])
            : store.append("ses_b", other.fence, [delta(other, "x")])
        )
      })
      const exits = yield* Effect.all(calls, { concurrency: "unbounded" })
      yield* same("failed", exits.filter((exit) => exit._tag === "Failure").length, 20)
      const events = yield* journalOf(store, "ses_a")
      yield* same(
        "numbers",
        events.map((event) => event.seq),
        Array.from({ length: events.length }, (_, i) => i + 1)
      )
      yield* same("how many", events.length - before, 100)
      const deltas = events.flatMap(({ payload }) => (payload.type === "text-delta" ? [payload.delta] : []))
      yield* check(
        "no call is split",
        deltas.every((text, i) => (i % 2 === 0) !== (text === "|"))
      )
      yield* same("head", yield* store.head("ses_a"), events.length)
      yield* same("nothing of the refused", yield* note(store, "n"), null)
    })
  ),

  testCase(["STO-003", "RT-130", "RT-134"], "a write with an old token fails and writes nothing", ({ clock, store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const turn = yield* startTurn(store, "ses_a")
      clock.advance(31_000)
      const taken = yield* store.acquireLease("ses_a", { leaseId: "lse_b", owner: "ins_b", ttlMs: 30_000 })
      yield* same("new token", taken?.fence, turn.fence + 1)
      const before = yield* readAll(store, "ses_a")
      const stale: ReadonlyArray<Effect.Effect<unknown, { readonly _tag: string }>> = [
        store.append("ses_a", turn.fence, [delta(turn, "late")], { ops: [putNote("n")] }),
        store.append("ses_a", turn.fence, [delta(turn, "late")]),
        store.settle("ses_a", turn.fence, completion("ses_a", turn)),
        store.append("ses_a", turn.fence + 2, [delta(turn, "early")])
      ]
      for (const write of stale) yield* failsWith("a stale write", "SessionTurnFenceStale", write)
      yield* same("nothing changed", yield* readAll(store, "ses_a"), before)
      yield* same("no note", yield* note(store, "n"), null)
      yield* store.appendUnfenced("ses_a", [created])
      yield* store.append("ses_a", turn.fence + 1, [delta(turn, "now")])
    })
  ),

  testCase(["RT-171"], "an append may move its turn and session along with the events", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const turn = yield* startTurn(store, "ses_a")
      const { value } = yield* store.append("ses_a", turn.fence, [], {
        turn: { id: turn.turnId, patch: { handedOver: true, state: "running" } },
        session: { phase: "running" }
      })
      yield* same("head stays", value, 4)
      const row = yield* store.turn(turn.turnId)
      yield* same("turn", [row?.handedOver, row?.state], [true, "running"])
      yield* same("session", (yield* store.getSession("ses_a"))?.phase, "running")
    })
  ),

  testCase(["STO-004", "RT-140"], "a settlement is written once; a second answers the first", ({ clock, store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const turn = yield* startTurn(store, "ses_a")
      clock.advance(1234)
      const done = yield* store.settle("ses_a", turn.fence, completion("ses_a", turn), { ops: [putNote("n")] })
      yield* same("written", done.value.written, true)
      yield* same("completed at", done.value.outcome.completedAt, new Date(startOfTime + 1234).toISOString())
      const row = yield* store.turn(turn.turnId)
      yield* same("turn", [row?.state, row?.endSeq, row?.endedAt], ["settled", 5, startOfTime + 1234])
      yield* same("turn's outcome", row?.outcome, done.value.outcome)
      const receipt = yield* store.receipt("ses_a", turn.messageId)
      yield* same("receipt", [receipt?.state, receipt?.endSeq], ["settled", 5])
      yield* same("receipt's outcome", receipt?.outcome, done.value.outcome)
      const session = yield* store.getSession("ses_a")
      yield* same("session", [session?.lastTurn, session?.status], [done.value.outcome, null])
      yield* same("lease", yield* store.lease("ses_a"), undefined)
      yield* same("open turns", yield* store.openTurns({}), [])
      const before = yield* readAll(store, "ses_a")
      const again = yield* store.settle("ses_a", turn.fence, completion("ses_a", turn), { ops: [putNote("n")] })
      yield* same(
        "second",
        [again.value.written, again.value.outcome, again.events.length],
        [false, done.value.outcome, 0]
      )
      yield* same("nothing changed", yield* readAll(store, "ses_a"), before)
      yield* same("the op ran once", yield* note(store, "n"), { text: "kept", puts: 1 })
      const stale = yield* store.settle("ses_a", turn.fence + 9, completion("ses_a", turn))
      yield* same("whatever the token", stale.value.written, false)
    })
  ),

  testCase(["STO-004"], "two settlements at once are written once", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const turn = yield* startTurn(store, "ses_a")
      const settle = store.settle("ses_a", turn.fence, completion("ses_a", turn))
      const done = yield* Effect.all([settle, settle, settle], { concurrency: "unbounded" })
      yield* same("written", done.filter(({ value }) => value.written).length, 1)
      const events = yield* journalOf(store, "ses_a")
      yield* same("terminal events", events.filter((event) => event.type === "finish").length, 1)
    })
  ),

  testCase(["RT-170"], "open turns are found by session and by owner; no owner equals none", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      yield* createSession(store, "ses_b", { owner: "host_1" })
      yield* createSession(store, "ses_c", { owner: "host_2" })
      for (const id of ["ses_a", "ses_b", "ses_c"]) yield* startTurn(store, id)
      const open = (filter: Parameters<typeof store.openTurns>[0]) =>
        Effect.map(store.openTurns(filter), (turns) => turns.map((turn) => turn.sessionId).sort())
      yield* same("all", yield* open({}), ["ses_a", "ses_b", "ses_c"])
      yield* same("none", yield* open({ owner: null }), ["ses_a"])
      yield* same("host_1", yield* open({ owner: "host_1" }), ["ses_b"])
      yield* same("session", yield* open({ sessionId: "ses_c" }), ["ses_c"])
    })
  ),

  testCase(["RT-088", "RT-119"], "a start-up finds steers without an answer and queues that may start", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      yield* createSession(store, "ses_b", { owner: "host_1" })
      yield* createSession(store, "ses_c", { owner: "host_1" })
      for (const id of ["ses_a", "ses_b", "ses_c"]) {
        yield* startTurn(store, id)
        const steer = turnNames(id, 2)
        yield* store.admit(id, steer.messageId, (state) => ({
          _tag: "Steering",
          turn: state.openTurn!,
          receipt: { ...receiptOf(id, steer.messageId, "d", null), state: "steering" }
        }))
        for (const n of [3, 4]) {
          const names = turnNames(id, n)
          yield* store.admit(id, names.messageId, admission(id, names, `text ${n}`))
        }
      }
      yield* store.updateReceipt("ses_c", turnNames("ses_c", 2).messageId, "steered", [])
      const steering = (filter: { readonly sessionId?: string; readonly owner?: string | null }) =>
        Effect.map(store.receipts({ ...filter, state: "steering" }), (rows) => rows.map((row) => row.sessionId).sort())
      yield* same("all steers", yield* steering({}), ["ses_a", "ses_b"])
      yield* same("no owner's steers", yield* steering({ owner: null }), ["ses_a"])
      yield* same("a session's steers", yield* steering({ sessionId: "ses_b" }), ["ses_b"])
      yield* same(
        "queued",
        (yield* store.receipts({ state: "queued", owner: "host_1" })).map((row) => row.messageId).sort(),
        ["ses_b", "ses_c"].flatMap((id) => [3, 4].map((n) => turnNames(id, n).messageId))
      )
      yield* same("all queues", [...(yield* store.waitingQueues({}))].sort(), ["ses_a", "ses_b", "ses_c"])
      const turn = turnNames("ses_b", 1)
      yield* store.settle("ses_b", 1, {
        ...breakdown(turn),
        holdQueue: "turn_failed",
        holdEntries: (queue) => [queueUpdate(queue.entries, queue.revision, queue.held)]
      })
      yield* same("unheld queues of an owner", yield* store.waitingQueues({ owner: "host_1" }), ["ses_c"])
    })
  ),

  // ---- extensions and others

  testCase(["STO-010", "STO-001"], "ops commit with every kind of call, or take it back", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const turn = yield* startTurn(store, "ses_a")
      const done = yield* store.append("ses_a", turn.fence, [delta(turn, "a")], {
        ops: (head) => [putNote("head", String(head)), putNote("head", `${head}!`)]
      })
      yield* same("answers", done.ops, [1, 2])
      yield* same("note", yield* note(store, "head"), { text: "5!", puts: 2 })
      const before = yield* readAll(store, "ses_a")
      const refused = yield* failsWith(
        "a refused op",
        "OpFailed",
        store.append("ses_a", turn.fence, [delta(turn, "b", "p2")], { ops: [putNote("head", "x"), refuseNote("key")] })
      )
      const error =
        refused._tag === "OpFailed" ? (refused.error as { readonly _tag: string; readonly key: string }) : undefined
      yield* same("its own error", [error?._tag, error?.key], ["NoteRefused", "key"])
      yield* same("row, events and parts are as before", yield* readAll(store, "ses_a"), before)
      yield* same("note as before", yield* note(store, "head"), { text: "5!", puts: 2 })
      const unknown = store.appendUnfenced("ses_a", [created], { ops: [{ extension: "nobody", op: "x", args: null }] })
      yield* failsWith("an unknown extension", "OpFailed", unknown)
      yield* same("head", yield* store.head("ses_a"), 5)
    })
  ),

  testCase(["STO-010"], "a call that fails alone takes nothing from calls of the same moment", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const calls = Array.from({ length: 40 }, (_, i) =>
        Effect.exit(
          store.appendUnfenced("ses_a", [created], { ops: [i % 4 === 0 ? refuseNote(`k${i}`) : putNote(`k${i}`)] })
        )
      )
      const exits = yield* Effect.all(calls, { concurrency: "unbounded" })
      yield* same(
        "failed",
        exits.flatMap((exit, i) => (exit._tag === "Failure" ? [i] : [])),
        Array.from({ length: 10 }, (_, i) => i * 4)
      )
      yield* same("head", yield* store.head("ses_a"), 31)
      for (let i = 0; i < 40; i++) {
        yield* same(`note ${i}`, yield* note(store, `k${i}`), i % 4 === 0 ? null : { text: "kept", puts: 1 })
      }
    })
  ),

  testCase(["STO-001", "RT-200"], "a part opened by a call that was taken back is opened by the next", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const turn = yield* startTurn(store, "ses_a")
      yield* Effect.all(
        [
          store.appendUnfenced("ses_a", [created]),
          Effect.exit(store.append("ses_a", turn.fence, [delta(turn, "lost")], { ops: [refuseNote("n")] })),
          store.appendUnfenced("ses_a", [created])
        ],
        { concurrency: "unbounded" }
      )
      for (const text of ["kept ", "too"]) yield* store.append("ses_a", turn.fence, [delta(turn, text)])
      const message = (yield* store.messages("ses_a", { limit: 1 }))[0]
      yield* same(
        "parts",
        message?.parts.map(({ data }) => (data?.type === "text" ? data.text : "")),
        ["kept too"]
      )
    })
  ),

  testCase(["STO-011"], "events of other sessions commit with the call or not at all", ({ clock, store }) =>
    Effect.gen(function* () {
      for (const id of ["ses_lead", "ses_a", "ses_z"]) yield* createSession(store, id)
      const turn = yield* startTurn(store, "ses_lead", 1, "ins_a")
      yield* store.acquireLease("ses_a", { leaseId: "lse_a", owner: "ins_a", ttlMs: 60_000 })
      const others = ["ses_z", "ses_a"].map((sessionId) => ({
        sessionId,
        entries: [entry({ type: "memory-update", operation: "added", memoryId: "mem_1", scope: sessionId })]
      }))
      const done = yield* store.append("ses_lead", turn.fence, [delta(turn, "x")], { others })
      yield* same("value is the own head", done.value, 5)
      yield* same(
        "events",
        done.events.map((event) => [event.sessionId, event.seq]),
        [
          ["ses_lead", 5],
          ["ses_z", 2],
          ["ses_a", 2]
        ]
      )
      yield* store.acquireLease("ses_z", { leaseId: "lse_z", owner: "ins_b", ttlMs: 10_000 })
      const before = yield* Effect.all(["ses_lead", "ses_a", "ses_z"].map((id) => readAll(store, id)))
      const write = store.append("ses_lead", turn.fence, [delta(turn, "y")], { others, ops: [putNote("n")] })
      const refused = yield* failsWith("another's lease", "SessionTurnFenceStale", write)
      yield* same("the session it names", refused._tag === "SessionTurnFenceStale" ? refused.sessionId : "", "ses_z")
      const missing = [{ sessionId: "ses_none", entries: [created] }]
      yield* failsWith(
        "an unknown session",
        "SessionNotFound",
        store.append("ses_lead", turn.fence, [], { others: missing })
      )
      const after = yield* Effect.all(["ses_lead", "ses_a", "ses_z"].map((id) => readAll(store, id)))
      yield* same("nothing changed", canonical(after), canonical(before))
      clock.advance(10_001)
      yield* write
      yield* same("after the lease expired", yield* store.head("ses_z"), 3)
      const named = store.appendUnfenced("ses_z", [], {
        others: [{ sessionId: "ses_a", entries: [created] }],
        owner: "ins_a"
      })
      yield* same("a writer named by the call", (yield* named).events.length, 1)
    })
  ),

  testCase(["RT-187"], "a payload without a JSON form becomes a diagnostic", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const turn = yield* startTurn(store, "ses_a")
      const cycle: Record<string, unknown> = {}
      cycle["self"] = cycle
      for (const raw of [cycle, { n: 1n }, { f: () => 1 }]) {
        yield* store.append("ses_a", turn.fence, [
          { ...delta(turn, "x"), payload: { ...delta(turn, "x").payload, raw } as never }
        ])
      }
      const events = (yield* journalOf(store, "ses_a")).slice(4)
      yield* same(
        "types",
        events.map((event) => event.type),
        ["diagnostic", "diagnostic", "diagnostic"]
      )
      yield* same(
        "codes",
        events.map(({ payload }) => (payload.type === "diagnostic" ? payload.diagnostic.code : "")),
        ["event_unencodable", "event_unencodable", "event_unencodable"]
      )
    })
  )
]
