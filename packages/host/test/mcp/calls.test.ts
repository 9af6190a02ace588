/** Tools of a session's MCP servers, over real processes (run-protocol 10, AGT-031, AGT-032, AGT-036). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ready } from "./Kit.ts"

describe("a server's answers", () => {
  it.live("text is told as text, structured content as JSON, other blocks as artifacts by name [AGT-036]", () =>
    Effect.gen(function* () {
      const on = yield* ready()
      assert.deepStrictEqual((yield* on.call("manners.echo", { text: "hi" })).output, { output: '{"text":"hi"}' })
      // The same content said a second time as text is dropped.
      assert.deepStrictEqual((yield* on.call("manners.sum", { a: 2, b: 3 })).output, { output: { sum: 5 } })
      assert.deepStrictEqual((yield* on.call("manners.both")).output, {
        output: { text: "In words.", structured_content: { in: "numbers", of: [1, 2] } }
      })
      assert.deepStrictEqual((yield* on.call("manners.picture")).output, {
        output: "Here:\nmore: https://example.com/more",
        attachments: [
          { type: "inline", mime: "image/png", filename: "image 2", artifactId: "art_1" },
          { type: "inline", mime: "text/plain", filename: "demo://notes", artifactId: "art_2" }
        ]
      })
      assert.strictEqual(Buffer.from(on.kept.get("art_1")?.bytes ?? []).toString(), "not really a picture")
      assert.deepStrictEqual((yield* on.call("manners.refuse")).problem, {
        outcome: "failed",
        message: "it did not work out"
      })
      const denied = (yield* on.call("manners.deny")).problem
      assert.strictEqual(denied?.outcome, "failed")
      assert.include(denied?.message, "no such thing")
    })
  )
})
