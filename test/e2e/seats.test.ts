/**
 * What a maintainer tries with an agent in a seat, from the operator's command line alone: rig service, tmux, runner and
 * agent are the real programs. The agent is `tackroom acp` with a scripted model.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import type { FeedEvent, SeatView } from "@tackroom/protocol/seat"
import { startRig, type RigProgram } from "../../packages/server/test/rig/support/RigProgram.ts"

const packages = join(import.meta.dirname, "../../packages")
const rigProgram = join(packages, "server/dist/bin/tackroom-rig.cjs")
const seatProgram = join(packages, "runner/dist/bin/tackroom-seat.cjs")
const tackroom = join(packages, "host/dist/bin/tackroom.cjs")
const seat = "dev-builder@mill"

interface Bench {
  readonly rig: RigProgram
  readonly project: string
  /** Where the agent keeps its conversations. */
  readonly agentState: string
  readonly up: () => string
}

/** A service with one seat, whose agent plays the responses and then echoes. */
const makeBench = async (responses: ReadonlyArray<unknown>): Promise<Bench> => {
  // The path of a tmux socket is short.
  const root = realpathSync(mkdtempSync(join(tmpdir(), "rig-")))
  const home = join(root, "home")
  const project = join(root, "project")
  const agentState = join(root, "agent")
  const presets = join(home, "rig/community-harnesses")
  for (const folder of [project, presets]) mkdirSync(folder, { recursive: true, mode: 0o700 })
  const scenario = join(root, "scenario.json")
  writeFileSync(scenario, JSON.stringify({ scenario: 1, name: "seat", default: responses, exhausted: "echo" }))
  const config = join(root, "agents.json")
  writeFileSync(
    config,
    JSON.stringify({
      sandbox: "none",
      providers: [{ name: "script", api: "script", scenario }],
      agents: [
        {
          id: "builder",
          instructions: "Play the scenario.",
          tools: ["files.write"],
          approvals: { mode: "always" },
          model: { connection: "script", model: "scripted" }
        }
      ]
    })
  )
  const preset = join(presets, "builder.yaml")
  writeFileSync(
    preset,
    JSON.stringify({
      format: 1,
      name: "builder",
      command: [process.execPath, seatProgram],
      maintainer: "e2e",
      runner: true,
      launch_result: true,
      resume: true,
      limits: ["the model is scripted"],
      tackroom: {
        agent_command: [process.execPath, tackroom, "acp", "--config", config, "--state-dir", agentState]
      }
    })
  )
  const rigFile = join(root, "mill.json")
  const seats = [{ pod: "dev", member: "builder", harness: "builder", cwd: project }]
  writeFileSync(rigFile, JSON.stringify({ format: 1, name: "mill", seats }))
  const env = { TACKROOM_HOME: home, TACKROOM_RIG_PORT: "0", PATH: process.env["PATH"] ?? "", HOME: root }
  const rig = await startRig({ program: rigProgram, env })
  onTestFinished(async () => {
    await rig.end()
    spawnSync("tmux", ["-S", join(home, "rig/tmux.sock"), "kill-server"], { stdio: "ignore" })
    rmSync(root, { recursive: true, force: true })
  })
  rig.run("person", "add", "ann", "--name", "Ann")
  return { rig, project, agentState, up: () => rig.run("up", rigFile) }
}

const showing =
  (accepts: (view: SeatView) => boolean) =>
  (event: FeedEvent): boolean =>
    (event.type === "seat.activity" || event.type === "seat.launch" || event.type === "seat.attention") &&
    event.data.seat === seat &&
    accepts(event.data)

const reads = (value: SeatView["activity"]["value"]) => showing((view) => view.activity.value === value)

/** Working, then idle: in this order. */
const turnOver = async (rig: RigProgram): Promise<void> => {
  await rig.next(reads("working"))
  await rig.next(reads("idle"))
}

/** The lines of the pane that begin with the word. */
const paneLines = (rig: RigProgram, word: string): ReadonlyArray<string> =>
  rig
    .run("capture", seat, "--lines", "60")
    .split("\n")
    .filter((line) => line.startsWith(`${word} > `))

