import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema, Stream } from "effect"
import { type BadLine, jsonLines, type LineReaderOptions } from "../../src/process/index.ts"
import { owner, sh } from "./support.ts"

const encoder = new TextEncoder()

const read = (chunks: ReadonlyArray<Uint8Array>, options?: LineReaderOptions) => {
  const bad: Array<BadLine> = []
  return Effect.map(
    Stream.runCollect(
      jsonLines(Stream.fromIterable(chunks), { onBad: (line) => Effect.sync(() => void bad.push(line)), ...options })
    ),
    (values) => ({ values: [...values], bad })
  )
}

const bytewise = (text: string) => Array.from(encoder.encode(text), (byte) => Uint8Array.of(byte))

describe("LineReader", () => {
  it.effect("splits at 0x0A only and drops one CR before it, however the bytes arrive [HRN-043]", () =>
    Effect.gen(function* () {
      const text = '{"a":"\u2028\u2029\u0085"}\r\n\n  \n{"b":"€"}\n3'
      const whole = yield* read([encoder.encode(text)])
      assert.deepStrictEqual(whole.values, [{ a: "\u2028\u2029\u0085" }, { b: "€" }, 3])
      assert.deepStrictEqual(yield* read(bytewise(text)), whole)
    })
  )

  it.effect("a line is read as the reader's owner reads it [HRN-043]", () =>
    Effect.gen(function* () {
      const parse = (text: string) => (text === "no" ? Result.fail("no") : Result.succeed(text.length))
      const { bad, values } = yield* read([encoder.encode("{}\nno\nyes\n")], { parse })
      assert.deepStrictEqual(values, [2, 3])
      assert.deepStrictEqual(bad, [{ reason: "not_json", bytes: 2, sample: "no" }])
    })
  )

  it.effect("a line that is too large, not UTF-8 or not JSON is counted, sampled and skipped [HRN-043] [HRN-044]", () =>
    Effect.gen(function* () {
      const { values, bad } = yield* read(
        [
          encoder.encode(`noise ${"x".repeat(300)}\n1\n`),
          Uint8Array.of(0x22, 0xff, 0x22, 0x0a),
          encoder.encode(`"${"y".repeat(2000)}"\n2\n`)
        ],
        { maxFrameBytes: 1000 }
      )
      assert.deepStrictEqual(values, [1, 2])
      assert.deepStrictEqual(
        bad.map((line) => [line.reason, line.bytes]),
        [
          ["not_json", 306],
          ["not_utf8", 3],
          ["too_large", 2002]
        ]
      )
      assert.isTrue(bad.every((line) => line.sample.length <= 200))
    })
  )

  it.effect("a frame of exactly the limit is read, whatever else is in the chunk [HRN-043]", () =>
    Effect.gen(function* () {
      const frame = `"${"z".repeat(998)}"`
      const { values, bad } = yield* read([encoder.encode(`${frame}\n${frame}z\n${frame}\n`)], { maxFrameBytes: 1000 })
      assert.strictEqual(values.length, 2)
      assert.strictEqual(bad.length, 1)
    })
  )

  it.effect("100 bad lines in a row without a good one fail; a good one starts the count again [HRN-044]", () =>
    Effect.gen(function* () {
      const noise = (count: number) => "noise\n".repeat(count)
      const survived = yield* read([encoder.encode(`${noise(99)}1\n${noise(99)}2\n`)])
      assert.deepStrictEqual(survived.values, [1, 2])
      const seen: Array<unknown> = []
      const error = yield* Effect.flip(
        Stream.runForEach(jsonLines(Stream.succeed(encoder.encode(`1\n${noise(100)}2\n`))), (value) =>
          Effect.sync(() => seen.push(value))
        )
      )
      assert.strictEqual(error._tag, "NotAPeer")
      assert.strictEqual(error.badLines, 100)
      assert.deepStrictEqual(seen, [1])
    })
  )

  it.effect.prop(
    "what was written line by line is read, for every way to cut the bytes [HRN-043]",
    [Schema.Array(Schema.Json), Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 7 }))],
    ([values, size]) =>
      Effect.gen(function* () {
        const bytes = encoder.encode(values.map((value) => `${JSON.stringify(value)}\n`).join(""))
        const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
          bytes.subarray(index * size, (index + 1) * size)
        )
        const result = yield* read(chunks)
        assert.deepStrictEqual(
          result.values.map((value) => JSON.stringify(value)),
          values.map((value) => JSON.stringify(value))
        )
      })
  )

  it.live("reads a child's output and its noise [HRN-044]", () =>
    Effect.gen(function* () {
      const children = yield* owner()
      const child = yield* children.spawn(sh('echo starting; echo "{\\"ready\\":true}"; printf "[1]"'))
      assert.deepStrictEqual([...(yield* Stream.runCollect(jsonLines(child.stdout)))], [{ ready: true }, [1]])
    })
  )
})
