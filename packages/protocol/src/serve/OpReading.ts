/**
 * Reads ops as leniently as serve mode promises, and refuses the rest in a fixed order (serve-mode 3.1). Pure: what
 * depends on the run that is active is `OpChecks`.
 *
 * @since 0.1.0
 */
import { Result } from "effect"
import { callerMessageIdProblem } from "../Ids.ts"
import { codePoints, headCodePoints } from "../text/WellFormed.ts"
import { serveLimits, serveVersion } from "./Limits.ts"
import { opNames } from "./Op.ts"
import { refuse, type Refusal } from "./Refusal.ts"

/** The values of one question, or a single value. @since 0.1.0 */
export type AnswerValue = string | ReadonlyArray<string>

/** An op as it was understood: ids as text, values as text. @since 0.1.0 */
export type ReadOp =
  | {
      readonly op: "submit"
      readonly opId?: string
      readonly runId: string
      readonly prompt: string
      readonly submissionId?: string
      /** Fields that would raise a budget, if ops could (SRV-261). */
      readonly ignored: ReadonlyArray<string>
    }
  | {
      readonly op: "answer"
      readonly opId?: string
      /** Null when it is missing or could name no run. */
      readonly runId: string | null
      readonly answers: ReadonlyArray<AnswerValue>
      readonly askId?: string
    }
  | { readonly op: "cancel"; readonly opId?: string; readonly runId: string | null }
  | { readonly op: "hello"; readonly opId?: string; readonly refusal?: Refusal }
  | { readonly op: "ping"; readonly opId?: string }
  | { readonly op: "shutdown"; readonly opId?: string }

/** A refused op, with its own id where that could be read. @since 0.1.0 */
export interface RefusedOp {
  readonly refusal: Refusal
  readonly opId?: string
}

type Fields = { readonly [name: string]: unknown }
type Read<A> = Result.Result<A, Refusal>

const own = (fields: Fields, name: string): unknown => (Object.hasOwn(fields, name) ? fields[name] : undefined)
const absent = (value: unknown): value is null | undefined => value === undefined || value === null
const bad = (field: string, expected: string): Read<never> => Result.fail(refuse("bad_field", { field, expected }))

/** An id is kept as it is and compared, so it holds nothing that text columns or logs would change (SRV-043). */
const isCleanId = (text: string): boolean => text.isWellFormed() && !text.includes("\u0000")
const cleanIdExpected = "text without lone surrogates and U+0000"

const readOpId = (value: unknown): Read<string | undefined> => {
  const expected = `a string of at most ${serveLimits.idCharacters} characters, a safe integer or a boolean`
  if (absent(value)) return Result.succeed(undefined)
  if (typeof value === "boolean" || Number.isSafeInteger(value)) return Result.succeed(String(value))
  if (typeof value !== "string" || codePoints(value) > serveLimits.idCharacters) return bad("op_id", expected)
  return isCleanId(value) ? Result.succeed(value) : bad("op_id", cleanIdExpected)
}

/** What counts as a missing run id, in the contract this mode keeps. */
const isMissing = (value: unknown): boolean => absent(value) || value === "" || value === 0 || value === false

/** A run id that has to be there (`submit`). */
const readRunId = (value: unknown): Read<string> => {
  if (isMissing(value)) return Result.fail(refuse("missing_field", { field: "run_id" }))
  if (Number.isSafeInteger(value)) return Result.succeed(String(value))
  if (typeof value !== "string" || codePoints(value) > serveLimits.idCharacters) {
    return bad("run_id", `a string of 1 to ${serveLimits.idCharacters} characters or a safe integer`)
  }
  return isCleanId(value) ? Result.succeed(value) : bad("run_id", cleanIdExpected)
}

/** A run id that is only compared: whatever cannot be one names no run (SRV-103). */
const readNamedRun = (value: unknown): Read<string | null> => {
  if (isMissing(value)) return Result.succeed(null)
  if (Number.isSafeInteger(value)) return Result.succeed(String(value))
  if (typeof value !== "string") return Result.succeed(null)
  if (!isCleanId(value)) return bad("run_id", cleanIdExpected)
  return Result.succeed(headCodePoints(value, serveLimits.idCharacters))
}

const budgetFields = ["max_rounds", "timeout", "answer_timeout", "budget", "budgets"] as const

const optionalOpId = (opId: string | undefined) => (opId === undefined ? {} : { opId })

const readSubmit = (fields: Fields, opId: string | undefined): Read<ReadOp> => {
  const runId = readRunId(own(fields, "run_id"))
  if (Result.isFailure(runId)) return Result.fail(runId.failure)
  const prompt = own(fields, "prompt")
  if (absent(prompt)) return Result.fail(refuse("missing_field", { field: "prompt" }))
  if (typeof prompt !== "string") return bad("prompt", "a string")
  if (prompt.trim() === "") return bad("prompt", "at least one character that is not blank")
  const submissionId = own(fields, "submission_id")
  if (!absent(submissionId)) {
    if (typeof submissionId !== "string") return bad("submission_id", "a string")
    const problem = callerMessageIdProblem(submissionId)
    if (problem !== undefined) return bad("submission_id", problem)
  }
  return Result.succeed({
    op: "submit",
    ...optionalOpId(opId),
    runId: runId.success,
    prompt,
    ...(typeof submissionId === "string" ? { submissionId } : {}),
    ignored: budgetFields.filter((name) => Object.hasOwn(fields, name))
  })
}

