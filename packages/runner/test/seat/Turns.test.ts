import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { bracketed, openSeat, rawMode, startSeat } from "../support/SeatUnderTest.ts"

describe("a turn", () => {
  it("is one message with all its lines, mirrored, told and ended [SEAT-031, SEAT-060, SEAT-094, SEAT-123, SEAT-127, SEAT-130]", async () => {
    const seat = await openSeat()
    const text = "From: dev-lead@mill\nTo: dev-builder@mill\n---\nrun the tests\n\n\t/abort \n---"
    seat.send(text)
    const prompt = await seat.agent.prompt()
    assert.deepStrictEqual(prompt.blocks, [{ type: "text", text }])
    const accepted = await seat.rig.post("UserPromptSubmit/accepted")
    assert.strictEqual(accepted["turnId"], "1")
    seat.agent.update({
      sessionUpdate: "tool_call",
      toolCallId: "t1",
      title: "Run tests",
      kind: "execute",
      status: "pending"
    })
    seat.agent.update({ sessionUpdate: "tool_call_update", toolCallId: "t1", status: "completed" })
    seat.agent.update({ sessionUpdate: "tool_call_update", toolCallId: "t1", status: "completed" })
    seat.agent.update({
      sessionUpdate: "plan",
      entries: [
        { content: "look", priority: "high", status: "completed" },
        { content: "build", priority: "high", status: "in_progress" }
      ]
    })
    seat.agent.update({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "hidden" } })
    seat.agent.say("all ")
    seat.agent.say("green\n")
    prompt.end("max_tokens")
    const stop = await seat.rig.post("Stop/max_tokens")
    assert.deepStrictEqual([stop["turnId"], stop["livenessSeconds"]], ["1", 60])
    await seat.screen.until("ended: max_tokens")
    assert.deepStrictEqual(seat.screen.lines.slice(2, -1), [
      ...`you > ${text}`.split("\n"),
      "tool > Run tests (execute, pending)",
      "tool > Run tests (execute, completed)",
      "plan > 1 of 2: build",
      "agent > all green",
      "turn > 1 ended: max_tokens"
    ])
    // The mirror stands before the prompt is sent, so it is the first thing after the paste was erased.
    assert.isAbove(seat.screen.text.indexOf("you > "), 0)
  })

  it("queues what comes meanwhile, first in first out [SEAT-036, SEAT-037, SEAT-094]", async () => {
    const seat = await openSeat()
    seat.send("one")
    const one = await seat.agent.prompt(1)
    seat.send("two")
    seat.type("three\r")
    await seat.screen.until("queued (2 waiting) > three")
    assert.include(seat.screen.text, "queued (1 waiting) > two")
    assert.strictEqual(seat.agent.promptCount, 1)
    one.end()
    const two = await seat.agent.prompt(2)
    assert.strictEqual(two.text, "two")
    two.fail({ code: -32603, message: "overloaded" })
    const three = await seat.agent.prompt(3)
    assert.strictEqual(three.text, "three")
    three.end("cancelled")
    await seat.rig.post("Stop/cancelled")
    assert.deepStrictEqual(
      seat.rig.posts.all.filter(({ hookEvent }) => hookEvent === "UserPromptSubmit").map((post) => post["turnId"]),
      ["1", "2", "3"]
    )
  })

  it("ends with a failed prompt, and the agent stays [SEAT-098, SEAT-133]", async () => {
    const seat = await openSeat()
    seat.send("one")
    const one = await seat.agent.prompt()
    one.fail({ code: -32603, message: "the model is gone" })
    await seat.rig.post("Stop/error")
    assert.include(seat.screen.text, "error > the prompt failed: the model is gone (-32603)")
    assert.deepStrictEqual(seat.rig.story.slice(-3), [
      "UserPromptSubmit/accepted",
      "Notification/runtime_error",
      "Stop/error"
    ])
    seat.send("two")
    assert.strictEqual((await seat.agent.prompt(2)).text, "two")
  })

  it("takes a paste of a megabyte as one prompt, and drops a larger one whole [SEAT-031, SEAT-035]", async () => {
    const seat = await openSeat()
    const text = `${"0123456789abcdef".repeat(65_535)}end\n/abort\n`
    seat.send(text)
    const prompt = await seat.agent.prompt()
    assert.isTrue(prompt.text === text)
    prompt.end()
    seat.send("x".repeat(1_048_577))
    await seat.screen.until("lost > a message of 1048577 bytes is too large")
    await seat.rig.post("Notification/runtime_error")
    seat.send("next")
    assert.strictEqual((await seat.agent.prompt(2)).text, "next")
  })

  it("keeps separators, emoji and combining marks in both directions", async () => {
    const seat = await openSeat()
    const odd = "a\u2028b\u2029c 🐴 e\u0301 \u00a0"
    seat.send(odd)
    const prompt = await seat.agent.prompt()
    assert.strictEqual(prompt.text, odd)
    seat.agent.say(odd)
    prompt.end()
    await seat.screen.until("turn > 1 ended")
    assert.include(seat.screen.text, `agent > ${odd}`)
  })

  it("is not begun by a blank message, and a full queue says what it refuses [SEAT-033, SEAT-036]", async () => {
    const seat = await openSeat()
    seat.type("\r  \r")
    seat.send("\n \n")
    seat.send("first")
    const first = await seat.agent.prompt()
    assert.strictEqual(first.text, "first")
    for (let i = 1; i <= 65; i++) seat.type(`${bracketed(`message ${i}`)}\r`)
    await seat.screen.until("lost > message not queued: message 65")
    await seat.rig.post("Notification/runtime_error")
    assert.include(seat.screen.text, "queued (64 waiting) > message 64")
    seat.signal("SIGTERM")
    await seat.ended
    // What waited is listed.
    assert.include(seat.screen.text, "lost > not sent: message 1 (9 bytes)")
    assert.include(seat.screen.text, "lost > not sent: message 64 (10 bytes)")
  })
})

