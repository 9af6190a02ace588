import { assert, describe, it } from "@effect/vitest"
import * as protocol from "@tackroom/protocol"
import * as Events from "@tackroom/protocol/events"
import * as Run from "@tackroom/protocol/run"
import * as Scenario from "@tackroom/protocol/scenario"
import * as Serve from "@tackroom/protocol/serve"
import { fromWire, fromWireName, toWire, toWireName, wireNameExceptions } from "@tackroom/protocol/text"
import { Schema, SchemaAST } from "effect"
import { fieldNames, schemasOf } from "../events/Schemas.ts"

const schemas = schemasOf({ ...protocol, ...Events, ...Scenario, ...Serve, ...Run })
const names = new Set(schemas.flatMap(([, schema]) => [...fieldNames(schema)]))

/** `providerId` of a subagent and `providerID` of a model share a wire name; they never stand in one object. */
const homonyms = new Set(["providerId"])

describe("wire names", () => {
  it("the mapping is one-to-one over every field name of the package", () => {
    assert.isAbove(names.size, 200)
    const wires = new Map<string, string>()
    for (const name of names) {
      const wire = toWireName(name)
      assert.match(wire, /^_?[a-z][a-z0-9]*(_[a-z0-9]+)*$/u, name)
      if (homonyms.has(name)) continue
      assert.isUndefined(wires.get(wire), `${name} and ${wires.get(wire)} are both ${wire}`)
      wires.set(wire, name)
      assert.strictEqual(fromWireName(wire), name)
    }
  })

  it("no object has two fields of one wire name", () => {
    const seen = new Set<SchemaAST.AST>()
    const walk = (ast: SchemaAST.AST): void => {
      if (seen.has(ast)) return
      seen.add(ast)
      if (ast._tag === "Objects") {
        const wires = ast.propertySignatures.map(({ name }) => toWireName(String(name)))
        assert.strictEqual(new Set(wires).size, wires.length, wires.join(", "))
        for (const { type } of [...ast.propertySignatures, ...ast.indexSignatures]) walk(type)
      } else if (ast._tag === "Arrays") for (const element of [...ast.elements, ...ast.rest]) walk(element)
      else if (ast._tag === "Union") for (const member of ast.types) walk(member)
      else if (ast._tag === "Suspend") walk(SchemaAST.toEncoded(ast.thunk()))
    }
    for (const [, schema] of schemas) walk(SchemaAST.toEncoded(schema.ast))
    assert.isAbove(seen.size, 500)
  })

  it("the exceptions are those written down", () => {
    assert.deepStrictEqual(wireNameExceptions, { providerID: "provider_id", modelID: "model_id" })
    assert.strictEqual(toWireName("providerID"), "provider_id")
    assert.strictEqual(fromWireName("model_id"), "modelID")
    assert.strictEqual(fromWireName("_tag"), "_tag")
  })

  it("a schema's own name wins over the name alone", () => {
    const both = Schema.Struct({ agent: Schema.Struct({ providerId: Schema.String }), model: Events.ModelRef })
    const value = { agent: { providerId: "a" }, model: { providerID: "b", modelID: "c" } }
    const wire = { agent: { provider_id: "a" }, model: { provider_id: "b", model_id: "c" } }
    assert.deepStrictEqual(toWire(both)(value), wire)
    assert.deepStrictEqual(fromWire(both)(wire), value)
  })

  it("keys of records are data, their values are mapped", () => {
    const schema = Schema.Record(Schema.String, Schema.Struct({ startedAt: Schema.String }))
    const value = JSON.parse(`{"someId": {"startedAt": "a"}, "__proto__": {"startedAt": "b"}}`)
    const wire = toWire(schema)(value) as object
    assert.deepStrictEqual(Object.keys(wire), ["someId", "__proto__"])
    assert.strictEqual(JSON.stringify(wire), `{"someId":{"started_at":"a"},"__proto__":{"started_at":"b"}}`)
    assert.deepStrictEqual(fromWire(schema)(wire), value)
  })

  it("a recursive schema is mapped at every depth", () => {
    interface Tree {
      readonly nodeName: string
      readonly childNodes?: ReadonlyArray<Tree>
    }
    const Tree: Schema.Codec<Tree> = Schema.Struct({
      nodeName: Schema.String,
      childNodes: Schema.optionalKey(Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree)))
    })
    const value: Tree = { nodeName: "a", childNodes: [{ nodeName: "b", childNodes: [{ nodeName: "c" }] }] }
    const wire = { node_name: "a", child_nodes: [{ node_name: "b", child_nodes: [{ node_name: "c" }] }] }
    assert.deepStrictEqual(toWire(Tree)(value), wire)
    assert.deepStrictEqual(fromWire(Tree)(wire), value)
  })

  it("members of a union are told apart by literal, by shape and by kind", () => {
    const ByLiteral = Schema.Union([
      Schema.Struct({ kind: Schema.Literal("one"), fooBar: Schema.String }),
      Schema.Struct({ kind: Schema.Literal("two"), fooBar: Schema.Json })
    ])
    assert.deepStrictEqual(toWire(ByLiteral)({ kind: "two", fooBar: { aB: 1 } }), { kind: "two", foo_bar: { aB: 1 } })
    const ByShape = Schema.Union([
      Schema.Struct({ delayMs: Schema.Int }),
      Schema.Struct({ plan: Schema.Array(Schema.Struct({ itemId: Schema.String })) }),
      Schema.String,
      Schema.Null,
      Schema.Array(Schema.Struct({ toolName: Schema.String }))
    ])
    const map = toWire(ByShape)
    assert.deepStrictEqual(map({ delayMs: 1 }), { delay_ms: 1 })
    assert.deepStrictEqual(map({ plan: [{ itemId: "a" }] }), { plan: [{ item_id: "a" }] })
    assert.deepStrictEqual(map([{ toolName: "a" }]), [{ tool_name: "a" }])
    assert.strictEqual(map("toolName"), "toolName")
    assert.strictEqual(map(null), null)
  })

  it("what fits no member of a union is given back as it is", () => {
    const map = toWire(Events.EventPayload)
    const later = { type: "event-of-a-later-version", someField: 1 }
    assert.strictEqual(map(later), later)
  })
})
