/**
 * One prompt, one run, one result: `tackroom run` (serve-mode 11), over a host in this process and the run client.
 *
 * It owns the order: understand, open, start, follow, end. The process (streams, signals, exit) is `main.ts`, what is
 * written is `View`, `Ask` and `Report`, and what a run is and when it is over is the host's. Whatever goes wrong before
 * a run was admitted is exit code 3, and with `--json` one `result` line as well (HDL-007, HDL-016).
 */
import { FaceConfig, fromErrorObject, isRunError, limits, wireCodec, type RunState } from "@tackroom/protocol/run"
import {
  connectHost,
  makeInProcessTransport,
  newSubmissionId,
  type AgentSession,
  type Host
} from "@tackroom/sdk/client"
import { builtInScenarios, forModel } from "@tackroom/sdk/scenario"
import { Scenario } from "@tackroom/protocol/scenario"
import { toWire } from "@tackroom/protocol/text"
import { Result } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { EmbeddedFailure, embedHost, type EmbeddedHost } from "../../EmbedHost.ts"
import type { RunArguments } from "./Arguments.ts"
import { makeAsking } from "./Asking.ts"
import { eventLine, notStarted, resultLine, startLine, type End } from "./Report.ts"
import { countAsk, decideBy, noAsks, type Asks } from "./Settlement.ts"
import { keyVariables, setUp, type Setup } from "./Setup.ts"
import { oneLine, signs, tint, type Style } from "./Style.ts"
import type { Terminal } from "./Terminal.ts"
import { emptyView, finishLine, log, summaryLine, view, type Piece, type View, type ViewOptions } from "./View.ts"

/** What the process gives: everything this module needs of the outside. */
export interface Edge {
  readonly options: RunArguments
  readonly version: string
  readonly cwd: string
  /** This process's environment; names of keys are removed from it. */
  readonly env: NodeJS.ProcessEnv
  readonly stateDir: string
  readonly runner: { readonly command: string; readonly args: ReadonlyArray<string> }
  readonly stdoutTerminal: boolean
  readonly stderrTerminal: boolean
  readonly style: Style
  /** All of stdin, or undefined when it is larger than `limit` bytes. */
  readonly readStdin: (limit: number) => Promise<Uint8Array | undefined>
  readonly openTerminal: () => Terminal
  readonly writeOut: (text: string) => void
  readonly writeErr: (text: string) => void
  /** Aborted by the first signal, or when the reader of stdout is gone. */
  readonly cancelled: AbortSignal
}

export const exitCodes = { completed: 0, ended: 1, usage: 2, notStarted: 3 } as const

/** What kept a run from being admitted. */
class NotStarted extends Error {
  readonly code: number
  readonly kind: "nothing" | "restore" | "unknown"
  readonly errorClass: string | undefined
  constructor(kind: NotStarted["kind"], message: string, errorClass?: string, code: number = exitCodes.notStarted) {
    super(message)
    this.kind = kind
    this.errorClass = errorClass
    this.code = code
  }
}

const faceConfig = wireCodec(FaceConfig)
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false })

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

const tagOf = (cause: unknown): string | undefined =>
  typeof cause === "object" && cause !== null && "_tag" in cause && typeof cause._tag === "string"
    ? cause._tag
    : undefined

const readPrompt = async (edge: Edge): Promise<string> => {
  const nothing = (message: string) => new NotStarted("nothing", message, undefined, exitCodes.usage)
  let text = edge.options.prompt
  if (text === undefined) {
    const bytes = await edge.readStdin(limits.textBytes)
    if (bytes === undefined) throw nothing(`the prompt has more than ${limits.textBytes} bytes`)
    try {
      text = utf8.decode(bytes)
    } catch {
      throw nothing("the prompt is not valid UTF-8")
    }
  }
  if (text.trim() === "") throw nothing("the prompt is blank")
  if (Buffer.byteLength(text) > limits.textBytes) throw nothing(`the prompt has more than ${limits.textBytes} bytes`)
  return text
}

const readConfig = (edge: Edge): FaceConfig => {
  if (edge.options.config === undefined) return {}
  const file = path.resolve(edge.cwd, edge.options.config)
  const refuse = (why: string) => new NotStarted("unknown", `${file}: ${why}`, "bad_config")
  let json: unknown
  try {
    json = JSON.parse(fs.readFileSync(file, "utf8"))
  } catch (cause) {
    throw refuse(cause instanceof SyntaxError ? "it is not JSON" : messageOf(cause))
  }
  const decoded = faceConfig.decode(json)
  if (Result.isSuccess(decoded)) return decoded.success
  const { expected, path: at } = decoded.failure
  throw refuse(`${at === "" ? "" : `${at}: `}expected ${expected}`)
}

