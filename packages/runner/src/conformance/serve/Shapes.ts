/** The fields that every line has, by the contract: what a reader may count on without any capability. Pure. */
import { isObject, type Json, type JsonObject } from "../Json.ts"

type Test = (value: Json | undefined) => boolean

const text: Test = (value) => typeof value === "string"
const integer: Test = (value) => Number.isSafeInteger(value)
const flag: Test = (value) => typeof value === "boolean"
const texts: Test = (value) => Array.isArray(value) && value.every((one) => typeof one === "string")
const anything: Test = (value) => value !== undefined
const absentOr =
  (test: Test): Test =>
  (value) =>
    value === undefined || test(value)
const each =
  (fields: Readonly<Record<string, Test>>): Test =>
  (value) =>
    Array.isArray(value) && value.every((one: Json) => isObject(one) && problemOf(one, fields) === undefined)
const object =
  (fields: Readonly<Record<string, Test>>): Test =>
  (value) =>
    isObject(value) && problemOf(value, fields) === undefined

const problemOf = (fields: JsonObject, tests: Readonly<Record<string, Test>>): string | undefined =>
  Object.entries(tests).find(([name, test]) => !test(fields[name]))?.[0]

const count: Test = (value) => typeof value === "number" && Number.isSafeInteger(value) && value >= 0

const usage = object({ input: count, output: count, rounds: count })
const version: Test = (value) => value === 1
const run = { protocol: version, seq: integer }

const lines: Readonly<Record<string, Readonly<Record<string, Test>>>> = {
  ready: { protocol: version, pid: integer, protocol_version: integer, capabilities: texts },
  hello: { protocol: version, protocol_version: integer, capabilities: texts, op_id: absentOr(text) },
  pong: { protocol: version, op_id: absentOr(text) },
  error: { protocol: version, error: object({ code: text, message: text }), message: text, op_id: absentOr(text) },
  start: { ...run, prompt: text, warnings: texts },
  delta: { ...run, text },
  notify: { ...run, kind: text, data: anything },
  log: { ...run, message: text },
  result: {
    ...run,
    answer: text,
    errors: each({ code: text, message: text }),
    error_messages: texts,
    cancelled: flag,
    usage: absentOr(usage)
  }
}

const confirmOrAsk: Test = (value) =>
  object({ kind: (kind) => kind === "ask" || kind === "confirm", ask_id: text })(value) &&
  (object({ kind: (kind) => kind === "confirm", prompt: text })(value) ||
    object({
      questions: each({ question: text, options: texts, multiple: flag, custom: flag })
    })(value))

const isNull: Test = (value) => value === null

const notifies: Readonly<Record<string, Test>> = {
  tool_start: texts,
  tool_calls: each({ name: text, args: text }),
  tool_running: text,
  tools: isNull,
  retry: isNull,
  error: text,
  usage,
  ask: confirmOrAsk,
  run_finished: isNull
}

/** What is wrong with a line; a type or a kind that the contract does not have is nobody's fault. */
export const shapeProblem = (line: JsonObject): string | undefined => {
  const { kind, type } = line
  const tests = typeof type === "string" && Object.hasOwn(lines, type) ? lines[type] : undefined
  if (tests === undefined) return undefined
  const problem = problemOf(line, tests)
  if (problem !== undefined) return `${String(type)}: ${problem} is not as it should be`
  if (type !== "notify" || typeof kind !== "string" || !Object.hasOwn(notifies, kind)) return undefined
  return notifies[kind]?.(line["data"]) === false ? `the data of notify ${kind} is not as it should be` : undefined
}
