import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { DeltaEvent } from "@tackroom/protocol/events"
import { Coalescer, coalesceDefaults, utf8Length } from "../../src/runtime/Coalescer.ts"
import { cut, envelopeLimit, fieldLimit } from "../../src/runtime/LargeValues.ts"
import { KnownSecrets } from "../../src/runtime/Secrets.ts"

const delta = (text: string, partId = "p"): DeltaEvent => ({ type: "text-delta", delta: text, messageId: "m", partId })
const textOf = (rows: ReadonlyArray<DeltaEvent>): string => rows.map((row) => row.delta).join("")

const Pieces = Schema.Array(
  Schema.Struct({ text: Schema.String, ms: Schema.Literals([0, 1, 10, 30, 120]), flush: Schema.Boolean })
)

describe("deltas", () => {
  it.prop("the rows of a part concatenate to what the driver emitted [RT-200, RT-191]", [Pieces], ([pieces]) => {
    const coalescer = new Coalescer({ ...coalesceDefaults, bytes: 256 })
    const rows: Array<DeltaEvent> = []
    let now = 0
    for (const piece of pieces) {
      now += piece.ms
      rows.push(...coalescer.push(delta(piece.text), now))
      const row = piece.flush ? coalescer.flush() : undefined
      if (row !== undefined) rows.push(row)
    }
    rows.push(...coalescer.close())
    assert.strictEqual(textOf(rows), pieces.map((piece) => piece.text).join(""))
  })

  it("a flush never splits a scalar value, also when the driver did [RT-204]", () => {
    const coalescer = new Coalescer(coalesceDefaults)
    coalescer.push(delta("a\ud83d"), 0)
    assert.strictEqual(coalescer.flush()?.delta, "a")
    coalescer.push(delta("\ude00b"), 1)
    assert.strictEqual(coalescer.flush()?.delta, "\ud83d\ude00b")
    const long = "😀".repeat(5000)
    const rows = [...coalescer.push(delta(long), 2), ...coalescer.close()]
    assert.strictEqual(textOf(rows), long)
    for (const row of rows) {
      assert.isTrue(row.delta.isWellFormed())
      assert.isTrue(utf8Length(row.delta) <= coalesceDefaults.bytes)
    }
  })

  it("10,000 deltas in a second make at most 41 rows and one per 4 KiB [RT-201, RT-203]", () => {
    const coalescer = new Coalescer(coalesceDefaults)
    const rows: Array<DeltaEvent> = []
    let text = ""
    for (let i = 0; i < 10_000; i++) {
      const now = i / 10
      const due = coalescer.dueAt
      const row = due !== undefined && due <= now ? coalescer.flush() : undefined
      if (row !== undefined) rows.push(row)
      text += `w${i % 10} `
      rows.push(...coalescer.push(delta(`w${i % 10} `), now))
    }
    rows.push(...coalescer.close())
    assert.strictEqual(textOf(rows), text)
    assert.isTrue(rows.length <= 41 + Math.ceil(utf8Length(text) / 4096), `${rows.length} rows`)
  })

  it("another part, stream or type closes the buffer first [RT-200]", () => {
    const coalescer = new Coalescer(coalesceDefaults)
    coalescer.push(delta("one", "a"), 0)
    const rows = coalescer.push(delta("two", "b"), 0)
    assert.deepStrictEqual(rows, [delta("one", "a")])
    assert.deepStrictEqual(
      coalescer.push({ type: "tool-output-delta", toolCallId: "c", delta: "x", stream: "stdout" }, 0),
      [delta("two", "b")]
    )
  })

  it("a secret that came in pieces is replaced whole [RT-321]", () => {
    const known = new KnownSecrets()
    known.add("key", "sk-12345678")
    const coalescer = new Coalescer(coalesceDefaults, {
      text: (text) => known.text(text),
      open: (text) => known.open(text)
    })
    coalescer.push(delta("say sk-12"), 0)
    const first = coalescer.flush()
    assert.strictEqual(first?.delta, "say ")
    coalescer.push(delta("345678 now"), 1)
    assert.strictEqual(textOf(coalescer.close()), "[redacted:key] now")
  })
})

