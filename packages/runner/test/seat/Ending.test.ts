import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { isAlive, openSeat, rawMode, type SeatSetup, type SeatUnderTest, startSeat } from "../support/SeatUnderTest.ts"

const secondsOf = async (work: Promise<unknown>): Promise<number> => {
  const start = performance.now()
  await work
  return (performance.now() - start) / 1_000
}

/** The rule's five seconds, and as much again for a machine that does other things beside. */
const bound = 10

describe("a signal", () => {
  it("cancels the turn, then ends an agent that heeds nothing, its children and those that left it [SEAT-250, SEAT-252]", async () => {
    const seat = await openSeat()
    const { pid } = await seat.agent.started()
    await seat.agent.doAndWait({ do: "ignoreSignals" })
    const inGroup = await seat.agent.spawn(false)
    const apart = await seat.agent.spawn(true, 2)
    seat.send("work")
    await seat.agent.prompt()
    seat.signal("SIGTERM")
    await seat.agent.told.first((told) => told.told === "notification" && told.method === "session/cancel")
    const [seconds] = await Promise.all([
      secondsOf(seat.ended),
      seat.agent.gone(pid),
      seat.agent.gone(inGroup),
      seat.agent.gone(apart)
    ])
    // KILL comes three seconds after the signal.
    assert.isAbove(seconds, 2.5)
    assert.isBelow(seconds, bound)
    assert.deepStrictEqual(await seat.ended, { code: 143, signal: undefined })
    assert.include(seat.screen.text, "exit > agent ended: signal SIGKILL")
    assert.strictEqual(seat.rig.story.at(-1), "Stop/otter_exited")
  })

  it("that comes twice ends everything at once [SEAT-250]", async () => {
    const seat = await openSeat()
    const { pid } = await seat.agent.started()
    await seat.agent.doAndWait({ do: "ignoreSignals" })
    const inGroup = await seat.agent.spawn(false)
    seat.signal("SIGINT")
    seat.signal("SIGTERM")
    const seconds = await secondsOf(seat.ended)
    await Promise.all([seat.agent.gone(pid), seat.agent.gone(inGroup)])
    assert.isBelow(seconds, 2.5)
    assert.include([130, 143], (await seat.ended).code)
  })

  it("before the conversation is open ends the seat too [SEAT-250, SEAT-252]", async () => {
    const seat = await startSeat({ rules: { initialize: () => undefined } })
    const { pid } = await seat.agent.started()
    await seat.agent.request("initialize")
    seat.signal("SIGINT")
    await seat.agent.gone(pid)
    assert.strictEqual((await seat.ended).code, 130)
    assert.isFalse(seat.hasRecord)
  })

  it("ends a well-behaved agent by the end of its input [SEAT-250]", async () => {
    const seat = await openSeat()
    seat.signal("SIGHUP")
    assert.strictEqual((await seat.ended).code, 129)
    assert.include(seat.screen.text, "exit > agent ended: code 0")
  })
})

describe("a pane that closes", () => {
  it("ends the seat as a hang-up does [SEAT-250]", async () => {
    const seat = await openSeat()
    const { pid } = await seat.agent.started()
    seat.send("work")
    await seat.agent.prompt()
    seat.closePane()
    await seat.agent.told.first((told) => told.told === "notification" && told.method === "session/cancel")
    await seat.agent.gone(pid)
    await seat.ended
    await seat.rig.post("Stop/otter_exited")
    assert.isFalse(isAlive(seat.pid))
  })
})

describe("a runner that is killed", () => {
  it("takes its agent with it, by the guard [SEAT-251]", async () => {
    const seat = await openSeat()
    const { pid } = await seat.agent.started()
    await seat.agent.doAndWait({ do: "ignoreSignals" })
    const inGroup = await seat.agent.spawn(false)
    seat.signal("SIGKILL")
    const seconds = await secondsOf(Promise.all([seat.agent.gone(pid), seat.agent.gone(inGroup)]))
    assert.isBelow(seconds, bound)
  })
})

