/**
 * The demonstration: a host as a child process, an agent at work, a kill in the middle, and the same run to its end.
 *
 * The second host is a fresh process under a fresh client that knows nothing but what the first one saved: session,
 * submission id and cursors.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Host, HostExited, launchHost, type Run, type RunItem } from "../../packages/sdk/src/client/index.ts"
import { styleOf, tint } from "../../packages/host/src/faces/headless/Style.ts"
import { emptyView, finishLine, view, type View } from "../../packages/host/src/faces/headless/View.ts"
import { type Check, journalChecks, plain } from "./Checks.ts"
import { faultyFile, fixed, testLog, writeSample } from "./Sample.ts"
import { scenario } from "./Script.ts"

export interface LiveModel {
  readonly connection: string
  readonly model: string
  readonly baseUrl: string | undefined
  readonly key: string | undefined
}

export interface StoryOptions {
  /** A directory of its own; somebody else removes it. */
  readonly root: string
  /** How a host is started. */
  readonly program: { readonly command: string; readonly args: ReadonlyArray<string> }
  readonly live: LiveModel | undefined
  readonly write: (text: string) => void
  readonly terminal: { readonly isTTY: boolean; readonly columns?: number }
  readonly env: Readonly<Record<string, string | undefined>>
  /** Told of every host, so that it can be ended whatever happens. */
  readonly started: (host: Host) => void
}

const submissionId = "demo-1"
const task = "The test of this project fails. Find out why, mend it, and write what you changed to CHANGES.md."

const agent = {
  id: "mender",
  instructions:
    "You mend small projects. Read before you change, keep a plan, run the tests with `node --test`, change as little as you can, and end with one sentence.",
  tools: ["files.list", "files.read", "files.search", "files.edit", "files.write", "shell.run"],
  planning: true
} as const

/** Where the host is killed: the first words behind the edit, or, with a live model, the end of the first tool. */
const isKillPoint = (live: boolean) => {
  let edited = false
  return ({ event }: RunItem): boolean => {
    const type = event?.payload.type
    if (type === "file-diff") edited = true
    return live ? type === "tool-output" : edited && type === "text-delta"
  }
}

