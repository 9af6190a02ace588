/**
 * The public form of the store's rows (section 3). Optional fields are left out, never null; times are UTC text.
 *
 * @since 0.1.0
 */
import type { ExecutionAvailability, Interaction, Message, Receipt, Session } from "@tackroom/protocol/events"
import { assistantMessageIdOf } from "@tackroom/protocol"
import type {
  InteractionRow,
  MessageRow,
  PartRow,
  PermissionSubject,
  QuestionSubject,
  ReceiptRow,
  SessionRow
} from "../store/Rows.ts"
import { queueItem } from "../store/QueueRows.ts"
import type { QueueState } from "../store/RuntimeStore.ts"
import { timestamp } from "./Minting.ts"

/** What is counted or computed when a session is read. */
export interface SessionExtras {
  readonly attention?: number
  readonly queued?: number
  readonly availability?: ExecutionAvailability
}

export const sessionOf = (row: SessionRow, extras: SessionExtras = {}): Session => ({
  id: row.id,
  workspaceId: row.workspaceId,
  directory: row.directory,
  harness: { id: row.harnessId, access: row.access },
  ...(row.title === null ? {} : { title: row.title }),
  ...(row.titleSource === null ? {} : { titleSource: row.titleSource }),
  ...(row.parentId === null ? {} : { parentSessionId: row.parentId, rootSessionId: row.rootId }),
  ...(row.toolCallId === null ? {} : { toolCallId: row.toolCallId }),
  status: row.status,
  phase: row.phase,
  ...(row.lastTurn === null ? {} : { lastTurn: row.lastTurn }),
  attention: extras.attention ?? 0,
  queued: extras.queued ?? 0,
  head: row.head,
  config: row.config,
  executionAvailability:
    row.corrupt === undefined
      ? (extras.availability ?? { state: "available" })
      : { state: "unavailable", message: "A stored row of this session cannot be read" },
  ...(row.commands?.commands === undefined ? {} : { commands: row.commands.commands }),
  ...(row.tags.length === 0 ? {} : { tags: row.tags }),
  ...(row.metadata === null || row.metadata === undefined
    ? {}
    : { metadata: row.metadata as NonNullable<Session["metadata"]> }),
  ...(row.harnessPayload === null || row.harnessPayload === undefined
    ? {}
    : { harnessPayload: row.harnessPayload as NonNullable<Session["harnessPayload"]> }),
  time: {
    created: timestamp(row.createdAt),
    updated: timestamp(row.updatedAt),
    ...(row.archivedAt === null ? {} : { archived: timestamp(row.archivedAt) })
  }
})

export const interactionOf = (row: InteractionRow): Interaction => {
  const base = {
    id: row.id,
    sessionId: row.sessionId,
    rootSessionId: row.rootId,
    turnId: row.turnId ?? "",
    state: row.state,
    createdAt: timestamp(row.createdAt),
    nativeRequestId: row.nativeId,
    ...(row.request.toolCallId === undefined ? {} : { toolCallId: row.request.toolCallId }),
    ...(row.withdrawal === null ? {} : { withdrawal: row.withdrawal })
  }
  if (row.kind === "permission") {
    const subject = row.request as PermissionSubject
    return {
      kind: "permission",
      ...base,
      tool: subject.tool,
      title: subject.title ?? subject.tool,
      ...(subject.arguments === undefined ? {} : { arguments: subject.arguments }),
      paths: subject.paths,
      patterns: subject.patterns ?? [],
      details: subject.details ?? {},
      ...(subject.category === undefined ? {} : { category: subject.category }),
      options: subject.options,
      ...(row.resolution !== null && "decision" in row.resolution ? { resolution: row.resolution } : {})
    }
  }
  const subject = row.request as QuestionSubject
  return {
    kind: "question",
    ...base,
    questions: subject.questions as Extract<Interaction, { readonly kind: "question" }>["questions"],
    ...(row.resolution !== null && "answers" in row.resolution ? { resolution: row.resolution } : {})
  }
}

export const receiptOf = (row: ReceiptRow): Receipt => ({
  sessionId: row.sessionId,
  messageId: row.messageId,
  digest: row.digest,
  state: row.state,
  ...(row.turnId === null ? {} : { turnId: row.turnId }),
  assistantMessageId: assistantMessageIdOf(row.messageId),
  startCursor: row.startSeq,
  ...(row.endSeq === null ? {} : { endCursor: row.endSeq }),
  ...(row.outcome === null ? {} : { outcome: row.outcome }),
  createdAt: timestamp(row.createdAt)
})

/** `queue-update` with the complete list (RT-113). */
export const queueUpdate = (state: QueueState) =>
  ({
    type: "queue-update",
    entries: state.entries.map(queueItem),
    revision: state.revision,
    held: state.held !== null,
    ...(state.held === null ? {} : { heldReason: state.held })
  }) as const

export const messageOf = (row: MessageRow, parts: ReadonlyArray<PartRow>): Message => ({
  id: row.id,
  sessionId: row.sessionId,
  role: row.role,
  ...(row.turnId === null ? {} : { turnId: row.turnId }),
  ...(row.parentId === null ? {} : { parentMessageId: row.parentId }),
  ...(row.info.author === undefined ? {} : { author: row.info.author }),
  ...(row.info.model === undefined ? {} : { model: row.info.model }),
  parts: parts.flatMap((part) => (part.data === null ? [] : [part.data])),
  ...(row.info.usage === undefined ? {} : { usage: row.info.usage }),
  ...(row.info.error === undefined ? {} : { error: row.info.error }),
  time: {
    created: timestamp(row.createdAt),
    ...(row.completedAt === null ? {} : { completed: timestamp(row.completedAt) })
  },
  ...(row.info.harnessPayload === undefined ? {} : { harnessPayload: row.info.harnessPayload })
})