const directory = (edge: Edge, given: string): string => {
  const full = path.resolve(edge.cwd, given)
  try {
    const real = fs.realpathSync(full)
    if (fs.statSync(real).isDirectory()) return real
  } catch {
    // It is told below, as anything that is no directory.
  }
  throw new NotStarted("unknown", `${full} is not a directory`, "project")
}

/** Takes the keys out of the environment, whether or not they are needed (SRV-009). */
const takeKeys = (edge: Edge, names: ReadonlyArray<string>): ReadonlyMap<string, string> => {
  const found = new Map<string, string>()
  for (const name of names) {
    const value = edge.env[name]?.trim()
    delete edge.env[name]
    if (value !== undefined && value !== "") found.set(name, value)
  }
  return found
}

/** Puts the built-in scenario where the provider reads it: whole or not at all. */
const writeScenario = (setup: Setup): void => {
  if (setup.scenario === undefined) return
  const { file, id } = setup.scenario
  const builtIn = builtInScenarios.find((entry) => entry.id === id)
  if (builtIn === undefined) return
  fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
  const next = `${file}.${process.pid}`
  fs.writeFileSync(next, JSON.stringify(toScenarioFile(forModel(builtIn.scenario))), { mode: 0o600 })
  fs.renameSync(next, file)
}

const toScenarioFile = toWire(Scenario)

/** The embedded host as the client's transport wants it. */
const forClient = (host: EmbeddedHost) => ({
  call: async (method: string, params: unknown): Promise<unknown> => {
    try {
      return await host.call(method, params)
    } catch (cause) {
      throw cause instanceof EmbeddedFailure ? fromErrorObject(cause.error) : cause
    }
  },
  notify: () => undefined,
  onNotification: () => () => undefined,
  close: host.close
})

const open = async (edge: Edge, setup: Setup, keys: ReadonlyMap<string, string>): Promise<Host> => {
  try {
    writeScenario(setup)
    const embedded = await embedHost(setup.config, {
      version: edge.version,
      environment: edge.env,
      runner: edge.runner,
      lock: false,
      decide: decideBy(edge.options.approve)
    })
    const host = await connectHost(async () => makeInProcessTransport(forClient(embedded)), { restart: false })
    for (const { connection, variable } of setup.keys) {
      const apiKey = keys.get(variable)
      if (apiKey !== undefined) await setKey(host, connection, apiKey)
    }
    return host
  } catch (cause) {
    if (cause instanceof NotStarted) throw cause
    throw new NotStarted("unknown", messageOf(cause), tagOf(cause))
  }
}

const setKey = async (host: Host, connection: string, apiKey: string): Promise<void> => {
  try {
    await host.request("connection/set", { connection, apiKey, storage: "memory" })
  } catch (cause) {
    throw new NotStarted("unknown", `the key of ${connection} was refused: ${messageOf(cause)}`, tagOf(cause))
  }
}

interface Opened {
  readonly session: AgentSession
  readonly agent: string
  readonly workspace: string
  readonly scripted: boolean
  readonly warnings: ReadonlyArray<string>
}

/** A session to go on with must be what the command line says it is (SRV-003). */
const resume = async (edge: Edge, host: Host, sessionId: string): Promise<Opened> => {
  const { agent, model, project } = edge.options
  const restore = (message: string) => new NotStarted("restore", message)
  let session: AgentSession
  try {
    session = await host.attach(sessionId)
  } catch (cause) {
    throw restore(`session ${sessionId} cannot be resumed: ${messageOf(cause)}`)
  }
  const state = session.attached?.state
  if (state === undefined) throw restore(`session ${sessionId} cannot be resumed`)
  if (agent !== undefined && agent !== state.agent) throw restore(`session ${sessionId} is one of agent ${state.agent}`)
  if (project !== undefined && directory(edge, project) !== state.workspace) {
    throw restore(`session ${sessionId} works in ${state.workspace}`)
  }
  const own = state.model
  if (
    model !== undefined &&
    own !== undefined &&
    `${own.connection}/${own.model}` !== `${model.connection}/${model.model}`
  ) {
    throw restore(`session ${sessionId} has the model ${own.connection}/${own.model}`)
  }
  return { session, agent: state.agent, workspace: state.workspace, scripted: state.scripted, warnings: [] }
}