export const tell = async (options: StoryOptions): Promise<ReadonlyArray<Check>> => {
  const { live, program, root, write } = options
  const style = styleOf(options.terminal, options.env)
  const project = join(root, "project")
  const stateDir = join(root, "state")
  mkdirSync(project)
  writeSample(project)
  const scenarioFile = join(root, "scenario.json")
  writeFileSync(scenarioFile, JSON.stringify(scenario))

  const heading = (text: string): void => write(`\n${tint(style, "bold", text)}\n`)
  const line = (text: string): void => write(`  ${tint(style, "dim", text)}\n`)

  let current: View = emptyView
  const draw = (lead: string, item: RunItem): void => {
    const [next, pieces] = view(current, item, { lead, text: true, live: true, quiet: false, style })
    current = next
    for (const piece of pieces) write(piece.text)
  }
  const endLine = (): void => {
    const [next, pieces] = finishLine(current)
    current = next
    for (const piece of pieces) write(piece.text)
  }

  const launch = async (): Promise<Host> => {
    const host = await launchHost({
      ...program,
      config: { stateDir },
      restart: false,
      client: { name: "tackroom-demo", version: "1" },
      // The demonstration stands in for a person: what runs or writes is allowed, commands for the whole session.
      onApproval: ({ qualifiedName }) => (qualifiedName === "shell.run" ? "session" : "once"),
      onQuestion: ({ options: labels }) => labels[0] ?? "Do as you think best."
    })
    options.started(host)
    if (live === undefined) await host.provider({ name: "script", api: "script", scenario: scenarioFile })
    else await host.provider(liveProvider(live))
    line(`host ${host.info.host.version} started, pid ${host.pid ?? "?"}, journal ${host.info.journalId}`)
    return host
  }

  heading("1  An application starts a host and gives it an agent and a task")
  const first = await launch()
  const registered = await first.agent({
    ...agent,
    model: live === undefined ? { connection: "script", model: "scripted-demo" } : pick(live)
  })
  const session = await registered.session({ workspace: project })
  line(`agent ${registered.id}, session ${session.id}, project ${project}`)
  write(`  ${tint(style, "cyan", `"${task}"`)}\n\n`)

  const seen: Array<RunItem> = []
  const killHere = isKillPoint(live !== undefined)
  const run = session.run(task, { submissionId })
  const startCursor = (await run.started)?.cursors[session.id] ?? 0
  let killed = false
  try {
    for await (const item of run) {
      draw(session.id, item)
      seen.push(item)
      if (killed || !killHere(item) || first.pid === undefined) continue
      killed = true
      process.kill(first.pid, "SIGKILL")
    }
  } catch (cause) {
    if (!(cause instanceof HostExited)) throw cause
  }
  endLine()
  const cursors = run.cursors
  await first.close()
  if (!killed) return [plain("the host was killed in the middle of the run", false, "the run ended before")]

  heading("2  kill -9: the host is gone in the middle of a response")
  line(`the application saved: session ${session.id}, submission ${submissionId}, cursors ${JSON.stringify(cursors)}`)

  heading("3  A new host takes the run up; a new client reads on from the saved cursor")
  const second = await launch()
  const again = await second.attach(session.id)
  const state = again.attached?.state.state
  line(`attached: the session is ${state ?? "unknown"}, the run ${again.attached?.runs[0]?.status ?? "unknown"}`)
  write("\n")
  const rest: Run = again.watch(submissionId, { cursors })
  for await (const item of rest) {
    draw(session.id, item)
    seen.push(item)
  }
  endLine()
  const result = await rest.result

  const repeated = await second.request("run/start", { sessionId: session.id, submissionId, text: task })
  const journal = await wholeJournal(second, session.id)
  await second.close()

  heading("4  What it left behind")
  for (const name of [faultyFile, "CHANGES.md", testLog]) {
    const file = join(project, name)
    write(`  ${tint(style, "cyan", name)}\n`)
    const text = existsSync(file) ? readFileSync(file, "utf8").trimEnd() : "(not there)"
    for (const each of text.split("\n")) write(`    ${each}\n`)
  }

  const testsRun = existsSync(join(project, testLog))
    ? readFileSync(join(project, testLog), "utf8").match(/run/gu)
    : null
  const mended = readFileSync(join(project, faultyFile), "utf8").includes(fixed.new)
  return [
    plain("the run completed", result.status === "completed", result.failure ?? result.status),
    ...journalChecks(journal, seen, startCursor),
    plain("starting the same submission again started nothing", repeated.duplicate, `duplicate: ${repeated.duplicate}`),
    ...(live === undefined
      ? [
          plain("the file is mended, once", mended, faultyFile),
          plain(
            "the tests ran as often as the agent ran them",
            testsRun?.length === 2,
            `${testsRun?.length ?? 0} of 2`
          ),
          plain("the account is written", existsSync(join(project, "CHANGES.md")), "CHANGES.md")
        ]
      : [])
  ]
}

const pick = ({ connection, model }: LiveModel) => ({ connection, model })

const liveProvider = ({ baseUrl, connection, key }: LiveModel) => ({
  name: connection,
  api:
    connection === "anthropic"
      ? ("anthropic" as const)
      : baseUrl === undefined
        ? ("responses" as const)
        : ("chat-completions" as const),
  ...(baseUrl === undefined ? {} : { baseUrl }),
  ...(key === undefined ? {} : { key: () => key })
})

const wholeJournal = async (host: Host, sessionId: string) => {
  const events: Array<{ readonly seq: number; readonly type: string }> = []
  for (;;) {
    const page = await host.request("event/read", { sessionId, after: events.at(-1)?.seq ?? 0 })
    events.push(...page.events)
    if (!page.moreEvents) return events
  }
}
