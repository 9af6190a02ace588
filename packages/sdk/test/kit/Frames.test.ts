import { assert, describe, it } from "@effect/vitest"
import { eventSchemas } from "@tackroom/protocol/events"
import { Schema } from "effect"
import { makeFrames } from "../../src/adapters.ts"

interface Frame {
  readonly kind: string
  readonly text?: string
}

const frames = () =>
  makeFrames<{ readonly count: number }, Frame>({
    initial: { count: 0 },
    kindOf: (frame) => frame.kind,
    translate: (state, frame) => {
      if (frame.kind === "text") {
        if (frame.text === undefined) throw new TypeError("a text without text")
        return {
          state: { count: state.count + 1 },
          events: [{ type: "harness-notice", code: "text", message: `${state.count} ${frame.text}` }]
        }
      }
      return "unknown"
    }
  })

describe("frames", () => {
  it("a frame that cannot be translated is one diagnostic, and the state is as before it [RT-188]", () => {
    const session = frames()
    assert.strictEqual(session.accept({ kind: "text", text: "a" }).length, 1)
    const [event, ...more] = session.accept({ kind: "text" })
    assert.deepStrictEqual(event, {
      type: "diagnostic",
      diagnostic: {
        code: "adapter_error",
        message: "A frame of kind text could not be translated",
        details: { reason: "a text without text" }
      }
    })
    assert.isTrue(Schema.is(eventSchemas.diagnostic as Schema.Codec<unknown>)(event))
    assert.deepStrictEqual(more, [])
    assert.deepStrictEqual(session.state(), { count: 1 })
    assert.deepInclude(session.accept({ kind: "text", text: "b" })[0], { message: "1 b" })
  })

  it("unknown kinds are counted and told of once each, and cannot fill the memory [RT-189]", () => {
    const session = frames()
    const told = ["odd", "odd", "other", "odd"].flatMap((kind) => session.accept({ kind }))
    assert.deepStrictEqual(
      told.map((event) => (event.type === "harness-notice" ? [event.code, event.details] : [])),
      [
        ["unknown_native_event", { kind: "odd" }],
        ["unknown_native_event", { kind: "other" }]
      ]
    )
    assert.deepStrictEqual(
      [...session.unknown()],
      [
        ["odd", 3],
        ["other", 1]
      ]
    )
    for (let i = 0; i < 5_000; i++) session.accept({ kind: `made up ${i}` })
    assert.isBelow(session.unknown().size, 1_000)
  })
})
