/**
 * What must hold of a run after any crash, looked up in the host's answers and, when the host is gone, in its store
 * (overview, "Rules that hold everywhere"). Each failed check names itself; none depends on where the crash was.
 */
import { assert } from "@effect/vitest"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { readAll, type Known, type Plan } from "./Drive.ts"
import { readStored, type Stored } from "./Journal.ts"
import type { Lab } from "./Lab.ts"
import type { Loose, RawHost } from "./RawHost.ts"

/** The effects of the run's tools: how many times the shell command ran, and what the written file holds. */
export interface Effects {
  readonly lines: number
  readonly list: string | undefined
}

export const effectsOf = (workspace: string): Effects => {
  const lines = join(workspace, "lines")
  const list = join(workspace, "list.md")
  return {
    lines: existsSync(lines) ? readFileSync(lines, "utf8").split("\n").length - 1 : 0,
    list: existsSync(list) ? readFileSync(list, "utf8") : undefined
  }
}

const terminals = ["finish", "cancelled", "error"]
const settled: Readonly<Record<string, ReadonlyArray<string>>> = {
  "permission-request": ["permission-resolved", "interaction-withdrawn"],
  question: ["question-answered", "question-rejected", "interaction-withdrawn"]
}

export const isEnd = (event: Loose): boolean =>
  event.type === "tool-output" ||
  event.type === "tool-error" ||
  (event.type === "tool-status" && event.status === "uncertain")

/** The journal of one finished turn, whatever happened while it was written. */
export const proveJournal = (events: ReadonlyArray<Loose>, plan: Plan): void => {
  assert.deepStrictEqual(
    events.map((event) => event.seq),
    events.map((_, index) => index + 1),
    "cursors are 1 to N"
  )
  const times = events.map((event) => event.at)
  assert.deepStrictEqual(times, times.toSorted(), "time does not go back")
  const of = (...types: ReadonlyArray<string>) => events.filter((event) => types.includes(event.type))
  assert.deepStrictEqual(
    of("user-message").map((event) => event.message_id),
    [plan.submissionId],
    "one user message"
  )
  assert.strictEqual(of("turn-start").length, 1, "one turn")
  assert.strictEqual(of("session-created").length, 1, "one creation")
  assert.strictEqual(of(...terminals).length, 1, "one terminal event")
  const terminal = of(...terminals)[0]
  assert.deepStrictEqual(
    events.filter((event) => event.seq > terminal.seq && event.turn_id !== undefined),
    [],
    "nothing of the turn after its terminal event"
  )
  const retracted = new Set(of("response-retracted").flatMap((event) => event.response_ids))
  const complete = new Set(of("usage").map((event) => event.observation.provider_observation_id))
  const responses = of("response-start").map((event) => event.response_id)
  assert.strictEqual(new Set(responses).size, responses.length, "a repeated model step is a response of its own")
  for (const response_id of responses) {
    assert.notStrictEqual(retracted.has(response_id), complete.has(response_id), "a response is complete or retracted")
  }
  for (const start of of("tool-start")) {
    const own = events.filter((event) => event.tool_call_id === start.tool_call_id)
    assert.strictEqual(own.filter(isEnd).length, 1, `one end of ${start.tool_call_id}`)
    assert.isAtMost(own.filter((event) => event.metadata?.dispatch === true).length, 1, "one dispatch record")
    for (const event of own) {
      if (event.type !== "tool-status" || event.status !== "uncertain") continue
      assert.strictEqual(event.metadata.outcome, "unknown", "an uncertain end says so")
      assert.isString(event.metadata.reason, "an uncertain end has a reason")
    }
  }
  for (const request of of("permission-request", "question")) {
    const ends = events.filter(
      (event) => event.request_id === request.request_id && settled[request.type]?.includes(event.type)
    )
    assert.strictEqual(ends.length, 1, `one end of ${request.request_id}`)
  }
}

