/**
 * The published documents of the protocols, made from the schemas: `openrpc.json` of the run protocol and the JSON
 * Schemas of its files and events. Everything is in wire form; nothing here is written by hand but titles.
 */
import { Schema } from "effect"
import { ArtifactRef, eventSchemas, eventTypes, Timestamp } from "@tackroom/protocol/events"
import {
  AgentDefinition,
  capabilityKeys,
  capabilityName,
  commonErrors,
  HostConfig,
  limitKeys,
  limitName,
  limits,
  methodNames,
  methods,
  notificationNames,
  notifications,
  runErrorData,
  runErrorKinds,
  runErrors,
  runErrorTable
} from "@tackroom/protocol/run"
import { Scenario } from "@tackroom/protocol/scenario"
import {
  ActivityAnswer,
  ActivityPost,
  LaunchRecord,
  PermissionRead,
  PermissionSubmit,
  PermissionSubmitted,
  PermissionWithdraw,
  PermissionWithdrawn,
  Preset
} from "@tackroom/protocol/seat"
import { ServeLine, ServeOp } from "@tackroom/protocol/serve"
import { toWireName } from "@tackroom/protocol/text"

type Json = Schema.Json
type JsonObject = { readonly [key: string]: Json }

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Values that are data, in which nothing has another name. */
const data = new Set(["const", "enum", "default", "examples"])

/** The one name of a definition: the encoded side of a declared schema is that schema here. */
const definitionName = (name: string): string => name.replace(/Encoded$/u, "")

/** How a family writes the name of a field. */
type NameOf = (field: string) => string

const asDeclared: NameOf = (field) => field

