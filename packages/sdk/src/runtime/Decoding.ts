/**
 * What is wrong with a value that does not decode: where, and what was expected there; never what it was (RT-322, RT-382).
 *
 * @since 0.1.0
 */
import { Exit, SchemaIssue, type Schema } from "effect"

/** The first bad field of a value. `path` is dotted, "" for the value itself. */
export interface DecodingProblem {
  readonly path: string
  readonly expected: string
}

const format = SchemaIssue.makeFormatterStandardSchemaV1()
const longest = 500

/** The problem of a failed decoding; undefined when it succeeded. */
export const problemOf = (exit: Exit.Exit<unknown, Schema.SchemaError>): DecodingProblem | undefined => {
  if (Exit.isSuccess(exit)) return undefined
  const error = Exit.findErrorOption(exit)
  const issue = error._tag === "Some" ? format(error.value.issue).issues[0] : undefined
  if (issue === undefined) return { path: "", expected: "another value" }
  const keys = (issue.path ?? []).map((key) => String(typeof key === "object" ? key.key : key))
  return { path: keys.join("."), expected: issue.message.replace(/^Expected /u, "").slice(0, longest) }
}
