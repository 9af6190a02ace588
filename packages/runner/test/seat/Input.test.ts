import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { readInput } from "../../src/seat/Input.ts"
import type { InputEvent } from "../../src/terminal/Block.ts"
import type { InputListener } from "../../src/terminal/Terminal.ts"

const make = Effect.fnUntraced(function* (isTty: boolean) {
  let listener: InputListener | undefined
  const events: Array<InputEvent> = []
  const drafts: Array<string> = []
  let ends = 0
  yield* readInput({
    terminal: {
      isTty,
      listen: (next) => {
        listener = next
      },
      restore: () => undefined
    },
    event: (event) => events.push(event),
    draft: (text) => drafts.push(text),
    end: () => (ends += 1)
  })
  const type = (text: string): void => listener?.data(new TextEncoder().encode(text))
  return { type, events, drafts, end: () => listener?.end(), ends: () => ends }
})

describe("a terminal's input", () => {
  it.effect("of a paste that is silent for five seconds becomes a draft [SEAT-I19]", () =>
    Effect.gen(function* () {
      const { drafts, events, type } = yield* make(true)
      type("a \u001b[200~one\ntwo")
      yield* TestClock.adjust(4_999)
      type("\nthree")
      yield* TestClock.adjust(4_999)
      assert.deepStrictEqual(events, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(events, [{ _tag: "UnendedPaste" }])
      type("!\r")
      assert.deepStrictEqual(events.at(-1), { _tag: "Prompt", text: "a one\ntwo\nthree!", replaced: 0 })
      assert.deepStrictEqual(drafts, ["a (pasted 2 lines)", "a (pasted 3 lines)", "a (pasted 3 lines)", ""])
    })
  )

  it.effect("of a paste that ended waits for nothing", () =>
    Effect.gen(function* () {
      const { events, type } = yield* make(true)
      type("\u001b[200~one\u001b[201~")
      yield* TestClock.adjust(60_000)
      assert.deepStrictEqual(events, [])
    })
  )
})

describe("a pipe's input", () => {
  it.effect("is lines, and ends with its last one [SEAT-038]", () =>
    Effect.gen(function* () {
      const { end, ends, events, type } = yield* make(false)
      type("one\ntw")
      type("o")
      end()
      assert.deepStrictEqual(
        events.map((event) => (event._tag === "Prompt" ? event.text : event._tag)),
        ["one", "two"]
      )
      assert.strictEqual(ends(), 1)
    })
  )
})
