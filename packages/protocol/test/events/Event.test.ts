import { assert, describe, it } from "@effect/vitest"
import * as protocol from "@tackroom/protocol"
import * as Events from "@tackroom/protocol/events"
import { fromWire, parseJson, toWire, wireJson } from "@tackroom/protocol/text"
import { Effect, Result, Schema, SchemaAST } from "effect"
import { schemasOf } from "./Schemas.ts"

const { eventSchemas, eventTable, eventTypes } = Events

const json = (value: unknown): unknown => Result.getOrThrow(parseJson(wireJson(value)))

/** JSON has no negative zero. */
const plain = <A>(value: A): A => json(value) as A

const codecs = eventTypes.map((type) => {
  const schema = eventSchemas[type] as unknown as Schema.Codec<Events.EventPayload>
  return {
    type,
    schema,
    decode: Schema.decodeUnknownSync(schema),
    encode: Schema.encodeUnknownSync(schema),
    toWire: toWire(schema),
    fromWire: fromWire(schema)
  }
})

const decodePayload = Schema.decodeUnknownSync(Events.EventPayload)
const decodeEnvelope = Schema.decodeUnknownSync(Events.Envelope)
const encodeEnvelope = Schema.encodeUnknownSync(Events.Envelope)
const envelopeToWire = toWire(Events.Envelope)
const envelopeFromWire = fromWire(Events.Envelope)

const envelope = {
  sessionId: "ses_1",
  workspaceId: "default",
  directory: "/srv/app",
  cursor: 1,
  at: "2026-01-31T12:00:00.000Z",
  contractVersion: 1
}

