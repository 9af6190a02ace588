/** Serve mode in front of other harnesses: each is reached by its key, and is another program of ours behind its own wire. */
import { assert, describe, it } from "@effect/vitest"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { makeLab, type Lab } from "./support/Lab.ts"
import { hostProgram } from "./support/RawHost.ts"
import { startServe } from "./support/Serve.ts"

const call = (tool: string, args: object) => ({ call: { tool, arguments: args } })

/** A lab whose harnesses are programs of ours, each with a state directory of its own. */
const chained = (): Lab => {
  const lab = makeLab({
    scenarios: {
      main: { default: [[{ text: "One." }, call("files.write", { path: "a", content: "x" })], [{ text: "Two." }]] }
    },
    agents: [{ id: "main", tools: ["files.write"] }]
  })
  const inner = (name: string) => ({ ...lab.config, state_dir: join(lab.root, name) })
  const file = (name: string): string => {
    const path = join(lab.root, `${name}.json`)
    writeFileSync(path, JSON.stringify(inner(name)))
    return path
  }
  const command = process.execPath
  const harnesses = {
    serve: { command, args: [hostProgram, "serve", "--config", file("inner-serve"), "--project", lab.workspace] },
    host: { command, args: [hostProgram], agent: "main", config: inner("inner-host") },
    own: { binary: command, args: [hostProgram, "acp", "--config", file("inner-acp")] }
  }
  return { ...lab, config: { state_dir: lab.stateDir, harnesses } }
}

describe("a harness by its key", () => {
  for (const key of ["serve", "host", "acp:own"]) {
    it(`${key} runs, asks and ends as our own agent does [SRV-002, SRV-006, SRV-380]`, async () => {
      const lab = chained()
      const driver = startServe(lab, ["--harness", key], { deadlineMs: 60_000 })
      const ready = await driver.ready()
      assert.deepInclude(ready, { harness: key })
      assert.notProperty(ready, "agent")
      driver.op({ op: "submit", run_id: "1", prompt: "go", op_id: "s" })
      const ask = await driver.notify("1", "ask")
      // What stands behind an ask of serve mode its contract does not tell: it comes as a question.
      const isQuestion = key === "serve"
      assert.strictEqual(ask.data.kind, isQuestion ? "ask" : "confirm")
      const yes = isQuestion ? ask.data.questions[0].options[0] : "yes"
      driver.op({ op: "answer", run_id: "1", ask_id: ask.data.ask_id, answers: [yes] })
      const result = await driver.result("1")
      assert.deepInclude(result, { status: "completed", answer: "Two.", errors: [] })
      assert.deepInclude((await driver.notify("1", "ask_resolved")).data, {
        outcome: isQuestion ? "answered" : "allowed",
        by: "driver"
      })
      await driver.host.close()
      assert.deepStrictEqual(await lab.emptied(20_000), [])
    }, 90_000)
  }

  it("a cap of rounds is refused where the harness reports none [SRV-007]", async () => {
    const driver = startServe(chained(), ["--harness", "acp:own", "--max-rounds", "3"])
    assert.strictEqual((await driver.host.closed).code, 3)
    assert.deepStrictEqual(driver.host.lines, [])
    assert.include(driver.host.stderr(), "does not report rounds")
  })

  it("the very conversation is reopened, or nothing is [SRV-293]", async () => {
    const lab = chained()
    const first = startServe(lab, ["--harness", "acp:own"], { deadlineMs: 60_000 })
    const { session_id } = await first.ready()
    first.op({ op: "submit", run_id: "1", prompt: "go" })
    await first.notify("1", "ask")
    first.op({ op: "answer", run_id: "1", answers: ["yes"] })
    await first.result("1")
    await first.host.close()

    const second = startServe(lab, ["--session", session_id], { deadlineMs: 60_000 })
    assert.deepInclude(await second.ready(), { session_id, resumed: true, harness: "acp:own" })
    await second.host.close()
    rmSync(join(lab.root, "inner-acp"), { recursive: true })
    const third = startServe(lab, ["--session", session_id], { deadlineMs: 60_000 })
    assert.strictEqual((await third.host.closed).code, 3)
    assert.deepStrictEqual(third.host.lines, [])
  }, 120_000)
})