const create = async (edge: Edge, host: Host, setup: Setup): Promise<Opened> => {
  const workspace = directory(edge, edge.options.project ?? ".")
  try {
    const session = await host.session({
      agent: setup.agent,
      workspace,
      ...(setup.model === undefined ? {} : { model: setup.model })
    })
    const { scripted } = await session.state()
    return { session, agent: setup.agent, workspace, scripted, warnings: [] }
  } catch (cause) {
    throw new NotStarted("unknown", messageOf(cause), tagOf(cause))
  }
}

/** Follows the run to its end. */
const follow = async (edge: Edge, host: Host, opened: Opened, prompt: string): Promise<End> => {
  const { cancelled, options, style } = edge
  const { session } = opened
  const viewOptions: ViewOptions = {
    lead: session.id,
    text: edge.stdoutTerminal && !options.json,
    live: edge.stderrTerminal,
    quiet: options.quiet || options.json,
    style
  }
  let current: View = emptyView
  let held: Array<Piece> | undefined
  const put = (pieces: ReadonlyArray<Piece>): void => {
    for (const piece of pieces) {
      if (piece.to === "answer") edge.writeOut(piece.text)
      else edge.writeErr(piece.text)
    }
  }
  const draw = (pieces: ReadonlyArray<Piece>): void => {
    if (held === undefined) put(pieces)
    else held.push(...pieces)
  }
  const submissionId = newSubmissionId()
  const asked = new AbortController()
  const terminal = options.approve === "ask" ? edge.openTerminal() : undefined
  const asking =
    terminal === undefined
      ? undefined
      : makeAsking({
          terminal,
          style,
          workspace: opened.workspace,
          signal: AbortSignal.any([cancelled, asked.signal]),
          show: (lines) => {
            const [next, pieces] = log(current, { ...viewOptions, quiet: false }, lines)
            current = next
            put(pieces)
          },
          hold: (on) => {
            if (on) held = []
            else {
              const waiting = held ?? []
              held = undefined
              put(waiting)
            }
          },
          giveUp: () => void cancel(),
          artifact: (sessionId, artifactId) => wholeArtifact(host, sessionId, artifactId)
        })
  const run = session.run(prompt, {
    submissionId,
    ...(asking === undefined ? {} : { onApproval: asking.onApproval, onQuestion: asking.onQuestion })
  })
  const cancel = async (): Promise<void> => {
    try {
      await run.cancel()
    } catch (cause) {
      // The run's own end tells how it ended; that a member was not reached in time is a warning.
      if (!options.quiet) edge.writeErr(`tackroom: the cancel was not complete: ${oneLine(messageOf(cause))}\n`)
    }
  }
  try {
    await run.started
  } catch (cause) {
    terminal?.close()
    throw new NotStarted("unknown", messageOf(cause), tagOf(cause))
  }
  if (options.json) {
    const { agent, scripted, warnings, workspace } = opened
    edge.writeOut(
      startLine(options.runId, { sessionId: session.id, submissionId, agent, project: workspace, scripted, warnings })
    )
  }
  const onCancel = (): void => void cancel()
  cancelled.addEventListener("abort", onCancel, { once: true })
  if (cancelled.aborted) onCancel()

  let asks: Asks = noAsks
  let lastText = ""
  try {
    for await (const item of run) {
      if (options.json) edge.writeOut(eventLine(options.runId, item))
      const [next, pieces] = view(current, item, viewOptions)
      current = next
      draw(pieces)
      const payload = item.event?.payload
      if (payload === undefined) continue
      asks = countAsk(asks, payload)
      if (payload.type === "text-end" && payload.channel === "text" && item.sessionId === session.id) {
        lastText = payload.text
      }
      asking?.saw(payload)
    }
    const result = await run.result
    put(finishLine(current)[1])
    return {
      status: result.status,
      ...(result.failure === undefined ? {} : { failure: result.failure }),
      ...(result.error === undefined ? {} : { error: { message: result.error.message } }),
      answer: await answerOf(host, session.id, result, lastText),
      usage: result.usage,
      sessionId: session.id,
      scripted: opened.scripted,
      asks
    }
  } finally {
    cancelled.removeEventListener("abort", onCancel)
    asked.abort()
    asking?.end()
    terminal?.close()
  }
}

