/**
 * The field kinds that the run protocol's messages are made of, each with its bounds as a check. Characters are Unicode
 * code points, bytes are UTF-8 bytes (section 1); a check's `expected` text is what `invalid_params` answers (RUN-061).
 */
import { Schema } from "effect"
export { Timestamp } from "../events/Content.ts"
export { Category as ToolCategory } from "../events/Interaction.ts"
import { hasReservedPrefix, reservedMessagePrefixes } from "../Ids.ts"
import { utf8Length } from "../text/Utf8.ts"
import { toWireName } from "../text/WireNames.ts"

const range = (min: number, max: number): string => (min === 0 ? `at most ${max}` : `${min} to ${max}`)

/** A string of `min` to `max` characters (Unicode code points). */
export const chars = (min: number, max: number) =>
  Schema.String.check(Schema.isBetweenCodePoints(min, max, { expected: `a string of ${range(min, max)} characters` }))

/**
 * A string of `min` to `max` UTF-8 bytes. JSON Schema has no byte length: documents carry `maxLength`, which is looser,
 * and `x-max-bytes`, which is exact.
 */
export const bytes = (min: number, max: number) =>
  Schema.String.check(
    Schema.makeFilter(
      (text: string) => {
        if (text.length > max) return false
        if (text.length >= min && text.length * 3 <= max) return true
        const length = utf8Length(text)
        return length >= min && length <= max
      },
      {
        expected: `a string of ${range(min, max)} bytes`,
        toJsonSchema: () => [{ ...(min > 0 ? { minLength: 1 } : {}), maxLength: max, "x-max-bytes": max }, true],
        arbitraryConstraint: { minLength: min, maxLength: Math.min(max, 64) }
      }
    )
  )

/** A string which a regular expression describes; the pattern appears in documents. */
export const pattern = (regExp: RegExp, expected: string) => Schema.String.check(Schema.isPattern(regExp, { expected }))

/** A whole number from `min` to `max`; without `max`, up to 2^53 − 1. */
export const int = (min: number, max: number = Number.MAX_SAFE_INTEGER) =>
  Schema.Int.check(
    max === Number.MAX_SAFE_INTEGER
      ? Schema.isGreaterThanOrEqualTo(min, { expected: `an integer of at least ${min}` })
      : Schema.isBetween({ minimum: min, maximum: max }, { expected: `an integer from ${min} to ${max}` })
  )

/** A list of `min` to `max` entries. */
export const list = <S extends Schema.Constraint>(item: S, max: number, min = 0) =>
  Schema.Array(item).check(Schema.isBetweenLength(min, max, { expected: `a list of ${range(min, max)} entries` }))

/** A list of at most `max` entries, none of them twice. */
export const uniqueList = <S extends Schema.Constraint>(item: S, max: number) =>
  list(item, max).check(Schema.isUnique({ expected: "a list without repeated entries" }))

/** A map with string keys, which are data and never mapped, of at most `max` entries. */
export const map = <S extends Schema.Constraint>(value: S, max: number) =>
  Schema.Record(Schema.String, value).check(
    Schema.isMaxProperties(max, { expected: `an object of at most ${max} entries` })
  )

/** Short for `Schema.optionalKey`: a field that may be left out (and on input may be null, which counts as left out). */
export const optional: <S extends Schema.Constraint>(schema: S) => Schema.optionalKey<S> = Schema.optionalKey

/** A check that exactly one of two optional fields is given. */
export const exactlyOne = <A extends string, B extends string>(first: A, second: B) =>
  Schema.makeFilter(
    (fields: object) => {
      const given = (name: string) => Object.hasOwn(fields, name)
      return given(first) !== given(second)
    },
    {
      expected: `exactly one of ${toWireName(first)} and ${toWireName(second)}`,
      toJsonSchema: () => ({ oneOf: [{ required: [first] }, { required: [second] }] })
    }
  )

/** An id as a request carries it: any string of at most 200 characters; an unknown one is `not_found`, whatever its form. */
export const IdParam = chars(0, 200)

/** An opaque id made by a host: a prefix and `[A-Za-z0-9_-]`, at most 64 characters. */
export const HostId = Schema.String

