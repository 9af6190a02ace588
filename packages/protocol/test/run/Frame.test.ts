import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import {
  Busy,
  classifyFrame,
  type Frame,
  tooDeep,
  toErrorObject,
  writeError,
  writeNotification,
  writeRequest,
  writeResult
} from "@tackroom/protocol/run"

const call = { jsonrpc: "2.0", id: 1, method: "run/wait", params: { session_id: "s" } }

const brief = (frame: Frame): unknown => {
  switch (frame._tag) {
    case "Request":
      return ["request", frame.id, frame.method]
    case "Notification":
      return ["notification", frame.method]
    case "Response":
      return ["response", frame.id]
    case "ErrorResponse":
      return ["error response", frame.id, frame.error.code]
    case "Invalid": {
      const { code, data } = toErrorObject(frame.error)
      return ["invalid", frame.id, code, data["reason"] ?? data["path"]]
    }
  }
}

const long = (count: number) => "é".repeat(count)

const rows: ReadonlyArray<readonly [string, string, unknown, unknown]> = [
  ["a request", "RUN-008", call, ["request", 1, "run/wait"]],
  ["a request without params", "RUN-008", { jsonrpc: "2.0", id: "a", method: "x" }, ["request", "a", "x"]],
  ["a batch", "RUN-007", [call, call], ["invalid", null, -32600, "batch"]],
  ["an empty batch", "RUN-007", [], ["invalid", null, -32600, "batch"]],
  ["a number", "RUN-008", 4, ["invalid", null, -32600, "jsonrpc"]],
  ["null", "RUN-008", null, ["invalid", null, -32600, "jsonrpc"]],
  ["an empty object", "RUN-008", {}, ["invalid", null, -32600, "jsonrpc"]],
  ["another jsonrpc", "RUN-008", { ...call, jsonrpc: "1.0" }, ["invalid", 1, -32600, "jsonrpc"]],
  ["jsonrpc as a number", "RUN-008", { ...call, jsonrpc: 2 }, ["invalid", 1, -32600, "jsonrpc"]],
  ["no method", "RUN-008", { jsonrpc: "2.0", id: 1 }, ["invalid", 1, -32600, "method"]],
  ["a method that is no string", "RUN-008", { ...call, method: 1 }, ["invalid", 1, -32600, "method"]],
  ["an empty method", "RUN-008", { ...call, method: "" }, ["invalid", 1, -32600, "method"]],
  ["a method of 128 characters", "RUN-008", { ...call, method: "😀".repeat(128) }, ["request", 1, "😀".repeat(128)]],
  ["a method of 129 characters", "RUN-008", { ...call, method: "x".repeat(129) }, ["invalid", 1, -32600, "method"]],
  ["a list as params", "RUN-008", { ...call, params: [] }, ["invalid", 1, -32602, ""]],
  ["null as params", "RUN-008", { ...call, params: null }, ["invalid", 1, -32602, ""]],
  ["id null", "RUN-009", { ...call, id: null }, ["invalid", null, -32600, "id"]],
  ["a fraction as id", "RUN-009", { ...call, id: 1.5 }, ["invalid", null, -32600, "id"]],
  ["a boolean as id", "RUN-009", { ...call, id: true }, ["invalid", null, -32600, "id"]],
  ["a list as id", "RUN-009", { ...call, id: [1] }, ["invalid", null, -32600, "id"]],
  ["an object as id", "RUN-009", { ...call, id: {} }, ["invalid", null, -32600, "id"]],
  ["an integer of 2^53 as id", "RUN-009", { ...call, id: 2 ** 53 }, ["invalid", null, -32600, "id"]],
  ["the largest integer as id", "RUN-009", { ...call, id: 2 ** 53 - 1 }, ["request", 2 ** 53 - 1, "run/wait"]],
  ["the smallest integer as id", "RUN-009", { ...call, id: 1 - 2 ** 53 }, ["request", 1 - 2 ** 53, "run/wait"]],
  ["an empty string as id", "RUN-009", { ...call, id: "" }, ["request", "", "run/wait"]],
  ["a string of 256 bytes as id", "RUN-009", { ...call, id: long(128) }, ["request", long(128), "run/wait"]],
  ["a string of 257 bytes as id", "RUN-009", { ...call, id: `${long(128)}a` }, ["invalid", null, -32600, "id"]],
  ["an id with U+0000", "RUN-014", { ...call, id: "a\u0000" }, ["invalid", null, -32600, "id"]],
  ["an id with a lone surrogate", "RUN-014", { ...call, id: "\ud800" }, ["invalid", null, -32600, "id"]],
  ["a bad id and a bad jsonrpc", "RUN-009", { ...call, id: {}, jsonrpc: 1 }, ["invalid", null, -32600, "id"]],
  [
    "a notification",
    "RUN-011",
    { jsonrpc: "2.0", method: "application/result", params: {} },
    ["notification", "application/result"]
  ],
  [
    "a notification with a list as params",
    "RUN-011",
    { jsonrpc: "2.0", method: "x", params: [] },
    ["notification", "x"]
  ],
  ["a response", "RUN-012", { jsonrpc: "2.0", id: 1, result: null }, ["response", 1]],
  [
    "an error response",
    "RUN-012",
    { jsonrpc: "2.0", id: null, error: { code: -32700, message: "x" } },
    ["error response", null, -32700]
  ],
  [
    "a response with result and error",
    "RUN-012",
    { jsonrpc: "2.0", id: 1, result: 1, error: { code: 1, message: "x" } },
    ["invalid", 1, -32600, "method"]
  ],
  [
    "a key __proto__",
    "RUN-013",
    JSON.parse('{"jsonrpc":"2.0","id":1,"method":"x","__proto__":{"id":2}}'),
    ["request", 1, "x"]
  ],
  [
    "members on the prototype only",
    "RUN-013",
    JSON.parse('{"__proto__":{"jsonrpc":"2.0","id":1,"method":"x"}}'),
    ["invalid", null, -32600, "jsonrpc"]
  ]
]

