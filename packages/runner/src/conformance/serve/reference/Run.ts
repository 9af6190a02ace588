/**
 * One run of the reference program: rounds of the played model, calls, asks, budgets, and its one result.
 */
import { confirmation, question, type Round, sceneOf } from "../../model/Script.ts"
import type { Line, Output } from "./Output.ts"
import type { Settings } from "./Settings.ts"

/** How a run is told to stop. */
type Stop = { readonly cause: string; readonly opId?: string | undefined }

interface Ask {
  readonly id: string
  readonly kind: "ask" | "confirm"
  readonly settle: (values: ReadonlyArray<unknown> | undefined, by: string, opId?: string) => void
}

export interface Run {
  readonly id: string
  readonly ask: () => Ask | undefined
  /** An ask of this run that ended without an answer of the driver. */
  readonly unanswered: () => string | undefined
  readonly stop: (stop: Stop) => void
}

/** How a run ended, as it is kept. */
interface Ended {
  readonly answer: string
  readonly status: string
  readonly errors: ReadonlyArray<unknown>
}

export interface RunInput {
  readonly id: string
  readonly prompt: string
  readonly opId: string | undefined
  readonly warnings: ReadonlyArray<string>
  readonly settings: Settings
  readonly output: Output
  readonly askId: () => string
  /** What the run before answered; a faulty program forgets to begin anew. */
  readonly former: string
  /** Told before the result is written. */
  readonly onEnd: (how: Ended) => void
}

const pieces = (text: string): ReadonlyArray<string> => text.match(/.{1,12}/gsu) ?? []

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener("abort", () => {
      clearTimeout(timer)
      resolve()
    })
  })

