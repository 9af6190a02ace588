/**
 * Real agents in seats: `tackroom-seat` in a pseudo-terminal, with a rig that is strict about what it is told. Runs with
 * `TACKROOM_REAL_AGENTS=1` alone.
 */
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { afterAll, beforeAll } from "vitest"
import { ok } from "../../../packages/runner/test/support/RigStub.ts"
import { openSeat, type SeatUnderTest, startSeat } from "../../../packages/runner/test/support/SeatUnderTest.ts"
import { calls, say } from "../real-input/Vendors.ts"
import { type Agent, agents, commandOf } from "./Agents.ts"
import type { Home } from "./Homes.ts"
import { endless, makeStage, type Stage } from "./Stage.ts"

/** What the seat must be told of an agent, beyond its command, so that a missing conversation is known as one. */
const flagsOf: Readonly<Record<string, ReadonlyArray<string>>> = {
  "codex-acp": ["--not-found-code=-32603"],
  "claude-agent-acp": [],
  opencode: ["--list-is-complete"]
}

/** A seat has no say in an agent's mode, so the agent is told in its own way to ask a person. */
const toAsk: Readonly<Record<string, (home: Home) => Readonly<Record<string, string>>>> = {
  "codex-acp": () => ({ INITIAL_AGENT_MODE: "workspace-write" }),
  "claude-agent-acp": ({ variables }) => {
    const folder = variables["CLAUDE_CONFIG_DIR"] ?? ""
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, "settings.json"), JSON.stringify({ permissions: { defaultMode: "default" } }))
    return {}
  }
}

const seated = agents.filter(({ id }) => flagsOf[id] !== undefined)

/** How a request of the agent is answered by a person at the rig. */
const answering = (seat: SeatUnderTest, kind: "allow_once" | "reject_once"): void => {
  seat.rig.onRead = (askId) => {
    const options = seat.rig.submits.all.at(-1)?.["options"] as ReadonlyArray<Record<string, string>>
    const option = options.find((each) => each["kind"] === kind)
    return ok({ askId, state: "answered", optionId: option?.["optionId"] })
  }
}

describe.each(seated)("$id in a seat", (agent: Agent) => {
  let stage: Stage

  const setup = (home: Home, more: Readonly<Record<string, string>> = {}) => {
    const { args, binary } = commandOf(agent)
    const variables = { ...home.variables, ...toAsk[agent.id]?.(home) }
    const named = Object.keys(variables).flatMap((name) => ["--env", name])
    return {
      command: [binary, ...args],
      flags: ["--liveness", "5", ...(flagsOf[agent.id] ?? []), ...named],
      env: { ...variables, ...more }
    }
  }

  beforeAll(async () => {
    stage = await makeStage(agent)
    const { plays } = stage.vendor
    const runs = (name: string, command: string) =>
      calls([{ id: `call_${name}`, ...agent.shell(`touch ${name} && ${command}`) }])
    plays("say hello", [say("Hello there.")])
    plays("take your time", [runs("slow", "sleep 8"), say("It is made.")])
    plays("make another", [runs("refused", "echo no"), say("Then not.")])
    plays("talk on", [endless("Once upon a time there was a stable.", "Once upon")])
    plays("what was it", [say("It was a file.")])
  })
  afterAll(() => stage.remove())

  it("works, asks, is cancelled, is reopened exactly, and refuses what it does not have", async () => {
    const seat = await openSeat(setup(stage.home))
    const { nativeRef } = seat.record as { readonly nativeRef: string }

    const message = "From: dev-lead@mill\n---\nsay hello\n\n\tand this too"
    seat.send(message)
    await seat.rig.post("Stop/end_turn")
    await seat.screen.until("Hello there.")
    const whole = JSON.stringify(message).slice(1, -1)
    assert.isTrue(stage.vendor.requests("say hello").some(({ text }) => text.includes(whole)))
    assert.strictEqual(seat.rig.story.filter((pair) => pair === "UserPromptSubmit/accepted").length, 1)

    answering(seat, "allow_once")
    seat.send("take your time")
    await seat.rig.post("active/permission_resolved")
    const from = seat.rig.story.length
    await seat.rig.post("Stop/end_turn", 2)
    assert.isTrue(existsSync(join(seat.folder, "slow")))
    // A quiet turn beats, so that nobody takes it for idle.
    const meanwhile = seat.rig.story.slice(from, -1)
    assert.isNotEmpty(meanwhile)
    assert.isTrue(
      meanwhile.every((pair) => pair.startsWith("active/")),
      meanwhile.join(", ")
    )

    answering(seat, "reject_once")
    seat.send("make another")
    await seat.rig.post("active/permission_resolved", 2)
    await seat.screen.until(/turn > 3 ended/u)
    assert.isFalse(existsSync(join(seat.folder, "refused")))

    seat.send("talk on")
    await stage.vendor.silence("talk on")
    seat.type("/abort\r")
    await seat.screen.until("turn > 4 ended: cancelled")
    seat.signal("SIGTERM")
    await seat.ended
    rmSync(join(seat.folder, "result.json"))

    const resumed = await startSeat({
      ...setup(stage.home, { OPENRIG_RESUME_REF: nativeRef }),
      folder: seat.folder
    })
    await resumed.screen.until(`seat > resumed: ${nativeRef}`)
    assert.deepInclude(resumed.record as object, { nativeRef })
    resumed.send("what was it")
    await resumed.rig.post("Stop/end_turn")
    assert.isTrue(stage.vendor.requests("what was it").some(({ text }) => text.includes("say hello")))
    resumed.signal("SIGTERM")
    await resumed.ended
    rmSync(join(seat.folder, "result.json"))

    const lost = await startSeat({
      ...setup(stage.strangeHome(), { OPENRIG_RESUME_REF: nativeRef }),
      folder: seat.folder
    })
    assert.strictEqual((await lost.ended).code, 3, lost.screen.text)
    assert.deepInclude(lost.record as object, { error: "missing" })
  })
})
