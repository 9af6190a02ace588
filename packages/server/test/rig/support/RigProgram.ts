/**
 * The rig service and its commands as an operator has them: programs on the command line, nothing else. Views come from
 * `--json`, what happens meanwhile from `tackroom rig feed`.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import type { AskView, FeedEvent, SeatView } from "@tackroom/protocol/seat"

export interface RigProgram {
  /** Runs one command; answers what it printed for people, and fails with its words when it was refused. */
  readonly run: (...args: ReadonlyArray<string>) => string
  readonly seat: (reference: string) => SeatView
  readonly ask: (askId: string) => AskView
  /** The next event from where the last call stopped that the test accepts. */
  readonly next: (accepts: (event: FeedEvent) => boolean) => Promise<FeedEvent>
  /** Ends the service and the feed; seats are not touched. */
  readonly end: () => Promise<void>
}

export interface RigProgramOptions {
  readonly program: string
  readonly env: Readonly<Record<string, string>>
}

const gone = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null

const endOf = async (child: ChildProcess): Promise<void> => {
  if (gone(child)) return
  const ended = once(child, "exit")
  child.kill("SIGTERM")
  await ended
}

/** Starts the service and follows its feed from the first event. */
export const startRig = async ({ env, program }: RigProgramOptions): Promise<RigProgram> => {
  const options = { env, encoding: "utf8" } as const
  const run = (...args: ReadonlyArray<string>): string => {
    const done = spawnSync(process.execPath, [program, ...args], options)
    if (done.status !== 0) throw new Error(`tackroom rig ${args[0] ?? ""}: ${done.stderr.trim() || done.stdout.trim()}`)
    return done.stdout.trimEnd()
  }

  const service = spawn(process.execPath, [program, "serve"], { env, stdio: ["ignore", "ignore", "pipe"] })
  await new Promise<void>((resolve, reject) => {
    const log = createInterface({ input: service.stderr })
    log.on("line", (line) => {
      if (line.includes("the rig service runs")) resolve()
    })
    service.once("exit", (code) => reject(new Error(`tackroom rig serve ended with ${code ?? "a signal"}`)))
  })

  const feed = spawn(process.execPath, [program, "feed", "--after", "0"], { env, stdio: ["ignore", "pipe", "ignore"] })
  const waiting: Array<(event: FeedEvent) => void> = []
  const unread: Array<FeedEvent> = []
  createInterface({ input: feed.stdout }).on("line", (line) => {
    const event = JSON.parse(line) as FeedEvent
    const taker = waiting.shift()
    if (taker === undefined) unread.push(event)
    else taker(event)
  })
  const take = (): Promise<FeedEvent> => {
    const event = unread.shift()
    return event === undefined ? new Promise((resolve) => void waiting.push(resolve)) : Promise.resolve(event)
  }

  return {
    run,
    seat: (reference) => (JSON.parse(run("seat", "status", reference, "--json")) as { readonly seat: SeatView }).seat,
    ask: (askId) => (JSON.parse(run("ask", "show", askId, "--json")) as { readonly ask: AskView }).ask,
    next: async (accepts) => {
      for (;;) {
        const event = await take()
        if (accepts(event)) return event
      }
    },
    end: async () => {
      await Promise.all([endOf(feed), endOf(service)])
    }
  }
}
