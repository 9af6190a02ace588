/** Cases of the store contract about session rows, their queue and their leases. */
import { Effect } from "effect"
import type { NewEntry, QueueState } from "../store/RuntimeStore.ts"
import {
  admission,
  breakdown,
  check,
  completion,
  createSession,
  created,
  delta,
  entry,
  failsWith,
  journalOf,
  note,
  putNote,
  queueUpdate,
  refuseNote,
  same,
  sessionOf,
  startOfTime,
  startTurn,
  testCase,
  turnNames,
  type Bench
} from "./storeContractKit.ts"

const told = (queue: QueueState): ReadonlyArray<NewEntry> => [queueUpdate(queue.entries, queue.revision, queue.held)]

/** A session with a running turn 1 and turns 2 … n waiting. */
const withQueue = Effect.fnUntraced(function* ({ store }: Bench, waiting: number) {
  yield* createSession(store, "ses_q")
  const turn = yield* startTurn(store, "ses_q", 1)
  for (let n = 2; n < waiting + 2; n++) {
    const names = turnNames("ses_q", n)
    yield* store.admit("ses_q", names.messageId, admission("ses_q", names, `text ${n}`))
  }
  return turn
})

const ids = (queue: QueueState): ReadonlyArray<string> => queue.entries.map((row) => row.messageId)

