/**
 * Serve mode under ops at random: each submit has one end, the program stays as large as it was, and nothing is left. For
 * as long as `TACKROOM_SOAK_MS` says; the seed is printed.
 */
import { assert, describe, it } from "@effect/vitest"
import { readStored } from "./support/Journal.ts"
import { makeLab, residentMiB } from "./support/Lab.ts"
import { random, seedOf } from "./support/Random.ts"
import type { Loose } from "./support/RawHost.ts"
import { startServe } from "./support/Serve.ts"

const soakMs = Number(process.env["TACKROOM_SOAK_MS"] ?? 12_000)

const call = (tool: string, args: object) => ({ call: { tool, arguments: args } })

const responses = (next: () => number): ReadonlyArray<ReadonlyArray<object>> =>
  Array.from({ length: 5_000 }, (_, number) => {
    const roll = next()
    if (roll < 0.25) return [call("files.write", { path: `f${number % 9}`, content: "x" })]
    if (roll < 0.4) return [call("ask_user", { question: "Which?", options: ["a", "b"] })]
    if (roll < 0.5) return [call("shell.run", { command: "sleep 0.02" })]
    if (roll < 0.6) return [{ delay_ms: 60 }, { text: "late" }]
    return [{ text: `answer ${number}` }]
  })

/** What an op at random may be refused with. */
const expected: ReadonlySet<unknown> = new Set(
  "busy unknown_run no_pending_ask stale_answer ambiguous_answer not_an_option bad_json not_an_object bad_op unknown_op".split(
    " "
  )
)

describe("serve mode in long use", () => {
  const seed = seedOf("serve-soak")
  it(
    `ends each run once, keeps its size and leaves no process, seed ${seed} [SRV-140, SRV-142, SRV-202, SRV-371]`,
    { timeout: soakMs + 120_000 },
    async () => {
      const next = random(seed)
      const lab = makeLab({
        scenarios: { soak: { default: responses(next), exhausted: "echo" } },
        agents: [{ id: "soak", tools: ["files.write", "shell.run"] }]
      })
      const driver = startServe(lab, ["--agent", "soak"], {
        deadlineMs: soakMs + 60_000,
        env: { NODE_OPTIONS: "--max-old-space-size=96" }
      })
      await driver.ready()
      const pick = <A>(of: ReadonlyArray<A>): A => of[Math.floor(next() * of.length)] ?? assert.fail("nothing to pick")

      let read = 0
      let open = false
      /** Run ids by the op that submitted them; each is refused, or has one result. */
      const submitted = new Map<string, string>()
      const refused = new Set<string>()
      let ask: string | undefined
      const ended = new Map<string, number>()
      const take = (line: Loose): void => {
        if (line.type === "error") {
          assert.isTrue(expected.has(line.error.reason), JSON.stringify(line))
          const run = submitted.get(line.op_id)
          if (run !== undefined) refused.add(run)
        }
        if (line.type === "start") open = true
        if (line.kind === "ask") ask = line.data.ask_id
        if (line.kind === "ask_resolved") ask = undefined
        if (line.type !== "result") return
        open = false
        ended.set(line.run_id, (ended.get(line.run_id) ?? 0) + 1)
        assert.deepStrictEqual(
          line.errors.filter(({ code }: Loose) => code === "unknown"),
          [],
          JSON.stringify(line)
        )
      }
      const catchUp = (): void => {
        for (; read < driver.lines.length; read += 1) take(driver.lines[read])
      }

      const began = performance.now()
      const sizes: Array<number> = []
      let ops = 0
      while (performance.now() - began < soakMs) {
        ops += 1
        const roll = next()
        const run_id = String(ops)
        const current = driver.lines.findLast(({ type }) => type === "start")?.run_id ?? "none"
        if (roll < (open ? 0.05 : 0.7)) {
          submitted.set(run_id, run_id)
          driver.op({ op: "submit", run_id, prompt: `go ${ops}`, op_id: run_id })
        } else if (roll < 0.55) {
          const answers = [pick(["yes", "no", "a", "b"])]
          driver.op({ op: "answer", run_id: current, answers, ...(ask === undefined ? {} : { ask_id: ask }) })
        } else if (roll < 0.6) driver.op({ op: "cancel", run_id: pick([current, "nobody"]) })
        else if (roll < 0.9) driver.host.write(pick(["junk\n", "[]\n", '{"op":7}\n', '{"op":"fly"}\n', "\n"]))
        else driver.op({ op: pick(["ping", "hello"]), op_id: `x${ops}` })
        // A reply to the last op, so that neither side runs ahead of the other.
        const pong = `p${ops}`
        driver.op({ op: "ping", op_id: pong })
        await driver.host.until("a pong", () =>
          driver.lines.findLast(({ op_id, type }) => type === "pong" && op_id === pong)
        )
        catchUp()
        const quarter = Math.floor((4 * (performance.now() - began)) / soakMs)
        if (sizes.length < quarter) sizes.push(residentMiB(driver.host.pid))
      }
      process.stderr.write(
        `serve-soak: ${ops} ops, ${ended.size} runs, MiB after each quarter: ${sizes.map(Math.round).join(", ")}\n`
      )
      assert.isAbove(ended.size, 20)
      assert.isBelow((sizes.at(-1) ?? 0) - (sizes[0] ?? 0), 96)

      lab.processes()
      driver.op({ op: "shutdown" })
      await driver.host.exited
      catchUp()
      const ends = [...submitted.values()].map((run) => (ended.get(run) ?? 0) + (refused.has(run) ? 1 : 0))
      assert.isTrue(
        ends.every((count) => count === 1),
        "a refusal or one result for each submit"
      )
      assert.deepStrictEqual(await lab.emptied(2_000), [])
      const stored = readStored(lab.stateDir)
      assert.strictEqual(stored.integrity, "ok")
      assert.lengthOf(stored.runs, ended.size)
    }
  )
})