describe("input before the conversation is open", () => {
  it("is kept, and given to the agent afterwards [SEAT-006, SEAT-220]", async () => {
    const seat = await startSeat({ rules: { "session/new": () => undefined } })
    await seat.screen.until(rawMode)
    seat.send("early")
    await seat.screen.until("queued (1 waiting) > early")
    const opening = await seat.agent.request("session/new")
    assert.isFalse(seat.hasRecord)
    seat.agent.do({ do: "reply", id: opening.id, result: { sessionId: "c-81" } })
    const prompt = await seat.agent.prompt()
    assert.isTrue(seat.hasRecord)
    prompt.end()
    await seat.rig.post("Stop/end_turn")
    // A prompt waited, so there is no idle report before it.
    assert.deepStrictEqual(seat.rig.story, ["UserPromptSubmit/accepted", "Stop/end_turn"])
  })

  it("comes after the first input, which is its exact bytes [SEAT-039]", async () => {
    const first = "  first\r\n\u2028 /abort\n"
    const seat = await startSeat({
      rules: { "session/new": () => undefined },
      prepare: (folder) => {
        writeFileSync(join(folder, "first-input"), first)
        return { OPENRIG_FIRST_INPUT: join(folder, "first-input") }
      }
    })
    await seat.screen.until(rawMode)
    seat.send("second")
    await seat.screen.until("queued (2 waiting) > second")
    const opening = await seat.agent.request("session/new")
    seat.agent.do({ do: "reply", id: opening.id, result: { sessionId: "c-81" } })
    const one = await seat.agent.prompt(1)
    assert.strictEqual(one.text, first)
    one.end()
    const two = await seat.agent.prompt(2)
    assert.strictEqual(two.text, "second")
  })

  it("has no first prompt when its file cannot be one [SEAT-039]", async () => {
    const contents: ReadonlyArray<Uint8Array | undefined> = [
      undefined,
      Buffer.from([0xff, 0x61]),
      Buffer.alloc(0),
      Buffer.alloc(1_048_577, 0x61)
    ]
    await Promise.all(
      contents.map(async (content) => {
        const seat = await openSeat({
          prepare: (folder) => {
            const file = join(folder, "first-input")
            if (content !== undefined) writeFileSync(file, content)
            return { OPENRIG_FIRST_INPUT: file }
          }
        })
        assert.match(seat.screen.text, /error > the first input /u)
        await seat.rig.post("Notification/runtime_error")
        seat.send("mine")
        assert.strictEqual((await seat.agent.prompt(1)).text, "mine")
      })
    )
  })
})

