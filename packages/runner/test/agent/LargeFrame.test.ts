import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { readFrame } from "../../src/agent/LargeFrame.ts"
import { readPermission } from "../../src/agent/Updates.ts"

const allow = { optionId: "allow", name: "Allow", kind: "allow_once" }
const call = { toolCallId: "t1", title: "Run make", kind: "execute", status: "pending" }
const ask = { jsonrpc: "2.0", id: 7, method: "session/request_permission" }
const members = (count: number): string => Array.from({ length: count }, (_, at) => `"k${at}":1`).join(",")
const padded = (json: string): string => `${json}${" ".repeat(300_000)}`
const read = (text: string): unknown => Result.getOrUndefined(readFrame(text))

const asked = (toolCall: string, options = JSON.stringify([allow])) => {
  const frame = read(
    `{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"c","toolCall":${toolCall},"options":${options}}}`
  )
  return readPermission((frame as { readonly params: unknown }).params)
}

describe("a large line of the agent", () => {
  it.prop(
    "that has room in a submit is read whole, whatever white space it has [SEAT-161]",
    [Schema.Json, Schema.Json],
    ([rawInput, params]) => {
      // As JSON has it: without a minus before a zero.
      const asking: unknown = JSON.parse(
        JSON.stringify({ ...ask, params: { sessionId: "c", toolCall: { ...call, rawInput }, options: [allow] } })
      )
      assert.deepStrictEqual(read(padded(JSON.stringify(asking))), asking)
      const other: unknown = JSON.parse(JSON.stringify({ jsonrpc: "2.0", id: "x", method: "_otter/ask", params }))
      assert.deepStrictEqual(read(padded(JSON.stringify(other, undefined, 1))), other)
    }
  )

  it("keeps of a request what identifies the call, what there is room for, and the names of the rest [SEAT-161]", () => {
    const request = asked(`{"rawInput":{${members(60_000)}},"foo":[1],"title":"no","rawOutput":"short",
      "titl\\u0065" : "Run make" , "kind":"execute","_meta":{"mine":1},"toolCallId":"t1"}`)
    assert.deepStrictEqual(request?.toolCall, {
      toolCallId: "t1",
      title: "Run make",
      kind: "execute",
      foo: [1],
      rawOutput: "short",
      _meta: { mine: 1, tackroom: { truncated: ["rawInput"] } }
    })
    assert.deepStrictEqual(request?.options, [allow])
  })

  it("finds what identifies the call behind members that are too many to be kept [SEAT-161]", () => {
    const request = asked(`{${members(60_000)},"content":[${"[],".repeat(200_000)}0],${JSON.stringify(call).slice(1)}`)
    const { _meta, ...rest } = request?.toolCall ?? {}
    assert.deepInclude(rest, call)
    assert.isBelow(Object.keys(rest).length, 2_000)
    const { tackroom } = _meta as { readonly tackroom: { readonly truncated: ReadonlyArray<string> } }
    assert.strictEqual(tackroom.truncated[0], "content")
    assert.strictEqual(tackroom.truncated.length, 16)
  })

  it("keeps the first of options that are too many, and asks no less [SEAT-161]", () => {
    const request = asked(JSON.stringify(call), `[${`${JSON.stringify(allow)} , `.repeat(100_000)}7]`)
    assert.deepStrictEqual(request?.toolCall, call)
    const { options = [] } = request ?? {}
    assert.deepStrictEqual(options[0], allow)
    assert.isAbove(options.length, 1_000)
    assert.isBelow(options.length, 50_000)
  })

  it("keeps of other messages what is read of them [SEAT-093]", () => {
    const many = `{${members(80_000)}}`
    assert.deepStrictEqual(read(`{"id":3,"result":{"models":${many},"stopReason":"end_turn"}}`), {
      id: 3,
      result: { stopReason: "end_turn" }
    })
    const update = { sessionUpdate: "tool_call", toolCallId: "t1", title: "Look", kind: "read" }
    assert.deepStrictEqual(
      read(
        `{"method":"session/update","params":{"x":${many},"sessionId":"c","update":{"rawInput":${many},${JSON.stringify(update).slice(1)}}}`
      ),
      { method: "session/update", params: { sessionId: "c", update } }
    )
    assert.deepStrictEqual(read(`{${members(80_000)},"id":1,"method":"fs/read","params":[${"1,".repeat(200_000)}1]}`), {
      id: 1,
      method: "fs/read",
      params: null
    })
    const text = "é\\n".repeat(200_000)
    const said = `{"method":"session/update","params":{"sessionId":"c","update":{"content":{"type":"text","text":"${text}"}}}}`
    assert.deepStrictEqual(read(said), JSON.parse(said))
  })

  it("that is no message is none [SEAT-093]", () => {
    const many = `{${members(80_000)}}`
    for (const line of [
      many,
      `[${many}]`,
      `"${"x".repeat(300_000)}"`,
      `{"id":${many},"method":"session/request_permission"}`,
      `{"id":1,"method":"a","params":${many}`,
      `{"id":1,"method":"a","params":${many}}}`,
      `{"id":1,"method":"a","params":${many},}`,
      `{"id":1,"method":"a","params":${many}}{"id":2}`,
      `{"id":1 2,"method":"a","params":${many}}`,
      `{"id":01,"method":"a","params":${many}}`,
      `{"id":1,"method":"a","params":"${"x".repeat(300_000)}}`,
      `{"id":1,"method":"a","params":\\"${"x".repeat(300_000)}"}`
    ]) {
      assert.isTrue(Result.isFailure(readFrame(line)), line.slice(0, 60))
    }
  })
})
