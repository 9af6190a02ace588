/** Twenty seconds of everything at once, at random: the host stays as large as it was, and leaves nothing behind. */
import { assert, describe, it } from "@effect/vitest"
import { readAll } from "./support/Drive.ts"
import { readStored } from "./support/Journal.ts"
import { makeLab, residentMiB, type Lab } from "./support/Lab.ts"
import { random, seedOf } from "./support/Random.ts"
import type { Answer, Loose, RawHost } from "./support/RawHost.ts"

const call = (tool: string, args: object) => ({ call: { tool, arguments: args } })

const soakMs = 20_000
const sessionsPerAgent = 3

const makeSoakLab = (): Lab =>
  makeLab({
    scenarios: {
      echo: { default: [], exhausted: "echo" },
      tools: {
        exhausted: "echo",
        default: Array.from({ length: 200 }, (_, number) =>
          number % 4 === 3
            ? [{ text: `round ${number}` }, { usage: { input: 7, output: 3 } }]
            : number % 4 === 0
              ? [{ thinking: "hm" }, call("files.write", { path: `f${number % 16}`, content: `${number}` })]
              : number % 4 === 1
                ? [call("files.list", {}), call("files.read", { path: "missing" })]
                : [call("shell.run", { command: "echo out; echo err >&2" })]
        )
      },
      asker: {
        exhausted: "echo",
        default: Array.from({ length: 200 }, (_, number) =>
          number % 3 === 2
            ? [{ text: "so be it" }]
            : number % 3 === 1
              ? [call("ask_user", { question: "Which?", options: ["a", "b"] })]
              : [call("shell.run", { command: "sleep 0.02" })]
        )
      },
      slow: { exhausted: "echo", default: Array.from({ length: 200 }, () => [{ delay_ms: 300 }, { text: "at last" }]) }
    },
    agents: [
      { id: "echo", planning: true },
      { id: "tools", tools: ["files.write", "files.list", "files.read", "shell.run"], approvals: { mode: "never" } },
      { id: "asker", tools: ["shell.run"] },
      { id: "slow", planning: true }
    ]
  })

/** What an operation at random may be refused with; anything else is a finding. */
const expected = new Set(["invalid_state", "conflict", "not_found", "invalid_cursor", "busy", "limit_exceeded"])

describe("a host in long use", () => {
  const seed = seedOf("soak")
  it(
    `keeps its size and leaves no process, seed ${seed} [RUN-030, RUN-060, RUN-140, RUN-387, RUN-473, RUN-524]`,
    { timeout: 180_000 },
    async () => {
      const lab = makeSoakLab()
      // A small heap: what could be collected does not show, and what is kept without end ends the host.
      const host = await lab.open({ env: { NODE_OPTIONS: "--max-old-space-size=96" } })
      const next = random(seed)
      const pick = <A>(of: ReadonlyArray<A>): A => of[Math.floor(next() * of.length)] ?? assert.fail("nothing to pick")
      const sessions: Array<{ readonly id: string; readonly runs: Array<string> }> = []
      for (const agent of ["echo", "tools", "asker", "slow"]) {
        for (let number = 0; number < sessionsPerAgent; number += 1) {
          const { session } = await host.call("agent/session", { agent, workspace: lab.workspace })
          sessions.push({ id: session.session_id, runs: [] })
        }
      }
      let operations = 0
      const interactions: Array<Loose> = []
      const checked = async (method: string, params: object): Promise<Answer> => {
        const answer = await host.ask(method, params)
        operations += 1
        if (answer.error !== undefined) {
          assert.include(
            [...expected],
            answer.error.data.kind,
            `${method} ${JSON.stringify(params)} ${JSON.stringify(answer)}`
          )
        }
        return answer
      }
      const operation = async (): Promise<void> => {
        const session = pick(sessions)
        const session_id = session.id
        const roll = next()
        if (roll < 0.25) {
          const submission_id =
            next() < 0.2 && session.runs.length > 0 ? pick(session.runs) : `r${operations}-${next()}`
          const started = await checked("run/start", { session_id, submission_id, text: `go ${submission_id.length}` })
          if (started.error === undefined && !started.result.duplicate) session.runs.push(submission_id)
        } else if (roll < 0.5) {
          const after = next() < 0.5 ? { cursors: {} } : {}
          const state = await checked("run/wait", {
            session_id,
            wait_ms: Math.floor(next() * 200),
            max_events: 20,
            ...after
          })
          for (const one of state.result?.interruptions ?? []) interactions.push(one)
        } else if (roll < 0.7) {
          const one = interactions.pop()
          if (one === undefined) return
          const decision = pick(["once", "deny", "session"])
          const answer = one.kind === "approval" ? { decision } : { answer: pick(["a", "b"]) }
          await checked("run/respond", { session_id: one.session_id, interaction_id: one.id, ...answer })
        } else if (roll < 0.75) await checked("run/cancel", { session_id })
        else if (roll < 0.85) await checked("session/state", { session_id })
        else if (roll < 0.88) await checked("session/attach", { session_id })
        else if (roll < 0.9) await checked("session/list", { limit: 5 })
        else if (roll < 0.97)
          await checked("event/read", { session_id, after: Math.floor(next() * 40), max_events: 10 })
        else host.write(pick(["junk\n", "[]\n", '{"jsonrpc":"2.0","method":"x"}\n', '{"jsonrpc":"2.0","id":null}\n']))
      }
      const began = performance.now()
      const sizes: Array<number> = []
      const lane = async () => {
        while (performance.now() - began < soakMs) {
          await operation()
          const quarter = Math.floor((4 * (performance.now() - began)) / soakMs)
          if (sizes.length < quarter) sizes.push(residentMiB(host.pid))
        }
      }
      await Promise.all(Array.from({ length: 6 }, lane))
      assert.isAbove(operations, 500)
      process.stderr.write(
        `soak: ${operations} operations, MiB after each quarter: ${sizes.map(Math.round).join(", ")}\n`
      )
      assert.isBelow((sizes.at(-1) ?? 0) - (sizes[0] ?? 0), 96)

      // Everything comes to its end, and says the same for ever.
      for (const { id, runs } of sessions) {
        for (let state = await host.call("session/state", { session_id: id }); state.state !== "idle";) {
          await host.call("run/cancel", { session_id: id })
          state = await host.call("session/state", { session_id: id })
        }
        const events = await readAll(host, id)
        assert.deepStrictEqual(
          events.map((event) => event.seq),
          events.map((_, index) => index + 1)
        )
        const terminals = events.filter((event) => ["finish", "cancelled", "error"].includes(event.type))
        assert.deepStrictEqual(
          events.filter((event) => event.type === "user-message").map((event) => event.message_id),
          runs,
          "one turn for each accepted start, in order"
        )
        assert.strictEqual(terminals.length, runs.length, "one terminal event for each")
        const errors = terminals.filter((event) => event.type === "error")
        assert.deepStrictEqual(errors, [])
      }
      await proveEnd(lab, host)
    }
  )
})

const proveEnd = async (lab: Lab, host: RawHost): Promise<void> => {
  lab.processes()
  const { counters } = await host.call("host/info")
  assert.isAbove(counters.frames_refused, 0)
  assert.deepStrictEqual(await host.close(), { code: 0, signal: null })
  assert.deepStrictEqual(await lab.emptied(2_000), [])
  const stored = readStored(lab.stateDir)
  assert.strictEqual(stored.integrity, "ok")
  assert.deepStrictEqual(
    stored.runs.filter((run) => run.ended_at === null),
    []
  )
  assert.notInclude(host.stderr(), '"level":"error"')
}
