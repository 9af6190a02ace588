/**
 * The real host as a stranger sees it: a process, bytes in, lines out (run-protocol 3).
 *
 * It owns the process and what came out of it. It does not own folders and configuration (`Lab`), nor how a run is driven
 * (`Drive`). Nothing waits on time: every wait is on an answer, a line of the log or the end of the process, and has a
 * deadline of its own only to say what was missing.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"

/** What a test looks into: any member may be there. */
export type Loose = ReturnType<typeof JSON.parse>

export type RequestId = string | number

export interface Answer {
  readonly id: RequestId | null
  readonly result?: Loose
  readonly error?: { readonly code: number; readonly message: string; readonly data: Loose }
}

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** An error answer, as a rejection. */
export class Refused extends Error {
  readonly code: number
  readonly data: Loose
  constructor(method: string, error: NonNullable<Answer["error"]>) {
    super(`${method}: ${error.message} ${JSON.stringify(error.data)}`)
    this.code = error.code
    this.data = error.data
  }
}

/** The process ended before it answered. */
export class HostGone extends Error {}

export interface RawHost {
  readonly child: ChildProcess
  readonly pid: number
  /** Everything that was answered, in order. Notifications are kept here as well, with id undefined. */
  readonly answers: ReadonlyArray<Answer>
  /** The same, as it came. */
  readonly lines: ReadonlyArray<string>
  readonly stderr: () => string
  /** Writes bytes as they are. */
  readonly write: (bytes: string | Uint8Array) => void
  /** Writes a request and gives its id. */
  readonly send: (method: string, params?: unknown, id?: RequestId) => RequestId
  /** The answer with this id; the `nth` one when an id is used more often. */
  readonly answered: (id: RequestId, nth?: number) => Promise<Answer>
  /** The first `count` answers. */
  readonly first: (count: number) => Promise<ReadonlyArray<Answer>>
  /** Asks and gives the answer, whatever it is. */
  readonly ask: (method: string, params?: unknown) => Promise<Answer>
  /** Asks and gives the result; an error answer rejects with {@link Refused}. */
  readonly call: (method: string, params?: unknown) => Promise<Loose>
  /** Waits for what `look` finds after each output of the host. */
  readonly until: <A>(what: string, look: () => A | undefined) => Promise<A>
  /** The process is gone. */
  readonly exited: Promise<Ended>
  /** The process is gone and nobody holds its pipes. */
  readonly closed: Promise<Ended>
  readonly ended: () => boolean
  readonly kill: (signal: NodeJS.Signals) => void
  /** Ends stdin and waits for the end. */
  readonly close: () => Promise<Ended>
}

export interface RawHostOptions {
  readonly command?: ReadonlyArray<string>
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly deadlineMs?: number
  /** A program and its arguments that the host is started through. */
  readonly wrapper?: ReadonlyArray<string>
}

const source = fileURLToPath(new URL("../../../packages/host/src/cli.ts", import.meta.url))

/** The program under test: from source, or what `TACKROOM_E2E_HOST` names, e.g. the built one. */
export const hostProgram = process.env["TACKROOM_E2E_HOST"] ?? source

/** Starts the host with a configuration (JSON text, or `@` and a path). */
export const startHost = (configuration: string, options: RawHostOptions): RawHost => {
  const [command = process.execPath, ...args] = [
    ...(options.wrapper ?? []),
    ...(options.command ?? [process.execPath, hostProgram, "harness-stdio", configuration])
  ]
  const child = spawn(command, args, {
    stdio: ["pipe", "pipe", "pipe"],
    cwd: options.cwd,
    env: { ...options.env }
  })
  const answers: Array<Answer> = []
  const lines: Array<string> = []
  const watchers = new Set<() => void>()
  let stderr = ""
  let rest = ""
  let ended: Ended | undefined
  let nextId = 0

  const wake = (): void => {
    for (const watcher of Array.from(watchers)) watcher()
  }
  child.stdin.on("error", () => undefined)
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text
    wake()
  })
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n")
    rest = parts.pop() ?? ""
    for (const line of parts) {
      lines.push(line)
      answers.push(JSON.parse(line) as Answer)
    }
    wake()
  })
  const exited = new Promise<Ended>((resolve, reject) => {
    child.once("error", reject)
    child.once("exit", (code, signal) => resolve({ code, signal }))
  })
  const closed = new Promise<Ended>((resolve, reject) => {
    child.once("error", reject)
    child.once("close", (code, signal) => {
      ended = { code, signal }
      wake()
      resolve(ended)
    })
  })
  exited.catch(() => undefined)
  closed.catch(() => undefined)

  const until = <A>(what: string, look: () => A | undefined): Promise<A> =>
    new Promise((resolve, reject) => {
      const done = (settle: () => void): void => {
        watchers.delete(watcher)
        clearTimeout(deadline)
        settle()
      }
      const watcher = (): void => {
        const found = look()
        if (found !== undefined) done(() => resolve(found))
        else if (ended !== undefined) {
          const how = JSON.stringify(ended)
          done(() => reject(new HostGone(`the host ended ${how} before: ${what}\n${stderr.slice(-2_000)}`)))
        }
      }
      const tooLate = (): void =>
        done(() =>
          reject(
            new Error(
              `still missing: ${what}\nlast: ${lines.slice(-3).join("\n").slice(-2_000)}\n${stderr.slice(-2_000)}`
            )
          )
        )
      const deadline = setTimeout(tooLate, options.deadlineMs ?? 30_000)
      watchers.add(watcher)
      watcher()
    })

  const send = (method: string, params?: unknown, id: RequestId = `q${(nextId += 1)}`): RequestId => {
    const frame = { jsonrpc: "2.0", id, method, ...(params === undefined ? {} : { params }) }
    child.stdin.write(`${JSON.stringify(frame)}\n`)
    return id
  }
  /** Answers are looked through once each, also when thousands of requests wait. */
  const byId = new Map<RequestId | null, Array<Answer>>()
  let indexed = 0
  const answersOf = (id: RequestId): ReadonlyArray<Answer> => {
    for (; indexed < answers.length; indexed += 1) {
      const answer = answers[indexed]
      if (answer === undefined) continue
      const same = byId.get(answer.id)
      if (same === undefined) byId.set(answer.id, [answer])
      else same.push(answer)
    }
    return byId.get(id) ?? []
  }
  const answered = (id: RequestId, nth = 1): Promise<Answer> =>
    until(`answer ${nth} to ${JSON.stringify(id)}`, () => answersOf(id)[nth - 1])
  const ask = (method: string, params?: unknown): Promise<Answer> => answered(send(method, params))

  return {
    child,
    pid: child.pid ?? -1,
    answers,
    lines,
    stderr: () => stderr,
    write: (bytes) => void child.stdin.write(bytes),
    send,
    answered,
    first: (count) => until(`${count} answers`, () => (answers.length >= count ? answers.slice(0, count) : undefined)),
    ask,
    call: async (method, params) => {
      const answer = await ask(method, params)
      if (answer.error !== undefined) throw new Refused(method, answer.error)
      return answer.result
    },
    until,
    exited,
    closed,
    ended: () => ended !== undefined,
    kill: (signal) => void child.kill(signal),
    close: () => {
      child.stdin.end()
      return closed
    }
  }
}
