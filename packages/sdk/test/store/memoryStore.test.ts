import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { createMemoryRuntimeStore, layer as memoryLayer } from "../../src/store/memory/index.ts"
import { layer as sqliteLayer } from "../../src/store/sqlite/index.ts"
import { Store } from "../../src/store/Store.ts"
import {
  admission,
  createSession,
  delta,
  notesForMemory,
  note,
  putNote,
  readAll,
  startTurn,
  turnNames
} from "../../src/testing/storeContractKit.ts"
import { temporaryRoot } from "./sqliteKit.ts"

describe("the memory store", () => {
  it.effect("a snapshot keeps journals, receipts, interactions, artifacts and extension rows [STO-021]", () =>
    Effect.gen(function* () {
      const first = createMemoryRuntimeStore({ extensions: [notesForMemory] })
      yield* createSession(first, "ses_a")
      const turn = yield* startTurn(first, "ses_a")
      const names = turnNames("ses_a", 2)
      yield* first.admit("ses_a", names.messageId, admission("ses_a", names, "waits"))
      const row = yield* first.putArtifact("ses_a", "x/y", Uint8Array.of(1, 2, 3))
      yield* first.append("ses_a", turn.fence, [{ ...delta(turn, "text"), artifactRows: [row] }], {
        ops: [putNote("n")]
      })
      yield* first.openInteraction(
        {
          id: "int_1",
          sessionId: "ses_a",
          rootId: "ses_a",
          turnId: turn.turnId,
          kind: "question",
          nativeId: "q",
          state: "pending",
          request: { questions: [{ question: "Why?", options: [] }] },
          resolution: null,
          withdrawal: null,
          delivered: false,
          createdAt: 0,
          settledAt: null
        },
        turn.fence,
        []
      )
      const before = yield* readAll(first, "ses_a")
      const snapshot = structuredClone(first.snapshot())
      yield* first.append("ses_a", turn.fence, [delta(turn, "later")])
      const second = createMemoryRuntimeStore({ snapshot, extensions: [notesForMemory] })
      assert.deepStrictEqual(yield* readAll(second, "ses_a"), before)
      assert.deepStrictEqual(
        yield* second.receipt("ses_a", names.messageId),
        yield* first.receipt("ses_a", names.messageId)
      )
      assert.deepStrictEqual(yield* second.artifactBytes(row.id, 0, 9), Uint8Array.of(1, 2, 3))
      assert.deepStrictEqual(yield* note(second, "n"), { text: "kept", puts: 1 })
      assert.deepStrictEqual(yield* second.open, yield* first.open)
      assert.strictEqual(
        (yield* second.append("ses_a", turn.fence, [delta(turn, "on")])).value,
        (before?.journal.length ?? 0) + 1
      )
    })
  )

  it.live("both kinds of store are layers that close with their scope", () =>
    Effect.gen(function* () {
      const root = yield* temporaryRoot
      for (const layer of [memoryLayer(), sqliteLayer({ root })]) {
        const store = yield* Effect.provide(
          Effect.gen(function* () {
            const open = yield* Store
            yield* createSession(open, "ses_a")
            assert.strictEqual(yield* open.head("ses_a"), 1)
            return open
          }),
          layer
        )
        assert.strictEqual((yield* Effect.flip(store.head("ses_a")))._tag, "StoreUnavailable")
      }
    })
  )
})