/** The whole final output, from its artifact when the state has a preview only. */
const answerOf = async (host: Host, sessionId: string, result: RunState, lastText: string): Promise<string> => {
  const whole = result.finalOutputArtifact
  if (whole === undefined) return result.finalOutput ?? lastText
  return wholeArtifact(host, sessionId, whole.artifactId)
}

const wholeArtifact = async (host: Host, sessionId: string, artifactId: string): Promise<string> => {
  const chunks: Array<Buffer> = []
  for (let offset = 0; ;) {
    const part = await host.request("artifact/read", {
      sessionId,
      artifactId,
      offset,
      length: limits.artifactChunkBytes
    })
    chunks.push(Buffer.from(part.data, "base64"))
    offset += part.length
    if (part.eof || part.length === 0) return Buffer.concat(chunks).toString("utf8")
  }
}

/** Says before the run what a person should know of it. */
const announce = (edge: Edge, opened: Opened): void => {
  const { json, quiet } = edge.options
  if (quiet || json) return
  const { style } = edge
  const { notice } = signs(style)
  const say = (text: string): void => edge.writeErr(`${text}\n`)
  if (opened.scripted) {
    const text = "scripted: no model is asked, a built-in script answers; give --model for a real one"
    say(`${tint(style, "yellow", `${notice} ${text}`)}`)
  }
  for (const warning of opened.warnings) say(`${tint(style, "yellow", notice)} ${oneLine(warning)}`)
  say(tint(style, "dim", `${opened.agent} in ${oneLine(opened.workspace)}, session ${opened.session.id}`))
}

const conclude = (edge: Edge, end: End): number => {
  const { json, quiet, runId } = edge.options
  if (json) edge.writeOut(resultLine(runId, end))
  else {
    if (!edge.stdoutTerminal && end.answer !== "")
      edge.writeOut(end.answer.endsWith("\n") ? end.answer : `${end.answer}\n`)
    if (!quiet || end.status === "failed") {
      const message = end.error?.message
      edge.writeErr(
        `${summaryLine(
          {
            status: end.status,
            ...(end.failure === undefined ? {} : { failure: end.failure }),
            ...(message === undefined ? {} : { message }),
            usage: end.usage,
            sessionId: end.sessionId ?? "",
            scripted: end.scripted
          },
          edge.style
        )}\n`
      )
    }
  }
  return end.status === "completed" && !edge.cancelled.aborted ? exitCodes.completed : exitCodes.ended
}

/** Does it all; the result is the exit code. */
export const run = async (edge: Edge): Promise<number> => {
  let host: Host | undefined
  try {
    const config = readConfig(edge)
    const keys = takeKeys(edge, keyVariables(config, edge.options))
    const prompt = await readPrompt(edge)
    const stateDir =
      edge.options.stateDir === undefined
        ? (config.stateDir ?? edge.stateDir)
        : path.resolve(edge.cwd, edge.options.stateDir)
    const setup = setUp(edge.options, config, stateDir, path.join(stateDir, "scenarios", "script.json"))
    if ("refused" in setup) throw new NotStarted("unknown", setup.refused)
    const missing = setup.keys.find((entry) => entry.connection === setup.needsKey && !keys.has(entry.variable))
    if (missing !== undefined) {
      throw new NotStarted(
        "unknown",
        `the connection ${missing.connection} needs a key in ${missing.variable}`,
        "credential"
      )
    }
    host = await open(edge, setup, keys)
    const { session } = edge.options
    const opened = session === undefined ? await create(edge, host, setup) : await resume(edge, host, session)
    announce(edge, opened)
    return conclude(edge, await follow(edge, host, opened, prompt))
  } catch (cause) {
    const failure = cause instanceof NotStarted ? cause : undefined
    if (failure === undefined && !isRunError(cause)) throw cause
    const message = messageOf(cause)
    if (edge.options.json) {
      edge.writeOut(
        resultLine(edge.options.runId, notStarted(failure?.kind ?? "unknown", message, failure?.errorClass))
      )
    }
    edge.writeErr(`tackroom run: ${oneLine(message)}\n`)
    return failure?.code ?? exitCodes.ended
  } finally {
    await host?.close()
  }
}
