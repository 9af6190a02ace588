/**
 * One prompt, one run, one result: `tackroom run` (serve-mode 11), over a host in this process and the run client.
 *
 * It owns the order: understand, open, start, follow, end. The process (streams, signals, exit) is `main.ts`, what is
 * written is `View`, `Ask` and `Report`, and what a run is and when it is over is the host's. Whatever goes wrong before
 * a run was admitted is exit code 3, and with `--json` one `result` line as well (HDL-007, HDL-016).
 */
import { FaceConfig, limits, wireCodec } from "@tackroom/protocol/run"
import type { Host } from "@tackroom/sdk/client"
import { Result } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { directory, exitCodes, messageOf, NotStarted, tagOf, type Edge } from "./Edge.ts"
import type { Opened } from "./Opening.ts"
import { notStarted, resultLine, type End } from "./Report.ts"
import { keyVariables, setUp } from "./Setup.ts"
import { oneLine, signs, tint } from "./Style.ts"
import { summaryLine } from "./View.ts"

const faceConfig = wireCodec(FaceConfig)
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false })

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
  const { options } = edge
  try {
    const config = readConfig(edge)
    const keys = takeKeys(edge, keyVariables(config, options))
    const prompt = await readPrompt(edge)
    if (options.project !== undefined) directory(edge, options.project)
    const stateDir =
      options.stateDir === undefined ? (config.stateDir ?? edge.stateDir) : path.resolve(edge.cwd, options.stateDir)
    const setup = setUp(options, config, stateDir, path.join(stateDir, "scenarios", "script.json"))
    if ("refused" in setup) throw new NotStarted("unknown", setup.refused)
    const missing = setup.keys.find((entry) => entry.connection === setup.needsKey && !keys.has(entry.variable))
    if (missing !== undefined) {
      const message = `the connection ${missing.connection} needs a key in ${missing.variable}`
      throw new NotStarted("unknown", message, "credential")
    }

    const { create, open, resume } = await import("./Opening.ts")
    const { follow } = await import("./Following.ts")
    host = await open(edge, setup, keys)
    const opened =
      options.session === undefined ? await create(edge, host, setup) : await resume(edge, host, setup, options.session)
    announce(edge, opened)
    return conclude(edge, await follow(edge, host, opened, prompt))
  } catch (cause) {
    const { code, errorClass, kind, message } =
      cause instanceof NotStarted
        ? cause
        : {
            code: exitCodes.ended,
            errorClass: tagOf(cause) ?? "internal",
            kind: "unknown" as const,
            message: messageOf(cause)
          }
    if (options.json) edge.writeOut(resultLine(options.runId, notStarted(kind, message, errorClass)))
    edge.writeErr(`tackroom run: ${oneLine(message)}\n`)
    return code
  } finally {
    await host?.close()
  }
}
