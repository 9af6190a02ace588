/**
 * One prompt, one run, one result: `tackroom run` (serve-mode 11).
 *
 * It owns the order: understand, open, start, follow, end. The process (streams, signals, exit) is `main.ts`; a person
 * follows by `Following`, a program by `JsonRun`; what a run is and when it is over is the host's. Whatever goes wrong
 * before a run was admitted is exit code 3, and with `--json` one `result` line as well (HDL-007, HDL-016).
 */
import type { RunFault } from "@tackroom/protocol/serve"
import { Cause, Effect, Exit, Logger, Option, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import { harnessKeyOf } from "../../harnesses/Harnesses.ts"
import { harnessOf } from "../../runs/HostRows.ts"
import { neverStarted } from "../lines/Ending.ts"
import { RunLines } from "../lines/RunLines.ts"
import { makeLinesOut } from "../lines/LinesOut.ts"
import { openHost, openSession, plan, type FaceSession } from "../start/FaceHost.ts"
import { exitCodes, NotStarted, notStarted, tagOf } from "../start/NotStarted.ts"
import type { Edge } from "./Edge.ts"
import { decideBy } from "./Settlement.ts"
import { oneLine, signs, tint } from "./Style.ts"

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false })
const promptBytes = 1_048_576

const nothing = (message: string) => new NotStarted({ kind: "nothing", message })

const readPrompt = Effect.fnUntraced(function* ({ options, readStdin }: Edge) {
  let text = options.prompt
  if (text === undefined) {
    const bytes = yield* Effect.tryPromise({
      try: () => readStdin(promptBytes),
      catch: () => nothing("the prompt could not be read from stdin")
    })
    if (bytes === undefined) return yield* nothing(`the prompt has more than ${promptBytes} bytes`)
    text = yield* Effect.try({ try: () => utf8.decode(bytes), catch: () => nothing("the prompt is not valid UTF-8") })
  }
  if (text.trim() === "") return yield* nothing("the prompt is blank")
  if (Buffer.byteLength(text) > promptBytes) return yield* nothing(`the prompt has more than ${promptBytes} bytes`)
  return text
})

/** Says before the run what a person should know of it. */
const announce = (edge: Edge, opened: FaceSession): void => {
  const { json, quiet } = edge.options
  if (quiet || json) return
  const { style } = edge
  const { notice } = signs(style)
  const say = (text: string): void => edge.writeErr(`${text}\n`)
  if (opened.scripted) {
    const text = "scripted: no model is asked, a built-in script answers; give --model for a real one"
    say(`${tint(style, "yellow", `${notice} ${text}`)}`)
  }
  for (const warning of opened.warnings.slice(opened.scripted ? 1 : 0)) {
    say(`${tint(style, "yellow", notice)} ${oneLine(warning)}`)
  }
  const { sessionId, workspace } = opened.session
  const who = opened.agent ?? harnessKeyOf(harnessOf(opened.session))
  say(tint(style, "dim", `${who} in ${oneLine(workspace)}, session ${sessionId}`))
}

/** A run of the session: admitted, or the reason why not. */
const admit = (opened: FaceSession, text: string) => {
  const submissionId = `msg_${randomUUID()}`
  const { sessionId } = opened.session
  return opened.host.runs.start({ sessionId, submissionId, text }).pipe(
    Effect.mapBoth({
      onSuccess: (started) => ({ submissionId, turnId: started.turn.turnId, after: started.cursors[sessionId] ?? 0 }),
      onFailure: (cause) =>
        tagOf(cause) === "PromptInvalid" ? nothing(cause.message) : notStarted(cause.message, tagOf(cause))
    })
  )
}

const work = (edge: Edge): Effect.Effect<number, NotStarted, Scope.Scope> =>
  Effect.gen(function* () {
    const { face, options } = edge
    const planned = yield* plan(face, options)
    const prompt = yield* readPrompt(edge)
    const host = yield* openHost(face, planned, { decide: decideBy(options.approve) })
    const opened = yield* openSession(face, host, options, planned)
    announce(edge, opened)
    const run = yield* admit(opened, prompt)
    if (options.json) {
      const { followJson } = yield* Effect.promise(() => import("./JsonRun.ts"))
      return yield* followJson(edge, opened, planned, run)
    }
    const { followText } = yield* Effect.promise(() => import("./Following.ts"))
    return yield* Effect.promise(() => followText(edge, opened, run))
  })

const faultOf = ({ errorClass, kind, message }: NotStarted): RunFault => ({
  code: kind,
  message,
  ...(errorClass === undefined ? {} : { class: errorClass })
})

/** With `--json` the end of a command line that was understood is a result, whatever happened (HDL-016). */
const tell = (edge: Edge, failure: NotStarted): void => {
  const { events, json, runId } = edge.options
  if (json) {
    const lines = new RunLines({
      face: "headless",
      runId,
      opId: undefined,
      events: events ?? "full",
      warnings: [],
      model: undefined,
      sessionId: undefined,
      duplicate: false
    })
    const out = makeLinesOut(edge.output)
    for (const line of lines.lines([{ type: "result", end: neverStarted(faultOf(failure)) }])) out.run(line)
  }
  edge.writeErr(`tackroom run: ${oneLine(failure.message)}\n`)
}

/** Does it all; the result is the exit code. */
export const run = async (edge: Edge): Promise<number> => {
  // What the host logs is for programs; a person is told by the view, a driver by lines.
  const exit = await Effect.runPromiseExit(Effect.provide(Effect.scoped(work(edge)), Logger.layer([])))
  if (Exit.isSuccess(exit)) return exit.value
  const failure = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  if (failure !== undefined) {
    tell(edge, failure)
    return failure.code
  }
  const defect = Cause.squash(exit.cause)
  const message = defect instanceof Error ? defect.message : "an unexpected failure"
  tell(edge, notStarted(message, tagOf(defect) ?? "internal"))
  return exitCodes.ended
}