describe("an agent that ends", () => {
  it("between turns with 0 ends the seat with 0 [SEAT-100, SEAT-132, SEAT-252]", async () => {
    const seat = await openSeat()
    seat.agent.do({ do: "exit", code: 0 })
    assert.strictEqual((await seat.ended).code, 0)
    assert.strictEqual(seat.rig.story.at(-1), "Stop/otter_exited")
    assert.include(seat.screen.text, "exit > agent ended: code 0")
  })

  it("with a request waiting settles it, withdraws it and says so [SEAT-099, SEAT-100, SEAT-132, SEAT-170, SEAT-252]", async () => {
    const seat = await openSeat()
    seat.send("work")
    await seat.agent.prompt()
    void seat.agent.ask()
    await seat.rig.reads.first(() => true)
    seat.agent.do({ do: "write", to: "stderr", text: "thread main panicked\n" })
    seat.agent.do({ do: "exit", code: 3 })
    assert.strictEqual((await seat.ended).code, 1)
    assert.deepStrictEqual(seat.rig.withdraws.all, [{ askId: "ask_1", reason: "exited" }])
    assert.include(seat.screen.text, "exit > agent ended: code 3")
    assert.include(seat.screen.text, "stderr > thread main panicked")
    assert.deepStrictEqual(
      seat.rig.story.filter((pair) => pair.startsWith("Stop/")),
      ["Stop/idle_heartbeat", "Stop/otter_exited"]
    )
  })

  it("by a signal in a turn is told as an exit alone, also while the seat holds [SEAT-132, SEAT-252]", async () => {
    const seat = await openSeat()
    seat.rig.onSubmit = () => ({ status: 409, body: { ok: false, code: "denied_by_seat" } })
    const { pid } = await seat.agent.started()
    seat.send("work")
    await seat.agent.prompt()
    await seat.agent.ask()
    await seat.rig.post("Notification/permission_prompt")
    process.kill(pid, "SIGKILL")
    assert.strictEqual((await seat.ended).code, 1)
    assert.include(seat.screen.text, "exit > agent ended: signal SIGKILL")
    assert.deepStrictEqual(seat.rig.story.slice(-3), [
      "UserPromptSubmit/accepted",
      "Notification/permission_prompt",
      "Stop/otter_exited"
    ])
  })

  it("after its last words ends the turn first [SEAT-130, SEAT-132]", async () => {
    const seat = await openSeat()
    seat.send("work")
    const prompt = await seat.agent.prompt()
    seat.agent.say("bye")
    prompt.end()
    seat.agent.do({ do: "exit", code: 0 })
    assert.strictEqual((await seat.ended).code, 0)
    assert.deepStrictEqual(seat.rig.story.slice(-2), ["Stop/end_turn", "Stop/otter_exited"])
  })

  it("by closing its output alone is ended after five seconds [SEAT-099]", async () => {
    const seat = await openSeat()
    const { pid } = await seat.agent.started()
    seat.send("work")
    await seat.agent.prompt()
    await seat.agent.doAndWait({ do: "closeOutput" })
    await seat.screen.until("error > the agent closed its connection and did not end: it is ended")
    await seat.agent.gone(pid)
    assert.strictEqual((await seat.ended).code, 1)
  })

  it("at once, or without reading, ends nothing but itself [SEAT-099, SEAT-222]", async () => {
    const seats = await Promise.all([
      startSeat({ command: ["/bin/sh", "-c", "exit 1"] }),
      startSeat({ command: ["/bin/sh", "-c", "exec <&-; sleep 0.2"] }),
      startSeat({ command: ["/bin/cat", "/dev/null"] })
    ])
    for (const seat of seats) {
      assert.strictEqual((await seat.ended).code, 76, seat.screen.text)
      assert.include(seat.screen.text, "error > no conversation was opened")
      assert.isFalse(seat.hasRecord)
    }
  })
})

describe("the terminal", () => {
  const ready = async (seat: SeatUnderTest): Promise<void> => seat.screen.until("seat > ready")
  const ways: ReadonlyArray<{
    readonly way: string
    readonly code: number
    readonly setup: SeatSetup
    readonly act?: (seat: SeatUnderTest) => Promise<void>
  }> = [
    { way: "a usage error", code: 64, setup: { flags: ["--unknown"] } },
    {
      way: "the agent's end",
      code: 0,
      setup: {},
      act: async (seat) => {
        await ready(seat)
        seat.agent.do({ do: "exit", code: 0 })
      }
    },
    {
      way: "a signal",
      code: 143,
      setup: {},
      act: async (seat) => {
        await ready(seat)
        seat.signalProgram("SIGTERM")
      }
    },
    {
      way: "a fault",
      code: 70,
      setup: {
        prepare: (folder) => {
          const file = join(folder, "fault.cjs")
          writeFileSync(file, `setTimeout(() => { throw new Error("canary") }, 300).unref()`)
          return { NODE_OPTIONS: `--require ${file}` }
        }
      }
    }
  ]

  for (const { act, code, setup, way } of ways) {
    it(`is raw from the first byte on and restored once, after ${way} [SEAT-001, SEAT-002]`, async () => {
      const seat = await startSeat({ ...setup, shell: true })
      await seat.screen.until(rawMode)
      assert.isTrue(seat.screen.text.startsWith(`before icanon echo\r\n${rawMode}`), seat.screen.text)
      assert.strictEqual(await seat.mode(), "-icanon -echo")
      await act?.(seat)
      await seat.ended
      const { text } = seat.screen
      assert.match(text, new RegExp(`\\u001b\\[\\?2004l[^\\u001b]*after ${code} icanon echo`, "u"))
      assert.strictEqual(text.split("\u001b[?2004l").length, 2)
      assert.notInclude(text, "canary")
    })
  }
})
