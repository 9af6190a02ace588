/**
 * What an agent asks, as requests to the client, and the client's answers as decisions (serve-mode 12.7). Pure.
 *
 * A request can be read alone: it carries all that is known of the call. What was not offered is never taken for a grant
 * (ACP-153).
 */
import type {
  CreateElicitationRequest,
  CreateElicitationResponse,
  ElicitationPropertySchema,
  PermissionOption,
  RequestPermissionRequest,
  RequestPermissionResponse,
  ToolCallContent,
  ToolCallUpdate
} from "@agentclientprotocol/sdk"
import type { EventOf, PermissionOption as Offered, Question } from "@tackroom/protocol/events"
import { callText, fitsDiff, rawValue, textBlock } from "./Bounds.ts"
import { type CallView, contentOf, kindOf } from "./Calls.ts"

type Permission = EventOf<"permission-request">

/** A decision for the runtime. */
export type Decided =
  | { readonly decision: "allow_once" | "allow_always" | "deny" | "reject_always"; readonly optionId?: string }
  | { readonly answers: ReadonlyArray<ReadonlyArray<string>> | null }

const kindless: Offered["kind"] = "allow_once"

/** What the client chooses from, and which offered option each of its ids means. */
export interface Choices {
  readonly options: Array<PermissionOption>
  readonly offered: ReadonlyMap<string, Offered>
}

const defaults: ReadonlyArray<Offered> = [
  { id: "allow", label: "Allow", kind: "allow_once" },
  { id: "deny", label: "Deny", kind: "reject_once" }
]

/** The options in the harness's order, those without a kind last, every id once. */
export const choicesOf = (event: Permission): Choices => {
  const given = event.options.length === 0 ? defaults : event.options
  const ordered = [...given.filter(({ kind }) => kind !== undefined), ...given.filter(({ kind }) => kind === undefined)]
  const offered = new Map<string, Offered>()
  const options = ordered.map((option): PermissionOption => {
    let optionId = option.id
    for (let n = 2; offered.has(optionId); n++) optionId = `${option.id}#${n}`
    offered.set(optionId, option)
    return { optionId, name: option.label, kind: option.kind ?? kindless ?? "allow_once" }
  })
  return { options, offered }
}

const detailContent = ({ details }: Permission): ReadonlyArray<ToolCallContent> => {
  const texts = [details?.reason, details?.url].filter((text): text is string => text !== undefined && text !== "")
  const diffs = (Array.isArray(details?.diff) ? details.diff : []).flatMap((entry): ReadonlyArray<ToolCallContent> => {
    if (typeof entry !== "object" || entry === null || !("path" in entry) || !("newText" in entry)) return []
    const { newText, oldText, path } = entry as Readonly<Record<string, unknown>>
    if (typeof path !== "string" || typeof newText !== "string") return []
    const before = typeof oldText === "string" ? oldText : undefined
    return fitsDiff(before, newText) ? [{ type: "diff", path, newText, oldText: before ?? null }] : []
  })
  return [...texts.map((text): ToolCallContent => ({ type: "content", content: textBlock(callText(text)) })), ...diffs]
}

/** The call as the request shows it. */
const requestedCall = (event: Permission, call: CallView | undefined): ToolCallUpdate => {
  const details = event.details?.command
  const raw = rawValue(event.arguments) ?? call?.rawInput
  const content = [...(call === undefined ? [] : contentOf(call)), ...detailContent(event)]
  const known = call === undefined || call.title === call.name ? undefined : call.title
  const title = known ?? details ?? event.title ?? call?.title
  const locations = event.paths.length > 0 ? event.paths.map((path) => ({ path })) : call?.locations
  return {
    toolCallId: event.toolCallId ?? event.requestId,
    title: title === undefined || title.trim() === "" ? event.tool : title,
    kind: call?.kind ?? (event.category === "exec" ? kindOf("shell") : kindOf(undefined)),
    status: "pending",
    ...(raw === undefined ? {} : { rawInput: raw.value }),
    ...(content.length === 0 ? {} : { content }),
    ...(locations === undefined || locations.length === 0 ? {} : { locations: [...locations] })
  }
}

/** The request for a permission. */
export const permissionRequest = (
  sessionId: string,
  event: Permission,
  call: CallView | undefined,
  choices: Choices
): RequestPermissionRequest => ({ sessionId, toolCall: requestedCall(event, call), options: choices.options })

const isGrant = (kind: Offered["kind"]): boolean => kind === undefined || kind.startsWith("allow")