describe("a cancel", () => {
  it("is asked for once, by the abort word or Ctrl-C, and said to be done by the agent alone [SEAT-032, SEAT-200, SEAT-201, SEAT-202]", async () => {
    const seat = await openSeat()
    seat.type("/abort\r")
    await seat.screen.until("cancel > nothing to cancel")
    seat.send("work")
    const prompt = await seat.agent.prompt()
    seat.send("/abort")
    await seat.screen.until(/cancel > requested at \d\d:\d\d:\d\d/u)
    await seat.agent.told.first((told) => told.told === "notification")
    seat.type("\u0003")
    await seat.screen.until(/cancel > already requested at \d\d:\d\d:\d\d/u)
    assert.notInclude(seat.screen.text, "confirmed")
    assert.notInclude(seat.rig.story.join(), "Stop/cancelled")
    prompt.end("cancelled")
    await seat.rig.post("Stop/cancelled")
    await seat.screen.until("cancel > confirmed by the agent")
    const cancels = seat.agent.told.all.filter((told) => told.told === "notification")
    assert.deepStrictEqual(cancels, [{ told: "notification", method: "session/cancel", params: { sessionId: "c-81" } }])
  })

  it("that the agent does not heed is reported as the turn ended [SEAT-201]", async () => {
    const seat = await openSeat()
    seat.send("work")
    const prompt = await seat.agent.prompt()
    seat.type("\u0003")
    await seat.agent.told.first((told) => told.told === "notification")
    prompt.end("end_turn")
    await seat.rig.post("Stop/end_turn")
    await seat.screen.until("turn > 1 ended: end_turn")
    assert.notInclude(seat.screen.text, "confirmed")
  })
})

describe("a seat over pipes", () => {
  it("takes each line as a message, lets them finish, and ends with 0 [SEAT-038, SEAT-252]", async () => {
    const seat = await openSeat({ pipes: true })
    seat.type("one\r\ntwo\nthree")
    seat.endInput()
    for (const [index, text] of ["one", "two", "three"].entries()) {
      const prompt = await seat.agent.prompt(index + 1)
      assert.strictEqual(prompt.text, text)
      prompt.end()
    }
    assert.deepStrictEqual(await seat.ended, { code: 0, signal: undefined })
    assert.notInclude(seat.screen.text, "\u001b")
  })
})

describe("a seat without a rig", () => {
  it("works, posts nothing, writes nothing, and permits what nobody can be asked [SEAT-007, SEAT-Q9]", async () => {
    const seat = await openSeat({ alone: true })
    assert.include(seat.screen.text, "seat > no rig: activity off")
    seat.send("work")
    const prompt = await seat.agent.prompt()
    const answer = await seat.agent.ask()
    assert.deepStrictEqual(answer.result, { outcome: { outcome: "selected", optionId: "allow" } })
    await seat.screen.until("PERMITTED BY THIS RUNNER: Edit src/a.ts: Allow (allow_once): there is no rig to ask.")
    prompt.end()
    await seat.screen.until("turn > 1 ended: end_turn")
    assert.isFalse(seat.hasRecord)
    assert.deepStrictEqual(seat.rig.story, [])
  })
})

describe("the way to the rig", () => {
  it("is direct, whatever proxies the environment names", async () => {
    const proxy = "http://127.0.0.1:1"
    const seat = await openSeat({
      env: { NODE_USE_ENV_PROXY: "1", HTTP_PROXY: proxy, http_proxy: proxy, ALL_PROXY: proxy }
    })
    await seat.rig.post("Stop/idle_heartbeat")
    const { env } = await seat.agent.started()
    assert.notProperty(env, "HTTP_PROXY")
  })
})

describe("the command", () => {
  it("is started from its words in the real folder, as it stands, without a shell [SEAT-090]", async () => {
    const words = ["a b", "$HOME", "*", "", "'quoted'", "é"]
    const seat = await openSeat({ agentArgs: words })
    const { argv, cwd } = await seat.agent.started()
    assert.deepStrictEqual(argv, words)
    assert.strictEqual(cwd, seat.folder)
    const opening = await seat.agent.request("session/new")
    assert.deepStrictEqual(opening.params, { cwd: seat.folder, mcpServers: [] })
  })

  it("that cannot be started ends the seat with 69 and is said [SEAT-133, SEAT-252]", async () => {
    const seat = await startSeat({ command: ["/nowhere/otter"] })
    assert.strictEqual((await seat.ended).code, 69)
    assert.include(seat.screen.text, "error > no conversation was opened: cannot start /nowhere/otter: no such program")
    assert.isFalse(seat.hasRecord)
    assert.deepStrictEqual(seat.rig.story, ["Notification/runtime_error"])
    const file = join(seat.folder, "not-executable")
    writeFileSync(file, "")
    chmodSync(file, 0o600)
    const other = await startSeat({ command: [file], env: { OPENRIG_RESUME_REF: "c-81" } })
    assert.strictEqual((await other.ended).code, 69)
    assert.deepInclude(other.record as object, { error: "unconfirmed" })
  })
})