const writeNotes = { call: { tool: "files.write", arguments: { path: "notes.md", content: "written\n" } } }

describe("an agent in a seat, by the operator's commands", () => {
  it("is ready once its agent has opened, takes a message of many lines as one prompt, works, and is idle", async () => {
    const { rig, up } = await makeBench([])
    assert.include(up(), `${seat}: ready`)
    assert.match(rig.seat(seat).nativeRef ?? "", /^ses_/u)
    assert.strictEqual(
      rig.run("send", seat, "first line\n\n  second line\n/abort\nlast line", "--raw").split("\n")[0],
      "sent"
    )
    await turnOver(rig)
    const pane = rig.run("capture", seat, "--lines", "60")
    // The model echoes what it was given.
    assert.strictEqual(pane.split("second line").length - 1, 2, pane)
    assert.deepStrictEqual(paneLines(rig, "turn"), ["turn > 1 ended: end_turn"])
    assert.deepStrictEqual(paneLines(rig, "cancel"), [])
  })

  it("reads needs input when its request is refused by the seat's setting, until the next message", async () => {
    const { project, rig, up } = await makeBench([[writeNotes], [{ text: "Then not." }]])
    up()
    rig.run("seat", "set-permissions-to", seat, "--deny", "--reason", "nobody is here")
    rig.run("send", seat, "write it down")
    await rig.next(reads("needs_input"))
    assert.isFalse(existsSync(join(project, "notes.md")))
    assert.lengthOf(
      paneLines(rig, "permission").filter((line) => line.includes("REFUSED")),
      1
    )
    rig.run("send", seat, "go on", "--force", "--reason", "it was refused on purpose")
    await turnOver(rig)
    assert.strictEqual(rig.seat(seat).activity.value, "idle")
  })

  it("lets a person allow, and ends a turn as cancelled on /abort", async () => {
    const { project, rig, up } = await makeBench([
      [writeNotes],
      [{ text: "Written." }],
      [{ text: "Now slowly" }, { delay_ms: 60_000 }, { text: "never said" }]
    ])
    up()
    rig.run("send", seat, "write it down")
    const opened = await rig.next((event) => event.type === "ask.opened")
    const askId = opened.type === "ask.opened" ? opened.data.askId : assert.fail("no ask")
    const allow = rig.ask(askId).options.find((option) => option.kind === "allow_once")
    rig.run("ask", "answer", askId, "--by", "ann", "--option", allow?.optionId ?? "")
    await rig.next(reads("idle"))
    assert.strictEqual(readFileSync(join(project, "notes.md"), "utf8"), "written\n")

    rig.run("send", seat, "be slow")
    await rig.next(reads("working"))
    rig.run("send", seat, "/abort", "--raw")
    await rig.next(reads("idle"))
    assert.deepStrictEqual(paneLines(rig, "turn"), ["turn > 1 ended: end_turn", "turn > 2 ended: cancelled"])
    assert.lengthOf(paneLines(rig, "cancel"), 2)
  })

  it("comes back in the same conversation, and a conversation that is gone is refused and never replaced", async () => {
    const { agentState, rig, up } = await makeBench([[{ text: "one" }], [{ text: "two" }]])
    up()
    const { nativeRef } = rig.seat(seat)
    rig.run("send", seat, "say one")
    await turnOver(rig)
    rig.run("seat", "stop", seat)
    assert.include(rig.run("seat", "launch", seat), "resumed")
    assert.strictEqual(rig.seat(seat).nativeRef, nativeRef)
    rig.run("send", seat, "say two")
    await turnOver(rig)
    assert.include(paneLines(rig, "agent"), "agent > two")

    assert.include(rig.run("down", "mill"), "snapshot")
    rmSync(agentState, { recursive: true })
    assert.throws(() => rig.run("up", "mill"), /missing/u)
    const after = rig.seat(seat)
    assert.strictEqual(after.launch.state, "missing")
    assert.strictEqual(after.nativeRef, nativeRef, "the stored conversation is kept")
  })
})
