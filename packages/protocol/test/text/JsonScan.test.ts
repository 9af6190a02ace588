import { assert, describe, it } from "@effect/vitest"
import { isDeeperThan, isRequestId, makeIdScan } from "@tackroom/protocol/text"
import { Effect, Schema } from "effect"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

const scan = (json: string | Uint8Array, step = 1): unknown => {
  const input = typeof json === "string" ? bytes(json) : json
  const ids = makeIdScan()
  for (let i = 0; i < input.length; i += step) ids.push(input.subarray(i, i + step))
  return ids.end()
}

const finds = (json: string, id: unknown): void => {
  for (const step of [1, 2, 3, 7, json.length + 8]) assert.strictEqual(scan(json, step), id, json)
}

describe("id scan", () => {
  it("finds the top-level id wherever it stands [RUN-004]", () => {
    finds('{"id":1,"method":"x"}', 1)
    finds('{"params":{"id":2,"a":[{"id":3}]},"id":"abc"}', "abc")
    finds(' { "x" : [ ] , "id" : -12 } ', -12)
    finds('{"a":"\\"id\\":5,{[","id":"q\\"\\u0061\\n"}', 'q"a\n')
    finds('{"\\u0069d":"escaped key"}', "escaped key")
    finds('{"id":"😀é"}', "😀é")
    finds('{"id":9007199254740991}', 9_007_199_254_740_991)
    finds('{"id":""}', "")
    finds(`{"id":"${"x".repeat(256)}"}`, "x".repeat(256))
  })

  it("the last of several ids wins, also when it is not valid [RUN-013]", () => {
    finds('{"id":1,"id":2}', 2)
    finds('{"id":1,"id":null}', undefined)
    finds('{"id":1,"id":{"id":4}}', undefined)
  })

  it("what is no id is none [RUN-009] [RUN-014]", () => {
    for (const value of [
      "null",
      "true",
      "1.5",
      "9007199254740992",
      "[1]",
      "{}",
      "1 2",
      '"\\ud800"',
      '"a\\u0000"',
      "nul",
      '"\\x"'
    ]) {
      finds(`{"id":${value}}`, undefined)
    }
    finds(`{"id":"${"x".repeat(257)}"}`, undefined)
    finds(`{"id":"${"é".repeat(129)}"}`, undefined)
    finds('{"ids":1,"Id":2," id":3,"i":{"d":4}}', undefined)
  })

  it("what is no JSON object, or does not end, has no id", () => {
    for (const json of [
      "",
      "[1]",
      '"id"',
      '{"id":1',
      '{"id":"a',
      '{"id":1}x',
      '{"id":1}{"id":2}',
      'x{"id":1}',
      "{id:1}",
      '{"id" 1}'
    ]) {
      finds(json, undefined)
    }
    assert.isUndefined(scan(Uint8Array.of(...bytes('{"id":"'), 0xff, 0xfe, ...bytes('"}'))))
  })

  it.effect.prop(
    "agrees with a parser on every object",
    [Schema.Record(Schema.Literals(["id", "a", "method"]), Schema.Json), Schema.Int],
    ([generated, seed]) =>
      Effect.sync(() => {
        const value: Readonly<Record<string, unknown>> = generated
        const parsed = JSON.parse(JSON.stringify(value)) as Readonly<Record<string, unknown>>
        const expected = isRequestId(parsed["id"]) ? parsed["id"] : undefined
        assert.strictEqual(scan(JSON.stringify(value), 1 + (Math.abs(seed) % 5)), expected)
        assert.strictEqual(scan(JSON.stringify(value, null, 2), 4), expected)
      })
  )
})

describe("depth scan", () => {
  it("128 levels are allowed, 129 are not [RUN-013]", () => {
    const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`
    assert.isFalse(isDeeperThan(nested(128)))
    assert.isTrue(isDeeperThan(nested(129)))
    assert.isFalse(isDeeperThan(bytes('{"a":'.repeat(128))))
    assert.isTrue(isDeeperThan(bytes('{"a":'.repeat(129))))
  })

  it("brackets in strings do not count", () => {
    assert.isFalse(isDeeperThan(JSON.stringify({ a: "[".repeat(500), b: '\\"{{{' }), 1))
    assert.isFalse(isDeeperThan(`{"a":"\\\\","b":"[[["}`, 1))
    assert.isTrue(isDeeperThan(`{"a":"\\\\","b":[[1]]}`, 2))
  })

  it("siblings do not add up", () => {
    assert.isFalse(isDeeperThan(JSON.stringify(Array.from({ length: 1000 }, () => [])), 2))
  })

  it("a million levels neither overflow the stack nor take long", () => {
    assert.isTrue(isDeeperThan("[".repeat(1_000_000)))
    assert.isFalse(isDeeperThan("[".repeat(1_000_000), 1_000_000))
  })
})
