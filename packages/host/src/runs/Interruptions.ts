/**
 * Pending interactions as a run shows them (run-protocol 15): pure, from the stored row and the session it belongs to.
 *
 * What may be decided is what the request offered when it was made. Long arguments are previews (`Previews`).
 */
import type { Interruption } from "@tackroom/protocol/run"
import type { PermissionSubject, QuestionSubject } from "@tackroom/sdk/effect"
import type { PendingRow } from "./HostRows.ts"
import { needsPreview, previewOf } from "./Previews.ts"

export interface InterruptionContext {
  readonly agentId: string
  readonly submissionId: string
  readonly qualifiedName: (alias: string) => string
  /** The artifact that holds the call's whole arguments, when they are shown as a preview. */
  readonly argumentsArtifact: string | undefined
}

const isPermission = (row: PendingRow): row is PendingRow & { readonly request: PermissionSubject } =>
  row.kind === "permission"

const isQuestion = (row: PendingRow): row is PendingRow & { readonly request: QuestionSubject } =>
  row.kind === "question"

/** True for an approval whose arguments are not shown whole. */
export const isCut = (row: PendingRow): boolean => isPermission(row) && needsPreview(row.request.arguments ?? {})

/** What may be answered: what the request offered. */
export const decisionsOf = (request: PermissionSubject): Extract<Interruption, { kind: "approval" }>["decisions"] =>
  request.options.some((option) => option.kind === "allow_always") ? ["once", "session", "deny"] : ["once", "deny"]

const iso = (ms: number): string => new Date(ms).toISOString()

/** The row as `run/wait` and `session/state` show it. */
export const interruptionOf = (row: PendingRow, context: InterruptionContext): Interruption | undefined => {
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
    const changed = request.details?.reason === "binding_changed"
    const { value, cut } = previewOf(request.arguments ?? {})
    const artifact = cut ? context.argumentsArtifact : undefined
    return {
      ...common,
      kind: "approval",
      tool: request.tool,
      arguments: value,
      category: request.category ?? "external",
      qualifiedName,
      callId: request.toolCallId ?? row.nativeId,
      decisions: decisionsOf(request),
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
