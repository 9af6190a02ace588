import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { seat as names, token } from "../support/RigStub.ts"
import { openSeat, startSeat } from "../support/SeatUnderTest.ts"

const secret = "sk-canary-9876543210"

describe("the agent's surroundings", () => {
  it("are the machine's usual variables, the seat's names and what was named, and never what speaks for the seat [SEAT-091, SEAT-280]", async () => {
    const seat = await openSeat({
      flags: [
        "--env",
        "OTTER_KEY",
        "--env",
        "NOT_SET",
        "--env",
        "OPENRIG_ACTIVITY_HOOK_TOKEN",
        "--model-env",
        "OTTER_MODEL"
      ],
      env: {
        OTTER_KEY: secret,
        OTHER_KEY: "not-named",
        LC_ALL: "C.UTF-8",
        XDG_CONFIG_HOME: "/config",
        OPENRIG_MODEL: "large",
        OPENRIG_FIRST_INPUT: undefined
      }
    })
    const { env } = await seat.agent.started()
    const { TACKROOM_SEAT_RUN: marker, ...rest } = env
    assert.match(marker ?? "", /^[0-9a-f-]{36}$/u)
    assert.deepStrictEqual(rest, {
      PATH: process.env["PATH"],
      HOME: seat.folder,
      TERM: "xterm-256color",
      LC_ALL: "C.UTF-8",
      XDG_CONFIG_HOME: "/config",
      OTTER_KEY: secret,
      OTTER_MODEL: "large",
      OPENRIG_NODE_ID: names.nodeId,
      OPENRIG_SESSION_NAME: names.sessionName,
      OPENRIG_RUNTIME: "otter",
      OPENRIG_URL: seat.rig.url
    })
  })

  it("are a session and a process group of its own [SEAT-090]", async () => {
    const seat = await openSeat()
    const { pid } = await seat.agent.started()
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? []
    assert.deepStrictEqual(fields.slice(2, 4), [String(pid), String(pid)])
  })

  it("hold secrets that are shown and written nowhere, however they come back [SEAT-280]", async () => {
    const seat = await openSeat({
      flags: ["--env", "OTTER_KEY"],
      env: { OTTER_KEY: secret },
      rules: {
        initialize: () => ({
          result: { protocolVersion: 1, agentInfo: { name: `otter ${secret}`, version: token }, agentCapabilities: {} }
        })
      }
    })
    seat.send(`use ${secret}`)
    const prompt = await seat.agent.prompt()
    assert.strictEqual(prompt.text, `use ${secret}`)
    seat.agent.say(`I have ${secret.slice(0, 8)}`)
    seat.agent.say(`${secret.slice(8)} and ${token}`)
    seat.agent.update({ sessionUpdate: "tool_call", toolCallId: "t1", title: `curl ${secret}`, kind: "execute" })
    // What the agent writes to its error output comes through another pipe and may overtake its messages.
    await seat.screen.until("curl ***")
    await seat.agent.doAndWait({ do: "write", to: "stderr", text: `refused: ${secret} ${token}\n` })
    await seat.agent.doAndWait({ do: "write", to: "stdout", text: `banner ${secret}\n` })
    prompt.fail({ code: -32000, message: `bad key ${secret}` })
    await seat.screen.until("error > the prompt failed: bad key ***")
    seat.agent.do({ do: "exit", code: 0 })
    await seat.ended
    await seat.screen.until("stderr > refused: *** ***")
    assert.include(seat.screen.text, "agent > I have *** and ***")
    for (const hidden of [secret, token]) {
      assert.notInclude(seat.screen.text, hidden)
      assert.notInclude(JSON.stringify(seat.record), hidden)
    }
  })
})

