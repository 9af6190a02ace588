/** Cases of the store contract about permissions and questions. */
import type { Resolution } from "@tackroom/protocol/events"
import { Effect } from "effect"
import type { InteractionRow } from "../store/Rows.ts"
import type { NewEntry, RuntimeStore } from "../store/RuntimeStore.ts"
import {
  createSession,
  entry,
  failsWith,
  journalOf,
  note,
  putNote,
  readAll,
  refuseNote,
  same,
  startOfTime,
  startTurn,
  testCase,
  type TurnNames
} from "./storeContractKit.ts"
import { rebuilds } from "./storeContractReads.ts"

const subject = {
  tool: "shell.run",
  title: "run a command",
  paths: ["/srv/app"],
  options: [
    { id: "yes", label: "Yes", kind: "allow_once" },
    { id: "no", label: "No", kind: "reject_once" }
  ]
} as const

const permission = (sessionId: string, turn: TurnNames, id: string, nativeId = id): InteractionRow => ({
  id,
  sessionId,
  rootId: sessionId,
  turnId: turn.turnId,
  kind: "permission",
  nativeId,
  state: "pending",
  request: subject,
  resolution: null,
  withdrawal: null,
  delivered: false,
  createdAt: startOfTime,
  settledAt: null
})

const asked = (turn: TurnNames, id: string): NewEntry =>
  entry({ type: "permission-request", requestId: id, ...subject }, turn.turnId)

const decided = (decision: "allow_once" | "deny", by = "ana"): Resolution => ({
  decision,
  optionId: decision === "deny" ? "no" : "yes",
  by,
  origin: "person",
  at: new Date(startOfTime).toISOString()
})

const told =
  (decision: "allow_once" | "deny", by = "ana") =>
  (row: InteractionRow): ReadonlyArray<NewEntry> => [
    {
      payload: {
        type: "permission-resolved",
        requestId: row.id,
        tool: "shell.run",
        decision,
        optionId: decision === "deny" ? "no" : "yes",
        by,
        origin: "person"
      },
      ...(row.turnId === null ? {} : { turnId: row.turnId })
    }
  ]

const withAsk = Effect.fnUntraced(function* (store: RuntimeStore, id = "int_1") {
  yield* createSession(store, "ses_a")
  const turn = yield* startTurn(store, "ses_a")
  yield* store.openInteraction(permission("ses_a", turn, id, "native-1"), turn.fence, [asked(turn, id)], {
    session: { phase: "waiting" }
  })
  return turn
})

