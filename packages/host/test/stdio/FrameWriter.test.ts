/** Who stopped producing is told when the reader has caught up, however the bytes came to be pending. */
import { assert, describe, it } from "@effect/vitest"
import { makeProtocolOutput } from "@tackroom/sdk/process"
import { Effect } from "effect"
import { PassThrough } from "node:stream"
import { makeFrameWriter } from "../../src/faces/stdio/FrameWriter.ts"

/** A pipe that takes bytes when it is told to. */
const slowPipe = () => {
  const waiting: Array<() => void> = []
  const output = makeProtocolOutput(new PassThrough(), (_, done) => void waiting.push(() => done()))
  return { output, take: () => waiting.shift()?.() }
}

describe("a frame writer", () => {
  it.live("tells when little is pending again, also when no write ever went far [RUN-018]", () =>
    Effect.gen(function* () {
      const { output, take } = slowPipe()
      const told: Array<number> = []
      const caughtUp = yield* Effect.callback<number>((resume) => {
        const writer = makeFrameWriter({
          output,
          lowBytes: 8,
          onPending: (bytes) => {
            told.push(bytes)
            if (told.length > 2) resume(Effect.succeed(bytes))
          }
        })
        writer.send("1234567")
        writer.flush()
        writer.send("7654321")
        writer.flush()
        assert.deepStrictEqual(told, [8, 16])
        take()
        take()
      })
      assert.isBelow(caughtUp, 8)
    })
  )
})