describe("canonical events", () => {
  for (const codec of codecs) {
    it.effect.prop(
      `${codec.type} survives encoding, JSON and the wire names`,
      [codec.schema],
      ([generated]) =>
        Effect.sync(() => {
          const event = plain(generated)
          const encoded = codec.encode(event)
          assert.deepStrictEqual(codec.decode(json(encoded)), event)
          assert.deepStrictEqual(codec.decode(codec.fromWire(json(codec.toWire(encoded)))), event)
          assert.deepStrictEqual(decodePayload(json(encoded)), event)
        }),
      { arbitrary: { runs: 20 } }
    )

    it.effect.prop(
      `${codec.type} tolerates unknown members and never echoes them`,
      [codec.schema],
      ([generated]) =>
        Effect.sync(() => {
          const event = plain(generated)
          const strange = { ...codec.encode(event), notInTheTable: { a: 1 }, not_in_the_table: null }
          assert.deepStrictEqual(codec.decode(strange), event)
          assert.notProperty(codec.encode(strange), "notInTheTable")
          assert.notProperty(codec.toWire(strange), "not_in_the_table")
        }),
      { arbitrary: { runs: 5 } }
    )
  }

  it.effect.prop(
    "an envelope survives encoding, JSON and the wire names",
    [Events.Envelope],
    ([generated]) =>
      Effect.sync(() => {
        const value = plain(generated)
        const encoded = encodeEnvelope(value)
        assert.deepStrictEqual(decodeEnvelope(json(encoded)), value)
        assert.deepStrictEqual(decodeEnvelope(envelopeFromWire(json(envelopeToWire(encoded)))), value)
      }),
    { arbitrary: { runs: 100 } }
  )

  it("no payload field is called as a field of the flattened envelope [RUN-173]", () => {
    const taken = new Set(["seq", "at", "turnId", "turn_id", "afterTurn", "after_turn", "artifacts"])
    for (const { type, schema } of codecs) {
      const ast = schema.ast
      assert(SchemaAST.isObjects(ast))
      for (const { name } of ast.propertySignatures) assert.isFalse(taken.has(String(name)), `${type}.${String(name)}`)
    }
  })

  it("every exported schema has an identifier, and no two share one", () => {
    const byIdentifier = new Map<string, Schema.Top>()
    for (const [name, schema] of schemasOf({ ...protocol, ...Events })) {
      const identifier = SchemaAST.resolveIdentifier(schema.ast)
      assert.isDefined(identifier, name)
      const other = byIdentifier.get(identifier as string)
      assert.isTrue(other === undefined || other === schema, `${name}: ${identifier} is taken`)
      byIdentifier.set(identifier as string, schema)
    }
    assert.isAbove(byIdentifier.size, 150)
  })

  it("a schema in the table stands under its own type literal", () => {
    for (const { type, schema } of codecs) {
      const ast = schema.ast
      assert(SchemaAST.isObjects(ast))
      const literal = ast.propertySignatures.find(({ name }) => name === "type")?.type
      assert(literal !== undefined && SchemaAST.isLiteral(literal))
      assert.strictEqual(literal.literal, type)
    }
  })

  it("meta fields are allowed on every type", () => {
    const meta = {
      harness: { id: "scripted", access: "native" },
      threadId: "t1",
      raw: { nativeKey: [1] },
      diagnostics: [{ code: "c", message: "m" }]
    }
    for (const { schema } of codecs) {
      const ast = schema.ast
      assert(SchemaAST.isObjects(ast))
      const names = ast.propertySignatures.map(({ name }) => name)
      assert.includeMembers(names, Object.keys(meta))
    }
    const delta = { type: "text-delta", delta: "a", messageId: "m", partId: "p", ...meta }
    assert.deepStrictEqual<unknown>(decodePayload(delta), delta)
  })

  it("the terminal, delta and runtime-only types are those of the contract [RT-140]", () => {
    const where = (keep: (traits: Events.EventTraits) => boolean) => eventTypes.filter((type) => keep(eventTable[type]))
    assert.deepStrictEqual<ReadonlyArray<string>>(
      where((traits) => traits.terminal),
      ["finish", "cancelled", "error"]
    )
    assert.deepStrictEqual<ReadonlyArray<string>>(
      where((traits) => traits.delta),
      ["text-delta", "thinking-delta", "tool-output-delta"]
    )
    assert.sameMembers<string>(
      where((traits) => !traits.harness),
      [
        "session-created",
        "user-message",
        "turn-start",
        "queue-update",
        "permission-resolved",
        "question-answered",
        "question-rejected",
        "interaction-withdrawn",
        "session-handoff"
      ]
    )
    for (const type of eventTypes) assert.strictEqual(Events.isTerminalType(type), eventTable[type].terminal)
  })

  it("a harness event refuses the runtime's own types", () => {
    const isHarnessEvent = Schema.is(Events.HarnessEvent)
    assert.isTrue(isHarnessEvent({ type: "finish", sessionId: "s", assistantMessageId: "a", reason: "end_turn" }))
    assert.isFalse(isHarnessEvent({ type: "turn-start", messageId: "m", assistantMessageId: "a", origin: "user" }))
  })

  it("lone surrogates and U+0000 survive a round trip unchanged [RT-191] [RUN-014]", () => {
    const text = "a\ud800b\udc00c\u0000d\u2028e\u2029f\ud83d\ude00"
    const value = {
      ...envelope,
      payload: { type: "text-end", messageId: "m", partId: "p", channel: "text", text }
    }
    const line = wireJson(envelopeToWire(encodeEnvelope(decodeEnvelope(value))))
    assert.isFalse(/[\p{Cc}\u2028\u2029]/u.test(line))
    assert.isTrue(line.isWellFormed())
    assert.deepStrictEqual<unknown>(decodeEnvelope(envelopeFromWire(Result.getOrThrow(parseJson(line)))), value)
  })

  it("null is not the absence of a count of tokens", () => {
    const usage = {
      type: "usage",
      observation: {
        kind: "delta",
        tokens: { input: null, output: 0, reasoning: null, cache: { read: null, write: 2 } }
      }
    }
    assert.deepStrictEqual<unknown>(decodePayload(usage), usage)
    assert.throws(() => decodePayload({ ...usage, observation: { kind: "delta", tokens: { input: 1 } } }))
  })

  it("a decoding failure names the path and what was expected [RT-382]", () => {
    const bad = { ...envelope, payload: { type: "tool-location", toolCallId: "c", locations: [{ path: 1 }] } }
    assert.throws(() => decodeEnvelope(bad), /Expected string[^]*"payload"[^]*"locations"[^]*0[^]*"path"/u)
  })

  it("an id without its prefix is refused", () => {
    assert.throws(() =>
      decodeEnvelope({ ...envelope, turnId: "1", payload: { type: "session-closed", reason: "closed" } })
    )
    assert.throws(() => decodePayload({ type: "question-rejected", requestId: "9", origin: "person" }))
    assert.throws(() => decodePayload({ type: "image-delta", mimeType: "image/png", artifactId: "x" }))
  })

  it("nothing in free JSON is renamed, whatever its name", () => {
    const event = {
      type: "tool-input",
      toolCallId: "c",
      input: { filePath: "a", nested: [{ toolCallId: 1, file_path: 2 }] },
      metadata: { qualifiedName: "x", other_name: { fooBar: 1 } }
    }
    const wire = envelopeToWire({ ...envelope, payload: event }) as { readonly payload: unknown }
    assert.deepStrictEqual(wire.payload, {
      type: "tool-input",
      tool_call_id: "c",
      input: event.input,
      metadata: event.metadata
    })
  })
})

describe("rows", () => {
  const rows = schemasOf({ ...Events }).filter(([name]) => !name.endsWith("Event") && name !== "EventPayload")
  for (const [name, schema] of rows) {
    const codec = schema as unknown as Schema.Codec<unknown>
    const decode = Schema.decodeUnknownSync(codec)
    const encode = Schema.encodeUnknownSync(codec)
    const outward = toWire(codec)
    const inward = fromWire(codec)
    it.effect.prop(
      `${name} survives encoding, JSON and the wire names`,
      [codec],
      ([generated]) =>
        Effect.sync(() => {
          const value = plain(generated)
          const encoded = encode(value)
          assert.deepStrictEqual(decode(json(encoded)), value)
          assert.deepStrictEqual(decode(inward(json(outward(encoded)))), value)
        }),
      { arbitrary: { runs: 10 } }
    )
  }
})
