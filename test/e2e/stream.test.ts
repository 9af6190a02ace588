/** The event stream of the real host, and the transcripts of the run protocol, field by field (run-protocol 8, 15, 30). */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { readAll } from "./support/Drive.ts"
import { makeLab, type Lab } from "./support/Lab.ts"
import { random, seedOf } from "./support/Random.ts"
import type { Answer, Loose, RawHost } from "./support/RawHost.ts"

const call = (tool: string, args: object) => ({ call: { tool, arguments: args } })

const makeAssistantLab = (): Lab =>
  makeLab({
    scenarios: {
      assistant: {
        default: [
          [{ text: "I write it down." }, call("files.write", { path: "list.md", content: "- tent" })],
          [{ text: "Done: list.md" }],
          [call("ask_user", { question: "Which year?" })],
          [{ text: "Thank you." }]
        ],
        exhausted: "echo"
      },
      slow: { default: [[{ delay_ms: 60_000 }, { text: "late" }]] }
    },
    agents: [
      { id: "assistant", tools: ["files.write"] },
      { id: "slow", planning: true }
    ]
  })

const openSession = async (host: RawHost, lab: Lab, agent = "assistant"): Promise<string> =>
  (await host.call("agent/session", { agent, workspace: lab.workspace, creation_id: `c-${agent}` })).session.session_id

const summaries = (entries: ReadonlyArray<Loose>) => entries.map((entry) => entry.summary).filter((one) => one !== null)

/** Waits, streaming, until the status is another than `running`; gives the last state with all events on the way. */
const follow = async (host: RawHost, id: string, submission: string, from: number): Promise<Loose> => {
  const events: Array<Loose> = []
  for (let cursors = { [id]: from }; ;) {
    const state = await host.call("run/wait", { session_id: id, submission_id: submission, cursors, wait_ms: 5_000 })
    events.push(...state.events)
    cursors = state.cursors
    if (state.status !== "running" && !state.more_events) return { ...state, events }
  }
}

