/**
 * `tackroom acp … --sign-in ID`, as an editor runs it in a terminal (ACP-037): the program of the agent that is served, as that
 * agent wants it started for this way to sign in, in the place of ours. Nothing is served.
 */
import { childEnvironment } from "@tackroom/sdk/process"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { type FaceProcess, openHost, plan } from "../start/FaceHost.ts"
import { notStarted, tagOf } from "../start/NotStarted.ts"
import { harnessOf } from "../start/Setup.ts"
import type { AcpArguments } from "./Arguments.ts"

interface Terminal {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
}

/** Runs it with our terminal; the result is its exit code. */
const run = ({ args, command, env }: Terminal) =>
  Effect.callback<number, string>((resume) => {
    // In our group: what the person types at the terminal is for it.
    const child = spawn(command, [...args], { env, stdio: "inherit" })
    child.once("error", (cause) => resume(Effect.fail(cause.message)))
    child.once("exit", (code) => resume(Effect.succeed(code ?? 1)))
    return Effect.sync(() => void child.kill())
  })

export const signInAtTerminal = Effect.fnUntraced(function* (face: FaceProcess, options: AcpArguments, id: string) {
  const planned = yield* plan(face, options)
  const host = yield* openHost(face, planned, {})
  const methods = yield* host.signIns
    .methods(harnessOf(planned.setup), face.cwd)
    .pipe(Effect.mapError((cause) => notStarted(cause.message, tagOf(cause))))
  const found = methods.find((method) => method.id === id)?.terminal
  if (found === undefined) return yield* notStarted(`there is no way to sign in at a terminal of the id ${id}`)
  const { args, command, env } = found
  return yield* run({ command, args, env: childEnvironment(face.env, env, process.platform) }).pipe(
    Effect.mapError((message) => notStarted(message))
  )
})
