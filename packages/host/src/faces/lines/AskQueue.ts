/**
 * The asks of a run in the order of their events: one is open at a time, the next is shown when the one before is settled,
 * and one that was settled while it waited is not shown (SRV-180, SRV-182, SRV-200). Pure; it owns no clock and decides
 * nothing.
 *
 * A request that policy or a grant decided at once is no ask: its decision is the very next event, because both are one
 * commit. So the newest request waits for the next event, or for the word that there is none yet.
 */
import type { EventOf, EventPayload, Question } from "@tackroom/protocol/events"
import { serveLimits, type Ask, type AskQuestion, type AskResolved } from "@tackroom/protocol/serve"
import { headBytes } from "@tackroom/protocol/text"
import { noAsks, type AskCounts, type Item } from "./Item.ts"
import { bounded, oneLineJson } from "./Texts.ts"

export type Request = EventOf<"permission-request"> | EventOf<"question">
type Resolution =
  | EventOf<"permission-resolved">
  | EventOf<"question-answered">
  | EventOf<"question-rejected">
  | EventOf<"interaction-withdrawn">

/** What the ask tells of a call, beside its request. */
export interface AskOptions {
  /** Seconds after which an ask is withdrawn, when there is such a time. */
  readonly timeout: number | undefined
  /** The call changes the mode the agent works in: the ask is about its plan. */
  readonly isPlan: (toolCallId: string | undefined) => boolean
}

interface Waiting {
  readonly cursor: number
  readonly request: Request
}

const withinOption = (label: string): string => headBytes(label, serveLimits.optionBytes)

const questionOf = (question: Question): AskQuestion => {
  const { options } = question
  const labels = options.slice(0, serveLimits.options).map(({ label }) => withinOption(label))
  const detailed = options.some(({ description, preview }) => description !== undefined || preview !== undefined)
  return {
    ...bounded("question", question.question, serveLimits.questionBytes),
    options: labels,
    ...(options.some(({ label }, index) => labels[index] !== label) ? { optionsTruncated: true } : {}),
    multiple: question.multiple ?? false,
    custom: options.length === 0 || (question.custom ?? true),
    ...(question.header === undefined ? {} : { header: question.header }),
    ...(detailed ? { optionDetails: options } : {}),
    ...(question.secret === undefined ? {} : { secret: question.secret })
  }
}

/** The ask as its driver sees it (5.1). */
export const askOf = (request: Request, options: AskOptions): Ask => {
  const timeout = options.timeout === undefined ? {} : { timeout: options.timeout }
  if (request.type === "question") {
    const questions = request.questions.map(questionOf)
    return { kind: "ask", askId: request.requestId, about: "question", questions, ...timeout }
  }
  const { category, paths, requestId, tool, toolCallId } = request
  const where = paths.length === 0 ? "" : ` on ${paths.join(", ")}`
  return {
    kind: "confirm",
    askId: requestId,
    ...bounded("prompt", `Allow ${tool}${where}?`, serveLimits.questionBytes),
    about: options.isPlan(toolCallId) ? "plan" : "permission",
    tool: {
      id: toolCallId ?? requestId,
      name: tool,
      ...bounded("args", oneLineJson(request.arguments ?? {}), serveLimits.toolArgsBytes),
      ...(category === undefined ? {} : { category }),
      ...(paths.length === 0 ? {} : { paths })
    },
    options: request.options.map(({ id, kind, label }) => ({ id, label, ...(kind === undefined ? {} : { kind }) })),
    ...timeout
  }
}

/** Whom a face names as the author of what its driver decided, and of what it settled because no driver is left. */
export const authors = { driver: "driver", nobody: "no_driver" } as const

/** What a question gets that nobody answered. */
export const unanswered = "Unanswered"

const authorOf = (event: { readonly by?: string; readonly origin: string }): AskResolved["by"] => {
  if (event.origin === "policy") return "policy"
  if (event.by === authors.nobody) return "no_driver"
  return event.by === authors.driver ? "driver" : "other_face"
}

/** How an ask ended (5.4). */
const resolvedOf = (event: Resolution): AskResolved => {
  const askId = event.requestId
  if (event.type === "interaction-withdrawn") {
    if (event.reason === "expired") return { askId, outcome: "unanswered", by: "timeout" }
    return { askId, outcome: "withdrawn", by: event.reason === "cancelled" ? "cancel" : "run_end" }
  }
  const by = authorOf(event)
  if (event.type === "permission-resolved") {
    const allowed = event.decision === "allow_once" || event.decision === "allow_always"
    if (by === "no_driver") return { askId, outcome: "unanswered", by }
    const option = event.optionId === undefined ? {} : { option: event.optionId }
    return { askId, outcome: allowed ? "allowed" : "refused", by, ...option }
  }
  if (event.type === "question-rejected" || by === "policy" || by === "no_driver") {
    return { askId, outcome: "unanswered", by }
  }
  return { askId, outcome: "answered", by, answers: event.answers }
}

const isUnasked = (event: Resolution): event is EventOf<"permission-resolved"> =>
  event.type === "permission-resolved" &&
  (event.origin === "app_policy" || event.origin === "reviewer" || event.origin === "grant")

export class AskQueue {
  readonly #options: AskOptions
  #waiting: ReadonlyArray<Waiting> = []
  #open: Request | undefined
  /** The newest request, until it is known whether it was decided at once. */
  #fresh: Waiting | undefined
  #missed: string | undefined
  counts: AskCounts = noAsks

  constructor(options: AskOptions) {
    this.#options = options
  }

  /** The ask that is shown and not settled. */
  get open(): Request | undefined {
    return this.#open
  }

  /** The last ask that ended without an answer of the driver's (SRV-191). */
  get missed(): string | undefined {
    return this.#missed
  }

  request(cursor: number, request: Request): ReadonlyArray<Item> {
    const items = this.settled()
    this.#fresh = { cursor, request }
    return items
  }

  /** Every other event is handed in here first, and so is the end of what is committed. */
  settled(next?: EventPayload): ReadonlyArray<Item> {
    const fresh = this.#fresh
    if (fresh === undefined) return []
    this.#fresh = undefined
    const decided =
      next?.type === "permission-resolved" && next.requestId === fresh.request.requestId && isUnasked(next)
    if (!decided) this.#waiting = [...this.#waiting, fresh]
    return this.#show()
  }

  resolve(cursor: number, event: Resolution): ReadonlyArray<Item> {
    if (this.#open?.requestId !== event.requestId) {
      this.#waiting = this.#waiting.filter(({ request }) => request.requestId !== event.requestId)
      if (!isUnasked(event)) return []
      const data = { tool: event.tool, id: event.toolCallId ?? event.requestId, origin: event.origin }
      return [{ type: "notify", cursor, kind: "auto_approved", data }]
    }
    this.#open = undefined
    const resolved = resolvedOf(event)
    if (resolved.by !== "driver") this.#missed = resolved.askId
    const { outcome } = resolved
    if (outcome === "allowed" || outcome === "refused" || outcome === "unanswered") {
      this.counts = { ...this.counts, [outcome]: this.counts[outcome] + 1 }
    }
    return [{ type: "notify", cursor, kind: "ask_resolved", data: resolved }, ...this.#show()]
  }

  #show(): ReadonlyArray<Item> {
    const [next, ...rest] = this.#waiting
    if (this.#open !== undefined || next === undefined) return []
    this.#open = next.request
    this.#waiting = rest
    return [{ type: "notify", cursor: next.cursor, kind: "ask", data: askOf(next.request, this.#options) }]
  }
}
