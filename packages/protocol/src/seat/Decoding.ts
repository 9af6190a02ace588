/**
 * From JSON to the messages of the seat contract, with the first bad field named. Names on this wire are those of
 * TypeScript; only the preset file writes snake_case.
 *
 * @since 0.1.0
 */
import { Result, type Schema, SchemaParser } from "effect"
import { type FieldIssue, fieldIssues } from "../internal/Issues.ts"
import { memoised } from "../internal/Lazy.ts"

/** A field that does not fit: its path (empty for the whole value) and what was expected there; never the value. */
export type { FieldIssue } from "../internal/Issues.ts"

/** Both directions of one message. @since 0.1.0 */
export interface SeatCodec<A> {
  /** JSON to a checked value, or the bad fields: at least one, at most ten. */
  readonly decode: (json: unknown) => Result.Result<A, ReadonlyArray<FieldIssue>>
  /** A value to JSON, ready for `JSON.stringify`; members that the schema does not name are left out. */
  readonly encode: (value: A) => unknown
  readonly is: (value: unknown) => value is A
}

const asWritten = (field: string): string => field

/** The codec of a message, compiled at its first use: call it at module scope. @since 0.1.0 */
export const seatCodec = <S extends Schema.Constraint>(schema: S): SeatCodec<S["Type"]> => {
  const codec = schema as unknown as Schema.Codec<S["Type"], unknown>
  const decode = memoised(() => SchemaParser.decodeUnknownResult(codec))
  const decodeAll = memoised(() => SchemaParser.decodeUnknownResult(codec, { errors: "all" }))
  const encode = memoised(() => SchemaParser.encodeUnknownSync(codec))
  const is = memoised(() => SchemaParser.is(codec))
  return {
    decode: (json) => {
      const decoded = decode()(json)
      if (Result.isSuccess(decoded)) return Result.succeed(decoded.success)
      const all = decodeAll()(json)
      const issue = Result.isFailure(all) ? all.failure : decoded.failure
      const issues = fieldIssues(schema.ast, issue, { nameOf: asWritten })
      return Result.fail(issues.length === 0 ? [{ path: "", expected: "another value" }] : issues)
    },
    encode: (value) => encode()(value),
    is: (value): value is S["Type"] => is()(value)
  }
}
