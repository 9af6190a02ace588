/**
 * The process edge of `tackroom-rig`: words, variables, streams, signals, exit code. A command answers on standard output;
 * what went wrong goes to standard error. `serve` logs to standard error and writes nothing else.
 */
import { stateHome } from "@tackroom/sdk/process"
import { Effect, Exit, Result, Scope } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import { createInterface } from "node:readline"
import { rigHome, readSettings } from "../Settings.ts"
import { levelOf, lines, type ServiceLog } from "../ServiceLog.ts"
import { StartRefused, startReasons } from "../StartRefused.ts"
import type { Invocation } from "./CommandLine.ts"
import { parse } from "./CommandLine.ts"
import { helpText } from "./Help.ts"
import { exitCodes, failureOutput, type Output, perform, performLocal, type Surroundings } from "./Perform.ts"
import { endpointOf, make as makeClient } from "./RigClient.ts"
import { version } from "./Version.ts"

const familyHome = (): string => stateHome({ platform: process.platform, home: os.homedir(), env: process.env })

/** Completes when the text is with the system; a reader that went away is no failure. */
const say = (stream: NodeJS.WriteStream, text: string): Promise<void> =>
  new Promise((resolve) => {
    stream.once("error", () => resolve())
    stream.write(text, () => resolve())
  })

const readAll = async (): Promise<Uint8Array> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk as Uint8Array))
  return Buffer.concat(chunks)
}

const ask = (question: string): Promise<boolean> =>
  new Promise((resolve) => {
    const reader = createInterface({ input: process.stdin, output: process.stderr })
    reader.question(`${question} [y/N] `, (answer) => {
      reader.close()
      resolve(/^y(?:es)?$/iu.test(answer.trim()))
    })
  })

const written = (stream: NodeJS.WriteStream, line: string): Promise<void> | undefined =>
  stream.write(`${line}\n`) ? undefined : new Promise((resolve) => void stream.once("drain", () => resolve()))

const surroundings = (json: boolean): Surroundings => ({
  readInput: Effect.promise(readAll),
  confirm: process.stdin.isTTY ? (question) => Effect.promise(() => ask(question)) : undefined,
  write: (line) => written(json ? process.stderr : process.stdout, line),
  note: (line) => void process.stderr.write(`${line}\n`),
  fileExists: (path) => fs.existsSync(path)
})

const print = async (output: Output, json: boolean): Promise<number> => {
  const failed = output.code !== exitCodes.done
  const text = json ? `${JSON.stringify(output.json)}\n` : output.lines.map((line) => `${line}\n`).join("")
  await say(json || !failed ? process.stdout : process.stderr, text)
  return output.code
}

const runCommand = async (invocation: Invocation): Promise<number> => {
  const { name, json } = invocation
  if (name === "serve") return serve()
  const around = surroundings(json || name === "feed")
  const following = name === "feed" ? { ...around, write: (line: string) => written(process.stdout, line) } : around
  // Who follows and stops reading, as `head` does, has what it wanted.
  if (name === "feed") process.stdout.once("error", () => process.exit(exitCodes.done))
  const program =
    name === "presetCheck" || name === "completions"
      ? performLocal(name, invocation)
      : Effect.flatMap(endpointOf(rigHome(familyHome())), (endpoint) =>
          perform(name, invocation, makeClient(endpoint), following)
        )
  const output = await Effect.runPromise(
    program.pipe(Effect.catch((failure) => Effect.succeed(failureOutput(failure))))
  )
  return print(output, json)
}

/** Runs the service until a signal asks it to end. */
const serve = async (): Promise<number> => {
  const log: ServiceLog = lines(
    levelOf(process.env["TACKROOM_LOG_LEVEL"]),
    () => new Date().toISOString(),
    (line) => void process.stderr.write(line)
  )
  // A log that nobody reads must not end the service.
  process.stderr.on("error", () => undefined)
  const settings = readSettings(process.env, familyHome())
  const refuse = (error: StartRefused): number => {
    log.write("error", `the service does not start: ${error.reason}`, { code: error.reason, detail: error.detail })
    return startReasons[error.reason]
  }
  if (Result.isFailure(settings)) return refuse(settings.failure)
  const ended = new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => resolve())
  })
  const { make } = await import("../RigService.ts")
  const scope = Effect.runSync(Scope.make())
  const started = await Effect.runPromiseExit(
    make({ settings: settings.success, variables: process.env, version: version(), log }).pipe(Scope.provide(scope))
  )
  if (Exit.isFailure(started)) {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    const reason = started.cause.reasons.find((one) => one._tag === "Fail")
    if (reason?.error instanceof StartRefused) return refuse(reason.error)
    log.write("error", "the service met a fault at its start", {
      cause: started.cause.reasons
        .map((one) => (one._tag === "Die" && one.defect instanceof Error ? one.defect.message : one._tag))
        .join("; ")
    })
    return exitCodes.fault
  }
  await ended
  log.write("info", "the service ends; seats go on")
  await Effect.runPromise(Scope.close(scope, Exit.void))
  return exitCodes.done
}

/** Runs one command line and ends the process with its exit code. */
export const main = async (argv: ReadonlyArray<string>): Promise<void> => {
  const parsed = parse(argv)
  switch (parsed._tag) {
    case "Help":
      await say(process.stdout, helpText(parsed.name))
      process.exit(exitCodes.done)
      break
    case "Version":
      await say(process.stdout, `${version()}\n`)
      process.exit(exitCodes.done)
      break
    case "Usage": {
      const help = parsed.name === undefined ? "tackroom rig --help" : "the same with --help"
      await say(process.stderr, `tackroom rig: ${parsed.message}\nTry: ${help}\n`)
      process.exit(exitCodes.usage)
      break
    }
    case "Run":
      process.exit(await runCommand(parsed))
  }
}