describe("the agent's output", () => {
  it("may hold banners, blank lines, other JSON and a megabyte without a message [SEAT-093]", async () => {
    const seat = await openSeat()
    seat.send("work")
    const prompt = await seat.agent.prompt()
    await seat.agent.doAndWait({ do: "write", to: "stdout", text: "Welcome to otter \u001b[31m❯\n\n\r\n" })
    await seat.agent.doAndWait({ do: "write", to: "stdout", text: `[1,2]\n{"level":"info"}\n"text"\n7\n` })
    await seat.agent.doAndWait({ do: "flood", bytes: 1_048_576 })
    seat.agent.say("done")
    prompt.end()
    await seat.rig.post("Stop/end_turn")
    await seat.screen.until("turn > 1 ended")
    const shown = seat.screen.lines.filter((line) => line.includes("no message"))
    assert.deepStrictEqual(shown, [
      "error > the agent wrote a line that is no message (25 bytes): Welcome to otter [31m>",
      "error > the agent wrote a line that is no message (5 bytes): [1,2]",
      'error > the agent wrote a line that is no message (16 bytes): {"level":"info"}'
    ])
    assert.include(seat.screen.text, "agent > done")
  })

  it("of more than 32 MiB in a line is skipped, the next message is not [SEAT-093]", async () => {
    const seat = await openSeat()
    seat.send("work")
    const prompt = await seat.agent.prompt()
    await seat.agent.doAndWait({ do: "flood", bytes: 33_554_433 })
    prompt.end()
    await seat.rig.post("Stop/end_turn")
    await seat.screen.until("no message (33554433 bytes): xxx")
  })

  it("between turns is shown and not posted, and unknown kinds are counted [SEAT-095]", async () => {
    const seat = await openSeat({ flags: ["--show-thoughts"] })
    await seat.rig.post("Stop/idle_heartbeat")
    seat.agent.say("by the way")
    await seat.screen.until("agent > by the way")
    seat.send("work")
    const prompt = await seat.agent.prompt()
    seat.agent.update({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "hm" } })
    seat.agent.update({ sessionUpdate: "hologram", data: 1 })
    seat.agent.update({ sessionUpdate: "usage_update", used: 1, size: 2 })
    seat.agent.update({
      sessionUpdate: "agent_message_chunk",
      content: { type: "image", data: "", mimeType: "image/png" }
    })
    prompt.end()
    await seat.rig.post("Stop/end_turn")
    await seat.screen.until("seat > 1 updates of kinds that this runner does not know")
    assert.include(seat.screen.text, "thought > hm")
    assert.include(seat.screen.text, "agent > [image]")
    assert.deepStrictEqual(seat.rig.story, [
      "Stop/idle_heartbeat",
      "UserPromptSubmit/accepted",
      "active/agent_message",
      "Stop/end_turn"
    ])
  })
})

describe("any harness", () => {
  it("runs under any name, and posts, records and exits by it [SEAT-005]", async () => {
    const runs = ["claude", "codex", "x-1"].map(async (name) => {
      const seat = await openSeat({ flags: ["--harness", name], env: { OPENRIG_RUNTIME: undefined } })
      assert.deepInclude(seat.record as object, { harness: name })
      seat.agent.do({ do: "exit", code: 0 })
      await seat.ended
      assert.strictEqual(seat.rig.story.at(-1), `Stop/${name}_exited`)
      assert.isTrue(seat.rig.posts.all.every((post) => post["runtime"] === name))
    })
    await Promise.all(runs)
  })

  it("that cannot be told its model does not start [SEAT-004, SEAT-097]", async () => {
    const seat = await startSeat({ flags: ["--nonsense"], env: { OPENRIG_MODEL: "large" } })
    assert.strictEqual((await seat.ended).code, 64)
    assert.deepStrictEqual(
      seat.screen.lines.flatMap((line) => /error > .*/u.exec(line) ?? []),
      [
        "error > there is no flag --nonsense",
        "error > OPENRIG_MODEL is set and nothing says where it goes: --model-env, --model-flag or --model-config"
      ]
    )
    assert.isFalse(seat.hasRecord)
    assert.deepStrictEqual([seat.agent.told.all, seat.rig.story], [[], []])
  })
})