export const interactionCases = [
  testCase(["RT-250"], "a request is stored with its event and the waiting phase", ({ store }) =>
    Effect.gen(function* () {
      const turn = yield* withAsk(store)
      const row = yield* store.interaction("int_1")
      yield* same("row", [row?.state, row?.nativeId, row?.request], ["pending", "native-1", subject])
      yield* same("phase", (yield* store.getSession("ses_a"))?.phase, "waiting")
      yield* same("event", (yield* journalOf(store, "ses_a")).at(-1)?.type, "permission-request")
      yield* same(
        "pending",
        (yield* store.interactions({ state: "pending" })).map((found) => found.id),
        ["int_1"]
      )
      const again = yield* store.openInteraction(permission("ses_a", turn, "int_2", "native-1"), turn.fence, [
        asked(turn, "int_2")
      ])
      yield* same("the same native id is the same request", [again.value.id, again.events.length], ["int_1", 0])
      yield* same("nothing was added", yield* store.interaction("int_2"), undefined)
      const stale = store.openInteraction(permission("ses_a", turn, "int_3"), turn.fence + 1, [asked(turn, "int_3")])
      yield* failsWith("an old token", "SessionTurnFenceStale", stale)
    })
  ),

  testCase(
    ["RT-251", "RT-252"],
    "the first decision wins; the same again is told so, another refused",
    ({ clock, store }) =>
      Effect.gen(function* () {
        yield* withAsk(store)
        clock.advance(50)
        const resolve = (decision: "allow_once" | "deny", by: string) =>
          store.resolveInteraction("int_1", decided(decision, by), told(decision, by), {
            session: { phase: "running" },
            ops: [putNote(`by-${by}`)]
          })
        const done = yield* resolve("allow_once", "ana")
        yield* same("resolved", [done.value._tag, done.value.row.state], ["Resolved", "resolved"])
        yield* same(
          "events",
          done.events.map((event) => event.type),
          ["permission-resolved"]
        )
        yield* same("settled at", done.value.row.settledAt, startOfTime + 50)
        const again = yield* resolve("allow_once", "ben")
        yield* same("again", [again.value._tag, again.events.length], ["Already", 0])
        yield* same("its op did not run", yield* note(store, "by-ben"), null)
        const before = yield* readAll(store, "ses_a")
        const other = yield* failsWith("another decision", "InteractionAlreadyResolved", resolve("deny", "eva"))
        yield* same(
          "the stored one",
          other._tag === "InteractionAlreadyResolved" ? other.resolution : undefined,
          done.value.row.resolution
        )
        yield* same("nothing changed", yield* readAll(store, "ses_a"), before)
        yield* failsWith(
          "an unknown id",
          "InteractionNotFound",
          store.resolveInteraction("int_none", decided("deny"), told("deny"))
        )
        yield* store.markDelivered("int_1")
        yield* same("delivered", (yield* store.interaction("int_1"))?.delivered, true)
        yield* rebuilds(store, "ses_a")
      })
  ),

  testCase(["RT-252"], "of many decisions at once exactly one is stored", ({ store }) =>
    Effect.gen(function* () {
      yield* withAsk(store)
      const calls = Array.from({ length: 20 }, (_, i) =>
        Effect.exit(
          store.resolveInteraction(
            "int_1",
            decided(i % 2 === 0 ? "allow_once" : "deny", `p${i}`),
            told(i % 2 === 0 ? "allow_once" : "deny", `p${i}`)
          )
        )
      )
      const exits = yield* Effect.all(calls, { concurrency: "unbounded" })
      const resolved = exits.filter((exit) => exit._tag === "Success" && exit.value.value._tag === "Resolved")
      yield* same("resolved", resolved.length, 1)
      const events = yield* journalOf(store, "ses_a")
      yield* same("events", events.filter((event) => event.type === "permission-resolved").length, 1)
    })
  ),

  testCase(["RT-255", "RT-263"], "a withdrawal has its event, and ends what could be answered", ({ store }) =>
    Effect.gen(function* () {
      const turn = yield* withAsk(store)
      yield* store.openInteraction(permission("ses_a", turn, "int_2"), turn.fence, [asked(turn, "int_2")])
      yield* store.resolveInteraction("int_2", decided("deny"), told("deny"))
      const done = yield* store.withdrawInteractions(["int_1", "int_2", "int_none"], "restart", {
        session: { phase: "running" }
      })
      yield* same(
        "withdrawn",
        done.value.map((row) => [row.id, row.withdrawal?.reason]),
        [["int_1", "restart"]]
      )
      yield* same(
        "events",
        done.events.map(({ payload, turnId }) => [payload, turnId]),
        [[{ type: "interaction-withdrawn", requestId: "int_1", kind: "permission", reason: "restart" }, turn.turnId]]
      )
      yield* failsWith(
        "answering it",
        "InteractionWithdrawn",
        store.resolveInteraction("int_1", decided("deny"), told("deny"))
      )
      const again = yield* store.withdrawInteractions(["int_1"], "expired")
      yield* same("again", [again.value, again.events], [[], []])
    })
  ),

  testCase(["RT-264", "STO-001"], "a decision made by policy is one transaction with its request", ({ clock, store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const turn = yield* startTurn(store, "ses_a")
      clock.advance(20)
      const resolution = {
        decision: "allow_once",
        optionId: "yes",
        origin: "policy",
        at: new Date(startOfTime).toISOString()
      } as const
      const row: InteractionRow = {
        ...permission("ses_a", turn, "int_1"),
        state: "resolved",
        resolution,
        settledAt: startOfTime
      }
      const entries = [
        asked(turn, "int_1"),
        entry(
          {
            type: "permission-resolved",
            requestId: "int_1",
            tool: "shell.run",
            decision: "allow_once",
            optionId: "yes",
            origin: "policy"
          },
          turn.turnId
        )
      ]
      yield* failsWith(
        "a refused op",
        "OpFailed",
        store.openInteraction(row, turn.fence, entries, { ops: [refuseNote("k")] })
      )
      yield* same("nothing is stored", yield* store.interaction("int_1"), undefined)
      yield* store.openInteraction(row, turn.fence, entries)
      yield* same("row", (yield* store.interaction("int_1"))?.resolution, {
        ...resolution,
        at: new Date(startOfTime + 20).toISOString()
      })
      yield* rebuilds(store, "ses_a")
    })
  ),

  testCase(["STO-010"], "interactions are found by session, root, turn and state", ({ clock, store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      yield* createSession(store, "ses_b", { parentId: "ses_a", rootId: "ses_a" })
      const a = yield* startTurn(store, "ses_a")
      const b = yield* startTurn(store, "ses_b")
      yield* store.openInteraction(permission("ses_a", a, "int_1"), a.fence, [asked(a, "int_1")])
      clock.advance(1)
      yield* store.openInteraction({ ...permission("ses_b", b, "int_2"), rootId: "ses_a" }, b.fence, [
        asked(b, "int_2")
      ])
      clock.advance(1)
      yield* store.openInteraction(permission("ses_a", a, "int_3"), a.fence, [asked(a, "int_3")])
      yield* store.resolveInteraction("int_3", decided("deny"), told("deny"))
      const found = (filter: Parameters<typeof store.interactions>[0]) =>
        Effect.map(store.interactions(filter), (rows) => rows.map((row) => row.id))
      yield* same("root", yield* found({ rootId: "ses_a" }), ["int_1", "int_2", "int_3"])
      yield* same("pending under root", yield* found({ rootId: "ses_a", state: "pending" }), ["int_1", "int_2"])
      yield* same("session", yield* found({ sessionId: "ses_a" }), ["int_1", "int_3"])
      yield* same("turn", yield* found({ turnId: b.turnId }), ["int_2"])
      yield* same("limit", yield* found({ limit: 1 }), ["int_1"])
    })
  )
]
