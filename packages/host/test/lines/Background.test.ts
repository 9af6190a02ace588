import { assert, describe, it } from "@effect/vitest"
import type { EventPayload } from "@tackroom/protocol/events"
import { Effect } from "effect"
import { readBackground } from "../../src/faces/serve/Background.ts"
import type { Entry } from "../../src/runs/Entries.ts"

const titled = (title: string): EventPayload => ({ type: "session-title", title, titleSource: "harness" })
const late: EventPayload = { type: "text-delta", delta: "late words", messageId: "m", partId: "p" }

/** A journal that is read in pages of ten. */
const journalOf = (entries: ReadonlyArray<Entry>) => ({
  entries: (_sessionId: string, after: number) =>
    Effect.succeed({ entries: entries.filter(({ cursor }) => cursor > after).slice(0, 10), head: entries.length })
})
const entry = (cursor: number, payload: EventPayload, more: Partial<Entry> = {}): Entry => ({
  cursor,
  turnId: undefined,
  afterTurn: undefined,
  payload,
  ...more
})

describe("what happened between two runs", () => {
  it.effect("is told with its cursor: late output and facts of the session, and nobody else's turn [SRV-301]", () =>
    Effect.gen(function* () {
      const journal = journalOf([
        entry(1, titled("before")),
        entry(2, late, { afterTurn: "trn_1" }),
        entry(3, late, { turnId: "trn_other" }),
        entry(4, titled("A")),
        entry(5, { type: "session-status", status: "idle" }),
        entry(6, titled("of the run"), { turnId: "trn_2" })
      ])
      assert.deepStrictEqual(yield* readBackground(journal, "s", 1, 5), [
        { type: "notify", cursor: 2, kind: "background", data: { kind: "text", data: { text: "late words" } } },
        { type: "notify", cursor: 4, kind: "background", data: { kind: "title", data: { title: "A" } } }
      ])
    })
  )

  it.effect("of very many the newest are told and the others counted [SRV-302]", () =>
    Effect.gen(function* () {
      const many = Array.from({ length: 300 }, (_, index) => entry(index + 1, titled(`T${index}`)))
      const told = yield* readBackground(journalOf(many), "s", 0, 300)
      assert.lengthOf(told, 257)
      assert.deepInclude(told[0], { kind: "background_dropped", data: { count: 44 } })
      assert.deepInclude(told.at(-1), { data: { kind: "title", data: { title: "T299" } } })
      const large = Array.from({ length: 8 }, (_, index) => entry(index + 1, titled("x".repeat(300_000))))
      const some = yield* readBackground(journalOf(large), "s", 0, 8)
      assert.deepInclude(some[0], { data: { count: 5 } })
    })
  )
})