/** No tool ran twice, and what the journal says of the outcome is what happened. */
export const proveEffects = (events: ReadonlyArray<Loose>, effects: Effects): void => {
  const callsOf = (name: string) => {
    const ids = events.filter((e) => e.type === "tool-start" && e.tool_name === name).map((e) => e.tool_call_id)
    const own = (id: string) => events.filter((event) => event.tool_call_id === id)
    return ids.map(own).filter((calls) => calls.some((event) => event.metadata?.dispatch === true))
  }
  for (const name of ["files__read", "files__write", "shell__run", "ask_user"]) {
    assert.isAtMost(callsOf(name).length, 1, `${name} was dispatched once`)
  }
  const outcome = (name: string) => callsOf(name)[0]?.find(isEnd)?.metadata?.outcome
  assert.isAtMost(effects.lines, 1, "the command ran once")
  if (outcome("shell__run") === "completed") assert.strictEqual(effects.lines, 1, "a completed command ran")
  else assert.strictEqual(outcome("shell__run"), "unknown", "a command without a known end is unknown")
  if (outcome("files__write") === "completed") assert.strictEqual(effects.list, "- tent", "a completed write is there")
  else {
    assert.strictEqual(outcome("files__write"), "unknown", "a write without a known end is unknown")
    assert.include([undefined, "- tent"], effects.list, "a file is written whole or not at all")
  }
}

/** Asks a living host again for everything it said. */
export const proveAnswers = async (host: RawHost, plan: Plan, known: Known, output: string): Promise<void> => {
  const id = known.session ?? ""
  const events = await readAll(host, id)
  assert.deepStrictEqual(
    events.slice(0, known.events.length).map((event) => JSON.stringify(event)),
    known.events.map((event) => JSON.stringify(event)),
    "what was shown is what is journaled"
  )
  proveJournal(events, plan)
  proveEffects(events, effectsOf(plan.workspace))

  assert.strictEqual(known.end.status, "completed", JSON.stringify({ ...known.end, events: events.slice(-4) }))
  assert.strictEqual(known.end.final_output, output)
  const waited = { session_id: id, submission_id: plan.submissionId, cursors: { [id]: 0 }, wait_ms: 5_000 }
  const once = await host.call("run/wait", waited)
  assert.deepStrictEqual(await host.call("run/wait", waited), once, "the end is stable")
  assert.deepStrictEqual({ ...once, events: [] }, { ...known.end, events: [] }, "the end is the same from any cursor")
  assert.deepStrictEqual(
    once.events.map((entry: Loose) => entry.event),
    events,
    "the run's stream is the journal"
  )

  const start = { session_id: id, submission_id: plan.submissionId, text: plan.text }
  const again = await host.call("run/start", start)
  assert.deepStrictEqual(
    [again.duplicate, again.turn.turn_id, again.cursors[id]],
    [true, known.turn, known.startCursor],
    "the receipt stands"
  )
  const changed = await host.ask("run/start", { ...start, text: `${plan.text}!` })
  assert.strictEqual(changed.error?.data.reason, "submission_text_differs")
  for (const { params } of known.answers.values()) {
    const repeated = await host.call("run/respond", params)
    assert.deepStrictEqual(repeated, { already_resolved: true, response: params.decision ?? params.answer })
  }
  const state = await host.call("session/state", { session_id: id })
  assert.deepStrictEqual([state.state, state.interactions, state.can_accept_message], ["idle", [], true])
  assert.deepStrictEqual(
    [state.outcome.status, state.outcome.submission_id, state.turn.turn_id],
    ["completed", plan.submissionId, known.turn]
  )
}

/** What the store holds when the host is gone. */
export const proveStore = (lab: Lab, known: Known, before: Stored | undefined): void => {
  const stored = readStored(lab.stateDir)
  assert.strictEqual(stored.integrity, "ok")
  assert.deepStrictEqual(
    [stored.turns.length, stored.runs.length, stored.receipts.length],
    [1, 1, 1],
    "one turn, one run, one receipt"
  )
  assert.strictEqual(stored.runs[0].status, "completed")
  assert.strictEqual(stored.turns[0].id, known.turn)
  assert.strictEqual(stored.messages.filter((message) => message.role === "user").length, 1)
  assert.strictEqual(stored.messages.filter((message) => message.role === "assistant").length, 1)
  assert.deepStrictEqual(
    stored.interactions.filter((interaction) => interaction.state === "pending"),
    []
  )
  for (const [session, events] of before?.events ?? []) {
    assert.deepStrictEqual(stored.events.get(session)?.slice(0, events.length), events, "nothing journaled was changed")
  }
}
