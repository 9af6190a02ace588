/**
 * What a turn needs of its own past (D-24): open parts, open tool calls, counted rounds, used tokens, and what it is doing
 * now. It is a fold over the turn's events: kept in memory while the turn is active, rebuilt once at recovery by paging
 * the turn's events. No round, wait or state call reads the journal for it.
 *
 * @since 0.1.0
 */
import type { EventPayload, HarnessEvent } from "@tackroom/protocol/events"
import { utf8Length } from "./Coalescer.ts"

/** Bytes of output deltas kept per tool call (6.2). */
export const toolOutputLimit = 65_536

/** What a turn is doing now. */
export type TurnPhase = "queued" | "model" | "tool" | "approval" | "question" | "recovering" | "cancelling"

interface OpenPart {
  readonly partId: string
  readonly messageId: string
  readonly channel: "text" | "thinking"
  readonly chunks: Array<string>
}

/** The fold of one turn. `accept` is called for every event in the order in which it will be journaled. */
export class TurnFold {
  part: OpenPart | undefined
  /** Calls without an end; `started` once the tool was said to run. */
  readonly openTools = new Map<string, { readonly name: string; readonly started: boolean }>()
  readonly pending = new Map<string, "permission" | "question">()
  /** Model rounds: a further attempt at the same response is none (D-28, AGT-200). */
  rounds = 0
  outputTokens = 0
  #cumulativeOutput = 0
  events = 0
  /** The last text part that was not retracted. */
  lastText: string | undefined
  #textBefore: string | undefined
  /** Milliseconds of work before a restart, for `activeMs`; undefined when the turn was never taken up again. */
  usedMs: number | undefined
  readonly #ended = new Set<string>()
  readonly #toolOutput = new Map<string, number>()

  /** Text parts that were closed; a second `text-end` of one is not journaled (RT-206). */
  hasEnded(partId: string): boolean {
    return this.#ended.has(partId)
  }

  /** The `text-end` that must be written before `next`, when the driver left a part open (RT-206). */
  closing(next: HarnessEvent | undefined): EventPayload | undefined {
    const part = this.part
    if (part === undefined) return undefined
    if (next !== undefined) {
      if ((next.type === "text-delta" || next.type === "thinking-delta") && next.partId === part.partId) {
        return undefined
      }
      if (next.type === "text-end" && next.partId === part.partId) return undefined
      if (!closesParts(next)) return undefined
    }
    return {
      type: "text-end",
      messageId: part.messageId,
      partId: part.partId,
      channel: part.channel,
      text: part.chunks.join("")
    }
  }

  /** How much of a tool's output delta may be kept: units of the text, and whether the mark of truncation is due. */
  toolBudget(
    toolCallId: string,
    delta: string
  ): { readonly keep: "all" | "part" | "none" | "mark"; readonly bytes: number } {
    const used = this.#toolOutput.get(toolCallId) ?? 0
    if (used > toolOutputLimit) return { keep: "none", bytes: 0 }
    const size = utf8Length(delta)
    if (used + size <= toolOutputLimit) {
      this.#toolOutput.set(toolCallId, used + size)
      return { keep: "all", bytes: size }
    }
    this.#toolOutput.set(toolCallId, toolOutputLimit + 1)
    const rest = toolOutputLimit - used
    return rest > 0 ? { keep: "part", bytes: rest } : { keep: "mark", bytes: 0 }
  }

  /** `toolOutput`: count output deltas against their bound, for events read back from the journal. */
  accept(event: EventPayload, replayed = false): void {
    this.events += 1
    switch (event.type) {
      case "text-delta":
      case "thinking-delta": {
        if (this.part === undefined || this.part.partId !== event.partId) {
          this.part = {
            partId: event.partId,
            messageId: event.messageId,
            channel: event.type === "text-delta" ? "text" : "thinking",
            chunks: []
          }
        }
        this.part.chunks.push(event.delta)
        return
      }
      case "text-end":
        if (this.part?.partId === event.partId) this.part = undefined
        this.#ended.add(event.partId)
        if (event.channel === "text") this.lastText = event.text
        return
      case "response-start":
        if ((event.attempt ?? 1) <= 1) this.rounds += 1
        this.#textBefore = this.lastText
        return
      case "response-retracted":
        this.lastText = this.#textBefore
        return
      case "tool-start":
        this.openTools.set(event.toolCallId, {
          name: event.toolName,
          started: this.openTools.get(event.toolCallId)?.started ?? false
        })
        return
      case "tool-output-delta":
        if (replayed) this.toolBudget(event.toolCallId, event.delta)
        return
      case "tool-output":
      case "tool-error":
        this.openTools.delete(event.toolCallId)
        return
      case "tool-status":
        if (event.status === "completed" || event.status === "failed" || event.status === "uncertain") {
          this.openTools.delete(event.toolCallId)
        } else if (event.status === "running") {
          const open = this.openTools.get(event.toolCallId)
          if (open !== undefined) this.openTools.set(event.toolCallId, { ...open, started: true })
        }
        return
      case "permission-request":
        this.pending.set(event.requestId, "permission")
        return
      case "question":
        this.pending.set(event.requestId, "question")
        return
      case "permission-resolved":
      case "question-answered":
      case "question-rejected":
      case "interaction-withdrawn":
        this.pending.delete(event.requestId)
        return
      case "usage": {
        const output = event.observation?.tokens.output
        if (output === undefined || output === null) return
        if (event.observation?.kind === "delta") this.outputTokens += output
        else {
          this.outputTokens += Math.max(0, output - this.#cumulativeOutput)
          this.#cumulativeOutput = output
        }
        return
      }
      default:
    }
  }

  /** What the turn waits for or works on. */
  phase(): "model" | "tool" | "approval" | "question" {
    let question = false
    for (const kind of this.pending.values()) {
      if (kind === "permission") return "approval"
      question = true
    }
    if (question) return "question"
    return this.openTools.size > 0 ? "tool" : "model"
  }
}

/** Events before which an open text part is closed: another part, a tool call, the next round, the end (RT-206). */
const closesParts = (event: HarnessEvent): boolean => {
  switch (event.type) {
    case "usage":
    case "harness-notice":
    case "diagnostic":
    case "session-title":
    case "session-info":
    case "rate-limit":
    case "auth-status":
    case "mcp-server-status":
    case "process-status":
    case "background-work":
    case "available-commands-update":
    case "config-update":
    case "subagent-updated":
    case "team-update":
    case "board-update":
    case "schedule-update":
    case "memory-update":
    case "session-status":
    case "input-incorporated":
    case "tool-output-delta":
      return false
    default:
      return true
  }
}
