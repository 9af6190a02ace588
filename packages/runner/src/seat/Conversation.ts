/**
 * The conversation of a seat: prompts become turns, one at a time; updates become lines and reports; a cancel is asked for
 * once and said to be done when the agent says so (SEAT-094 to SEAT-098, SEAT-200 to SEAT-202).
 *
 * It starts no agent and ends none. What it learns of a turn it learns from the agent alone.
 */
import { Clock, Deferred, Effect, Exit, FiberHandle, Result, type Scope } from "effect"
import type { Reporter } from "../activity/Reporter.ts"
import type { AcpConnection, agentMethods } from "../agent/AcpConnection.ts"
import { readUpdate, sessionOf, type Update } from "../agent/Updates.ts"
import type { PermissionPath } from "../permission/PermissionPath.ts"
import { describePrompt, type InputEvent } from "../terminal/Block.ts"
import type { Pane } from "../terminal/Pane.ts"
import { foreignPiece, wholeCharacters } from "../terminal/PaneText.ts"
import { clockTime, mirrored, toolLine } from "./PaneLines.ts"
import type { PromptQueue } from "./PromptQueue.ts"

/** An agent whose conversation is open. */
export interface OpenAgent {
  readonly connection: Pick<AcpConnection, "request" | "notify">
  readonly methods: typeof agentMethods
  readonly sessionId: string
}

export interface Conversation {
  readonly input: (event: InputEvent) => void
  /** Queues a person's words that came with an answer. */
  readonly queueWords: (words: string) => void
  readonly update: (params: unknown) => void
  /** Updates are history until `open`, when a conversation is reopened. */
  readonly reopening: () => void
  /** Gives prompts to the agent from now on; completes never. */
  readonly open: (agent: OpenAgent) => Effect.Effect<never>
  readonly isOpen: () => boolean
  readonly isInTurn: () => boolean
  /** No new prompt; cancels the turn that runs. */
  readonly stop: () => void
  /** Calls back when nothing waits and no turn runs, now or later. */
  readonly whenIdle: Effect.Effect<void>
}

const slowCancelMs = 10_000
/** Calls of one turn whose state is remembered for the pane. */
const mostTools = 10_000

interface Turn {
  readonly id: string
  cancelledAt: number | undefined
  ended: boolean
}

interface Tool {
  readonly title: string | undefined
  readonly kind: string | undefined
  readonly status: string | undefined
}

