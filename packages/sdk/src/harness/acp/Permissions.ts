/**
 * A permission request of an agent as an ask, and the decision as its answer. Pure.
 *
 * What the agent offers goes to the person unchanged, and an answer is chosen by its kind, never by its id: ids differ from
 * agent to agent (HRN-108). A decision for which nothing was offered is no grant.
 */
import type * as Acp from "@agentclientprotocol/sdk"
import type { Category, PermissionDetails } from "@tackroom/protocol/events"
import type { PermissionAsk, PermissionDecision } from "../Harness.ts"
import { fieldsOf, jsonOf, textOf, wordsOf } from "./Fields.ts"

type Request = Acp.RequestPermissionRequest
type Option = Acp.PermissionOption

const categories: Readonly<Record<string, Category>> = {
  read: "read",
  search: "read",
  think: "read",
  edit: "write_local",
  delete: "write_local",
  move: "write_local",
  execute: "exec",
  fetch: "network"
}

const detailsOf = (call: Request["toolCall"]): PermissionDetails => {
  const input = fieldsOf(call.rawInput)
  const command = textOf(input?.["command"])
  const url = textOf(input?.["url"])
  const reason = textOf(input?.["reason"]) ?? textOf(input?.["description"])
  const diffs = (call.content ?? []).filter((entry) => entry.type === "diff")
  return {
    ...(command === undefined ? {} : { command }),
    ...(reason === undefined ? {} : { reason }),
    ...(url === undefined ? {} : { url }),
    ...(diffs.length === 0
      ? {}
      : { diff: jsonOf(diffs.map(({ path, oldText, newText }) => ({ path, oldText, newText }))) })
  }
}

/** Where an ask belongs. */
export interface AskedIn {
  readonly sessionId: string
  readonly turnId: string
  readonly requestId: string
  /** What the call was called before. */
  readonly tool: string | undefined
}

/** The ask that an agent's request means. */
export const permissionAskOf = (request: Request, place: AskedIn): PermissionAsk => {
  const { toolCall } = request
  const title = wordsOf(toolCall.title)
  const category = toolCall.kind === undefined || toolCall.kind === null ? undefined : categories[toolCall.kind]
  return {
    sessionId: place.sessionId,
    turnId: place.turnId,
    nativeRequestId: place.requestId,
    tool: wordsOf(toolCall.name) ?? place.tool ?? title ?? toolCall.kind ?? "tool",
    ...(title === undefined ? {} : { title }),
    ...(toolCall.rawInput === undefined ? {} : { arguments: jsonOf(toolCall.rawInput) }),
    toolCallId: toolCall.toolCallId,
    paths: (toolCall.locations ?? []).map(({ path }) => path),
    ...(category === undefined ? {} : { category }),
    details: detailsOf(toolCall),
    options: request.options.map(({ kind, name, optionId }) => ({ id: optionId, label: name, kind }))
  }
}

/** The kinds that carry out a decision, the closest first. */
const kindsFor: Readonly<Record<PermissionDecision["decision"], ReadonlyArray<Option["kind"]>>> = {
  allow_once: ["allow_once"],
  allow_always: ["allow_always", "allow_once"],
  deny: ["reject_once", "reject_always"],
  reject_always: ["reject_always", "reject_once"]
}

const cancelled: Acp.RequestPermissionResponse = { outcome: { outcome: "cancelled" } }

/** Whether a decision lets the call go on. */
export const isGrant = (decision: PermissionDecision["decision"]): boolean =>
  decision === "allow_once" || decision === "allow_always"

/** The answer to the agent; `undefined` for an ask that was withdrawn. */
export const permissionAnswerOf = (
  options: ReadonlyArray<Option>,
  decision: PermissionDecision | undefined
): Acp.RequestPermissionResponse => {
  if (decision === undefined) return cancelled
  const kinds = kindsFor[decision.decision]
  const chosen = options.find(
    (option) => option.optionId === decision.optionId && isGrant(decision.decision) === option.kind.startsWith("allow")
  )
  const option = chosen ?? kinds.flatMap((kind) => options.find((offered) => offered.kind === kind) ?? [])[0]
  return option === undefined ? cancelled : { outcome: { outcome: "selected", optionId: option.optionId } }
}
