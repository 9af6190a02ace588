import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import type { Rule } from "../support/ScriptedAgent.ts"
import { attempt, openSeat, startSeat } from "../support/SeatUnderTest.ts"

const capabilities = (agentCapabilities: object): Readonly<Record<string, Rule>> => ({
  initialize: () => ({
    result: { protocolVersion: 1, agentInfo: { name: "otter", version: "2.3" }, agentCapabilities }
  })
})
const canLoad = capabilities({ loadSession: true })
const resume = { OPENRIG_RESUME_REF: "c-81" }

describe("the launch record", () => {
  it("stands whole beside nothing else, for its owner alone, and names who made it [SEAT-220, SEAT-221]", async () => {
    const seat = await openSeat()
    const { producer, ...record } = seat.record as { readonly producer: string }
    assert.deepStrictEqual(record, { format: 1, attempt, harness: "otter", nativeRef: "c-81" } as object)
    assert.match(producer, /^tackroom-seat \d+\.\d+\.\d+; otter 2\.3; ACP 1$/u)
    assert.deepStrictEqual(readdirSync(seat.folder), ["result.json"])
    assert.strictEqual(statSync(join(seat.folder, "result.json")).mode & 0o777, 0o600)
    assert.include(seat.screen.text, "seat > ready: c-81")
  })

  it("that cannot be written stops no work, and no folder is made for it [SEAT-220]", async () => {
    const seat = await openSeat({
      prepare: (folder) => ({ OPENRIG_LAUNCH_RESULT: join(folder, "nowhere", "result.json") })
    })
    assert.include(seat.screen.text, "error > the launch record could not be written: ENOENT")
    assert.deepStrictEqual(readdirSync(seat.folder), [])
    seat.send("work")
    await seat.agent.prompt()
  })

  it("is not wanted without a place or an attempt [SEAT-220]", async () => {
    const seat = await openSeat({ env: { OPENRIG_LAUNCH_ATTEMPT: undefined } })
    assert.deepStrictEqual(readdirSync(seat.folder), [])
    assert.notInclude(seat.screen.text, "error >")
  })

  it("is not made by an opening that failed [SEAT-133, SEAT-222, SEAT-252]", async () => {
    const seat = await startSeat({
      rules: { "session/new": () => ({ error: { code: -32000, message: "log in first" } }) }
    })
    assert.strictEqual((await seat.ended).code, 76)
    assert.include(seat.screen.text, "error > no conversation was opened: session/new failed: log in first (-32000)")
    assert.isFalse(seat.hasRecord)
    assert.deepStrictEqual(seat.rig.story, ["Notification/runtime_error", "Stop/otter_exited"])
  })
})