const answerExpected = "a string, a number, a boolean, null, or a list of these"

/** A value as text: numbers and booleans as JSON writes them, null as nothing (5.3). */
const readScalar = (value: unknown): string | undefined => {
  if (value === null) return ""
  if (typeof value === "string") return value
  if (typeof value === "boolean") return String(value)
  return typeof value === "number" && Number.isFinite(value) ? JSON.stringify(value) : undefined
}

const readAnswers = (value: unknown): Read<ReadonlyArray<AnswerValue>> => {
  const expected = `a list of 1 to ${serveLimits.answers} values`
  if (!Array.isArray(value) || value.length === 0 || value.length > serveLimits.answers) return bad("answers", expected)
  const read: Array<AnswerValue> = []
  for (const [index, item] of (value as ReadonlyArray<unknown>).entries()) {
    const field = `answers[${index}]`
    if (!Array.isArray(item)) {
      const scalar = readScalar(item)
      if (scalar === undefined) return bad(field, answerExpected)
      read.push(scalar)
      continue
    }
    if (item.length > serveLimits.answers) return bad(field, `at most ${serveLimits.answers} values`)
    const group: Array<string> = []
    for (const [at, member] of (item as ReadonlyArray<unknown>).entries()) {
      const scalar = readScalar(member)
      if (scalar === undefined) return bad(`${field}[${at}]`, "a string, a number, a boolean or null")
      group.push(scalar)
    }
    read.push(group)
  }
  return Result.succeed(read)
}

const readAskId = (value: unknown): Read<string | undefined> => {
  if (absent(value)) return Result.succeed(undefined)
  if (Number.isSafeInteger(value)) return Result.succeed(String(value))
  if (typeof value !== "string" || value === "" || codePoints(value) > serveLimits.idCharacters) {
    return bad("ask_id", `a string of 1 to ${serveLimits.idCharacters} characters or an integer`)
  }
  return isCleanId(value) ? Result.succeed(value) : bad("ask_id", cleanIdExpected)
}

const readAnswer = (fields: Fields, opId: string | undefined): Read<ReadOp> => {
  const answers = readAnswers(own(fields, "answers"))
  if (Result.isFailure(answers)) return Result.fail(answers.failure)
  const runId = readNamedRun(own(fields, "run_id"))
  if (Result.isFailure(runId)) return Result.fail(runId.failure)
  const askId = readAskId(own(fields, "ask_id"))
  if (Result.isFailure(askId)) return Result.fail(askId.failure)
  return Result.succeed({
    op: "answer",
    ...optionalOpId(opId),
    runId: runId.success,
    answers: answers.success,
    ...(askId.success === undefined ? {} : { askId: askId.success })
  })
}

/** Versions of a list that can be one; what cannot is skipped. */
const usableVersion = (value: unknown): ReadonlyArray<number> => {
  const number = typeof value === "string" && /^\s*[+-]?\d{1,15}(?:\.0*)?\s*$/u.test(value) ? Number(value) : value
  return typeof number === "number" && Number.isSafeInteger(number) ? [number] : []
}

/** Versions that a refusal repeats. */
const repeatedVersions = 16

const readHello = (fields: Fields, opId: string | undefined): ReadOp => {
  const listed = own(fields, "protocol_versions")
  const given = absent(listed) ? own(fields, "protocol_version") : listed
  const versions = (Array.isArray(given) ? given : [given]).flatMap(usableVersion)
  const known = versions.length === 0 || versions.includes(serveVersion)
  const refusal = refuse("version", { requested: versions.slice(0, repeatedVersions), supported: [serveVersion] })
  return { op: "hello", ...optionalOpId(opId), ...(known ? {} : { refusal }) }
}

const readNamed = (name: string, fields: Fields, opId: string | undefined): Read<ReadOp> => {
  switch (name) {
    case "submit":
      return readSubmit(fields, opId)
    case "answer":
      return readAnswer(fields, opId)
    case "cancel":
      return Result.map(readNamedRun(own(fields, "run_id")), (runId) => ({
        op: "cancel" as const,
        ...optionalOpId(opId),
        runId
      }))
    case "hello":
      return Result.succeed(readHello(fields, opId))
    case "ping":
    case "shutdown":
      return Result.succeed({ op: name, ...optionalOpId(opId) })
    default:
      return Result.fail(refuse("unknown_op", { op: headCodePoints(name, serveLimits.opNameCharacters) }))
  }
}

/**
 * Reads the JSON object of one line. The first thing that is wrong is what is told: the op's name, its `op_id`, then its
 * own fields in the order of the rules.
 *
 * @since 0.1.0
 */
export const readOp = (fields: { readonly [name: string]: unknown }): Result.Result<ReadOp, RefusedOp> => {
  const name = own(fields, "op")
  const opId = readOpId(own(fields, "op_id"))
  const echoed = Result.isSuccess(opId) ? optionalOpId(opId.success) : {}
  const refused = (refusal: Refusal) => Result.fail({ refusal, ...echoed })
  if (typeof name !== "string") return refused(refuse("bad_op", {}))
  const isKnown = opNames.some((known) => known === name)
  if (isKnown && Result.isFailure(opId)) return refused(opId.failure)
  return Result.mapError(readNamed(name, fields, Result.getOrUndefined(opId)), (refusal) => ({ refusal, ...echoed }))
}
