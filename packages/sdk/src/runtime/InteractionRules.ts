/**
 * The rules of permissions and questions (7.4), pure: which option a decision stands for, whether answers fit, what is
 * stored and what is journaled.
 *
 * Implements RT-253, RT-254, RT-259, RT-260.
 *
 * @since 0.1.0
 */
import { AnswerInvalid, OptionNotOffered } from "@tackroom/protocol"
import type { Decision, EventPayload, Origin, PermissionOption, Resolution } from "@tackroom/protocol/events"
import type { PermissionAsk } from "../harness/Harness.ts"
import type { InteractionRow, PermissionSubject, QuestionSubject } from "../store/Rows.ts"

/** What a caller answers. */
export type Response =
  | { readonly decision: Decision; readonly optionId?: string; readonly note?: string }
  | { readonly answers: ReadonlyArray<ReadonlyArray<string>> | null }

const secretText = "[secret]"

/** The option a decision stands for (RT-253, RT-254); undefined: the harness's plain refusal or allowance. */
export const chooseOption = (
  id: string,
  options: ReadonlyArray<PermissionOption>,
  decision: Decision,
  optionId: string | undefined
): { readonly optionId: string | undefined } | OptionNotOffered => {
  const refuse = () => new OptionNotOffered({ id, options: options.map((option) => option.id) })
  if (optionId !== undefined) {
    return options.some((option) => option.id === optionId) ? { optionId } : refuse()
  }
  const kind = decision === "deny" ? "reject_once" : decision
  const found = options.find((option) => option.kind === kind)
  if (found !== undefined) return { optionId: found.id }
  return decision === "allow_always" || decision === "reject_always" ? refuse() : { optionId: undefined }
}

/** Whether answers fit their questions (RT-259). */
export const answersProblem = (
  subject: QuestionSubject,
  answers: ReadonlyArray<ReadonlyArray<string>>
): string | undefined => {
  if (answers.length !== subject.questions.length) return "one list of answers per question"
  for (const [i, question] of subject.questions.entries()) {
    const given = answers[i] ?? []
    if (question.multiple !== true && given.length > 1) return `question ${i + 1} takes one answer`
    if (question.custom === false) {
      const outside = given.find((answer) => !question.options.some((option) => option.label === answer))
      if (outside !== undefined) return `question ${i + 1} takes one of its options`
    }
  }
  return undefined
}

/** Whether a repeated answer is the stored one (RT-251). */
export const sameResolution = (stored: Resolution, given: Resolution): boolean => {
  if ("decision" in stored) {
    return (
      "decision" in given &&
      stored.decision === given.decision &&
      (given.optionId === undefined || stored.optionId === given.optionId)
    )
  }
  return "answers" in given && JSON.stringify(stored.answers) === JSON.stringify(given.answers)
}

/** Whether an interaction is a permission. */
export const isPermission = (row: InteractionRow): row is InteractionRow & { readonly request: PermissionSubject } =>
  row.kind === "permission"

/** The event that asks. */
export const requestEvent = (row: InteractionRow): EventPayload => {
  if (isPermission(row)) return { type: "permission-request", requestId: row.id, ...row.request }
  return { type: "question", requestId: row.id, ...(row.request as QuestionSubject) }
}

/** The event that tells the answer. */
export const resolvedEvent = (row: InteractionRow, resolution: Resolution): EventPayload => {
  const by = resolution.by === undefined ? {} : { by: resolution.by }
  if ("decision" in resolution) {
    const subject = row.request as PermissionSubject
    return {
      type: "permission-resolved",
      requestId: row.id,
      tool: subject.tool,
      ...(subject.toolCallId === undefined ? {} : { toolCallId: subject.toolCallId }),
      decision: resolution.decision,
      ...(resolution.optionId === undefined ? {} : { optionId: resolution.optionId }),
      ...(resolution.note === undefined ? {} : { note: resolution.note }),
      ...by,
      origin: resolution.origin
    }
  }
  return resolution.answers === null
    ? { type: "question-rejected", requestId: row.id, ...by, origin: resolution.origin }
    : { type: "question-answered", requestId: row.id, answers: resolution.answers, ...by, origin: resolution.origin }
}

/** The resolution that an answer makes, or why it is none. Secret answers are not in it (RT-260). */
export const resolutionOf = (
  row: InteractionRow,
  response: Response,
  how: {
    readonly origin: Origin
    readonly by: string | undefined
    readonly at: string
    readonly redact: (text: string) => string
  }
): Resolution | OptionNotOffered | AnswerInvalid => {
  const rest = { ...(how.by === undefined ? {} : { by: how.by }), origin: how.origin, at: how.at }
  if ("decision" in response) {
    if (!isPermission(row)) return new AnswerInvalid({ id: row.id, reason: "it is a question" })
    const choice = chooseOption(row.id, row.request.options, response.decision, response.optionId)
    if (choice instanceof OptionNotOffered) return choice
    return {
      decision: response.decision,
      ...(choice.optionId === undefined ? {} : { optionId: choice.optionId }),
      ...(response.note === undefined ? {} : { note: how.redact(response.note) }),
      ...rest
    }
  }
  if (isPermission(row)) return new AnswerInvalid({ id: row.id, reason: "it is a permission" })
  const subject = row.request as QuestionSubject
  if (response.answers === null) return { answers: null, ...rest }
  const problem = answersProblem(subject, response.answers)
  if (problem !== undefined) return new AnswerInvalid({ id: row.id, reason: problem })
  const answers = response.answers.map((given, i) =>
    subject.questions[i]?.secret === true ? given.map(() => secretText) : given
  )
  return { answers, ...rest }
}

/** The answers to questions that are secret. */
export const secretAnswers = (row: InteractionRow, response: Response): ReadonlyArray<string> | undefined => {
  if (!("answers" in response) || response.answers === null || isPermission(row)) return undefined
  const { answers } = response
  const secret = (row.request as QuestionSubject).questions.flatMap((question, i) =>
    question.secret === true ? [answers[i] ?? []] : []
  )
  return secret.length === 0 ? undefined : secret.flat()
}

/** What a permission asks, as it is stored. */
export const permissionSubject = (ask: PermissionAsk): PermissionSubject => ({
  tool: ask.tool,
  ...(ask.title === undefined ? {} : { title: ask.title }),
  ...(ask.arguments === undefined ? {} : { arguments: ask.arguments }),
  ...(ask.toolCallId === undefined ? {} : { toolCallId: ask.toolCallId }),
  paths: ask.paths ?? [],
  ...(ask.patterns === undefined ? {} : { patterns: ask.patterns }),
  ...(ask.category === undefined ? {} : { category: ask.category }),
  ...(ask.details === undefined ? {} : { details: ask.details }),
  options: ask.options
})
