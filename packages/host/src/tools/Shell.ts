/**
 * shell.run, in the runner: one `sh -c` in its own process group, without a terminal, its input closed after `stdin` (AGT-070).
 *
 * The shell waits at a gate (a pipe on descriptor 3) until its group is known to whoever ends what is left after a crash; when
 * the runner dies first, the gate closes and the command never runs. Output is handed on in pieces as it comes, up to
 * 32 MiB a stream; the rest is counted. While the receiver is behind, the pipes are not read. Members of the group that
 * outlive the shell are ended with it: no state is kept between calls. A process that left the group and holds the pipes is
 * not waited for.
 */
import { type ChildProcess, spawn } from "node:child_process"
import type { Readable, Writable } from "node:stream"
import { StringDecoder } from "node:string_decoder"
import { endGroup, groupLives } from "./Groups.ts"
import { limits } from "./Limits.ts"
import { errnoOf, Failed, NotRun } from "./Refusal.ts"
import type { ShellEnd } from "./Results.ts"
import type { Resolved, Workspace } from "./Workspace.ts"

export interface ShellInput {
  readonly command: string
  readonly cwd?: string
  readonly timeout_seconds?: number
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string
}

export interface ShellHooks {
  /** Called with the group before the command runs; it runs when this resolves. */
  readonly started: (group: number) => Promise<void>
  /** Called when no member of the group is left. */
  readonly ended: (group: number) => void
  /** A piece of output. Resolves when the next may come. */
  readonly output: (stream: "stdout" | "stderr", text: string) => Promise<void>
}

const windows = process.platform === "win32"
const gate = 'IFS= read -r tackroom_gate <&3 || exit 125; unset tackroom_gate; exec 3<&-; exec /bin/sh -c "$1"'
/** How long pipes may stay open and silent after the group is gone: only a process that left the group holds them then. */
const drainMillis = 200

/** A command that may run, and where. */
export interface PreparedShell {
  readonly input: ShellInput & { readonly timeout_seconds: number }
  readonly cwd: Resolved
}

/** Checks what can be checked before the call is dispatched; no command has more time than `secondsMax`. */
export const prepareShell = async (
  workspace: Workspace,
  given: ShellInput,
  secondsMax: number
): Promise<PreparedShell> => {
  checkShell(given)
  const cwd = await workspace.resolve(given.cwd ?? ".")
  if (cwd.kind !== "dir") throw new NotRun(`cwd ${JSON.stringify(cwd.shown)} is not a directory`)
  const seconds = Math.min(given.timeout_seconds ?? limits.shellSecondsDefault, secondsMax)
  return { input: { ...given, timeout_seconds: seconds }, cwd }
}

export const checkShell = (input: ShellInput): void => {
  const texts = [
    ["command", input.command, limits.commandBytes],
    ["stdin", input.stdin ?? "", limits.stdinBytes]
  ] as const
  for (const [name, text, max] of texts) {
    if (!text.isWellFormed()) throw new NotRun(`${name} is not well-formed Unicode text`)
    if (Buffer.byteLength(text) > max) throw new NotRun(`${name} is larger than ${max} bytes`)
  }
  if (input.command.includes("\0")) throw new NotRun("command holds a NUL character")
  for (const [name, value] of Object.entries(input.env ?? {})) {
    if (name === "" || /[=\0]/.test(name) || value.includes("\0")) throw new NotRun("env has an invalid name or value")
  }
}

const start = (input: ShellInput, cwd: string, env: Readonly<Record<string, string>>): ChildProcess => {
  const options = { cwd, env: { ...env, ...input.env }, windowsHide: true }
  return windows
    ? spawn("cmd", ["/d", "/s", "/c", `"${input.command}"`], {
        ...options,
        stdio: ["pipe", "pipe", "pipe"],
        windowsVerbatimArguments: true
      })
    : spawn("/bin/sh", ["-c", gate, "sh", input.command], {
        ...options,
        stdio: ["pipe", "pipe", "pipe", "pipe"],
        detached: true
      })
}

interface Capture {
  /** Bytes seen. */
  readonly total: () => number
  readonly busy: () => boolean
}