/** A JSON Schema in TypeScript names, rewritten to wire names and to where its definitions are. */
const inWireNames = (schema: Json, definitions: string, nameOf: NameOf): Json => {
  if (Array.isArray(schema)) return schema.map((item: Json) => inWireNames(item, definitions, nameOf))
  if (!isObject(schema)) return schema
  return tidy(
    Object.fromEntries(
      Object.entries(schema).map(([key, value]): readonly [string, Json] => {
        if (data.has(key)) return [key, value]
        if (key === "$ref" && typeof value === "string") {
          return [key, definitionName(value.replace(/^#\/\$defs\//u, definitions))]
        }
        if (key === "required" && Array.isArray(value)) {
          return [key, value.map((name: Json) => (typeof name === "string" ? nameOf(name) : name))]
        }
        if (key === "properties" && isObject(value)) {
          return [
            key,
            Object.fromEntries(
              Object.entries(value).map(([name, member]) => [nameOf(name), inWireNames(member, definitions, nameOf)])
            )
          ]
        }
        return [key, inWireNames(value, definitions, nameOf)]
      })
    )
  )
}

const withoutDiscriminant = (member: Json, defaults: JsonObject): Json => {
  if (!isObject(member) || !isObject(member["properties"]) || !Array.isArray(member["required"])) return member
  const { properties } = member
  const isDefault = (name: Json): boolean => {
    const property = typeof name === "string" ? properties[name] : undefined
    return (
      typeof name === "string" &&
      name in defaults &&
      isObject(property) &&
      JSON.stringify(property["enum"]) === JSON.stringify([defaults[name]])
    )
  }
  return { ...member, required: member["required"].filter((name: Json) => !isDefault(name)) }
}

/** Merges checks that stand alone into their schema, drops bounds of zero, and lets a discriminant with a default out. */
const tidy = (schema: JsonObject): JsonObject => {
  const { allOf, wireDefaults, ...rest } = schema
  let out: JsonObject = rest
  const kept: Array<Json> = []
  for (const check of Array.isArray(allOf) ? (allOf as ReadonlyArray<Json>) : []) {
    if (isObject(check) && Object.keys(check).every((key) => !(key in out))) out = Object.assign({}, out, check)
    else kept.push(check)
  }
  const bounds = Object.entries(out).filter(
    ([key, value]) => !((key === "minLength" || key === "minItems") && value === 0)
  )
  out = Object.fromEntries(bounds)
  if (isObject(wireDefaults) && Array.isArray(out["anyOf"])) {
    out = { ...out, anyOf: out["anyOf"].map((member: Json) => withoutDiscriminant(member, wireDefaults)) }
  }
  return kept.length === 0 ? out : { ...out, allOf: kept }
}

/** An event inside a result is in wire form; which fields it has depends on its type (`events.schema.json`). */
const wireEvent: JsonObject = {
  description:
    "A journaled event: seq, at, turn_id?, after_turn?, type, the fields of its type, artifacts?. See events.schema.json.",
  type: "object",
  properties: {
    seq: { type: "integer", minimum: 1 },
    at: { type: "string", format: "date-time" },
    turn_id: { type: "string" },
    after_turn: { type: "string" },
    type: { type: "string" },
    artifacts: { type: "array" }
  },
  required: ["seq", "at", "type"]
}

interface Definitions {
  readonly [name: string]: Json
}

/** Collects the definitions that several schemas share. */
const makeCollector = (definitions: string, nameOf: NameOf = toWireName) => {
  const collected = new Map<string, Json>()
  const schemaOf = (schema: Schema.Constraint): Json => {
    const document = Schema.toJsonSchemaDocument(schema, {
      includeAnnotationKey: (key) => key === "wireDefaults" || key.startsWith("x-")
    })
    for (const [key, definition] of Object.entries(document.definitions)) {
      const name = definitionName(key)
      const json = name === "WireEvent" ? wireEvent : inWireNames(definition as unknown as Json, definitions, nameOf)
      const known = collected.get(name)
      if (known !== undefined && JSON.stringify(known) !== JSON.stringify(json)) {
        throw new Error(`two schemas share the identifier ${name}`)
      }
      collected.set(name, json)
    }
    return inWireNames(document.schema as unknown as Json, definitions, nameOf)
  }
  const sorted = (): Definitions =>
    Object.fromEntries([...collected].toSorted(([left], [right]) => (left < right ? -1 : 1)))
  return { schemaOf, sorted }
}

const base = "urn:tackroom:schema:"

const jsonSchema = (
  file: string,
  title: string,
  schema: Schema.Constraint,
  nameOf: NameOf = toWireName
): JsonObject => {
  const { schemaOf, sorted } = makeCollector("#/$defs/", nameOf)
  const root = schemaOf(schema)
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: `${base}${file.replace(".schema.json", "")}`,
    title,
    ...(isObject(root) ? root : {}),
    $defs: sorted()
  }
}

/** The schema of one event type in its flattened form. */
const flatEvent = (type: (typeof eventTypes)[number]): Schema.Constraint => {
  const { fields } = eventSchemas[type] as unknown as Schema.Struct<Schema.Struct.Fields>
  return Schema.Struct({
    seq: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
    at: Timestamp,
    turnId: Schema.optionalKey(Schema.String),
    afterTurn: Schema.optionalKey(Schema.String),
    ...fields,
    artifacts: Schema.optionalKey(Schema.Array(ArtifactRef))
  }).annotate({
    identifier: `${type.replaceAll(/(?:^|-)([a-z])/gu, (_, letter: string) => letter.toUpperCase())}Event`
  })
}

const events = (): JsonObject => {
  const { schemaOf, sorted } = makeCollector("#/$defs/")
  const members = eventTypes.map((type) => schemaOf(flatEvent(type)))
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: `${base}events`,
    title: "An event in wire form",
    description: "A reader skips event types it does not know.",
    anyOf: members,
    $defs: sorted()
  }
}

/** Params by name, the required ones first as OpenRPC wants them, and what binds several of them together. */
const descriptors = (schema: Json): { readonly params: ReadonlyArray<Json>; readonly rules: JsonObject | null } => {
  const object = isObject(schema) ? schema : {}
  const properties = isObject(object["properties"]) ? object["properties"] : {}
  const required = new Set(Array.isArray(object["required"]) ? object["required"] : [])
  const rules = Object.fromEntries(
    Object.entries(object).filter(([key]) => !["type", "properties", "required", "additionalProperties"].includes(key))
  )
  const first = ([name]: readonly [string, unknown]): number => (required.has(name) ? 0 : 1)
  const inOrder = Object.entries(properties).toSorted((one, other) => first(one) - first(other))
  const params = inOrder.map(([name, member]): Json => ({
    name,
    required: required.has(name),
    schema: member
  }))
  return { params, rules: Object.keys(rules).length === 0 ? null : rules }
}

const openrpc = (): JsonObject => {
  const { schemaOf, sorted } = makeCollector("#/components/schemas/")
  const table = methodNames.map((name): Json => {
    const row: (typeof methods)[typeof name] = methods[name]
    const { params, rules } = descriptors(schemaOf(row.params))
    return {
      name,
      summary: row.summary,
      paramStructure: "by-name",
      params,
      result: { name: "result", schema: schemaOf(row.result) },
      errors: [...new Set([...row.errors, ...commonErrors])].map((kind) => ({ $ref: `#/components/errors/${kind}` })),
      "x-capability": row.capability === null ? null : capabilityName(row.capability),
      "x-idempotency-key": "idempotencyKey" in row ? [...row.idempotencyKey] : null,
      "x-kind": row.kind,
      "x-mutating": row.mutating,
      "x-params-rules": rules
    }
  })
  const notes = notificationNames.map((name): Json => {
    const row = notifications[name]
    return {
      name,
      summary: row.summary,
      params: schemaOf(row.params),
      "x-direction": row.direction,
      "x-capability": capabilityName(row.capability),
      "x-idempotency-key": row.idempotencyKey
    }
  })
  const errors = Object.fromEntries(
    runErrorKinds.map((kind): readonly [string, Json] => [
      kind,
      {
        code: runErrorTable[kind].code,
        message: runErrors[kind].identifier.replace(/^Run(.*)Error$/u, "$1"),
        "x-retry": runErrorTable[kind].retry,
        "x-data": schemaOf(runErrorData[kind])
      }
    ])
  )
  return {
    openrpc: "1.3.2",
    info: {
      title: "Tackroom run protocol",
      version: "1.0.0",
      description: "How an app drives a host: JSON-RPC 2.0, one object per line over stdio, or the same in process.",
      license: { name: "MIT" }
    },
    methods: table,
    "x-notifications": notes,
    "x-capabilities": capabilityKeys.map(capabilityName),
    "x-limits": Object.fromEntries(limitKeys.map((key) => [limitName(key), limits[key]])),
    components: { schemas: sorted(), errors }
  }
}

/** The bodies of the four routes between a runner and a rig: one definition each. */
const seatMessages = (): JsonObject => {
  const { schemaOf, sorted } = makeCollector("#/$defs/", asDeclared)
  const messages = [
    ActivityPost,
    ActivityAnswer,
    PermissionSubmit,
    PermissionSubmitted,
    PermissionRead,
    PermissionWithdraw,
    PermissionWithdrawn
  ]
  const members = messages.map((schema) => schemaOf(schema))
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: `${base}seat-messages`,
    title: "Messages between a runner and a rig",
    description: "Each definition is the body of one request or answer. A reader ignores members it does not know.",
    anyOf: members,
    $defs: sorted()
  }
}

/** Every published document by its file name. */
export const documents = (): ReadonlyMap<string, JsonObject> =>
  new Map([
    ["openrpc.json", openrpc()],
    ["host-config.schema.json", jsonSchema("host-config.schema.json", "Configuration of a Tackroom host", HostConfig)],
    ["agent-definition.schema.json", jsonSchema("agent-definition.schema.json", "An agent", AgentDefinition)],
    ["events.schema.json", events()],
    ["scenario.schema.json", jsonSchema("scenario.schema.json", "A scenario of the scripted provider", Scenario)],
    ["preset.schema.json", jsonSchema("preset.schema.json", "The preset of a seat's program", Preset)],
    [
      "launch-record.schema.json",
      jsonSchema("launch-record.schema.json", "The launch record of a seat", LaunchRecord, asDeclared)
    ],
    ["seat-messages.schema.json", seatMessages()],
    ["serve-ops.schema.json", jsonSchema("serve-ops.schema.json", "An op of serve mode", ServeOp)],
    ["serve-lines.schema.json", jsonSchema("serve-lines.schema.json", "A line of serve mode", ServeLine)]
  ])

/** A document as its file holds it. */
export const printed = (document: JsonObject): string => `${JSON.stringify(document, null, 2)}\n`
