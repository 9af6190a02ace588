/**
 * The wire form of a journaled event (run-protocol section 8.1): the envelope flattened, its names in snake_case,
 * without session, workspace, directory and contract version.
 *
 * The mapping of each event type is compiled once. An event in wire form is never walked again: inside a result it
 * passes through the codec as it is.
 */
import { Schema, SchemaAST, SchemaGetter } from "effect"
import { type Envelope, type EventPayload, eventSchemas, type EventType, isEventType } from "../events/Event.ts"
import { ArtifactRef } from "../events/Content.ts"
import { toWireName } from "../text/WireNames.ts"
import { setMember, wireMapper } from "./internal/WireMapper.ts"

/** An event on the wire. Its other members are the payload's fields, in snake_case. */
export interface WireEvent {
  readonly seq: number
  readonly at: string
  readonly turn_id?: string
  readonly after_turn?: string
  readonly type: string
  readonly artifacts?: ReadonlyArray<{
    readonly path: string
    readonly artifact_id: string
    readonly bytes: number
    readonly mime: string
  }>
  readonly [field: string]: unknown
}

const isWireEvent = (value: unknown): value is WireEvent => {
  if (typeof value !== "object" || value === null) return false
  const event: { readonly seq?: unknown; readonly at?: unknown; readonly type?: unknown } = value
  return typeof event.seq === "number" && typeof event.at === "string" && typeof event.type === "string"
}

/** An event that is in wire form already. Only what every reader needs is checked: `seq`, `at` and `type`. */
export const WireEvent = Schema.declare(isWireEvent, {
  identifier: "WireEvent",
  expected: "an event in wire form",
  description: "A journaled event: seq, at, turn_id?, after_turn?, type, the fields of its type, artifacts?.",
  toCodecJson: () => undefined,
  toCodecArbitrary: () =>
    Schema.link<WireEvent>()(Schema.Struct({ seq: Schema.Int, at: Schema.String, type: Schema.String }), {
      decode: SchemaGetter.passthrough(),
      encode: SchemaGetter.passthrough()
    })
})

/** What a wire event tells of the envelope: everything but the place (session, workspace, directory). */
export interface EventRecord {
  readonly cursor: number
  readonly at: string
  readonly turnId?: string
  readonly afterTurn?: string
  readonly payload: EventPayload
  readonly artifacts?: ReadonlyArray<ArtifactRef>
}

const mappers = new Map<string, ReturnType<typeof wireMapper>>()

/** The mapper of an event type, compiled at its first use; none for a type that the table does not know. */
const mapperOf = (type: string): ReturnType<typeof wireMapper> | undefined => {
  const known = mappers.get(type)
  if (known !== undefined || !isEventType(type)) return known
  const mapper = wireMapper(eventSchemas[type])
  mappers.set(type, mapper)
  return mapper
}

/** Maps the object keys of a JSON Pointer into a payload, as far as the payload's schema names them. */
const mapPointer = (pointer: string, type: EventType, toWire: boolean): string => {
  let ast: SchemaAST.AST | undefined = eventSchemas[type].ast
  const segments = pointer.split("/").map((segment, index) => {
    if (index === 0 || ast === undefined) return segment
    const step = descend(ast, segment, toWire)
    ast = step?.ast
    return step?.name ?? segment
  })
  return segments.join("/")
}

const descend = (
  ast: SchemaAST.AST,
  segment: string,
  toWire: boolean
): { readonly name: string; readonly ast: SchemaAST.AST } | undefined => {
  if (SchemaAST.isArrays(ast)) {
    const item = ast.elements[Number(segment)] ?? ast.rest[0]
    return item === undefined ? undefined : { name: segment, ast: item }
  }
  if (SchemaAST.isUnion(ast)) {
    for (const member of ast.types) {
      const step = descend(member, segment, toWire)
      if (step !== undefined) return step
    }
    return undefined
  }
  if (!SchemaAST.isObjects(ast)) return undefined
  for (const { name, type } of ast.propertySignatures) {
    const key = String(name)
    const wire = toWireName(key)
    if ((toWire ? key : wire) === segment) return { name: toWire ? wire : key, ast: type }
  }
  return undefined
}

/** Maps the names of a payload whose type this package does not know: its own fields only, their values untouched. */
const mapUnknown = (payload: object, name: (key: string) => string): Record<string, unknown> => {
  const out: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(payload)) setMember(out, name(key), value)
  return out
}

/**
 * The wire form of a journaled event. The payload is of a type of the canonical table; one of an unknown type, as a newer
 * version may have journaled it, keeps its values and gets wire names for its fields.
 */
export const toWireEvent = (envelope: Envelope): WireEvent => {
  const { payload } = envelope
  const out: Record<string, unknown> = { seq: envelope.cursor, at: envelope.at }
  if (envelope.turnId !== undefined) out["turn_id"] = envelope.turnId
  if (envelope.afterTurn !== undefined) out["after_turn"] = envelope.afterTurn
  out["type"] = payload.type
  const mapper = mapperOf(payload.type)
  Object.assign(out, mapper === undefined ? mapUnknown(payload, toWireName) : mapper.toWire(payload))
  if (envelope.artifacts !== undefined) {
    out["artifacts"] = envelope.artifacts.map(({ path, artifactId, bytes, mime }) => ({
      path: mapper === undefined ? path : mapPointer(path, payload.type, true),
      artifact_id: artifactId,
      bytes,
      mime
    }))
  }
  return out as WireEvent
}

const members = new Set(["seq", "at", "turn_id", "after_turn", "artifacts"])

/**
 * The record behind a wire event, or `undefined` for a type this package does not know, which a reader skips (RUN-175).
 * The event is taken to be well formed, as a host writes it.
 */
export const fromWireEvent = (event: WireEvent): EventRecord | undefined => {
  const mapper = mapperOf(event.type)
  if (mapper === undefined) return undefined
  const type = event.type as EventType
  const fields: Record<string, unknown> = {}
  for (const key of Object.keys(event)) if (!members.has(key)) fields[key] = event[key]
  return {
    cursor: event.seq,
    at: event.at,
    ...(event.turn_id === undefined ? {} : { turnId: event.turn_id }),
    ...(event.after_turn === undefined ? {} : { afterTurn: event.after_turn }),
    payload: mapper.fromWire(fields) as EventPayload,
    ...(event.artifacts === undefined
      ? {}
      : {
          artifacts: event.artifacts.map((artifact) => ({
            path: mapPointer(artifact.path, type, false),
            artifactId: artifact.artifact_id,
            bytes: artifact.bytes,
            mime: artifact.mime
          }))
        })
  }
}
