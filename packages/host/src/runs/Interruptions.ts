/**
 * Pending interactions as a run shows them (run-protocol 15): pure, from the stored row and the session it belongs to.
 *
 * Argument strings over 4 KiB are previews; the whole JSON is an artifact, so that a person can see all of it.
 */
import type { Interruption } from "@tackroom/protocol/run"
import type { InteractionRow, PermissionSubject, QuestionSubject } from "@tackroom/sdk/effect"
import type { Schema } from "effect"

/** Argument strings above this many characters are shown as previews. */
export const previewChars = 4_096

export interface InterruptionContext {
  readonly agentId: string
  readonly submissionId: string
  readonly qualifiedName: (alias: string) => string
  readonly bindingChanged: (qualifiedName: string) => boolean
  /** The artifact that holds a call's whole arguments, when they are shown as a preview. */
  readonly argumentsArtifact: (callId: string) => string | undefined
}

const isPermission = (row: InteractionRow): row is InteractionRow & { readonly request: PermissionSubject } =>
  row.kind === "permission"

const isQuestion = (row: InteractionRow): row is InteractionRow & { readonly request: QuestionSubject } =>
  row.kind === "question"

/** Cuts the strings of a JSON value, and says whether it cut any. */
export const previewOf = (value: Schema.Json): { readonly value: Schema.Json; readonly cut: boolean } => {
  let cut = false
  const walk = (value: Schema.Json): Schema.Json => {
    if (typeof value === "string") {
      if (value.length <= previewChars) return value
      cut = true
      return `${value.slice(0, previewChars).replace(/[\uD800-\uDBFF]$/, "")}…`
    }
    if (Array.isArray(value)) return value.map(walk)
    if (typeof value !== "object" || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, walk(item)]))
  }
  return { value: walk(value), cut }
}

const iso = (ms: number): string => new Date(ms).toISOString()

/** The row as `run/wait` and `session/state` show it. */
export const interruptionOf = (row: InteractionRow, context: InterruptionContext): Interruption | undefined => {
  const common = {
    id: row.id,
    sessionId: row.sessionId,
    agent: context.agentId,
    submissionId: context.submissionId,
    turnId: row.turnId ?? "",
    createdAt: iso(row.createdAt)
  }
  if (isPermission(row)) {
    const { request } = row
    const qualifiedName = context.qualifiedName(request.tool)
    const changed = context.bindingChanged(qualifiedName)
    const { value, cut } = previewOf(request.arguments ?? {})
    const artifact = cut ? context.argumentsArtifact(request.toolCallId ?? row.nativeId) : undefined
    return {
      ...common,
      kind: "approval",
      tool: request.tool,
      arguments: value,
      category: request.category ?? "external",
      qualifiedName,
      callId: request.toolCallId ?? row.nativeId,
      decisions: changed ? ["once", "deny"] : ["once", "session", "deny"],
      reason: changed ? "binding_changed" : "policy",
      ...(cut ? { argumentsTruncated: true } : {}),
      ...(artifact === undefined ? {} : { argumentsArtifactId: artifact })
    }
  }
  if (!isQuestion(row)) return undefined
  const [question] = row.request.questions
  if (question === undefined) return undefined
  return {
    ...common,
    kind: "question",
    question: question.question,
    options: question.options.map((option) => option.label),
    allowText: question.custom !== false,
    topic: question.topic === "compaction" ? "compaction" : "agent"
  }
}
