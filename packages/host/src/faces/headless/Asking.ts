/**
 * Puts the approvals and questions of a run to the person at the terminal, one after another, and gives their replies
 * back to the run.
 *
 * It owns the order and the waiting: an ask is shown only after the events before it were, and one that was settled
 * meanwhile (a grant, a cancel) is not shown. It reads the file that a call would replace, inside the workspace only, to
 * show what changes.
 */
import type { EventPayload } from "@tackroom/protocol/events"
import type { Approval, Question } from "@tackroom/sdk/client"
import * as fs from "node:fs"
import * as path from "node:path"
import {
  approvalLines,
  approvalPrompt,
  questionLines,
  questionPrompt,
  readAnswer,
  readDecision,
  type Decision,
  type Known
} from "./Ask.ts"
import { unanswered } from "../lines/AskQueue.ts"
import type { Style } from "./Style.ts"
import type { Terminal } from "./Terminal.ts"

export interface AskingConfig {
  readonly terminal: Terminal
  readonly style: Style
  readonly workspace: string
  readonly signal: AbortSignal
  readonly show: (lines: ReadonlyArray<string>) => void
  /** Holds the run's own lines back while somebody types, and lets them go. */
  readonly hold: (held: boolean) => void
  /** Nobody can answer a question any more that takes no other answer than its options: the run must not wait for ever. */
  readonly giveUp: () => void
  /** The whole value behind an artifact. */
  readonly artifact: (sessionId: string, artifactId: string) => Promise<string>
}

export interface Asking {
  readonly onApproval: (approval: Approval) => Promise<Decision | undefined>
  readonly onQuestion: (question: Question) => Promise<string | undefined>
  /** Every event of the run, after it was shown. */
  readonly saw: (event: EventPayload) => void
  /** No further event comes. */
  readonly end: () => void
}

const largestShown = 4_194_304

/** The text of the file a call would replace. */
export const currentText = (workspace: string, given: unknown): Pick<Known, "current" | "opaque"> => {
  if (typeof given !== "object" || given === null || !("path" in given) || typeof given.path !== "string") return {}
  let file: string
  try {
    file = fs.realpathSync(path.resolve(workspace, given.path))
  } catch {
    return {}
  }
  const relative = path.relative(workspace, file)
  if (relative.startsWith("..") || path.isAbsolute(relative)) return { opaque: true }
  try {
    const stat = fs.statSync(file)
    if (!stat.isFile() || stat.size > largestShown) return { opaque: true }
    const text = new TextDecoder("utf-8", { fatal: true }).decode(fs.readFileSync(file))
    return text.includes("\u0000") ? { opaque: true } : { current: text }
  } catch {
    return { opaque: true }
  }
}

export const makeAsking = (config: AskingConfig): Asking => {
  const { show, signal, style, terminal } = config
  const shown = new Set<string>()
  const settled = new Set<string>()
  const gates = new Map<string, () => void>()
  let over = false
  let queue: Promise<unknown> = Promise.resolve()

  const until = (id: string): Promise<void> =>
    new Promise((resolve) => {
      if (over || shown.has(id) || settled.has(id)) return resolve()
      gates.set(id, resolve)
    })

  /** One at a time, each after its own event; nothing when it is settled by then. */
  const inTurn = <A>(id: string, work: () => Promise<A | undefined>): Promise<A | undefined> => {
    const turn = queue.then(async () => {
      await until(id)
      if (settled.has(id) || signal.aborted) return undefined
      config.hold(true)
      try {
        return await work()
      } finally {
        config.hold(false)
      }
    })
    queue = turn.catch(() => undefined)
    return turn
  }

  const untilUnderstood = async <A>(
    prompt: string,
    read: (reply: string) => A | undefined,
    atEnd: () => A | undefined,
    help: string
  ): Promise<A | undefined> => {
    for (;;) {
      const reply = await terminal.ask(prompt, signal)
      if (reply === undefined) return signal.aborted ? undefined : atEnd()
      const understood = read(reply)
      if (understood !== undefined) return understood
      show([`  ${help}`])
    }
  }

  const wholeArguments = async (approval: Approval): Promise<unknown> => {
    if (approval.argumentsTruncated !== true || approval.argumentsArtifactId === undefined) return approval.arguments
    return JSON.parse(await config.artifact(approval.sessionId, approval.argumentsArtifactId)) as unknown
  }

  return {
    onApproval: (approval) =>
      inTurn<Decision>(approval.id, async () => {
        const given = await wholeArguments(approval)
        const current = approval.qualifiedName === "files.write" ? currentText(config.workspace, given) : {}
        show(approvalLines(approval, { arguments: given, ...current }, style))
        const refused = (): Decision => ({ decision: "deny", reason: "the input ended before an answer" })
        const help = "y allows this once, s for this session, n refuses; what follows n is told to the agent"
        return untilUnderstood(approvalPrompt(approval, style), (reply) => readDecision(reply, approval), refused, help)
      }),
    onQuestion: (question) =>
      inTurn<string>(question.id, async () => {
        show(questionLines(question, style))
        const atEnd = (): string | undefined => {
          if (question.allowText) return unanswered
          config.giveUp()
          return undefined
        }
        const prompt = questionPrompt(question, style)
        return untilUnderstood(prompt, (reply) => readAnswer(reply, question), atEnd, "that is none of the answers")
      }),
    saw: (event) => {
      switch (event.type) {
        case "permission-request":
        case "question":
          shown.add(event.requestId)
          break
        case "permission-resolved":
        case "question-answered":
        case "question-rejected":
        case "interaction-withdrawn":
          settled.add(event.requestId)
          break
        default:
          return
      }
      gates.get(event.requestId)?.()
      gates.delete(event.requestId)
    },
    end: () => {
      over = true
      for (const open of gates.values()) open()
      gates.clear()
    }
  }
}