/** The client's answer as a decision; anything but an offered option is a refusal (ACP-153). */
export const decisionOf = (
  choices: Choices,
  answer: RequestPermissionResponse | undefined,
  isDefault: boolean
): Decided => {
  const outcome = answer?.outcome
  const option = outcome?.outcome === "selected" ? choices.offered.get(outcome.optionId) : undefined
  if (option === undefined) return { decision: "deny" }
  const named = isDefault ? {} : { optionId: option.id }
  switch (option.kind) {
    case "allow_always":
      return { decision: "allow_always", ...named }
    case "reject_once":
      return { decision: "deny", ...named }
    case "reject_always":
      return { decision: "reject_always", ...named }
    default:
      return isGrant(option.kind) ? { decision: "allow_once", ...named } : { decision: "deny" }
  }
}

// Questions

const keyOf = (index: number): string => `q${index + 1}`
const otherOf = (index: number): string => `q${index + 1}_other`

const hasOwnText = (question: Question): boolean => question.custom !== false

const choices = (question: Question) =>
  question.options.map(({ description, label }) => ({
    const: label,
    title: label,
    ...(description === undefined ? {} : { description })
  }))

const propertiesOf = (
  question: Question,
  index: number
): ReadonlyArray<readonly [string, ElicitationPropertySchema]> => {
  const title = question.header ?? question.question
  const described = { title, description: question.question }
  if (question.options.length === 0) return [[keyOf(index), { type: "string", ...described }]]
  const own: ReadonlyArray<readonly [string, ElicitationPropertySchema]> = hasOwnText(question)
    ? [[otherOf(index), { type: "string", title: `${title}: other` }]]
    : []
  return question.multiple === true
    ? [[keyOf(index), { type: "array", ...described, items: { anyOf: choices(question) } }], ...own]
    : [[keyOf(index), { type: "string", ...described, oneOf: choices(question) }], ...own]
}

/** All questions as one form (ACP-160, ACP-161). */
export const form = (sessionId: string, event: EventOf<"question">): CreateElicitationRequest => {
  const required = event.questions.flatMap((question, index) =>
    hasOwnText(question) && question.options.length > 0 ? [] : [keyOf(index)]
  )
  return {
    mode: "form",
    sessionId,
    ...(event.toolCallId === undefined ? {} : { toolCallId: event.toolCallId }),
    message: event.questions.map(({ question }) => question).join("\n"),
    requestedSchema: {
      type: "object",
      properties: Object.fromEntries(event.questions.flatMap(propertiesOf)),
      ...(required.length === 0 ? {} : { required })
    }
  }
}

/** What the form's answer says; `undefined` when nobody answered (ACP-162). */
export const formAnswers = (
  event: EventOf<"question">,
  answer: CreateElicitationResponse | undefined
): Decided | undefined => {
  if (answer?.action === "decline") return { answers: null }
  if (answer?.action !== "accept") return undefined
  const content = ("content" in answer ? answer.content : undefined) ?? {}
  const fields = content as Readonly<Record<string, unknown>>
  return {
    answers: event.questions.map((_, index) => {
      const other = fields[otherOf(index)]
      if (typeof other === "string" && other.trim() !== "") return [other]
      const value = fields[keyOf(index)]
      if (Array.isArray(value)) return value.filter((entry): entry is string => typeof entry === "string")
      return typeof value === "string" && value !== "" ? [value] : []
    })
  }
}

/** Choices of one question that a permission request can hold (ACP-163, ACP-164). */
const choiceLimit = 16

/** Whether these questions can be asked one after another as choices. */
export const fitsChoices = (event: EventOf<"question">): boolean =>
  event.questions.every(({ options, secret }) => secret !== true && options.length > 0 && options.length <= choiceLimit)

export const hasSecret = (event: EventOf<"question">): boolean => event.questions.some(({ secret }) => secret === true)

const skip = "skip"

/** One question as a choice (ACP-163). */
export const choiceRequest = (
  sessionId: string,
  event: EventOf<"question">,
  index: number
): RequestPermissionRequest | undefined => {
  const question = event.questions[index]
  if (question === undefined) return undefined
  return {
    sessionId,
    toolCall: {
      toolCallId: event.toolCallId ?? event.requestId,
      title: question.question,
      kind: "other",
      status: "pending"
    },
    options: [
      ...question.options.map(({ label }, option) => ({
        optionId: `option-${option + 1}`,
        name: label,
        kind: "allow_once" as const
      })),
      { optionId: skip, name: "Skip", kind: "reject_once" }
    ],
    _meta: { tackroom: { question: true } }
  }
}

/** The chosen label; none when it was skipped, `undefined` when nobody answered. */
export const choiceAnswer = (
  event: EventOf<"question">,
  index: number,
  answer: RequestPermissionResponse | undefined
): ReadonlyArray<string> | undefined => {
  const outcome = answer?.outcome
  if (outcome?.outcome !== "selected") return undefined
  if (outcome.optionId === skip) return []
  const option = event.questions[index]?.options.find((_, at) => `option-${at + 1}` === outcome.optionId)
  return option === undefined ? undefined : [option.label]
}