/** Reads one stream to its end: decoded, bounded, and paused while `hand` is not done. */
const capture = (stream: Readable | null, hand: (text: string) => Promise<void>): Capture => {
  let total = 0
  let pending = 0
  if (stream === null) return { total: () => 0, busy: () => false }
  const decoder = new StringDecoder("utf8")
  const give = (text: string): void => {
    if (text === "") return
    stream.pause()
    pending += 1
    void hand(text).finally(() => {
      pending -= 1
      if (pending === 0) stream.resume()
    })
  }
  stream.on("data", (chunk: Buffer) => {
    const room = Math.max(0, limits.captureBytes - total)
    total += chunk.length
    if (room === 0) return
    give(decoder.write(chunk.subarray(0, room)) + (chunk.length >= room ? decoder.end() : ""))
  })
  stream.on("end", () => {
    if (total < limits.captureBytes) give(decoder.end())
  })
  stream.on("error", () => stream.destroy())
  return { total: () => total, busy: () => pending > 0 }
}

const isWritable = (stream: unknown): stream is Writable =>
  typeof stream === "object" && stream !== null && "end" in stream && "write" in stream

/** Runs a command in `cwd`. A cancel ends the group and fails with what was written so far. */
export const shellRun = async (
  input: ShellInput,
  cwd: string,
  env: Readonly<Record<string, string>>,
  hooks: ShellHooks,
  signal: AbortSignal,
  now: () => number
): Promise<ShellEnd> => {
  signal.throwIfAborted()
  const child = start(input, cwd, env)
  const group = child.pid
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
    child.once("error", (cause) => {
      if (child.pid === undefined) reject(new Failed(`the shell could not be started (${errnoOf(cause) ?? "unknown"})`))
    })
    child.once("exit", (code, name) => resolve({ code, signal: name }))
  })
  if (group === undefined) {
    await exited
    throw new Failed("the shell could not be started")
  }
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()))
  const stdout = capture(child.stdout, (text) => hooks.output("stdout", text))
  const stderr = capture(child.stderr, (text) => hooks.output("stderr", text))
  // A command that does not read its input closes it: EPIPE is no failure of ours.
  for (const stream of child.stdio) stream?.on("error", () => stream.destroy())

  let timedOut = false
  let ending: Promise<void> | undefined
  const end = (): void => {
    ending ??= endGroup(group, now)
  }
  let timer: NodeJS.Timeout | undefined
  signal.addEventListener("abort", end, { once: true })
  let begun = now()
  try {
    await Promise.race([hooks.started(group), exited, aborted(signal)])
    if (!signal.aborted) {
      begun = now()
      timer = setTimeout(
        () => {
          timedOut = true
          end()
        },
        (input.timeout_seconds ?? limits.shellSecondsDefault) * 1000
      )
      const opening = child.stdio[3]
      if (isWritable(opening)) opening.end("go\n")
      child.stdin?.end(input.stdin ?? "")
    } else end()
    const exit = await exited
    const cancelled = signal.aborted
    clearTimeout(timer)
    timer = undefined
    if (await groupLives(group)) end()
    await ending
    await drained(closed, [stdout, stderr])
    child.stdout?.destroy()
    child.stderr?.destroy()
    const result: ShellEnd = {
      exit_code: timedOut ? null : exit.code,
      ...(exit.signal !== null && { signal: exit.signal }),
      timed_out: timedOut,
      duration_ms: Math.max(0, Math.round(now() - begun)),
      stdout_bytes: stdout.total(),
      stderr_bytes: stderr.total()
    }
    if (cancelled) throw new Failed("the command was cancelled", "cancelled", result)
    return result
  } finally {
    clearTimeout(timer)
    signal.removeEventListener("abort", end)
    hooks.ended(group)
  }
}

/** Waits for the pipes to close, as long as they move. */
const drained = async (closed: Promise<void>, captures: ReadonlyArray<Capture>): Promise<void> => {
  const seen = (): number => captures.reduce((sum, each) => sum + each.total(), 0)
  for (let before = -1; before !== seen() || captures.some((each) => each.busy());) {
    before = seen()
    const done = await Promise.race([closed.then(() => true), pause(drainMillis).then(() => false)])
    if (done) return
  }
}

const pause = (millis: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, millis)
  })

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener("abort", () => resolve(), { once: true })
  })
