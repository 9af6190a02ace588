import { assert, describe, it } from "@effect/vitest"
import { makeRedactor, noRedaction } from "@tackroom/protocol/text"
import { Effect, Schema } from "effect"

const secrets = [
  { name: "openai", value: "sk-abcdefgh" },
  { name: "longer", value: "sk-abcdefgh-123" },
  { name: "inner", value: "defgh-99" },
  { name: "self", value: "aaaaaaaa" },
  { name: "lines", value: "first\nsecond" },
  { name: "short", value: "1234567" }
]
const redactor = makeRedactor(secrets)

const streamed = (deltas: ReadonlyArray<string>): string => {
  const stream = redactor.stream()
  return deltas.map(stream.push).join("") + stream.end()
}

describe("redaction", () => {
  it("a known secret is replaced by its name [RUN-174]", () => {
    assert.strictEqual(redactor.text("key=sk-abcdefgh."), "key=[redacted:openai].")
    assert.strictEqual(redactor.text("key=sk-abcdefgh-123."), "key=[redacted:longer].")
    assert.strictEqual(redactor.text("x sk-abcdefgh-99"), "x [redacted:openai]-99")
    assert.strictEqual(redactor.text("abcdefgh-99"), "abc[redacted:inner]")
    assert.strictEqual(redactor.text("a".repeat(17)), "[redacted:self][redacted:self]a")
  })

  it("a secret under 8 characters is not looked for", () => {
    assert.strictEqual(redactor.text("1234567"), "1234567")
    assert.strictEqual(makeRedactor([{ name: "short", value: "1234567" }]), noRedaction)
  })

  it("a secret inside a JSON text is found in its escaped form", () => {
    assert.strictEqual(redactor.text(JSON.stringify({ a: "first\nsecond" })), '{"a":"[redacted:lines]"}')
  })

  it("characters with a meaning in patterns are plain in a secret", () => {
    const odd = makeRedactor([{ name: "odd", value: "a.b*c(d)[e]{f}|g\\h^i$j+k?l/m-n" }])
    assert.strictEqual(odd.text("<a.b*c(d)[e]{f}|g\\h^i$j+k?l/m-n>"), "<[redacted:odd]>")
    assert.strictEqual(odd.text("axbbbc"), "axbbbc")
  })

  it("a secret is found over every split into deltas [RUN-174]", () => {
    const texts = [
      "key=sk-abcdefgh.",
      "sk-abcdefgh-123",
      "sk-abcdefgh-12",
      "sk-abcdefgh-99 sk-abcsk-abcdefgh",
      "a".repeat(23),
      "first\nsecond first\nsecon"
    ]
    for (const text of texts) {
      const expected = redactor.text(text)
      assert.strictEqual(streamed([...text]), expected)
      for (let i = 0; i <= text.length; i++) {
        for (let j = i; j <= text.length; j++) {
          assert.strictEqual(streamed([text.slice(0, i), text.slice(i, j), text.slice(j)]), expected)
        }
      }
    }
  })

  it.effect.prop(
    "a stream gives the redaction of the whole, and never a part of a secret",
    [
      Schema.Array(
        Schema.Literals(["sk-", "abc", "defgh", "-", "-123", "-99", "a", "aaaa", "first", "\n", "second", "x"])
      )
    ],
    ([deltas]) =>
      Effect.sync(() => {
        const whole = deltas.join("")
        assert.strictEqual(streamed(deltas), redactor.text(whole))
        const stream = redactor.stream()
        const shown = deltas.map(stream.push).join("")
        assert.isTrue(redactor.text(whole).startsWith(shown))
        assert.notInclude(shown, "sk-abcdefgh")
      }),
    { arbitrary: { runs: 500, size: 40 } }
  )

  it("a secret is found in every form that it takes inside JSON texts [RUN-174]", () => {
    const value = '-----BEGIN "KEY"-----\nAb\\Cd é €'
    const key = makeRedactor([{ name: "pem", value }])
    const ascii = JSON.stringify(value).replaceAll("é", "\\u00e9").replaceAll("€", "\\u20ac")
    for (const text of [JSON.stringify({ [value]: { a: value } }), ascii, JSON.stringify(ascii)]) {
      const shown = key.text(text)
      assert.include(shown, "[redacted:pem]")
      assert.notInclude(shown, "BEGIN")
    }
    assert.strictEqual(key.text(JSON.stringify(JSON.stringify([value]))), '"[\\"[redacted:pem]\\"]"')
  })

  it("a value that has several names, or one of another scope, is told by none [RUN-174]", () => {
    const shared = makeRedactor([
      { name: "one", value: "value-of-two" },
      { name: "two", value: "value-of-two" },
      { name: "a.TOKEN", value: "value-of-sessions", scope: "a" },
      { name: "b.TOKEN", value: "value-of-sessions", scope: "b" },
      { name: "mine", value: "value-of-everyone" },
      { name: "mine", value: "value-of-everyone", scope: "a" },
      { name: "theirs", value: "value-of-everyone", scope: "b" }
    ])
    const text = "value-of-two value-of-sessions value-of-everyone"
    assert.strictEqual(shared.text(text), "[redacted:secret] [redacted:secret] [redacted:secret]")
    assert.strictEqual(shared.text(text, "a"), "[redacted:secret] [redacted:a.TOKEN] [redacted:mine]")
    assert.strictEqual(shared.text(text, "b"), "[redacted:secret] [redacted:b.TOKEN] [redacted:secret]")
    assert.strictEqual(shared.text(text, "c"), "[redacted:secret] [redacted:secret] [redacted:mine]")
  })

  it("keys that become equal stay apart [RUN-174]", () => {
    const two = makeRedactor([
      { name: "k", value: "first-value" },
      { name: "k", value: "other-value" }
    ])
    const given = { "first-value": 1, "[redacted:k]#2": 2, "other-value": { "first-value": "first-value" } }
    assert.deepStrictEqual<unknown>(two.json(given), {
      "[redacted:k]": 1,
      "[redacted:k]#2": 2,
      "[redacted:k]#3": { "[redacted:k]": "[redacted:k]" }
    })
  })

  it.effect.prop(
    "bytes are redacted as the text that they are [RUN-174]",
    [
      Schema.Array(
        Schema.Literals(["sk-", "abc", "defgh", "-99", "-123", "a", "aaaa", "first", "\n", "\\n", "second", "é"])
      )
    ],
    ([words]) =>
      Effect.sync(() => {
        const text = words.join("")
        const bytes = new TextEncoder().encode(text)
        const out = redactor.bytes(bytes)
        assert.strictEqual(new TextDecoder().decode(out), redactor.text(text))
        assert.strictEqual(out === bytes, redactor.text(text) === text)
      }),
    { arbitrary: { runs: 500, size: 40 } }
  )

  it("bytes that are no text keep what stands around a secret [RUN-174]", () => {
    const bytes = Buffer.concat([
      Buffer.from([0, 0xff, 0x80]),
      Buffer.from("sk-abcdefgh"),
      Buffer.from([0xc3, 0, 0xfe])
    ])
    assert.deepStrictEqual(
      Buffer.from(redactor.bytes(bytes)),
      Buffer.concat([Buffer.from([0, 0xff, 0x80]), Buffer.from("[redacted:openai]"), Buffer.from([0xc3, 0, 0xfe])])
    )
  })

  it("text that cannot be the start of a secret is not held back", () => {
    const stream = redactor.stream()
    assert.strictEqual(stream.push("hello "), "hello ")
    assert.strictEqual(stream.push("sk"), "")
    assert.strictEqual(stream.push("y"), "sky")
    assert.strictEqual(stream.end(), "")
  })

  it("strings and keys of a JSON value are redacted, and what holds none is given back itself", () => {
    const clean = { a: ["b", { c: 1 }] }
    assert.strictEqual(redactor.json(clean), clean)
    assert.deepStrictEqual<unknown>(redactor.json({ a: ["sk-abcdefgh"], "k-sk-abcdefgh": null, n: 1 }), {
      a: ["[redacted:openai]"],
      "k-[redacted:openai]": null,
      n: 1
    })
  })
})
