import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Arrivals } from "../../src/faces/acp/Arrivals.ts"
import { makeFrameReader, type Read, refusal } from "../../src/faces/acp/Frames.ts"

const encoder = new TextEncoder()

const read = (chunks: ReadonlyArray<string | Uint8Array>, limit?: number): ReadonlyArray<Read> => {
  const out: Array<Read> = []
  const reader = makeFrameReader((found) => out.push(found), limit)
  for (const chunk of chunks) reader.push(typeof chunk === "string" ? encoder.encode(chunk) : chunk)
  reader.end()
  return out
}

const shown = (reads: ReadonlyArray<Read>) =>
  reads.map((found) =>
    found._tag === "Refused" ? [found.reason, found.id] : ["message", Reflect.get(found.message, "id")]
  )

const request = (id: unknown, more: Record<string, unknown> = {}) =>
  JSON.stringify({ jsonrpc: "2.0", id, method: "initialize", ...more })

describe("frames", () => {
  it("lines end at the newline byte alone, blank ones are nothing, the last needs no end [ACP-001]", () => {
    const separator = request(2, { params: { text: "a\u2028b\u0085c\rd" } })
    assert.deepStrictEqual(shown(read([`${request(1)}\r\n\n  \t\n${separator}\n${request(3)}`])), [
      ["message", 1],
      ["message", 2],
      ["message", 3]
    ])
  })

  it.prop(
    "the same frames come out of the same bytes, however they are cut [ACP-001]",
    [Schema.Array(Schema.Json), Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 })))],
    ([values, cuts]) => {
      const bytes = encoder.encode(values.map((params, id) => `${request(id, { params })}\n`).join(""))
      const chunks: Array<Uint8Array> = []
      for (let at = 0, i = 0; at < bytes.length; i++) {
        const size = cuts.length === 0 ? bytes.length : (cuts[i % cuts.length] ?? 1)
        chunks.push(bytes.slice(at, at + size))
        at += size
      }
      assert.deepStrictEqual(
        shown(read(chunks)),
        values.map((_, id) => ["message", id])
      )
    }
  )

  it("a frame over the limit is refused at once, and its rest is dropped [ACP-002]", () => {
    const found: Array<Read> = []
    const reader = makeFrameReader((one) => found.push(one), 100)
    reader.push(encoder.encode(`{"jsonrpc":"2.0","id":1,"method":"x","params":"${"y".repeat(100)}`))
    assert.deepStrictEqual(shown(found), [["frame_too_large", null]])
    reader.push(encoder.encode(`${"y".repeat(10_000)}"}\n${request(2)}\n`))
    assert.deepStrictEqual(shown(found).slice(1), [["message", 2]])
    const exact = request(3, { params: "z".repeat(100 - request(3, { params: "" }).length) })
    assert.strictEqual(exact.length, 100)
    reader.push(encoder.encode(`${exact}\n${exact}\n`))
    assert.deepStrictEqual(shown(found).slice(2), [
      ["message", 3],
      ["message", 3]
    ])
  })

  it("bad UTF-8, bad JSON and deep nesting are refused, and the next frame is read [ACP-003]", () => {
    const deep = `{"jsonrpc":"2.0","id":7,"method":"x","params":${"[".repeat(128)}${"]".repeat(128)}}`
    const fits = `{"jsonrpc":"2.0","id":8,"method":"x","params":${"[".repeat(127)}${"]".repeat(127)}}`
    assert.deepStrictEqual(
      shown(read([new Uint8Array([0x22, 0xff, 0x22, 0x0a]), "{nope\n", "NaN\n", `${deep}\n`, `${fits}\n`])),
      [
        ["bad_utf8", null],
        ["bad_json", null],
        ["bad_json", null],
        ["too_deep", 7],
        ["message", 8]
      ]
    )
  })

  it("an array is one refusal [ACP-004]", () => {
    assert.deepStrictEqual(shown(read([`[${request(1)},${request(2)}]\n`])), [["batch", null]])
  })

  it("what is no message is refused under its id, and nothing of it is repeated [ACP-005]", () => {
    const secret = "sk-very-secret"
    const reads = read([
      `{"id":1,"method":"x","note":"${secret}"}\n`,
      `{"jsonrpc":"2.0","id":"two","method":5}\n`,
      `{"jsonrpc":"2.0","id":{"a":1},"method":"x"}\n`,
      `{"jsonrpc":"2.0","id":3,"result":1,"error":{"code":1,"message":"m"}}\n`,
      `{"jsonrpc":"2.0"}\n`,
      `17\n`,
      `{"jsonrpc":"2.0","id":4,"result":null}\n`,
      `{"jsonrpc":"2.0","method":"note"}\n`
    ])
    assert.deepStrictEqual(shown(reads), [
      ["no_message", 1],
      ["no_message", "two"],
      ["no_message", null],
      ["no_message", 3],
      ["no_message", null],
      ["no_message", null],
      ["message", 4],
      ["message", undefined]
    ])
    for (const found of reads) {
      if (found._tag === "Refused") assert.notInclude(JSON.stringify(refusal(found)), secret)
    }
  })
})

describe("arrivals", () => {
  it("a cancel meets the prompts that were read before it, and none after [ACP-008]", () => {
    const arrivals = new Arrivals()
    arrivals.read(1, "a")
    arrivals.read(2, "b")
    arrivals.cancel({ sessionId: "a" })
    arrivals.read(3, "a")
    assert.deepStrictEqual(
      [arrivals.begin(1, "a"), arrivals.begin(2, "b"), arrivals.begin(3, "a")].map(({ cancelled }) => cancelled),
      [true, false, false]
    )
  })

  it("two prompts with one id are two prompts, and an answered one is forgotten [ACP-007]", () => {
    const arrivals = new Arrivals()
    arrivals.read(1, "a")
    arrivals.read(1, "b")
    const [first, second] = [arrivals.begin(1, "a"), arrivals.begin(1, "b")]
    arrivals.cancel({ sessionId: "b" })
    assert.deepStrictEqual([first.cancelled, second.cancelled], [false, true])
    arrivals.answered(1)
    arrivals.answered(1)
    let called = false
    second.onCancel = () => {
      called = true
    }
    arrivals.cancelAll()
    assert.isFalse(called)
  })
})