/** Starts a run; it ends by itself or by `stop`. */
export const startRun = (input: RunInput): Run => {
  const { id, opId, output, settings } = input
  const { bare, broken } = settings
  const stopped = new AbortController()
  let seq = 0
  let stop: Stop | undefined
  let budget: "budget" | "timeout" | undefined
  let ask: Ask | undefined
  let unanswered: string | undefined
  let answer = broken("SRV-146") ? input.former : ""
  let isEnded = false
  const usage = { input: 0, output: 0, rounds: 0 }
  const errors: Array<{ readonly code: string; readonly message: string }> = []

  const put = (line: Line, as: string | undefined = opId): void => {
    if (isEnded) return
    seq += broken("SRV-066") ? 2 : 1
    output.put({
      ...line,
      seq,
      run_id: id,
      ...(bare || as === undefined || broken("SRV-095") ? {} : { op_id: as })
    })
  }
  const notify = (kind: string, data: unknown, as?: string): void => put({ type: "notify", kind, data }, as ?? opId)

  const halt = (next: Stop): void => {
    if (stop !== undefined || isEnded) return
    if (ask !== undefined && broken("SRV-202")) return
    stop = next
    if (!bare && !broken("SRV-220")) notify("cancelling", { cause: next.cause }, next.opId)
    ask?.settle(undefined, "cancel")
    stopped.abort()
  }

  const trip = (code: "budget" | "timeout", message: string): void => {
    if (stop !== undefined || isEnded) return
    budget = code
    errors.push({ code, message })
    notify("error", message)
    halt({ cause: code === "budget" ? "max_rounds" : "timeout" })
  }

  const fail = (code: string, message: string): void => {
    errors.push({ code, message })
    notify("error", message)
  }

  const asking = (kind: Ask["kind"]): Promise<void> =>
    new Promise((resolve) => {
      const askId = input.askId()
      const timer =
        settings.answerTimeoutMs === undefined
          ? undefined
          : setTimeout(() => settle(broken("SRV-201") ? ["yes"] : undefined, "timeout"), settings.answerTimeoutMs)
      const settle: Ask["settle"] = (values, by, as) => {
        if (ask === undefined) return
        clearTimeout(timer)
        ask = undefined
        if (by === "timeout") unanswered = askId
        const yes = ["y", "yes", "true", "1", "once"].includes(String(values?.[0]).trim().toLowerCase())
        const outcome =
          values === undefined
            ? by === "timeout"
              ? "unanswered"
              : "withdrawn"
            : kind === "ask"
              ? "answered"
              : yes
                ? "allowed"
                : "refused"
        if (!bare && !broken("SRV-200")) {
          notify(
            "ask_resolved",
            { ask_id: askId, outcome, by, ...(outcome === "answered" ? { answers: [values] } : {}) },
            as
          )
        }
        said = kind === "confirm" ? outcome : String(values?.[0] ?? "Unanswered")
        resolve()
      }
      ask = { id: askId, kind, settle }
      notify(
        "ask",
        kind === "ask"
          ? {
              kind,
              ask_id: askId,
              ...(bare ? {} : { about: "question" }),
              questions: [{ question: question.text, options: question.options, multiple: false, custom: bare }]
            }
          : {
              kind,
              ask_id: askId,
              prompt: confirmation,
              ...(bare
                ? {}
                : {
                    about: "permission",
                    options: [
                      { id: "once", label: "Allow", kind: "allow_once" },
                      { id: "never", label: "Never", kind: "reject_always" }
                    ]
                  })
            }
      )
      if (broken("SRV-180"))
        notify("ask", { kind: "confirm", ask_id: `${askId}-more`, prompt: "And this?", about: "plan" })
    })
  let said = ""

  const toolCall = () => ({ name: "look", args: "{}", ...(bare ? {} : { id: `c${usage.rounds}` }) })

  const announceTool = (): void => {
    const call = toolCall()
    notify("tool_start", [call.name])
    notify("tool_calls", [call])
  }

  const runTool = (isFailing: boolean): void => {
    const { id: callId, name } = toolCall()
    notify("tool_running", name)
    if (!bare) {
      notify("tool_status", { id: callId, name, status: "running" })
      const how = isFailing
        ? { status: "failed", error: "there is nothing" }
        : { status: "completed", preview: "looked" }
      notify("tool_status", { id: callId, name, ...how })
    }
    notify("tools", null)
    if (isFailing && broken("SRV-131")) fail("unknown", "a tool failed")
  }

  const play = async (round: Round): Promise<void> => {
    if (settings.maxRounds !== undefined && usage.rounds >= settings.maxRounds) {
      return trip("budget", `the run used its ${settings.maxRounds} rounds`)
    }
    usage.rounds += 1
    if (round.refuses === true) return fail("unknown", "the model service refused the request")
    if (round.text !== undefined) answer = ""
    for (const piece of pieces(round.text ?? "")) {
      put({ type: "delta", text: piece })
      answer += piece
    }
    if (round.hangs === true) {
      await new Promise<void>((resolve) => {
        if (broken("SRV-221")) return
        stopped.signal.addEventListener("abort", () => resolve())
      })
      return
    }
    usage.input += 10
    usage.output += 5
    const isTool = round.calls === "tool" || round.calls === "failing"
    if (isTool) announceTool()
    const shown = broken("SRV-379") && usage.rounds === 2 ? { ...usage, output: 1 } : usage
    notify("usage", broken("SRV-069") ? { ...shown, input: String(shown.input) } : { ...shown })
    if (isTool) runTool(round.calls === "failing")
    if (round.calls === "ask" || round.calls === "confirm") {
      await asking(round.calls)
      if (stop === undefined) answer = said
    }
  }

  const work = async (): Promise<void> => {
    const scene = sceneOf(input.prompt)
    for (const [index, round] of scene.rounds.entries()) {
      if (stop !== undefined) return
      await pause(index === 0 ? 0 : 5, stopped.signal)
      if (stop !== undefined) return
      const before = answer
      await play(round)
      // What was asked is said, so that a driver sees what its answer was taken for.
      if (index === scene.rounds.length - 1 && said !== "") answer = `${said}: ${before === answer ? "" : answer}`
      if (errors.length > 0) return
    }
    if (answer.trim() === "" && errors.length === 0 && !broken("SRV-148"))
      errors.push({ code: "no_answer", message: "the run has no answer" })
  }

  const finish = (): void => {
    if (isEnded) return
    ask?.settle(undefined, "run_end")
    clearTimeout(timer)
    const cancelled = stop !== undefined && budget === undefined
    if (cancelled && broken("SRV-132")) errors.push({ code: "unknown", message: "it was cancelled" })
    notify("run_finished", null)
    if (broken("SRV-142") && !cancelled) queueMicrotask(() => lateLine())
    const result = {
      type: "result",
      answer,
      errors: broken("SRV-267") && budget !== undefined ? [] : errors,
      error_messages: errors.map(({ message }) => message),
      usage: { ...usage },
      cancelled: broken("SRV-221") ? false : cancelled,
      ...(bare
        ? {}
        : {
            status: cancelled ? "cancelled" : errors.length > 0 ? "failed" : "completed",
            stop_reason: cancelled
              ? "cancelled"
              : budget === "budget"
                ? "max_rounds"
                : budget === "timeout"
                  ? "timeout"
                  : errors.length > 0
                    ? "error"
                    : "end_turn"
          }),
      ...(stop?.opId === undefined || bare || broken("SRV-097") ? {} : { cancel_op_id: stop.opId })
    }
    const how = { answer, errors, status: cancelled ? "cancelled" : errors.length > 0 ? "failed" : "completed" }
    if (!broken("SRV-144")) input.onEnd(how)
    put(result)
    if (broken("SRV-140")) put(result)
    isEnded = true
    if (broken("SRV-144")) setTimeout(() => input.onEnd(how), 100)
  }

  const lateLine = (): void => {
    seq += 1
    output.put({ type: "log", seq, run_id: id, message: "one more thing" })
  }

  const timer =
    settings.timeoutMs === undefined
      ? undefined
      : setTimeout(() => trip("timeout", "the run used its time"), settings.timeoutMs)

  if (broken("SRV-141")) notify("title", { title: "A run" })
  put({
    type: "start",
    prompt: input.prompt,
    warnings: broken("SRV-261") ? [] : input.warnings,
    ...(bare ? {} : { turn_id: `trn_${id}` })
  })
  if (broken("SRV-145") && input.prompt.startsWith("#refused")) {
    output.error({ reason: "bad_op", message: "the model service refused the request", detail: {} }, opId)
    clearTimeout(timer)
    input.onEnd({ answer: "", status: "failed", errors: [] })
  } else void work().then(finish)

  return { id, ask: () => ask, unanswered: () => unanswered, stop: halt }
}
