/** What the values of an `answer` mean for the ask they settle (serve-mode 5.3). Pure. */
import type { EventOf, PermissionOption, Question } from "@tackroom/protocol/events"
import { refuse, type AnswerValue, type Refusal } from "@tackroom/protocol/serve"
import { Result } from "effect"
import type { Resolution } from "../../runs/HostRuntime.ts"
import { unanswered, type Request } from "../lines/AskQueue.ts"

const yes: ReadonlySet<string> = new Set(["y", "yes", "true", "1"])

const first = (values: ReadonlyArray<AnswerValue>): string => {
  const [value = ""] = values
  return typeof value === "string" ? value : (value[0] ?? "")
}

const decisionOf = (option: PermissionOption): Extract<Resolution, { readonly decision: unknown }>["decision"] =>
  option.kind === undefined || option.kind === "reject_once" ? "deny" : option.kind

/** The first option of one of these kinds, the kinds in order of preference. */
const offered = (options: ReadonlyArray<PermissionOption>, kinds: ReadonlyArray<PermissionOption["kind"]>) =>
  kinds.flatMap((kind) => options.filter((option) => option.kind === kind))[0]

/** A yes is for this call only where that is offered (SRV-195); a no never becomes a rule unless it is named. */
const confirmed = (request: EventOf<"permission-request">, values: ReadonlyArray<AnswerValue>): Resolution => {
  const value = first(values).trim()
  const { options } = request
  const named = options.find(({ id }) => id === value)
  const says = yes.has(value.toLowerCase())
  const chosen = named ?? (says ? offered(options, ["allow_once", "allow_always"]) : offered(options, ["reject_once"]))
  if (chosen === undefined) return { decision: says ? "allow_once" : "deny" }
  return { decision: decisionOf(chosen), optionId: chosen.id }
}

const asList = (value: AnswerValue): ReadonlyArray<string> => (typeof value === "string" ? [value] : value)

/** Several values of one question: a list where several may be chosen, else one text. */
const several = (question: Question, values: ReadonlyArray<string>): ReadonlyArray<string> => {
  const given = values.map((value) => value.trim()).filter((value) => value !== "")
  return question.multiple === true ? given : [given.join(", ")]
}

const valuesOf = (question: Question, value: AnswerValue): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  return value.length === 1 ? value : several(question, value)
}

/** One list of answers per question. */
const distribute = (
  questions: ReadonlyArray<Question>,
  values: ReadonlyArray<AnswerValue>
): ReadonlyArray<ReadonlyArray<string>> => {
  const [question, ...others] = questions
  if (question === undefined) return []
  if (values.length === questions.length) {
    return questions.map((one, index) => valuesOf(one, values[index] ?? ""))
  }
  const all = values.flatMap(asList)
  if (others.length === 0) return [several(question, all)]
  return [[all.join(", ")], ...others.map(() => [unanswered])]
}

/** A value of a question without own text has to be one of its options; the option's own label is what counts. */
const fitted = (question: Question, values: ReadonlyArray<string>): ReadonlyArray<string> | Refusal => {
  if (question.custom !== false || question.options.length === 0) return values
  const labels = question.options.map(({ label }) => label)
  const chosen = values.map((value) => labels.find((label) => label.trim() === value.trim()))
  return chosen.every((label) => label !== undefined)
    ? chosen
    : refuse("not_an_option", { question: question.question, options: labels })
}

/** The decision or the answers that settle the ask, or why the values do not (SRV-196). */
export const readValues = (
  request: Request,
  values: ReadonlyArray<AnswerValue>
): Result.Result<Resolution, Refusal> => {
  if (request.type === "permission-request") return Result.succeed(confirmed(request, values))
  const { questions } = request
  const answers: Array<ReadonlyArray<string>> = []
  for (const [index, given] of distribute(questions, values).entries()) {
    const question = questions[index]
    if (question === undefined) continue
    // What the face itself says of a question that got no value is no value of the driver's.
    const isLeft = given.length === 1 && given[0] === unanswered && values.length !== questions.length && index > 0
    const fit = isLeft && question.custom !== false ? given : isLeft ? [] : fitted(question, given)
    if (!Array.isArray(fit)) return Result.fail(fit as Refusal)
    answers.push(fit)
  }
  return Result.succeed({ answers })
}