describe("rows and secrets", () => {
  it("a secret that lies over the end of a row, or came over many deltas, is in no row [RT-321] [RUN-174]", () => {
    const secret = 'sk-"12345678'
    const known = new KnownSecrets()
    known.add("key", secret, "ses_a")
    const redaction = {
      text: (text: string) => known.text(text, "ses_a"),
      open: (text: string) => known.open(text, "ses_a")
    }
    for (let before = 80; before <= 130; before++) {
      const text = `${"x".repeat(before)}${secret}${"y".repeat(300)}${JSON.stringify(secret)}`
      for (const size of [1, 7, 64, text.length]) {
        const coalescer = new Coalescer({ ...coalesceDefaults, bytes: 128 }, redaction)
        const rows: Array<{ readonly delta: string }> = []
        for (let at = 0; at < text.length; at += size) {
          rows.push(...coalescer.push(delta(text.slice(at, at + size)), at))
          const row = at % 3 === 0 ? coalescer.flush() : undefined
          if (row !== undefined) rows.push(row)
        }
        rows.push(...coalescer.close())
        assert.strictEqual(rows.map((row) => row.delta).join(""), known.text(text, "ses_a"))
        assert.isTrue(rows.every((row) => row.delta.length <= 128 + "[redacted:key]".length))
      }
    }
  })
})

describe("large values", () => {
  it("a long string keeps its head and tail and goes whole into an artifact [RT-210, RT-211]", () => {
    const output = `${"é".repeat(60_000)}end`
    const { payload, pieces } = cut({ type: "tool-output", toolCallId: "c", output })
    assert.isTrue(payload.type === "tool-output")
    const kept = (payload as { readonly output: string }).output
    assert.isTrue(utf8Length(kept) <= fieldLimit)
    assert.isTrue(kept.endsWith("end"))
    assert.isTrue(kept.isWellFormed())
    assert.strictEqual(pieces[0]?.path, "/output")
    assert.strictEqual(new TextDecoder().decode(pieces[0]?.bytes), output)
  })

  it("a large value of free JSON becomes null, its artifact has it whole [RT-210]", () => {
    const input = Array.from({ length: 20_000 }, (_, i) => ({ i }))
    const { payload, pieces } = cut({ type: "tool-input", toolCallId: "c", input })
    assert.deepStrictEqual(payload, { type: "tool-input", toolCallId: "c", input: null })
    assert.deepStrictEqual(JSON.parse(new TextDecoder().decode(pieces[0]?.bytes)), input)
  })

  it("every payload is stored in at most 256 KiB [RT-210]", () => {
    const parts = Array.from({ length: 64 }, () => ({ type: "text", text: "x".repeat(16_000) }) as const)
    const { payload, pieces } = cut({ type: "user-message", messageId: "m", parts, delivery: "start" })
    assert.isTrue(utf8Length(JSON.stringify(payload)) + pieces.length * 512 <= envelopeLimit)
    assert.isTrue(payload.type === "user-message")
  })

  it("what cannot be encoded becomes a diagnostic [RT-187]", () => {
    const cycle: Record<string, unknown> = {}
    cycle["self"] = cycle
    for (const output of [cycle, 10n, () => 1, Number.NaN]) {
      const { payload } = cut({ type: "tool-output", toolCallId: "c", output: output as never })
      assert.isTrue(payload.type === "diagnostic" && payload.diagnostic.code === "event_unencodable")
    }
  })

  it("a small payload is stored as it is", () => {
    const payload = { type: "text-delta", delta: "\ud800 lone \u0000", messageId: "m", partId: "p" } as const
    assert.strictEqual(cut(payload).payload, payload)
  })
})
