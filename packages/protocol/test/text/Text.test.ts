import { assert, describe, it } from "@effect/vitest"
import {
  canonicalJson,
  codePoints,
  cutHeadTail,
  decodeUtf8,
  firstLine,
  flushableLength,
  headBytes,
  headCodePoints,
  parseJson,
  tailBytes,
  terminalSafe,
  tryWireJson,
  utf8Length,
  wellFormed,
  wireJson
} from "@tackroom/protocol/text"
import { Effect, Result, Schema } from "effect"

const encoder = new TextEncoder()
const Words = Schema.Array(Schema.Literals(["a", "é", "€", "😀", "\ud83d", "\ude00", "\u0000", "\n", "z"]))

describe("cutting", () => {
  it.effect.prop(
    "a cut is within its size, as long as it can be, and splits no scalar [RT-204]",
    [Words, Schema.Natural],
    ([words, size]) =>
      Effect.sync(() => {
        const text = words.join("")
        const max = size % 40
        const splits = (at: number): boolean => /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(at - 1, at + 1))
        const head = headBytes(text, max)
        assert.isTrue(text.startsWith(head))
        assert.isAtMost(utf8Length(head), max)
        assert.isFalse(splits(head.length))
        if (head !== text) {
          const next = String.fromCodePoint(text.codePointAt(head.length) ?? 0)
          assert.isAbove(utf8Length(head + next), max)
        }
        const tail = tailBytes(text, max)
        assert.isTrue(text.endsWith(tail))
        assert.isAtMost(utf8Length(tail), max)
        assert.isFalse(splits(text.length - tail.length))
        const some = headCodePoints(text, max)
        assert.isTrue(text.startsWith(some))
        assert.isFalse(splits(some.length))
        assert.strictEqual(codePoints(some), Math.min(max, codePoints(text)))
        const flush = flushableLength(text)
        assert.isFalse(splits(flush))
        assert.isFalse(/[\ud800-\udbff]$/.test(text.slice(0, flush)) && flush < text.length - 1)
      }),
    { arbitrary: { runs: 300 } }
  )

  it.effect.prop("the length in UTF-8 is that of an encoder", [Words], ([words]) =>
    Effect.sync(() => {
      const text = words.join("")
      assert.strictEqual(utf8Length(text), encoder.encode(text).length)
    })
  )

  it("a text over 64 KiB keeps its first 48 KiB and its last 16 KiB", () => {
    assert.isUndefined(cutHeadTail("a".repeat(65_536)))
    assert.isUndefined(cutHeadTail("é".repeat(32_768)))
    const cut = cutHeadTail(`${"a".repeat(49_151)}é${"b".repeat(30_000)}😀${"c".repeat(16_382)}`)
    assert.strictEqual(cut?.bytes, 49_151 + 2 + 30_000 + 4 + 16_382)
    assert.strictEqual(cut?.head, "a".repeat(49_151))
    assert.strictEqual(cut?.tail, "c".repeat(16_382))
  })

  it("plain text is well-formed and without U+0000 [STO-012]", () => {
    assert.strictEqual(wellFormed("a\ud800b\u0000c😀"), "a\ufffdbc😀")
    assert.strictEqual(wellFormed("plain"), "plain")
  })

  it("a title is the first line that holds something, at most 80 characters [RT-150]", () => {
    assert.strictEqual(firstLine("\n \t\n  fix the parser \r\nand more", 80), "fix the parser")
    assert.strictEqual(firstLine("😀".repeat(100), 80), "😀".repeat(80))
    assert.strictEqual(firstLine(" \n\t", 80), "")
    assert.strictEqual(firstLine("a\u2028b", 80), "a")
  })
})

describe("UTF-8", () => {
  it("bytes that are not UTF-8 are refused [RUN-005]", () => {
    assert.strictEqual(decodeUtf8(encoder.encode("é😀")), "é😀")
    assert.strictEqual(decodeUtf8(encoder.encode("\ufeffa")), "\ufeffa")
    for (const bad of [[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80]]) {
      assert.isUndefined(decodeUtf8(Uint8Array.from(bad)))
    }
  })
})

