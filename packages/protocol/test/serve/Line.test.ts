import { assert, describe, it } from "@effect/vitest"
import {
  capabilitiesOf,
  contractCapabilities,
  DeltaLine,
  decodeLine,
  encodeLine,
  errorCodes,
  ErrorLine,
  HelloLine,
  isSourceKind,
  LogLine,
  notifyKinds,
  notifyTable,
  PongLine,
  ReadyLine,
  refusalReasons,
  ResultLine,
  serveLimits,
  StartLine,
  type ServeLine
} from "@tackroom/protocol/serve"
import { Effect, Schema } from "effect"

const plain = <A>(value: A): A => JSON.parse(JSON.stringify(value)) as A
const back = (line: ServeLine): ServeLine => {
  const decoded = decodeLine(JSON.parse(encodeLine(line)))
  return decoded._tag === "Line" ? decoded.line : assert.fail(JSON.stringify(decoded))
}

const schemas = { ReadyLine, HelloLine, PongLine, ErrorLine, StartLine, DeltaLine, LogLine, ResultLine }
const delta = (text: string): ServeLine => ({ protocol: 1, seq: 1, type: "delta", text })
const notify = (kind: string, data: unknown): ServeLine =>
  ({ protocol: 1, seq: 3, type: "notify", runId: "r", kind, data, cursor: 9, opId: "o" }) as ServeLine

describe("lines", () => {
  for (const [name, schema] of Object.entries(schemas)) {
    it.effect.prop(
      `${name} survives writing and reading`,
      [schema as unknown as Schema.Codec<ServeLine>],
      ([line]) => Effect.sync(() => assert.deepStrictEqual(back(plain(line)), plain(line))),
      { arbitrary: { runs: 40 } }
    )
  }
  for (const kind of notifyKinds) {
    it.effect.prop(
      `notify ${kind} survives writing and reading`,
      [notifyTable[kind].schema as unknown as Schema.Codec<unknown>],
      ([data]) =>
        Effect.sync(() => {
          const line = plain(notify(kind, data))
          assert.deepStrictEqual(back(line), line)
        }),
      { arbitrary: { runs: 20 } }
    )
  }

  it("a reader ignores types and kinds that it does not know, and unknown fields [SRV-380]", () => {
    assert.deepStrictEqual(decodeLine({ protocol: 1, type: "news" }), { _tag: "Unknown", type: "news" })
    assert.strictEqual(decodeLine({ protocol: 1, seq: 1, type: "notify", kind: "news", data: {} })._tag, "Unknown")
    const pong = decodeLine({ protocol: 1, type: "pong", extra: 1 })
    assert.deepStrictEqual(pong, { _tag: "Line", line: { protocol: 1, type: "pong" } })
    const result = decodeLine({
      protocol: 1,
      seq: 2,
      type: "result",
      answer: "",
      errors: [{ code: "unknown", message: "m", class: "a_new_class" }],
      error_messages: ["m"],
      cancelled: false
    })
    assert.strictEqual(result._tag, "Line")
    for (const bad of [null, 1, [], {}, { type: 1 }, { type: "pong" }, { protocol: 2, type: "pong" }]) {
      assert.strictEqual(decodeLine(bad)._tag, "Malformed", JSON.stringify(bad))
    }
  })
})

describe("text of lines", () => {
  it("separators are escaped, other text is raw [SRV-062]", () => {
    const text = encodeLine(delta("a\u2028b\u2029c\u0085d é 😀"))
    assert.include(text, "a\\u2028b\\u2029c\\u0085d é 😀")
    assert.deepInclude(back(delta("\u0085\u2028")), { text: "\u0085\u2028" })
  })

  it("lone surrogates and U+0000 are escaped and come back [SRV-063]", () => {
    const odd = "a\ud800b\0c\udfff"
    assert.include(encodeLine(delta(odd)), "a\\ud800b\\u0000c\\udfff")
    assert.deepInclude(back(delta(odd)), { text: odd })
  })

  it("fields stand in the order people read them, in wire names [SRV-061]", () => {
    assert.strictEqual(
      encodeLine(notify("ask_resolved", { askId: "i", outcome: "answered", by: "driver" })),
      '{"protocol":1,"seq":3,"type":"notify","run_id":"r","kind":"ask_resolved","data":{"ask_id":"i","outcome":"answered","by":"driver"},"cursor":9,"op_id":"o"}'
    )
  })

  const tooLong: ReadonlyArray<readonly [string, ServeLine, (line: Record<string, unknown>) => unknown]> = [
    [
      "a text of many bytes a character",
      {
        protocol: 1,
        seq: 9,
        type: "result",
        answer: "é😀".repeat(400_000),
        errors: [],
        errorMessages: [],
        cancelled: false
      },
      (line) => line["answer_truncated"]
    ],
    [
      "a text that is all escapes",
      { protocol: 1, seq: 9, type: "start", prompt: "\0\ud800".repeat(200_000), warnings: [] },
      (line) => line["prompt_truncated"]
    ],
    [
      "a list of very many things",
      notify(
        "tool_start",
        Array.from({ length: 300_000 }, (_, index) => `tool-${index}`)
      ),
      (line) => line["data_truncated"]
    ],
    [
      "a deep value",
      notify("background", { kind: "x", data: { deep: [{ text: "y".repeat(3_000_000) }] } }),
      (line) =>
        ((line["data"] as { data: { deep: ReadonlyArray<Record<string, unknown>> } }).data.deep[0] ?? {})[
          "text_truncated"
        ]
    ]
  ]
  for (const [name, line, mark] of tooLong) {
    it(`${name} is cut until the line fits, and marked [SRV-064]`, () => {
      const text = encodeLine(line)
      const bytes = Buffer.byteLength(text)
      assert.isBelow(bytes, serveLimits.lineBytes)
      assert.isAbove(bytes, serveLimits.lineBytes / 3)
      const parsed = JSON.parse(text) as Record<string, unknown>
      assert.strictEqual(mark(parsed), true)
      for (const value of Object.values(parsed))
        if (typeof value === "string") assert.notMatch(value, /[\ud800-\udbff]$/u)
    })
  }
})

describe("names", () => {
  it("are only ever added: what was published stays, in its order [SRV-068, SRV-130]", () => {
    const source = [
      "tool_start",
      "tool_calls",
      "tool_running",
      "tools",
      "retry",
      "error",
      "usage",
      "ask",
      "run_finished"
    ]
    assert.deepStrictEqual(notifyKinds.slice(0, 9), source as never)
    assert.deepStrictEqual(notifyKinds.filter(isSourceKind), source as never)
    assert.includeMembers(
      [...notifyKinds],
      ["ask_resolved", "cancelling", "tool_status", "diff", "background", "event"]
    )
    assert.deepStrictEqual(
      [...errorCodes],
      ["budget", "timeout", "nothing", "no_answer", "restore", "cancelled", "protocol", "unknown"]
    )
    assert.lengthOf(refusalReasons, 18)
  })
})

describe("capabilities", () => {
  it("the contract's names come first, in order and once each [SRV-123]", () => {
    const names = capabilitiesOf("full")
    assert.deepStrictEqual(names.slice(0, 12), [...contractCapabilities])
    assert.strictEqual(new Set(names).size, names.length)
    assert.lengthOf(names, 25)
  })

  it("the names of what is not written are left out [SRV-124]", () => {
    const gone = capabilitiesOf("full").filter((name) => !capabilitiesOf("source").includes(name))
    assert.deepStrictEqual(gone, ["ask_resolved", "tool_status"])
  })
})