/** A cursor that a host states: 0 = nothing yet, N = everything up to and including N. */
export const Cursor = int(0)

/** Cursors by session id. The keys are ids and are never mapped. */
export const Cursors = Schema.Record(Schema.String, Cursor)

/**
 * A cursor as a request carries it. Every JSON value is let through, because a wrong one is answered with
 * `invalid_cursor`, not `invalid_params` (RUN-141): read it with `readCursor`.
 */
export const CursorParam = Schema.Json.annotate({
  expected: "a cursor",
  description: "A cursor: an integer from 0 to the head. Any other value is answered with invalid_cursor."
})

/** The number of a cursor a client sent, or `undefined` when it is none and the answer is `invalid_cursor` `malformed`. */
export const readCursor = (value: Schema.Json): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined

/** An absolute path of at most 4,096 bytes (POSIX, or Windows with a drive or a share). */
export const AbsolutePath = bytes(1, 4096).check(
  Schema.isPattern(/^(?:\/|[A-Za-z]:[\\/]|\\\\)/u, { expected: "an absolute path" }),
  Schema.makeFilter((path: string) => !path.includes("\u0000"), {
    expected: "an absolute path",
    toJsonSchema: () => [{}, true]
  })
)

/** An id of an agent, and of the scope of a memory. */
export const AgentId = pattern(
  /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/u,
  "1 to 64 of the characters A-Z a-z 0-9 . _ -, the first a letter or digit"
)

/** The name of a model provider (a `connection`). */
export const ProviderName = pattern(
  /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/u,
  "1 to 64 of the characters A-Z a-z 0-9 . _ -, the first a letter or digit"
)

/** A qualified tool name `provider.tool`, split at the first dot (AGT-031). */
export const QualifiedName = pattern(
  /^[A-Za-z][A-Za-z0-9_-]{0,63}\.[A-Za-z0-9._/-]{1,128}$/u,
  "a qualified tool name, provider.tool"
)

/** A wall around runner tools. */
export const SandboxKind = Schema.Literals(["none", "process", "openshell"]).annotate({ identifier: "SandboxKind" })
/** A wall around runner tools. */
export type SandboxKind = typeof SandboxKind.Type

/** A model: the provider's name and the provider's id of the model. */
export const AgentModel = Schema.Struct({ connection: ProviderName, model: chars(1, 128) }).annotate({
  identifier: "AgentModel"
})
/** A model: the provider's name and the provider's id of the model. */
export type AgentModel = typeof AgentModel.Type

const controlCharacter = /\p{Cc}/u

/** A submission id as a start carries it: 1 to 200 characters without control characters, lone surrogates or a reserved prefix. */
export const SubmissionId = chars(1, 200).check(
  Schema.makeFilter((id: string) => id.isWellFormed() && !controlCharacter.test(id) && !hasReservedPrefix(id), {
    expected: "a submission id without control characters and without a reserved prefix",
    toJsonSchema: () => ({ pattern: `^(?!${reservedMessagePrefixes.join("|")})[^\\u0000-\\u001f\\u007f-\\u009f]+$` }),
    arbitraryConstraint: { minLength: 1, maxLength: 40 }
  })
)

/** The text of a message: at least one character that is not blank, at most 524,288 bytes. */
export const MessageText = bytes(1, 524_288).check(Schema.isPattern(/\S/u, { expected: "a text that is not blank" }))

/** An http or https URL without user info, query or fragment, at most 2,048 characters. */
export const BaseUrl = chars(1, 2048).check(
  Schema.isPattern(/^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s/?#@]+(?:\/[^\s?#]*)?$/u, {
    expected: "an http or https URL without user info, query or fragment"
  })
)

/** An http or https URL, at most 2,048 characters. */
export const HttpUrl = chars(1, 2048).check(
  Schema.isPattern(/^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s]+$/u, { expected: "an http or https URL" })
)

/** The name of an environment variable. */
export const VariableName = pattern(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/u, "the name of an environment variable")

/** A JSON object whose keys belong to somebody else: never mapped. */
export const FreeObject = Schema.Record(Schema.String, Schema.Json)
