/**
 * The demonstration of seats: two agents in terminal panes of one tmux server, a request that a person answers from the
 * command line, and a seat that is taken down and comes back in the same conversation. Everything goes through
 * `tackroom rig` commands; the agents are `tackroom acp` with a scripted model.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { FeedEvent, SeatView } from "../../packages/protocol/src/seat/index.ts"
import { styleOf, tint } from "../../packages/host/src/faces/headless/Style.ts"
import { type Check, plain } from "./Checks.ts"
import { startRig, type RigProgram } from "../../packages/server/test/rig/support/RigProgram.ts"

export interface SeatStoryOptions {
  /** A directory of its own with a short path (a tmux socket lies in it); somebody else removes it. */
  readonly root: string
  /** Built programs by name: `tackroom`, `tackroom-rig`, `tackroom-seat`. */
  readonly program: (name: string) => string
  readonly write: (text: string) => void
  readonly terminal: { readonly isTTY: boolean }
  readonly env: Readonly<Record<string, string | undefined>>
  /** Told of the service once it runs, so that it can be ended whatever happens. */
  readonly started: (rig: RigProgram) => void
}

const rigName = "mill"
const builder = "dev-builder@mill"
const reader = "dev-reader@mill"
const notes = "notes.md"

const builderScenario = {
  scenario: 1,
  name: "seat-builder",
  default: [
    [
      { text: "I write that down." },
      { call: { tool: "files.write", arguments: { path: notes, content: "# Notes\n\n- the mill runs\n" } } }
    ],
    [{ text: "It is in notes.md now." }],
    [{ text: "You asked for notes; they are in notes.md. I am still in the same conversation." }]
  ]
}

const readerScenario = {
  scenario: 1,
  name: "seat-reader",
  default: [
    [{ text: "I look." }, { call: { tool: "files.list", arguments: { path: "." } } }],
    [{ text: "There is one file here, README.md." }]
  ]
}

/** The configuration of the agents behind the seats. */
const agentsOf = (root: string) => {
  const provider = (name: string, scenario: object) => {
    const file = join(root, `${name}.json`)
    writeFileSync(file, JSON.stringify(scenario))
    return { name, api: "script", scenario: file }
  }
  const agent = (id: string, tools: ReadonlyArray<string>) => ({
    id,
    instructions: "Play the scenario.",
    tools,
    approvals: { mode: "always" },
    model: { connection: id, model: "scripted-demo" }
  })
  return {
    sandbox: "none",
    providers: [provider("builder", builderScenario), provider("reader", readerScenario)],
    agents: [agent("builder", ["files.write"]), agent("reader", ["files.list"])]
  }
}

const isSeat = (event: FeedEvent, session: string): event is FeedEvent & { readonly data: SeatView } =>
  (event.type === "seat.activity" || event.type === "seat.launch" || event.type === "seat.attention") &&
  event.data.seat === session

/** A turn of the seat is over. */
const isIdleAgain = (session: string) => {
  let worked = false
  return (event: FeedEvent): boolean => {
    if (!isSeat(event, session)) return false
    const { value } = event.data.activity
    if (value === "working") worked = true
    return worked && value === "idle"
  }
}

