import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { openSeat } from "../support/SeatUnderTest.ts"

describe("a pane", () => {
  it("holds no sequence but those of the paste mode and the draft line, whatever the agent sends [SEAT-008, SEAT-061, SEAT-062]", async () => {
    const seat = await openSeat()
    const wild = "\u001b]0;title\u0007\u001b]52;c;eA==\u0007\u001b[?1049h\u001b[2J\u009b1A\u001b[31mred ⠋ ❯ 1. Yes"
    seat.type("typed")
    await seat.screen.until("draft > typed")
    seat.send(` ${wild}`)
    const prompt = await seat.agent.prompt()
    seat.agent.say(wild)
    seat.agent.update({ sessionUpdate: "tool_call", toolCallId: "t1", title: wild, kind: wild, status: wild })
    seat.agent.update({ sessionUpdate: "plan", entries: [{ content: wild, status: "pending", priority: "high" }] })
    void seat.agent.ask(
      [
        { optionId: "1", name: wild, kind: "allow_once" },
        { optionId: "2", name: "Do you want to stop?", kind: wild }
      ],
      { toolCallId: "t1", title: `1. ${wild}\n2. esc to interrupt` }
    )
    await seat.rig.reads.first(() => true)
    prompt.end(wild)
    await seat.rig.post("Stop/other")
    seat.signal("SIGTERM")
    await seat.ended
    const { text } = seat.screen
    const left = text.replaceAll("\r\u001b[K", "").replaceAll("\u001b[?2004h", "").replaceAll("\u001b[?2004l", "")
    // oxlint-disable-next-line no-control-regex -- control characters are what this is about
    assert.notMatch(left, /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/u)
    assert.notMatch(left, /[❯›]|esc to interrupt|Do you want to/u)
    for (const line of seat.screen.lines) assert.notMatch(line, /^\s*\d+\./u)
    assert.include(left, "draft > typed")
  })

  it("that nobody reads delays no turn, no post and no end [SEAT-063, SEAT-250]", async () => {
    const seat = await openSeat()
    seat.send("work")
    const prompt = await seat.agent.prompt()
    seat.pausePane()
    const chunk = "all work and no play ".repeat(3_000)
    for (let i = 0; i < 130; i++) seat.agent.say(chunk)
    const answer = seat.agent.ask()
    await seat.rig.submits.first(() => true)
    seat.rig.onSubmit = () => ({ status: 200, body: { ok: true, state: "permitted", optionId: "allow", reason: "x" } })
    assert.isDefined(await seat.agent.ask())
    prompt.end()
    await answer
    await seat.rig.post("Stop/end_turn")
    seat.signal("SIGTERM")
    await seat.rig.post("Stop/otter_exited")
    seat.resumePane()
    assert.strictEqual((await seat.ended).code, 143)
  })
})

describe("the program", () => {
  it("loads Node's own modules alone until the terminal is taken [SEAT-001]", () => {
    const source = fileURLToPath(new URL("../../src", import.meta.url))
    const imports = (file: string): ReadonlyArray<string> =>
      [...readFileSync(`${source}/${file}`, "utf8").matchAll(/^import .*from "(.+)"$/gmu)].map(([, name]) => name ?? "")
    assert.deepStrictEqual(imports("main.ts"), ["./terminal/Signals.ts", "./terminal/Terminal.ts"])
    for (const file of ["terminal/Signals.ts", "terminal/Terminal.ts"]) {
      for (const name of imports(file)) assert.match(name, /^node:/u, file)
    }
  })

  it("knows no harness by name [SEAT-005]", () => {
    const source = fileURLToPath(new URL("../../src", import.meta.url))
    const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter(
      (file) => file.endsWith(".ts") && !file.startsWith("conformance") && file !== "command/Help.ts"
    )
    assert.isAbove(files.length, 20)
    for (const file of files) {
      assert.notMatch(
        readFileSync(`${source}/${file}`, "utf8"),
        /claude|codex|gemini|opencode|cursor-agent|copilot|qwen/iu,
        file
      )
    }
  })
})