describe("a resume", () => {
  it("reopens what was named; what the agent repeats is counted and not posted [SEAT-095, SEAT-223, SEAT-224]", async () => {
    const rules: Readonly<Record<string, Rule>> = { ...canLoad, "session/load": () => undefined }
    const seat = await startSeat({ rules, env: resume })
    const { id, params } = await seat.agent.request("session/load")
    assert.deepStrictEqual(params, { sessionId: "c-81", cwd: seat.folder, mcpServers: [] })
    seat.agent.say("what was said")
    seat.agent.update({ sessionUpdate: "tool_call", toolCallId: "t1", title: "Old", kind: "edit" })
    seat.agent.do({ do: "reply", id, result: null })
    await seat.screen.until("seat > resumed: c-81")
    await seat.rig.post("Stop/idle_heartbeat")
    assert.include(seat.screen.text, "seat > the agent repeated 2 updates of the conversation")
    assert.notInclude(seat.screen.text, "what was said")
    assert.deepInclude(seat.record as object, { nativeRef: "c-81" })
    assert.deepStrictEqual(seat.rig.story, ["Stop/idle_heartbeat"])
    assert.isFalse(seat.agent.told.all.some((told) => told.told === "request" && told.method === "session/new"))
  })

  it("shows the history when it is told to [SEAT-095]", async () => {
    const rules: Readonly<Record<string, Rule>> = { ...canLoad, "session/load": () => undefined }
    const seat = await startSeat({ rules, env: resume, flags: ["--show-history"] })
    const { id } = await seat.agent.request("session/load")
    seat.agent.say("what was said")
    seat.agent.do({ do: "reply", id, result: {} })
    await seat.screen.until("seat > resumed: c-81")
    assert.include(seat.screen.text, "agent > what was said")
  })

  const ways: ReadonlyArray<{
    readonly way: string
    readonly reply: ReturnType<Rule>
    readonly code: number
    readonly record: object
  }> = [
    {
      way: "a conversation that does not exist",
      reply: { error: { code: -32002, message: "no such session" } },
      code: 3,
      record: { error: "missing" }
    },
    {
      way: "an error that says nothing",
      reply: { error: { code: -32603, message: "not found" } },
      code: 4,
      record: { error: "unconfirmed" }
    },
    { way: "another conversation", reply: { result: { sessionId: "c-99" } }, code: 5, record: { nativeRef: "c-99" } }
  ]
  for (const { code, record, reply, way } of ways) {
    it(`of ${way} is recorded as such, prompts nothing and ends with ${code} [SEAT-223, SEAT-225, SEAT-229, SEAT-252]`, async () => {
      const seat = await startSeat({ rules: { ...canLoad, "session/load": () => reply }, env: resume })
      assert.strictEqual((await seat.ended).code, code)
      const { producer, ...rest } = seat.record as { readonly producer: string }
      assert.deepStrictEqual(rest, { format: 1, attempt, harness: "otter", ...record })
      assert.include(producer, "otter 2.3")
      assert.deepStrictEqual(
        seat.agent.told.all.filter(({ told }) => told === "request").map((told) => "method" in told && told.method),
        ["initialize", "session/load"]
      )
      assert.strictEqual(seat.rig.story.at(-1), "Stop/otter_exited")
    })
  }

  it("with an empty reference is not confirmed, and starts nothing [SEAT-223, SEAT-229]", async () => {
    const seat = await startSeat({ env: { OPENRIG_RESUME_REF: "" } })
    assert.strictEqual((await seat.ended).code, 4)
    assert.deepInclude(seat.record as object, { error: "unconfirmed" })
    assert.deepStrictEqual(seat.agent.told.all, [])
  })
})

describe("a preset", () => {
  it("gives the seat its agent's command and settings; one that is wrong starts nothing [SEAT-004]", async () => {
    const preset = (folder: string, lines: ReadonlyArray<string>): string => {
      mkdirSync(join(folder, "presets"))
      const file = join(folder, "presets", "otter.yaml")
      writeFileSync(
        file,
        ["format: 1", "name: otter", "command: tackroom-seat", "maintainer: op", ...lines, ""].join("\n")
      )
      return file
    }
    const good = await openSeat({
      prepare: (folder) => ({
        TACKROOM_SEAT_PRESET: preset(folder, ["tackroom:", "  auth: key", "  env: [OTTER_KEY]"]),
        OTTER_KEY: "named-by-the-preset"
      })
    })
    assert.deepInclude((await good.agent.started()).env, { OTTER_KEY: "named-by-the-preset" })
    assert.deepStrictEqual((await good.agent.request("authenticate")).params, { methodId: "key" })

    const bad = await startSeat({
      prepare: (folder) => ({
        TACKROOM_SEAT_PRESET: preset(folder, ["runner: true", "tackroom:", "  auht: key", "  env: KEY"])
      })
    })
    assert.strictEqual((await bad.ended).code, 64)
    const errors = bad.screen.lines.filter((line) => line.includes("error >"))
    assert.strictEqual(errors.length, 3, errors.join("\n"))
    assert.deepStrictEqual(bad.agent.told.all, [])
  })

  it("that cannot be read is an error too [SEAT-004]", async () => {
    const seat = await startSeat({
      prepare: (folder) => {
        const file = join(folder, "otter.yaml")
        writeFileSync(file, "a: [")
        chmodSync(file, 0o600)
        return { TACKROOM_SEAT_PRESET: file }
      }
    })
    assert.strictEqual((await seat.ended).code, 64)
    assert.match(seat.screen.text, /error > .*otter\.yaml: /u)
  })
})
