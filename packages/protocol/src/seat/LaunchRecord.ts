/**
 * The launch record (seat contract, section 4): the one channel through which a program tells which conversation it
 * opened, or that it could not.
 *
 * @since 0.1.0
 */
import { Result, Schema } from "effect"
import { lazySchema } from "../internal/Lazy.ts"
import { chars, optional } from "../run/Bounds.ts"
import { utf8Length } from "../text/Utf8.ts"
import { parseJson } from "../text/WireJson.ts"
import { seatCodec } from "./Decoding.ts"
import { NativeRef, PresetName } from "./Names.ts"
import { seatLimits } from "./SeatLimits.ts"

const common = {
  format: Schema.Literal(1),
  attempt: chars(1, 256),
  harness: PresetName,
  producer: optional(chars(0, 500))
}

/** A conversation was opened or reopened. @since 0.1.0 */
export const OpenedRecord = lazySchema(() =>
  Schema.Struct({ ...common, nativeRef: NativeRef, error: optional(Schema.Never) }).annotate({
    identifier: "OpenedRecord"
  })
)
/** @since 0.1.0 */
export type OpenedRecord = typeof OpenedRecord.Type

/**
 * No conversation was opened. `missing` is the agent's own word that it does not exist; any other value says that nothing
 * is confirmed.
 *
 * @since 0.1.0
 */
export const FailedRecord = lazySchema(() =>
  Schema.Struct({ ...common, error: chars(1, 100), nativeRef: optional(Schema.Never) }).annotate({
    identifier: "FailedRecord"
  })
)
/** @since 0.1.0 */
export type FailedRecord = typeof FailedRecord.Type

/** A launch record: exactly one of the two forms. @since 0.1.0 */
export const LaunchRecord = lazySchema(() =>
  Schema.Union([OpenedRecord, FailedRecord]).annotate({ identifier: "LaunchRecord" })
)
/** @since 0.1.0 */
export type LaunchRecord = typeof LaunchRecord.Type

const codec = seatCodec(LaunchRecord)

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** `producer` is free text for people: one that is out of bounds makes no record unusable. */
const withoutBadProducer = (json: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => {
  const { producer, ...rest } = json
  return typeof producer === "string" ? { ...rest, producer: [...producer].slice(0, 500).join("") } : rest
}

/**
 * Reads the text of a launch record file. `undefined` when it is not usable: not this attempt's, not this preset's, too
 * large, or none of the two forms.
 *
 * @since 0.1.0
 */
export const readLaunchRecord = (
  text: string,
  expected: { readonly attempt: string; readonly harness: string }
): LaunchRecord | undefined => {
  if (utf8Length(text) > seatLimits.launchRecordBytes) return undefined
  const json = Result.getOrUndefined(parseJson(text))
  if (!isObject(json)) return undefined
  const record = Result.getOrUndefined(codec.decode(withoutBadProducer(json)))
  return record?.attempt === expected.attempt && record.harness === expected.harness ? record : undefined
}

/** The JSON text of a launch record. @since 0.1.0 */
export const writeLaunchRecord = (record: LaunchRecord): string => `${JSON.stringify(codec.encode(record))}\n`