describe("the transcripts of the run protocol", () => {
  it("A: first run, one approval, streamed [RUN-120, RUN-180, RUN-181, RUN-383, RUN-410, RUN-412, RUN-440, AGT-033, AGT-064]", async () => {
    const lab = makeAssistantLab()
    const host = lab.start()
    const hello = await host.answered(
      host.send("initialize", { protocol_version: 1, client: { name: "notes", version: "2.0.0" } }, 1)
    )
    assert.strictEqual(hello.id, 1)
    const { result } = hello
    assert.deepStrictEqual(
      [result.protocol_version, result.host.name, result.capabilities.agent_runs, result.event_contract],
      [1, "tackroom", true, 1]
    )
    assert.match(result.journal_id, /^jrn_[A-Za-z0-9_-]+$/)

    const created = await host.call("agent/session", {
      agent: "assistant",
      workspace: lab.workspace,
      creation_id: "c-1"
    })
    const id: string = created.session.session_id
    assert.match(id, /^ses_/)
    assert.deepStrictEqual(created, {
      session: { session_id: id, agent: "assistant", journal_id: result.journal_id, workspace: lab.workspace },
      duplicate: false
    })

    const text = "Write a packing list"
    const started = await host.call("run/start", { session_id: id, submission_id: "m-1", text })
    const start = started.cursors[id]
    const turn = started.turn.turn_id
    assert.deepStrictEqual(started, {
      submission_id: "m-1",
      turn: { turn_id: turn, session_id: id },
      duplicate: false,
      cursors: { [id]: start }
    })

    const waiting = await follow(host, id, "m-1", start)
    assert.deepStrictEqual(
      [waiting.status, waiting.final_output, waiting.more_events, waiting.submission_id],
      ["interrupted", null, false, "m-1"]
    )
    assert.strictEqual(waiting.cursor, waiting.cursors[id])
    assert.lengthOf(waiting.interruptions, 1)
    const [approval] = waiting.interruptions
    assert.deepInclude(approval, {
      session_id: id,
      agent: "assistant",
      kind: "approval",
      tool: "files__write",
      qualified_name: "files.write",
      arguments: { path: "list.md", content: "- tent" },
      category: "write_local",
      decisions: ["once", "session", "deny"],
      submission_id: "m-1",
      turn_id: turn,
      reason: "policy"
    })
    assert.match(approval.id, /^int_/)

    const answer = { session_id: id, interaction_id: approval.id, decision: "once" }
    assert.deepStrictEqual(await host.call("run/respond", answer), { already_resolved: false, response: "once" })

    const done = await follow(host, id, "m-1", waiting.cursors[id])
    assert.deepStrictEqual(
      [done.status, done.final_output, done.interruptions, done.more_events, done.cursor],
      ["completed", "Done: list.md", [], false, done.cursors[id]]
    )
    assert.deepStrictEqual(summaries([...waiting.events, ...done.events]), [
      { type: "message", text: "I write it down." },
      { type: "tool_started", tool: "files__write" },
      { type: "tool_finished", tool: "files__write" },
      { type: "message", text: "Done: list.md" }
    ])
    const dispatch = done.events.find((entry: Loose) => entry.summary?.type === "tool_started")
    assert.deepStrictEqual(dispatch, {
      agent: "assistant",
      session_id: id,
      event: {
        seq: dispatch.event.seq,
        at: dispatch.event.at,
        turn_id: turn,
        type: "tool-status",
        tool_call_id: approval.call_id,
        status: "running",
        metadata: { dispatch: true, tool: "files__write" }
      },
      summary: { type: "tool_started", tool: "files__write" }
    })
    assert.match(dispatch.event.at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const diff = done.events.find((entry: Loose) => entry.event.type === "file-diff")
    assert.deepInclude(diff.event, { path: "list.md", new_text: "- tent" })
    assert.strictEqual(readFileSync(join(lab.workspace, "list.md"), "utf8"), "- tent")
  })

  it("B: lost reply, changed text, bad cursor, bad frames [RUN-004, RUN-005, RUN-141, RUN-381, RUN-384]", async () => {
    const lab = makeAssistantLab()
    const host = await lab.open()
    const id = await openSession(host, lab)
    const run = { session_id: id, submission_id: "m-1", text: "Write a packing list" }
    const first = await host.call("run/start", run)
    const waiting = await follow(host, id, "m-1", 0)
    await host.call("run/respond", {
      session_id: id,
      interaction_id: waiting.interruptions[0].id,
      decision: "deny",
      reason: "no"
    })
    const done = await follow(host, id, "m-1", 0)
    const head = done.cursor

    const a = await host.answered(host.send("run/start", run, "a"))
    assert.deepStrictEqual(a.result, { ...first, duplicate: true })
    const b = await host.answered(host.send("run/start", { ...run, text: "Write a shopping list" }, "b"))
    assert.deepStrictEqual(
      [b.error?.code, b.error?.data],
      [-32003, { kind: "conflict", reason: "submission_text_differs", id: "m-1" }]
    )
    const c = await host.answered(host.send("event/read", { session_id: id, after: 900 }, "c"))
    const { journal_id } = await host.call("host/info")
    assert.deepStrictEqual(
      [c.error?.code, c.error?.data],
      [-32010, { kind: "invalid_cursor", reason: "ahead", session_id: id, head, journal_id }]
    )
    const big = { jsonrpc: "2.0", id: "d", method: "run/start", params: { text: "x".repeat(1_258_400) } }
    const line = JSON.stringify(big)
    host.write(`${line}\n`)
    const d = await host.answered("d")
    assert.deepStrictEqual(
      [d.error?.code, d.error?.data],
      [-32011, { kind: "frame_too_large", limit_bytes: 1_048_576, observed_bytes: line.length }]
    )
    const before = host.answers.length
    host.write("hello?\n")
    await host.first(before + 1)
    const bad = host.answers[before]
    assert.deepStrictEqual([bad?.id, bad?.error?.code, bad?.error?.data.kind], [null, -32700, "parse_error"])
    for (const cursor of [-1, 1.5, "1", null, 9_007_199_254_740_992, true]) {
      const refused = await host.ask("run/wait", { session_id: id, cursors: { [id]: cursor } })
      if (cursor === null) continue
      assert.deepStrictEqual([refused.error?.data.kind, refused.error?.data.reason], ["invalid_cursor", "malformed"])
      assert.strictEqual(refused.error?.data.head, head)
    }
  })

  it("D: restart with a question pending, and a stale answer [RUN-356, RUN-362, RUN-364, RUN-441, RUN-445, RUN-520]", async () => {
    const lab = makeAssistantLab()
    const host = await lab.open()
    const id = await openSession(host, lab)
    await host.call("run/start", { session_id: id, submission_id: "m-1", text: "first" })
    const approval = await follow(host, id, "m-1", 0)
    await host.call("run/respond", { session_id: id, interaction_id: approval.interruptions[0].id, decision: "once" })
    await follow(host, id, "m-1", 0)
    const asked = await host.call("run/start", { session_id: id, submission_id: "q-7", text: "and now?" })
    const waiting = await follow(host, id, "q-7", 0)
    const question = waiting.interruptions[0]
    host.kill("SIGKILL")
    await host.exited

    const next = await lab.open()
    const { journal_id } = await next.call("host/info")
    const attached = await next.call("session/attach", { session_id: id, journal_id })
    assert.strictEqual(attached.session.session_id, id)
    assert.strictEqual(attached.state.state, "waiting")
    assert.deepStrictEqual(attached.state.interactions, [question])
    assert.deepInclude(question, {
      session_id: id,
      agent: "assistant",
      kind: "question",
      question: "Which year?",
      options: [],
      allow_text: true
    })
    assert.deepStrictEqual(
      attached.runs.map((run: Loose) => [run.submission_id, run.status]),
      [
        ["q-7", "interrupted"],
        ["m-1", "completed"]
      ]
    )
    assert.deepStrictEqual(attached.runs[0].start_cursors, asked.cursors)
    assert.isAtLeast(attached.cursors[id], waiting.cursor)

    const message = await next.ask("session/send", { session_id: id, input: { text: "2025" } })
    assert.deepStrictEqual(
      [message.error?.code, message.error?.data.kind, message.error?.data.reason],
      [-32005, "invalid_state", "run_active"]
    )
    assert.strictEqual(message.error?.data.submission_id, "q-7")
    const input = { type: "answer", interaction_id: question.id, text: "2025" }
    assert.deepStrictEqual(await next.call("session/send", { session_id: id, input }), {
      type: "answer",
      submission_id: "q-7",
      interaction_id: question.id,
      already_resolved: false,
      response: "2025"
    })
    const other = await next.ask("run/respond", { session_id: id, interaction_id: question.id, answer: "2024" })
    assert.deepStrictEqual(
      [other.error?.code, other.error?.data],
      [-32003, { kind: "conflict", reason: "response_differs", id: question.id, response: "2025" }]
    )
    const end = await follow(next, id, "q-7", waiting.cursor)
    assert.deepStrictEqual([end.status, end.final_output], ["completed", "Thank you."])
    const stale = await next.call("run/respond", { session_id: id, interaction_id: question.id, answer: "2025" })
    assert.deepStrictEqual(stale, { already_resolved: true, response: "2025" })
  })
})

/** A session with a few hundred events of all sizes; gives its id. */
const longSession = async (host: RawHost, lab: Lab): Promise<string> => {
  const id = await openSession(host, lab)
  await host.call("run/start", { session_id: id, submission_id: "m-0", text: "first" })
  const approval = await follow(host, id, "m-0", 0)
  await host.call("run/respond", { session_id: id, interaction_id: approval.interruptions[0].id, decision: "session" })
  await follow(host, id, "m-0", 0)
  await host.call("run/start", { session_id: id, submission_id: "m-1", text: "second" })
  const question = await follow(host, id, "m-1", 0)
  await host.call("run/respond", {
    session_id: id,
    interaction_id: question.interruptions[0].id,
    answer: "2025 ☂ \ud800 \u0000"
  })
  await follow(host, id, "m-1", 0)
  for (let number = 2; number < 14; number += 1) {
    const text = `é𝄞\u2028 ${"z".repeat(number * 3_000)} ${number}`
    await host.call("run/start", { session_id: id, submission_id: `m-${number}`, text })
    assert.strictEqual((await follow(host, id, `m-${number}`, 0)).final_output, text)
  }
  return id
}

/** The text of a result as it came over the pipe. */
const rawResult = (line: string): string => line.slice(line.indexOf('"result":') + '"result":'.length, -1)

describe("the event stream of the real host", () => {
  it("gives the same bytes from any cursor after any restart [RUN-146, RUN-014, RUN-016, RT-182]", async () => {
    const lab = makeAssistantLab()
    const host = await lab.open()
    const id = await longSession(host, lab)
    const read = async (from: RawHost) => {
      const texts = new Map<string, string>()
      const heads = (await readAll(from, id)).length
      for (let after = 0; after <= heads; after += 7) {
        for (const [method, params] of [
          ["event/read", { session_id: id, after, max_events: 5 }],
          ["run/wait", { session_id: id, submission_id: "m-3", cursors: { [id]: after }, max_events: 5, wait_ms: 0 }]
        ] as const) {
          const before = from.lines.length
          await from.ask(method, params)
          const line = from.lines[before] ?? ""
          assert.notInclude(line, "\u2028")
          texts.set(
            `${method} ${after}`,
            line.includes('"result"') ? rawResult(line) : line.replace(/"id":"[^"]*"/, "")
          )
        }
      }
      return texts
    }
    const first = await read(host)
    assert.isAbove(first.size, 40)
    host.kill("SIGKILL")
    await host.exited
    const second = await lab.open()
    assert.deepStrictEqual(await read(second), first)
    await second.close()
    const third = await lab.open()
    assert.deepStrictEqual(await read(third), first)
  })

  const seed = seedOf("pages")
  it(`gives small pages that joined equal one large page, seed ${seed} [RUN-190, RUN-192, RUN-193, RUN-145]`, async () => {
    const lab = makeAssistantLab()
    const host = await lab.open()
    const id = await longSession(host, lab)
    const whole = await readAll(host, id)
    const next = random(seed)
    for (const most of [1, 2, 7, 64]) {
      const joined: Array<Loose> = []
      for (let after = 0, more = true; more;) {
        const page = await host.call("event/read", { session_id: id, after, max_events: most })
        assert.isAtMost(page.events.length, most)
        joined.push(...page.events)
        assert.strictEqual(page.cursor, page.events.at(-1)?.seq ?? after)
        assert.strictEqual(page.more_events, page.cursor < whole.length)
        after = page.cursor
        more = page.more_events
      }
      assert.deepStrictEqual(joined, whole)
    }
    // A run's pages end at the run's end, however they are cut.
    const run = { session_id: id, submission_id: "m-1", wait_ms: 0 }
    const large = await host.call("run/wait", { ...run, cursors: {}, max_events: 1_000 })
    const joined: Array<Loose> = []
    for (let cursors: Loose = {}, more = true; more;) {
      const max_events = 1 + Math.floor(next() * 5)
      const page = await host.call("run/wait", { ...run, cursors, max_events })
      joined.push(...page.events)
      cursors = page.cursors
      more = page.more_events
      assert.strictEqual(page.status, "completed")
    }
    assert.deepStrictEqual(joined, large.events)
    assert.strictEqual(joined.at(-1)?.event.seq, large.cursors[id])
    for (const wrong of [0, -1, 1.5, "5"]) {
      const refused = await host.ask("event/read", { session_id: id, max_events: wrong })
      assert.strictEqual(refused.error?.data.kind, "invalid_params", String(wrong))
    }
  })

  it("lets two polling loops on one connection wait, not spin [RUN-033, RUN-035, RUN-036]", async () => {
    const lab = makeAssistantLab()
    const host = await lab.open()
    const quiet = await openSession(host, lab)
    const busy = await openSession(host, lab, "slow")
    await host.call("run/start", { session_id: busy, submission_id: "m-1", text: "take your time" })
    const before = host.answers.length
    const began = performance.now()
    const poll = async (ask: (cursor: number) => Promise<Answer>, cursorOf: (result: Loose) => number) => {
      let count = 0
      for (let cursor = 0; performance.now() - began < 2_500; count += 1) {
        const { result, error } = await ask(cursor)
        assert.isUndefined(error)
        cursor = cursorOf(result)
      }
      return count
    }
    const counts = await Promise.all([
      poll(
        (cursor) => host.ask("run/wait", { session_id: busy, cursors: { [busy]: cursor }, wait_ms: 400 }),
        (result) => result.cursors[busy]
      ),
      poll(
        (after) => host.ask("event/read", { session_id: quiet, after, wait_ms: 400 }),
        (result) => result.cursor
      )
    ])
    // Each answer releases those before it, so a loop may be answered with the other: twice as often, and no more.
    for (const count of counts) assert.isAtMost(count, 20)
    assert.strictEqual(host.answers.length - before, counts[0] + counts[1])
  })

  it("makes one turn of fifty parallel identical starts, also over a restart [RUN-384, RT-081, RUN-382]", async () => {
    const lab = makeAssistantLab()
    const host = await lab.open()
    const id = await openSession(host, lab)
    const run = { session_id: id, submission_id: "m-1", text: "once" }
    const answers = await Promise.all(Array.from({ length: 50 }, () => host.call("run/start", run)))
    assert.deepStrictEqual(
      answers.map((answer) => answer.duplicate),
      answers.map((_, index) => index > 0)
    )
    for (const answer of answers) assert.deepStrictEqual({ ...answer, duplicate: false }, answers[0])
    host.kill("SIGKILL")
    await host.exited
    const next = await lab.open()
    const again = await Promise.all(Array.from({ length: 50 }, () => next.call("run/start", run)))
    for (const answer of again) assert.deepStrictEqual(answer, { ...answers[0], duplicate: true })
    const events = await readAll(next, id)
    assert.lengthOf(
      events.filter((event) => event.type === "user-message"),
      1
    )
    assert.lengthOf(
      events.filter((event) => event.type === "turn-start"),
      1
    )
  })

  it("takes the first of many answers and tells the others which it was [RUN-441, RUN-443]", async () => {
    const lab = makeAssistantLab()
    const host = await lab.open()
    const id = await openSession(host, lab)
    await host.call("run/start", { session_id: id, submission_id: "m-1", text: "ask me" })
    const waiting = await follow(host, id, "m-1", 0)
    const interaction = waiting.interruptions[0].id
    const decisions = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? "deny" : "once"))
    const answers = await Promise.all(
      decisions.map((decision) => host.ask("run/respond", { session_id: id, interaction_id: interaction, decision }))
    )
    for (const [index, answer] of answers.entries()) {
      if (index % 2 === 0) assert.deepStrictEqual(answer.result, { already_resolved: index > 0, response: "deny" })
      else {
        assert.deepStrictEqual(answer.error?.data, {
          kind: "conflict",
          reason: "response_differs",
          id: interaction,
          response: "deny"
        })
      }
    }
    const end = await follow(host, id, "m-1", 0)
    assert.strictEqual(end.status, "completed")
    const resolved = end.events.filter((entry: Loose) => entry.event.type === "permission-resolved")
    assert.lengthOf(resolved, 1)
    assert.lengthOf(
      end.events.filter((entry: Loose) => entry.event.metadata?.dispatch === true),
      0
    )
  })
})