export const tellSeats = async (options: SeatStoryOptions): Promise<ReadonlyArray<Check>> => {
  const { program, root, write } = options
  const style = styleOf(options.terminal, options.env)
  const heading = (text: string): void => write(`\n${tint(style, "bold", text)}\n`)
  const show = (command: string, output: string): void => {
    write(`  ${tint(style, "cyan", `$ tackroom rig ${command}`)}\n`)
    for (const line of output.split("\n")) write(`  ${line}\n`)
  }
  const told = (rig: RigProgram, ...args: ReadonlyArray<string>): void => {
    const words = args.map((arg) => (/^[\w@./:=-]+$/u.test(arg) ? arg : `'${arg}'`)).join(" ")
    show(words, rig.run(...args))
  }

  const home = join(root, "home")
  const project = join(root, "project")
  const presets = join(home, "rig", "community-harnesses")
  for (const folder of [project, presets]) mkdirSync(folder, { recursive: true, mode: 0o700 })
  writeFileSync(join(project, "README.md"), "# A small project\n")
  const agents = join(root, "agents.json")
  writeFileSync(agents, JSON.stringify(agentsOf(root)))
  for (const name of ["builder", "reader"]) {
    const agent = [program("tackroom"), "acp", "--config", agents, "--agent", name, "--state-dir", join(root, name)]
    const preset = {
      format: 1,
      name,
      command: [process.execPath, program("tackroom-seat")],
      maintainer: "the Tackroom demonstration",
      runner: true,
      launch_result: true,
      resume: true,
      first_input: true,
      limits: ["the model is scripted"],
      tackroom: { agent_command: [process.execPath, ...agent] }
    }
    writeFileSync(join(presets, `${name}.yaml`), JSON.stringify(preset))
  }
  const rigFile = join(root, "mill.json")
  const seat = (member: string) => ({ pod: "dev", member, harness: member, cwd: project })
  writeFileSync(rigFile, JSON.stringify({ format: 1, name: rigName, seats: [seat("builder"), seat("reader")] }))

  const kept = ["PATH", "HOME", "USER", "LANG", "TMPDIR", "NODE_COMPILE_CACHE"]
  const env: Record<string, string> = { TACKROOM_HOME: home, TACKROOM_RIG_PORT: "0", NO_COLOR: "1" }
  for (const name of kept) {
    const value = options.env[name]
    if (value !== undefined) env[name] = value
  }

  heading("1  A rig service starts, and two seats come up in tmux")
  const rig = await startRig({ program: program("tackroom-rig"), env })
  options.started(rig)
  told(rig, "person", "add", "ann", "--name", "Ann")
  told(rig, "up", rigFile)
  told(rig, "ps")
  const conversation = rig.seat(builder).nativeRef

  heading("2  Both are given work; one asks for permission")
  told(rig, "send", reader, "What is in this folder?")
  await rig.next(isIdleAgain(reader))
  told(rig, "send", builder, "Write down that the mill runs.")
  const opened = await rig.next((event) => event.type === "ask.opened")
  const askId = opened.type === "ask.opened" ? opened.data.askId : ""
  told(rig, "ask", "list")
  told(rig, "ps")
  const asking = rig.seat(builder)
  const written = existsSync(join(project, notes))

  heading("3  A person answers from the command line")
  const once = rig.ask(askId).options.find((option) => option.kind === "allow_once")
  told(rig, "ask", "answer", askId, "--by", "ann", "--option", once?.optionId ?? "")
  await rig.next(isIdleAgain(builder))
  const content = existsSync(join(project, notes)) ? readFileSync(join(project, notes), "utf8") : ""
  told(rig, "capture", builder, "--lines", "20")

  heading("4  The seat is taken down, and comes back in the same conversation")
  told(rig, "seat", "stop", builder)
  told(rig, "seat", "launch", builder)
  const back = rig.seat(builder)
  told(rig, "send", builder, "What did I ask of you?")
  await rig.next(isIdleAgain(builder))
  const pane = rig.run("capture", builder, "--lines", "20")
  show(`capture ${builder} --lines 20`, pane)
  told(rig, "down", rigName)

  return [
    plain("the seat that asked needed a person", asking.activity.value === "needs_input", asking.activity.value),
    plain("nothing was written before the answer", !written, written ? "the file was there" : "no file"),
    plain("the file was written after it", content.includes("the mill runs"), notes),
    plain(
      "the seat came back in its conversation",
      back.launch.state === "resumed" && back.nativeRef === conversation,
      `${back.launch.state}, ${back.nativeRef ?? "no conversation"}`
    ),
    plain("the conversation knows what was before", pane.includes("same conversation"), "its next answer says so")
  ]
}
