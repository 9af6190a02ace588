/**
 * shell.run in a terminal of the client, where a person sees it (ACP-213).
 *
 * The command is the same `sh -c` as in the tool runner, in the same folder, with the same additions to its environment, and
 * with an empty input; the rest of the environment, the process group and its end are the client's. Output comes as one stream,
 * as a terminal has it, when the command has ended. At the time-out and at a cancel the command is killed; what it said by
 * then is kept (AGT-071). The terminal is released in every case, and no client is waited for without bound.
 *
 * Fails with `ClientLost` when nobody knows whether the command ran or goes on.
 */
import { tailBytes, utf8Length } from "@tackroom/protocol/text"
import { Clock, Effect, Option } from "effect"
import { attempt, orFailed, within } from "./ClientCall.ts"
import type { ClientLost, ClientSide, ClientTerminal } from "./ClientSide.ts"
import { Failed, named } from "./Refusal.ts"
import type { ShellResult } from "./Results.ts"
import type { PreparedShell } from "./Shell.ts"
import type { Workspace } from "./Workspace.ts"

type OpenTerminal = NonNullable<ClientSide["openTerminal"]>

/** What the client keeps of a command's output. */
const outputBytes = 1_048_576
/** How long a client may take to open a terminal, and to say what was written to it. */
const patience = "30 seconds"
/** How long a killed command has to end. */
const killPatience = "2 seconds"
/** After a cancel, whose answer is waited for. */
const cancelPatience = "1 second"

export interface TerminalHooks {
  /** The terminal is there; returns when that is on its way to whoever shows it. */
  readonly opened: (terminalId: string) => Effect.Effect<void>
  /** What a cancelled command had said. */
  readonly output: (text: string) => Effect.Effect<void>
  /** The command was cancelled, and it is not known that it ended. */
  readonly lost: (message: string) => void
}

/** Whether a command can be run there as AGT-070 wants it: what is given as input has no other way in than the command line. */
export const fitsTerminal = ({ stdin }: { readonly stdin?: string }): boolean =>
  process.platform !== "win32" && (stdin === undefined || stdin === "")

/** Everything that was written, with a word where its beginning is missing. */
const keptOf = ({ text, truncated }: { readonly text: string; readonly truncated: boolean }): string => {
  const kept = tailBytes(text, outputBytes)
  return truncated || kept !== text ? `[the beginning is missing: a terminal keeps the last 1 MiB]\n${kept}` : kept
}

const run = Effect.fnUntraced(function* (terminal: ClientTerminal, seconds: number, hooks: TerminalHooks) {
  const begun = yield* Clock.currentTimeMillis
  yield* hooks.opened(terminal.id)
  const exit = yield* orFailed("did not say how the command ended", terminal.exit).pipe(
    Effect.timeoutOption(seconds * 1_000),
    Effect.tapError(() => terminal.kill)
  )
  if (Option.isNone(exit)) {
    yield* terminal.kill
    yield* Effect.timeoutOption(Effect.ignore(terminal.exit), killPatience)
  }
  const ended = yield* Clock.currentTimeMillis
  const text = keptOf(yield* orFailed("did not give the command's output", within(patience, terminal.output)))
  const { code, signal } = Option.getOrElse(exit, () => ({ code: null, signal: null }))
  return {
    exit_code: code,
    ...(signal === null ? {} : { signal: signal.slice(0, 32) }),
    stdout: text,
    stderr: "",
    timed_out: Option.isNone(exit),
    duration_ms: Math.max(0, Math.round(ended - begun)),
    stdout_bytes: utf8Length(text),
    stderr_bytes: 0
  } satisfies ShellResult
})

const cancel = Effect.fnUntraced(function* (terminal: ClientTerminal, hooks: TerminalHooks) {
  yield* terminal.kill
  const ended = yield* Effect.timeoutOption(Effect.option(terminal.exit), cancelPatience)
  if (Option.isNone(Option.flatten(ended))) hooks.lost("the client did not say that the cancelled command ended")
  const output = yield* Effect.timeoutOption(Effect.option(terminal.output), cancelPatience)
  const said = Option.flatten(output)
  if (Option.isSome(said) && said.value.text !== "") yield* hooks.output(keptOf(said.value))
})

/** Runs a checked command. */
export const runInTerminal = (
  openTerminal: OpenTerminal,
  workspace: Workspace,
  { cwd, input }: PreparedShell,
  hooks: TerminalHooks
): Effect.Effect<ShellResult, Failed | ClientLost> =>
  Effect.scoped(
    Effect.gen(function* () {
      const place = yield* attempt(() => workspace.again(cwd))
      if (place.kind !== "dir") return yield* Effect.fail(new Failed(`${named(cwd.given)} is not a directory`))
      const opening = openTerminal({
        command: "/bin/sh",
        // A terminal has no end of input to give.
        args: ["-c", `exec </dev/null; ${input.command}`],
        cwd: place.real,
        env: input.env ?? {},
        outputByteLimit: outputBytes
      })
      const terminal = yield* orFailed("could not open a terminal", within(patience, opening)).pipe(
        Effect.onInterrupt(() => Effect.sync(() => hooks.lost("it was cancelled while the client opened a terminal")))
      )
      return yield* Effect.onInterrupt(run(terminal, input.timeout_seconds, hooks), () => cancel(terminal, hooks))
    })
  )