export const makeConversation = (options: {
  readonly pane: Pane
  readonly prompts: PromptQueue
  readonly reporter: Reporter
  readonly permissions: PermissionPath
  readonly showThoughts: boolean
  readonly showHistory: boolean
}): Effect.Effect<Conversation, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { pane, permissions, prompts, reporter } = options
    const clock = yield* Clock.Clock
    const runReminder = yield* FiberHandle.makeRuntime<never>()
    let agent: OpenAgent | undefined
    let turn: Turn | undefined
    let turns = 0
    let stopped = false
    let history: number | undefined
    let unknownUpdates = 0
    let tools = new Map<string, Tool>()
    let idleWaiters: Array<Deferred.Deferred<void>> = []

    const isStopped = (): boolean => stopped
    const isIdle = (): boolean => agent !== undefined && turn === undefined && prompts.size() === 0
    const tellIdle = (): void => {
      if (!isIdle()) return
      for (const waiter of idleWaiters.splice(0)) Deferred.doneUnsafe(waiter, Exit.void)
    }

    const lose = (what: string): void => {
      pane.line(`lost > ${what}`)
      reporter.failed()
    }

    const enqueue = (text: string, said: string): void => {
      const waits = agent === undefined || turn !== undefined || prompts.size() > 0
      if (stopped || !prompts.offer(text)) {
        lose(`${said} not queued: ${foreignPiece(describePrompt(text))}`)
      } else if (waits) pane.line(`queued (${prompts.size()} waiting) > ${mirrored(text)}`)
    }

    const cancel = (): void => {
      if (turn === undefined || agent === undefined || turn.ended) {
        pane.line("cancel > nothing to cancel", "always")
        return
      }
      if (turn.cancelledAt !== undefined) {
        pane.line(`cancel > already requested at ${clockTime(turn.cancelledAt)}`, "always")
        return
      }
      const cancelled = turn
      cancelled.cancelledAt = clock.currentTimeMillisUnsafe()
      pane.line(`cancel > requested at ${clockTime(cancelled.cancelledAt)}`, "always")
      const { connection, methods, sessionId } = agent
      connection.notify(methods.session.cancel, { sessionId })
      permissions.cancelTurn()
      void runReminder(
        Effect.gen(function* () {
          yield* Effect.sleep(slowCancelMs)
          if (!cancelled.ended) pane.line("cancel > not confirmed yet", "always")
        })
      )
    }

    const showTool = (update: Extract<Update, { readonly _tag: "Tool" }>): void => {
      const before = tools.get(update.id)
      const after: Tool = {
        title: update.title ?? before?.title,
        kind: update.kind ?? before?.kind,
        status: update.status ?? before?.status
      }
      if (tools.size < mostTools || before !== undefined) tools.set(update.id, after)
      if (before === undefined || before.status !== after.status) pane.line(toolLine(after))
    }

    const show = (update: Update): void => {
      switch (update._tag) {
        case "Text":
          if (update.voice === "agent" || options.showThoughts) pane.say(update.voice, update.text)
          break
        case "Tool":
          showTool(update)
          break
        case "Plan":
          pane.line(`plan > ${update.done} of ${update.all}: ${foreignPiece(update.current)}`)
          break
        case "Unknown":
          unknownUpdates += 1
          break
        case "Quiet":
          break
      }
    }

    const report = (update: Update): void => {
      if (update._tag === "Text") reporter.heard()
      else if (update._tag === "Tool") reporter.toolStarted(update.id, update.kind)
    }

    const update = (params: unknown): void => {
      // An agent may run conversations of its own beside this one.
      if (agent !== undefined && sessionOf(params) !== agent.sessionId) return
      const read = readUpdate(params)
      if (history !== undefined) {
        history += 1
        if (options.showHistory) show(read)
        return
      }
      if (turn !== undefined) report(read)
      show(read)
    }

    const endHistory = (): void => {
      const count = history ?? 0
      history = undefined
      if (count > 0) pane.line(`seat > the agent repeated ${count} updates of the conversation`)
    }

    const tellUnknown = (): void => {
      if (unknownUpdates === 0) return
      pane.line(`seat > ${unknownUpdates} updates of kinds that this runner does not know`)
      unknownUpdates = 0
    }

    const readReason = (result: unknown): string =>
      typeof result === "object" && result !== null && "stopReason" in result && typeof result.stopReason === "string"
        ? result.stopReason
        : "other"

    const runTurn = Effect.fnUntraced(function* (text: string, { connection, methods, sessionId }: OpenAgent) {
      const current: Turn = { id: String(++turns), cancelledAt: undefined, ended: false }
      turn = current
      tools = new Map()
      reporter.turnStarted(current.id)
      permissions.turnStarted(current.id)
      pane.line(`you > ${mirrored(text)}`)
      const result = yield* Effect.result(
        connection.request(methods.session.prompt, { sessionId, prompt: [{ type: "text", text }] })
      )
      // Nobody will answer any more: the agent's exit says how this turn ended.
      if (Result.isFailure(result) && result.failure._tag === "AgentGone") return yield* Effect.never
      current.ended = true
      reporter.turnEnding()
      yield* permissions.turnEnded
      let reason = "error"
      if (Result.isSuccess(result)) {
        reason = readReason(result.success)
        if (current.cancelledAt !== undefined && reason === "cancelled") {
          pane.line("cancel > confirmed by the agent", "always")
        }
      } else if (result.failure._tag === "AgentRefused") {
        const { code, message } = result.failure
        pane.line(`error > the prompt failed: ${foreignPiece(message, wholeCharacters)} (${code})`)
        reporter.failed()
      }
      pane.line(`turn > ${current.id} ended: ${foreignPiece(reason)}`)
      tellUnknown()
      turn = undefined
      reporter.turnEnded(reason)
    })

    return {
      input: (event) => {
        switch (event._tag) {
          case "Cancel":
            cancel()
            break
          case "Prompt":
            if (event.replaced > 0) {
              pane.line(`seat > ${event.replaced} characters were not UTF-8 and are shown as \ufffd`)
            }
            enqueue(event.text, "message")
            break
          case "TooLarge":
            lose(`a message of ${event.bytes} bytes is too large`)
            break
          case "UnendedPaste":
            pane.line("lost > paste without an end marker")
            break
        }
      },
      queueWords: (words) => {
        if (words.trim() !== "") enqueue(words, "words of an answer")
      },
      update,
      reopening: () => {
        history = 0
      },
      open: (opened) =>
        Effect.gen(function* () {
          endHistory()
          agent = opened
          const nextTurn = Effect.suspend(() => {
            tellIdle()
            return Effect.flatMap(prompts.take, (text) => runTurn(text, opened))
          })
          while (!isStopped()) yield* nextTurn
          // What still waits is told by whoever ends the seat.
          return yield* Effect.never
        }),
      isOpen: () => agent !== undefined,
      isInTurn: () => turn !== undefined,
      stop: () => {
        if (stopped) return
        stopped = true
        if (turn !== undefined && turn.cancelledAt === undefined && !turn.ended) cancel()
      },
      whenIdle: Effect.suspend(() => {
        if (isIdle()) return Effect.void
        const waiter = Deferred.makeUnsafe<void>()
        idleWaiters.push(waiter)
        return Deferred.await(waiter)
      })
    }
  })