describe("a parsed value", () => {
  for (const [name, rule, value, expected] of rows) {
    it(`${name} is ${JSON.stringify(expected).slice(0, 60)} [${rule}]`, () => {
      assert.deepStrictEqual(brief(classifyFrame(value)), expected)
    })
  }

  it.effect.prop("of any form is classified, never thrown at", [Schema.Json], ([value]) =>
    Effect.sync(() => {
      assert.isString(classifyFrame(value)._tag)
    })
  )

  it("nested too deep is answered with id null [RUN-013]", () => {
    assert.deepStrictEqual(brief(tooDeep), ["invalid", null, -32600, "too_deep"])
  })
})

describe("a written frame", () => {
  it("is one line that reads back as what was written [RUN-016]", () => {
    const params = { text: "a\u2028b\u2029c\nd\ud800\u0000" }
    for (const line of [writeRequest("a", "x", params), writeNotification("x", params), writeResult(1, params)]) {
      assert.notMatch(line, /[\n\r\u2028\u2029]/u)
      assert.isTrue(line.isWellFormed())
      const back = JSON.parse(line)
      assert.deepStrictEqual(back.params ?? back.result, params)
      assert.strictEqual(back.jsonrpc, "2.0")
    }
  })

  it("classifies as what it was written as", () => {
    assert.deepStrictEqual(brief(classifyFrame(JSON.parse(writeRequest(7, "x", {})))), ["request", 7, "x"])
    assert.deepStrictEqual(brief(classifyFrame(JSON.parse(writeNotification("x", {})))), ["notification", "x"])
    assert.deepStrictEqual(brief(classifyFrame(JSON.parse(writeResult("a", {})))), ["response", "a"])
    const error = writeError(null, new Busy({ retryAfterMs: 10 }))
    assert.deepStrictEqual(brief(classifyFrame(JSON.parse(error))), ["error response", null, -32004])
  })
})
