/**
 * The stored form of an event: its payload as JSON text, made once and read back as it is (RT-182). What cannot be encoded
 * is replaced on the way in (RT-187), what cannot be decoded on the way out (RT-186), so that the sequence stays complete.
 */
import type { EventPayload } from "@tackroom/protocol/events"
import type { ArtifactReference, EventRow } from "./Rows.ts"

/** A journal row (`tr_event`): an event with its payload and artifact references as JSON text. */
export interface EventRecord {
  readonly sessionId: string
  readonly seq: number
  readonly at: number
  readonly type: string
  readonly turnId: string | null
  readonly afterTurn: string | null
  readonly payload: string
  readonly artifacts: string | null
}

const deepest = 500

/** Whether `JSON.stringify` would keep the value: no function, symbol, bigint or cycle inside. */
const isEncodable = (value: unknown, depth: number): boolean => {
  switch (typeof value) {
    case "function":
    case "symbol":
    case "bigint":
      return false
    case "object":
      break
    default:
      return true
  }
  if (value === null) return true
  if (depth > deepest) return false
  if (Array.isArray(value)) {
    for (const item of value) if (!isEncodable(item, depth + 1)) return false
    return true
  }
  for (const key in value) if (!isEncodable((value as Record<string, unknown>)[key], depth + 1)) return false
  return true
}

const diagnostic = (code: string, message: string): EventPayload => ({
  type: "diagnostic",
  diagnostic: { code, message }
})

/** The payload to store and its text; one that has no JSON form becomes a `diagnostic` `event_unencodable` (RT-187). */
export const encodePayload = (payload: EventPayload): { readonly payload: EventPayload; readonly text: string } => {
  if (isEncodable(payload, 0)) return { payload, text: JSON.stringify(payload) }
  const replaced = diagnostic("event_unencodable", `An event of type ${payload.type} has no JSON form`)
  return { payload: replaced, text: JSON.stringify(replaced) }
}

const decode = <A>(text: string): A | undefined => {
  try {
    return JSON.parse(text) as A
  } catch {
    return undefined
  }
}

/** The event of a stored record; one that does not decode becomes a `diagnostic` `event_undecodable` (RT-186). */
export const decodeEvent = (record: EventRecord): EventRow => {
  const payload = decode<EventPayload>(record.payload)
  const artifacts = record.artifacts === null ? null : decode<ReadonlyArray<ArtifactReference>>(record.artifacts)
  const place = {
    sessionId: record.sessionId,
    seq: record.seq,
    at: record.at,
    turnId: record.turnId,
    afterTurn: record.afterTurn
  }
  return typeof payload === "object" && payload !== null && payload.type === record.type && artifacts !== undefined
    ? { ...place, type: record.type, payload, artifacts }
    : {
        ...place,
        type: "diagnostic",
        payload: diagnostic("event_undecodable", `The stored event ${record.seq} cannot be read`),
        artifacts: null
      }
}

/** The event of a record that was just made. Its payload is parsed when somebody looks at it. */
export const storedEvent = (record: EventRecord, artifacts: ReadonlyArray<ArtifactReference> | null): EventRow => {
  let payload: EventPayload | undefined
  return {
    sessionId: record.sessionId,
    seq: record.seq,
    at: record.at,
    type: record.type,
    turnId: record.turnId,
    afterTurn: record.afterTurn,
    get payload() {
      payload ??= JSON.parse(record.payload) as EventPayload
      return payload
    },
    artifacts
  }
}