export const sessionCases = [
  testCase(["STO-001", "RT-180"], "a session is made with its first events, numbered from 1", ({ store }) =>
    Effect.gen(function* () {
      const made = yield* store.createSessions([
        { row: sessionOf("ses_a"), entries: [created, entry({ type: "session-status", status: "idle" })] }
      ])
      yield* same("head", made.value[0]?.head, 2)
      yield* same(
        "events",
        made.events.map((event) => [event.seq, event.type]),
        [
          [1, "session-created"],
          [2, "session-status"]
        ]
      )
      yield* same("stored row", yield* store.getSession("ses_a"), made.value[0])
      yield* same("unknown session", yield* store.getSession("ses_b"), undefined)
    })
  ),

  testCase(["RT-042"], "a session id that exists is refused and changes nothing", ({ store }) =>
    Effect.gen(function* () {
      const [row] = yield* createSession(store, "ses_a")
      yield* failsWith("a second creation", "SessionConflict", createSession(store, "ses_a", { directory: "/other" }))
      yield* same("row", yield* store.getSession("ses_a"), row)
      yield* same("head", yield* store.head("ses_a"), 1)
    })
  ),

  testCase(["STO-001", "STO-010"], "several sessions are made together or not at all", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_taken")
      const rows = ["ses_x", "ses_taken"].map((id) => ({ row: sessionOf(id), entries: [created] }))
      yield* failsWith("the creation", "SessionConflict", store.createSessions(rows, { ops: [putNote("team")] }))
      yield* same("first of them", yield* store.getSession("ses_x"), undefined)
      yield* same("note", yield* note(store, "team"), null)
      const made = yield* store.createSessions(
        ["ses_x", "ses_y"].map((id) => ({ row: sessionOf(id), entries: [created] })),
        { ops: (sessions) => [putNote("team", sessions.map((row) => row.id).join())] }
      )
      yield* same(
        "heads",
        made.value.map((row) => row.head),
        [1, 1]
      )
      yield* same("note", yield* note(store, "team"), { text: "ses_x,ses_y", puts: 1 })
    })
  ),

  testCase(["STO-012", "STO-006"], "a title is stored as well-formed text without U+0000", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a", { title: "made\ud800", titleSource: "prompt" })
      yield* same("created title", (yield* store.getSession("ses_a"))?.title, "made\ufffd")
      yield* store.appendUnfenced("ses_a", [
        entry({ type: "session-title", title: "half \udc00 and \0 zero", titleSource: "user" })
      ])
      const row = yield* store.getSession("ses_a")
      yield* check("the title is well-formed", row?.title?.isWellFormed() === true && !row.title.includes("\0"))
      const [, title] = (yield* store.read("ses_a", 0, 10)).events
      yield* same("the event keeps what was said", title?.payload, {
        type: "session-title",
        title: "half \udc00 and \0 zero",
        titleSource: "user"
      })
    })
  ),

  testCase(["STO-005"], "a title of a lower rank does not replace a higher one", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const say = (title: string, titleSource: "prompt" | "harness" | "user") =>
        Effect.andThen(
          store.appendUnfenced("ses_a", [entry({ type: "session-title", title, titleSource })]),
          Effect.map(store.getSession("ses_a"), (row) => row?.title)
        )
      yield* same("prompt", yield* say("one", "prompt"), "one")
      yield* same("harness over prompt", yield* say("two", "harness"), "two")
      yield* same("prompt under harness", yield* say("three", "prompt"), "two")
      yield* same("user over harness", yield* say("four", "user"), "four")
      yield* same("harness under user", yield* say("five", "harness"), "four")
      yield* same("user over user", yield* say("six", "user"), "six")
    })
  ),

  testCase(["STO-001"], "an update sets columns and appends its events in one step", ({ clock, store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      clock.advance(5)
      const { events, value } = yield* store.updateSession(
        "ses_a",
        { tags: ["a", "b"], metadata: { n: 1 }, archivedAt: startOfTime + 5 },
        [entry({ type: "session-info", tags: ["a", "b"], metadata: { n: 1 }, archived: true })]
      )
      yield* same("tags", value.tags, ["a", "b"])
      yield* same("archived", value.archivedAt, startOfTime + 5)
      yield* same("updated", value.updatedAt, startOfTime + 5)
      yield* same("cursor", events[0]?.seq, 2)
      yield* failsWith("an unknown session", "SessionNotFound", store.updateSession("ses_no", {}, []))
      const refused = store.updateSession("ses_a", { tags: [] }, [created], { ops: [refuseNote("k")] })
      yield* failsWith("a refused op", "OpFailed", refused)
      yield* same("row", yield* store.getSession("ses_a"), value)
    })
  ),

  testCase(["RT-050"], "a listing is filtered, newest first, in pages without overlap", ({ clock, store }) =>
    Effect.gen(function* () {
      for (let i = 0; i < 7; i++) {
        yield* createSession(store, `ses_${i}`, {
          updatedAt: startOfTime + (i >> 1),
          directory: i % 2 === 0 ? "/even" : "/odd",
          parentId: i === 6 ? "ses_0" : null,
          owner: i === 5 ? "host_1" : null,
          archivedAt: i === 4 ? startOfTime : null
        })
      }
      clock.advance(1)
      const listed = (input: Parameters<typeof store.listSessions>[0]) =>
        Effect.map(store.listSessions(input), (rows) => rows.map((row) => row.id))
      yield* same("all", yield* listed({ limit: 100 }), ["ses_6", "ses_4", "ses_5", "ses_2", "ses_3", "ses_0", "ses_1"])
      yield* same("directory", yield* listed({ limit: 100, directory: "/odd" }), ["ses_5", "ses_3", "ses_1"])
      yield* same("roots", yield* listed({ limit: 2, parentSessionId: null }), ["ses_4", "ses_5"])
      yield* same("children", yield* listed({ limit: 9, parentSessionId: "ses_0" }), ["ses_6"])
      yield* same("owner", yield* listed({ limit: 9, owner: "host_1" }), ["ses_5"])
      yield* same("archived", yield* listed({ limit: 9, archived: true }), ["ses_4"])
      yield* same("unknown workspace", yield* listed({ limit: 9, workspaceId: "other" }), [])
      const pages: Array<string> = []
      let after: { readonly updatedAt: number; readonly id: string } | undefined
      for (;;) {
        const page = yield* store.listSessions({ limit: 2, ...(after === undefined ? {} : { after }) })
        const last = page.at(-1)
        if (last === undefined) break
        pages.push(...page.map((row) => row.id))
        after = { updatedAt: last.updatedAt, id: last.id }
      }
      yield* same("pages", pages, yield* listed({ limit: 100 }))
    })
  ),

  testCase(["RT-043", "RT-051"], "a deleted session is gone with its children, its id for ever", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      yield* createSession(store, "ses_child", { parentId: "ses_a", rootId: "ses_a" })
      yield* createSession(store, "ses_grandchild", { parentId: "ses_child", rootId: "ses_a" })
      yield* createSession(store, "ses_other")
      const turn = yield* startTurn(store, "ses_grandchild")
      yield* store.append("ses_grandchild", turn.fence, [delta(turn, "text")])
      yield* store.deleteSession("ses_a", { ops: [putNote("deleted")] })
      for (const id of ["ses_a", "ses_child", "ses_grandchild"]) {
        yield* failsWith("reading the row", "SessionGone", store.getSession(id))
        yield* failsWith("reading events", "SessionGone", store.read(id, 0, 10))
        yield* failsWith("appending", "SessionGone", store.appendUnfenced(id, [created]))
        yield* failsWith("making it again", "SessionGone", createSession(store, id))
        yield* same("messages", yield* store.messages(id, { limit: 10 }), [])
        yield* same("lease", yield* store.lease(id), undefined)
      }
      yield* same("open turns", yield* store.openTurns({}), [])
      yield* same(
        "the others",
        (yield* store.listSessions({ limit: 10 })).map((row) => row.id),
        ["ses_other"]
      )
      yield* same("note", yield* note(store, "deleted"), { text: "kept", puts: 1 })
      yield* failsWith("a second deletion", "SessionGone", store.deleteSession("ses_a"))
      yield* failsWith("an unknown session", "SessionNotFound", store.deleteSession("ses_never"))
    })
  ),

  testCase(["RT-051"], "a long journal is deleted whole", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const turn = yield* startTurn(store, "ses_a")
      for (let i = 0; i < 10; i++) {
        yield* store.append(
          "ses_a",
          turn.fence,
          Array.from({ length: 500 }, (_, n) => delta(turn, "x", `p${i}_${n % 50}`))
        )
      }
      const row = yield* store.putArtifact("ses_a", "x/y", new Uint8Array(10 << 20))
      yield* store.append("ses_a", turn.fence, [{ ...delta(turn, "x"), artifactRows: [row] }])
      yield* store.deleteSession("ses_a")
      yield* failsWith("reading", "SessionGone", store.read("ses_a", 0, 1))
      yield* same("artifact", yield* store.artifact(row.id), undefined)
      yield* same("receipt", yield* store.receipt("ses_a", turn.messageId), undefined)
      yield* same("turns", yield* store.turnsOf("ses_a", 10), [])
    })
  ),

  // ---- queue

  testCase(["RT-110", "RT-113"], "waiting messages keep their order and every change its number", (bench) =>
    Effect.gen(function* () {
      const { store } = bench
      yield* withQueue(bench, 3)
      const queue = yield* store.queue("ses_q")
      yield* same(
        "positions",
        queue.entries.map((row) => row.position),
        [0, 1, 2]
      )
      yield* same("revision", queue.revision, 3)
      const updates = (yield* journalOf(store, "ses_q")).filter((event) => event.type === "queue-update")
      yield* same(
        "journaled lists",
        updates.map(({ payload }) =>
          payload.type === "queue-update" ? [payload.revision, payload.entries.length] : undefined
        ),
        [
          [1, 1],
          [2, 2],
          [3, 3]
        ]
      )
      const again = yield* bench.reopen(store)
      yield* same("after reopening", yield* again.queue("ses_q"), queue)
    })
  ),

  testCase(["RT-114", "RT-115", "RT-116", "RT-117"], "queue changes: move, reorder, edit, remove", (bench) =>
    Effect.gen(function* () {
      const { store } = bench
      yield* withQueue(bench, 3)
      const [a, b, c] = [2, 3, 4].map((n) => turnNames("ses_q", n).messageId) as [string, string, string]
      const moved = yield* store.queueChange("ses_q", { _tag: "Move", messageId: c, before: a }, 3, told)
      yield* same("moved", ids(moved.value), [c, a, b])
      yield* same("revision", moved.value.revision, 4)
      yield* same(
        "event",
        moved.events.map((event) => event.type),
        ["queue-update"]
      )
      const last = yield* store.queueChange("ses_q", { _tag: "Move", messageId: c, before: null }, 4, told)
      yield* same("moved to the end", ids(last.value), [a, b, c])
      const stale = store.queueChange("ses_q", { _tag: "Remove", messageId: a }, 4, told)
      const conflict = yield* failsWith("an old revision", "QueueRevisionConflict", stale)
      yield* same(
        "the list it answers",
        conflict._tag === "QueueRevisionConflict" ? conflict.list?.entries.map((item) => item.messageId) : undefined,
        [a, b, c]
      )
      for (const messageIds of [
        [a, b],
        [a, b, b],
        [a, b, "other"],
        [a, b, c, c]
      ]) {
        yield* failsWith(
          "a wrong reorder",
          "QueueInvalid",
          store.queueChange("ses_q", { _tag: "Reorder", messageIds }, undefined, told)
        )
      }
      const reordered = yield* store.queueChange("ses_q", { _tag: "Reorder", messageIds: [b, c, a] }, 5, told)
      yield* same("reordered", ids(reordered.value), [b, c, a])
      yield* store.queueChange(
        "ses_q",
        { _tag: "Edit", messageId: b, prompt: { text: "new" }, digest: "new" },
        undefined,
        told
      )
      const edited = (yield* store.queue("ses_q")).entries[0]
      yield* same("edited parts", edited?.parts, [{ type: "text", text: "new" }])
      yield* same("edited receipt", (yield* store.receipt("ses_q", b))?.digest, "new")
      const removed = yield* store.queueChange("ses_q", { _tag: "Remove", messageId: c }, undefined, told)
      yield* same(
        "removed",
        removed.value.entries.map((row) => [row.messageId, row.position]),
        [
          [b, 0],
          [a, 1]
        ]
      )
      yield* same("its receipt", (yield* store.receipt("ses_q", c))?.state, "removed")
      yield* failsWith(
        "removing it again",
        "QueueInvalid",
        store.queueChange("ses_q", { _tag: "Remove", messageId: c }, undefined, told)
      )
      yield* same("stored list", ids(yield* store.queue("ses_q")), [b, a])
    })
  ),

  testCase(
    ["RT-111", "RT-118"],
    "a settled turn names the next message, and a started one has left the queue",
    (bench) =>
      Effect.gen(function* () {
        const { store } = bench
        const turn = yield* withQueue(bench, 2)
        const settled = yield* store.settle("ses_q", turn.fence, completion("ses_q", turn))
        const next = turnNames("ses_q", 2)
        yield* same("next", settled.value.next?.messageId, next.messageId)
        const before = yield* store.receipt("ses_q", next.messageId)
        const started = yield* store.admit("ses_q", next.messageId, (state) => {
          const begin = admission("ses_q", next, "text 2")({ ...state, receipt: undefined })
          return begin._tag === "Started" ? { ...begin, dequeue: next.messageId } : begin
        })
        yield* same("started", started.value._tag, "Started")
        yield* same("the rest", ids(yield* store.queue("ses_q")), [turnNames("ses_q", 3).messageId])
        const receipt = yield* store.receipt("ses_q", next.messageId)
        yield* same("receipt", [receipt?.state, receipt?.turnId], ["admitted", next.turnId])
        yield* same("its first cursor", receipt?.startSeq, before?.startSeq)
        yield* failsWith(
          "editing a started one",
          "QueueEntryStarted",
          store.queueChange("ses_q", { _tag: "Remove", messageId: next.messageId }, undefined, told)
        )
      })
  ),

  testCase(["RT-112"], "a failed turn holds a queue that is not empty, until it is released", (bench) =>
    Effect.gen(function* () {
      const { store } = bench
      const turn = yield* withQueue(bench, 1)
      const settled = yield* store.settle("ses_q", turn.fence, breakdown(turn))
      yield* same("nothing may start", settled.value.next, undefined)
      const held = yield* store.queue("ses_q")
      yield* same("held", [held.held, held.revision], ["turn_failed", 2])
      yield* same("last event", settled.events.at(-1)?.type, "queue-update")
      const released = yield* store.queueChange("ses_q", { _tag: "Release" }, undefined, told)
      yield* same("released", [released.value.held, released.value.revision], [null, 3])
      const again = yield* store.queueChange("ses_q", { _tag: "Release" }, undefined, told)
      yield* same("a second release changes nothing", [again.value.revision, again.events.length], [3, 0])
    })
  ),

  testCase(["RT-112"], "a failed turn does not hold an empty queue", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const turn = yield* startTurn(store, "ses_a")
      yield* store.settle("ses_a", turn.fence, breakdown(turn))
      yield* same("queue", yield* store.queue("ses_a"), { entries: [], revision: 0, held: null })
    })
  ),

  // ---- leases

  testCase(["RT-130", "RT-131"], "a lease is held by one; each acquisition gets the next token", ({ clock, store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const ask = (leaseId: string, owner: string, takeOver?: () => boolean) =>
        store.acquireLease("ses_a", { leaseId, owner, ttlMs: 30_000 }, takeOver)
      const first = yield* ask("lse_1", "ins_a")
      yield* same("first", [first?.fence, first?.expiresAt], [1, startOfTime + 30_000])
      yield* same("another while it is held", yield* ask("lse_2", "ins_b"), undefined)
      clock.advance(10_000)
      const renewed = yield* ask("lse_1", "ins_a")
      yield* same("the same again", [renewed?.fence, renewed?.expiresAt], [1, startOfTime + 40_000])
      const taken = yield* ask("lse_3", "ins_b", () => true)
      yield* same("taken over", [taken?.fence, taken?.owner], [2, "ins_b"])
      yield* store.releaseLease("ses_a", "lse_1")
      yield* same("a release under the old id", (yield* store.lease("ses_a"))?.leaseId, "lse_3")
      yield* store.releaseLease("ses_a", "lse_3")
      yield* same("released", yield* store.lease("ses_a"), undefined)
      yield* same("next token", (yield* ask("lse_4", "ins_a"))?.fence, 3)
      yield* same(
        "an unknown session",
        yield* store.acquireLease("ses_no", { leaseId: "l", owner: "o", ttlMs: 1 }),
        undefined
      )
      yield* same("the row's token", (yield* store.getSession("ses_a"))?.fence, 3)
    })
  ),

  testCase(["RT-131", "RT-132"], "leases expire, and are renewed together", ({ clock, store }) =>
    Effect.gen(function* () {
      for (const [id, owner] of [
        ["ses_a", "ins_a"],
        ["ses_b", "ins_a"],
        ["ses_c", "ins_b"]
      ] as const) {
        yield* createSession(store, id)
        yield* store.acquireLease(id, { leaseId: `lse_${id}`, owner, ttlMs: 30_000 })
      }
      clock.advance(20_000)
      const renewed = yield* store.renewLeases("ins_a", 30_000)
      yield* same("renewed", renewed.map((lease) => lease.sessionId).sort(), ["ses_a", "ses_b"])
      clock.advance(10_000)
      yield* same(
        "expired",
        (yield* store.expiredLeases).map((lease) => lease.sessionId),
        ["ses_c"]
      )
      const taken = yield* store.acquireLease("ses_c", { leaseId: "lse_new", owner: "ins_a", ttlMs: 30_000 })
      yield* same("taken", taken?.fence, 2)
      yield* same("nothing left to renew", yield* store.renewLeases("ins_b", 30_000), [])
    })
  ),

  // ---- small rows

  testCase(["STO-006"], "bindings, starts, instances and processes are kept as given", (bench) =>
    Effect.gen(function* () {
      const { clock, store } = bench
      yield* createSession(store, "ses_a")
      const start = { sessionId: "ses_a", operationId: "op_1", state: "starting" } as const
      yield* store.putStart(start)
      yield* same("start", yield* store.sessionStart("ses_a"), start)
      const binding = {
        sessionId: "ses_a",
        workspaceId: "default",
        directory: "/srv/app",
        connectionId: "native:scripted",
        upstreamSessionId: "up \ud800 \0",
        upstreamState: "pending"
      } as const
      const begun = { ...start, state: "created", upstreamSessionId: "up" } as const
      yield* store.putBinding(binding, begun)
      yield* store.putBinding({ ...binding, ownerKey: "k", upstreamState: "confirmed" })
      const instance = { id: "ins_a", host: "here", pid: 1, started: "then", heartbeatAt: startOfTime }
      yield* store.registerInstance(instance)
      const child = {
        id: "prc_1",
        instanceId: "ins_a",
        pid: 2,
        started: "now",
        pgid: 2,
        role: "harness",
        command: "x",
        sessionId: null
      }
      yield* store.addProcess(child)
      clock.advance(7)
      yield* store.heartbeat("ins_a")
      const again = yield* bench.reopen(store)
      yield* same("start", yield* again.sessionStart("ses_a"), begun)
      yield* same("binding", yield* again.binding("ses_a"), { ...binding, ownerKey: "k", upstreamState: "confirmed" })
      yield* same("instances", yield* again.instances, [{ ...instance, heartbeatAt: startOfTime + 7 }])
      yield* same("processes", yield* again.processes, [child])
      yield* again.removeProcess("prc_1")
      yield* again.removeInstance("ins_a")
      yield* same("none left", [yield* again.processes, yield* again.instances], [[], []])
    })
  )
]