describe("JSON on a line", () => {
  it.effect.prop("every JSON value comes back from one line of UTF-8", [Schema.Json, Words], ([value, words]) =>
    Effect.sync(() => {
      const whole = JSON.parse(JSON.stringify({ value, text: `${words.join("")}\u2028\u2029` })) as unknown
      const line = wireJson(whole)
      assert.isFalse(/[\n\r\u2028\u2029]/.test(line))
      const back = decodeUtf8(encoder.encode(line))
      assert.deepStrictEqual(Result.getOrThrow(parseJson(back ?? "")), whole)
    })
  )

  it("lone surrogates are written as escapes [RUN-014], separators too [RUN-016]", () => {
    assert.strictEqual(wireJson("\ud800a\udc00"), '"\\ud800a\\udc00"')
    assert.strictEqual(wireJson("\u2028\u2029\u0000"), '"\\u2028\\u2029\\u0000"')
    assert.strictEqual(wireJson("😀é"), '"😀é"')
  })

  it("a key such as __proto__ is plain data, the last duplicate wins [RUN-013]", () => {
    const value = Result.getOrThrow(parseJson('{"__proto__":{"a":1},"b":1,"b":2}')) as Readonly<Record<string, unknown>>
    assert.deepStrictEqual(Object.keys(value), ["__proto__", "b"])
    assert.strictEqual(value["b"], 2)
    assert.isUndefined(({} as Readonly<Record<string, unknown>>)["a"])
  })

  it("what is no JSON fails as a value [RT-187]", () => {
    const cycle: Record<string, unknown> = {}
    cycle["self"] = cycle
    for (const bad of [cycle, 1n, { a: 1n }, () => 1]) assert.isTrue(Result.isFailure(tryWireJson(bad)))
    assert.isTrue(Result.isFailure(parseJson("{")))
  })
})

describe("canonical JSON", () => {
  it("does not depend on the order of members", () => {
    assert.strictEqual(
      canonicalJson({ b: [1, { d: null, c: "é" }], a: undefined, A: true }),
      '{"A":true,"b":[1,{"c":"é","d":null}]}'
    )
  })

  it.effect.prop("is JSON of the same value, and the same for every order", [Schema.JsonObject], ([value]) =>
    Effect.sync(() => {
      const plain = JSON.parse(JSON.stringify(value)) as object
      const turned = Object.fromEntries(Object.entries(plain).reverse())
      assert.deepStrictEqual(JSON.parse(canonicalJson(plain)), plain)
      assert.strictEqual(canonicalJson(turned), canonicalJson(plain))
    })
  )

  it("refuses what is no JSON", () => {
    const cycle: Array<unknown> = []
    cycle.push(cycle)
    for (const bad of [Number.NaN, Infinity, 1n, () => 1, Symbol("a"), undefined, cycle]) {
      assert.throws(() => canonicalJson(bad), TypeError)
    }
    const shared = { a: 1 }
    assert.strictEqual(canonicalJson([shared, shared]), '[{"a":1},{"a":1}]')
  })
})

describe("text for a terminal", () => {
  it("control characters and escape sequences are shown, nothing is hidden", () => {
    assert.strictEqual(terminalSafe("a\u001b[31mred\u001b[0m\u0007\u0008"), "a␛[31mred␛[0m␇␈")
    assert.strictEqual(terminalSafe("\u001b]52;c;aGk=\u0007"), "␛]52;c;aGk=␇")
    assert.strictEqual(terminalSafe("x\u009b2Jy\u007f"), "x<U+009B>2Jy␡")
    assert.strictEqual(terminalSafe("rm\u202egpj.exe\u2066"), "rm<U+202E>gpj.exe<U+2066>")
    assert.strictEqual(terminalSafe("rm\u200b -\ufeffr\u2060f"), "rm<U+200B> -<U+FEFF>r<U+2060>f")
    assert.strictEqual(terminalSafe("\u{1f469}\u200d\u{1f680}"), "\u{1f469}\u200d\u{1f680}")
    assert.strictEqual(terminalSafe("a\r\nb\rc\td"), "a\nb␍c\td")
    assert.strictEqual(terminalSafe("a\nb", { lines: false }), "a␊b")
    assert.strictEqual(terminalSafe("a\ud800b"), "a\ufffdb")
  })

  it("whole sequences can be left out", () => {
    const strip = (text: string) => terminalSafe(text, { sequences: "strip" })
    assert.strictEqual(strip("a\u001b[1;31mred\u001b[0m"), "ared")
    assert.strictEqual(strip("\u001b]0;title\u0007x\u001b]8;;http://a\u001b\\link"), "xlink")
    assert.strictEqual(strip("\u001bcx\u009b2J"), "x")
    assert.strictEqual(strip("\u001b"), "␛")
  })

  it.effect.prop(
    "no control character but tab and line feed is left",
    [
      Schema.Array(
        Schema.Literals([
          "\u001b",
          "[",
          "]",
          "3",
          "m",
          "\u0007",
          "\\",
          "\u009b",
          "\u009c",
          "P",
          "a",
          "\r",
          "\n",
          "\u202e"
        ])
      )
    ],
    ([words]) =>
      Effect.sync(() => {
        for (const sequences of ["show", "strip"] as const) {
          assert.isFalse(/[^\P{Cc}\n\t]|\u202e/u.test(terminalSafe(words.join(""), { sequences })))
        }
      })
  )
})
