import { assert, describe, it } from "@effect/vitest"
import { eventSchemas, eventTypes, type EventPayload } from "@tackroom/protocol/events"
import { decodeLine, encodeLine, isSourceLine, type RunLine } from "@tackroom/protocol/serve"
import { Effect, Schema } from "effect"
import { authors } from "../../src/faces/lines/AskQueue.ts"
import type { Item } from "../../src/faces/lines/Item.ts"
import { Projection, rows } from "../../src/faces/lines/Projection.ts"
import { RunLines, type RunLinesOptions } from "../../src/faces/lines/RunLines.ts"
import type { Entry } from "../../src/runs/Entries.ts"

const turnId = "trn_1"
const options = { turnId, answerTimeout: undefined, reportsRounds: true, baseline: new Map() }
const lineOptions: RunLinesOptions = {
  face: "serve",
  runId: "r",
  opId: "o",
  events: "full",
  warnings: [],
  model: "m",
  sessionId: undefined,
  duplicate: false
}

const prompt: EventPayload = {
  type: "user-message",
  messageId: "m1",
  parts: [{ type: "text", text: "Do it" }],
  delivery: "start"
}
const begin: EventPayload = { type: "turn-start", messageId: "m1", assistantMessageId: "m1_r", origin: "user" }
const finish = (finalText?: string): EventPayload => ({
  type: "finish",
  sessionId: "s",
  assistantMessageId: "m1_r",
  reason: "end_turn",
  ...(finalText === undefined ? {} : { finalText })
})
const cancelled: EventPayload = { type: "cancelled", sessionId: "s", assistantMessageId: "m1_r", reason: "requested" }

const entries = (payloads: ReadonlyArray<EventPayload>, more: Partial<Entry> = {}): ReadonlyArray<Entry> =>
  payloads.map((payload, index) => ({ cursor: index + 1, turnId, afterTurn: undefined, payload, ...more }))

/** Pushes events in pages of a size; the end of each page is the end of what is committed at that moment. */
const project = (journal: ReadonlyArray<Entry>, given: Partial<ConstructorParameters<typeof Projection>[0]> = {}) => {
  const projection = new Projection({ ...options, ...given })
  return { projection, items: [...journal.flatMap((entry) => projection.push(entry)), ...projection.caughtUp()] }
}
const linesOf = (items: ReadonlyArray<Item>, given: Partial<RunLinesOptions> = {}): ReadonlyArray<RunLine> =>
  new RunLines({ ...lineOptions, ...given }).lines(items)
const run = (payloads: ReadonlyArray<EventPayload>, given: Parameters<typeof project>[1] = {}) =>
  project(entries([prompt, begin, ...payloads]), given).items
const kindsOf = (items: ReadonlyArray<Item>) => items.map((item) => (item.type === "notify" ? item.kind : item.type))
const endOf = (items: ReadonlyArray<Item>) => {
  const last = items.at(-1)
  return last?.type === "result" ? last.end : assert.fail("no result")
}

const Payloads = Schema.Array(
  Schema.Union(eventTypes.map((type) => eventSchemas[type] as unknown as Schema.Codec<EventPayload>))
)

describe("the projection", () => {
  it("every type of event has exactly one row, and one of a newer version is told as an event [SRV-340]", () => {
    assert.sameMembers(Object.keys(rows), [...eventTypes])
    const news = { type: "news-from-later", text: "x" } as unknown as EventPayload
    const [, told] = run([news])
    assert.deepInclude(told, { kind: "event", data: { type: "news-from-later", payload: news } })
  })

  it.effect.prop(
    "the same journal gives the same lines, in whatever pages it is read [SRV-341]",
    [Payloads, Schema.Int],
    ([payloads, seed]) =>
      Effect.sync(() => {
        const journal = entries([prompt, begin, ...payloads])
        const whole = linesOf(project(journal).items)
        const projection = new Projection(options)
        const items: Array<Item> = []
        journal.forEach((entry, index) => {
          items.push(...projection.push(entry))
          const next = journal[index + 1]?.payload
          // The end of what is committed is never between a request and the decision that was committed with it.
          const together = next !== undefined && "requestId" in next && "requestId" in entry.payload
          if (!together && (index + seed) % 3 === 0) items.push(...projection.caughtUp())
        })
        items.push(...projection.caughtUp())
        assert.deepStrictEqual(linesOf(items), whole)
      }),
    { arbitrary: { runs: 100 } }
  )

  it.effect.prop(
    "lines are numbered without gaps, fit their schema, and nothing follows the result [SRV-066, SRV-069, SRV-142]",
    [Payloads, Schema.Literals(["full", "source"])],
    ([payloads, events]) =>
      Effect.sync(() => {
        const { items } = project(entries([prompt, begin, ...payloads, finish("x"), ...payloads, finish("y")]))
        const lines = linesOf(items, { events })
        lines.forEach((line, index) => assert.strictEqual(line.seq, index + 1))
        assert.strictEqual(lines.filter(({ type }) => type === "result").length, 1)
        assert.strictEqual(lines.at(-1)?.type, "result")
        assert.strictEqual(lines[0]?.type, "start")
        for (const line of lines) {
          const decoded = decodeLine(JSON.parse(encodeLine(line)))
          assert.strictEqual(decoded._tag, "Line", JSON.stringify([line, decoded]))
        }
      }),
    { arbitrary: { runs: 100 } }
  )

  it.effect.prop(
    "the contract's lines are those of all, renumbered [SRV-342]",
    [Payloads],
    ([payloads]) =>
      Effect.sync(() => {
        const { items } = project(entries([prompt, begin, ...payloads, finish("x")]))
        const renumbered = linesOf(items)
          .filter(isSourceLine)
          .map((line, index) => ({ ...line, seq: index + 1 }))
        assert.deepStrictEqual(linesOf(items, { events: "source" }), renumbered as never)
      }),
    { arbitrary: { runs: 50 } }
  )

  it("what is not of this turn is left out: an earlier turn's late output, and what came before the start [SRV-142]", () => {
    const title: EventPayload = { type: "session-title", title: "T", titleSource: "harness" }
    const text: EventPayload = { type: "text-delta", delta: "late", messageId: "m", partId: "p" }
    const journal: ReadonlyArray<Entry> = [
      { cursor: 1, turnId: undefined, afterTurn: undefined, payload: title },
      ...entries([prompt, begin]).map((entry) => ({ ...entry, cursor: entry.cursor + 1 })),
      { cursor: 4, turnId: undefined, afterTurn: "trn_0", payload: text },
      { cursor: 5, turnId: "trn_0", afterTurn: undefined, payload: text },
      { cursor: 6, turnId: undefined, afterTurn: undefined, payload: title }
    ]
    assert.deepStrictEqual(kindsOf(project(journal).items), ["start", "title"])
  })
})

const delta = (text: string, partId = "p"): EventPayload => ({
  type: "text-delta",
  delta: text,
  messageId: "m1_r",
  partId
})
const textEnd = (text: string, partId = "p"): EventPayload => ({
  type: "text-end",
  messageId: "m1_r",
  partId,
  channel: "text",
  text
})
const response = (responseId: string, attempt?: number): EventPayload => ({
  type: "response-start",
  responseId,
  ...(attempt === undefined ? {} : { attempt })
})
const failed = (code: string, more: object = {}): EventPayload =>
  ({ type: "error", error: `failed: ${code}`, code, assistantMessageId: "m1_r", ...more }) as EventPayload

describe("text and answer", () => {
  it("a delta of the journal is one line, split at a code point above its bound [SRV-150]", () => {
    const long = `a${"é".repeat(40_000)}`
    const deltas = run([delta("x"), delta(""), delta(long)]).flatMap((item) =>
      item.type === "delta" ? [item.text] : []
    )
    assert.strictEqual(deltas.join(""), `x${long}`)
    assert.lengthOf(deltas, 3)
    for (const text of deltas) assert.isAtMost(Buffer.byteLength(text), 65_536)
  })

  it("a whole text that differs from its deltas replaces them", () => {
    assert.notInclude(kindsOf(run([delta("ab"), textEnd("ab")])), "text_replace")
    assert.deepInclude(run([delta("ab"), textEnd("abc")]), {
      type: "notify",
      cursor: 4,
      kind: "text_replace",
      data: { channel: "text", text: "abc" }
    } as never)
  })

  it("the answer is the final text, else the last text that was not taken back, else nothing [SRV-146, SRV-148]", () => {
    const said = [response("a"), textEnd("one", "p1"), response("b"), textEnd("two", "p2")]
    assert.strictEqual(endOf(run([...said, finish("three")])).answer, "three")
    assert.strictEqual(endOf(run([...said, finish()])).answer, "two")
    const retracted: EventPayload = { type: "response-retracted", responseIds: ["b"], reason: "again" }
    const back = run([...said, retracted, failed("harness_error")])
    assert.strictEqual(endOf(back).answer, "one")
    assert.include(kindsOf(back), "retry")
    assert.strictEqual(endOf(run([failed("harness_error")])).answer, "")
  })

  it("a clean run without text is no_answer in serve mode alone", () => {
    const items = run([finish("")])
    const [result] = linesOf(items).slice(-1)
    assert.deepInclude(result, { status: "completed", errorMessages: ["the run completed without assistant text"] })
    assert.deepInclude(linesOf(items, { face: "headless" }).at(-1), { errors: [], answer: "" })
  })
})

describe("the end", () => {
  it("each code of a failed turn has its code, its stop reason and its error line [SRV-130, SRV-132]", () => {
    const cases = [
      ["budget", "budget", "max_rounds"],
      ["timeout", "timeout", "timeout"],
      ["harness_protocol", "protocol", "error"],
      ["truncated", "unknown", "max_tokens"],
      ["turn_interrupted", "unknown", "interrupted"],
      ["cancel_unacknowledged", "unknown", "error"],
      ["harness_process_exited", "unknown", "error"]
    ] as const
    for (const [code, expected, stopReason] of cases) {
      const items = run([failed(code, { errorClass: "harness" })])
      const end = endOf(items)
      assert.deepStrictEqual([end.status, end.stopReason, end.cancelled], ["failed", stopReason, false])
      assert.deepStrictEqual(end.errors, [
        { code: expected, message: `failed: ${code}`, class: "harness", runtimeCode: code }
      ])
      const told = items.find((item) => item.type === "notify" && item.kind === "error")
      assert.deepInclude(told, { data: `failed: ${code}` })
      assert.deepStrictEqual(kindsOf(items).slice(-2), ["run_finished", "result"])
    }
  })

  it("a message is cut to its bound, wherever it is told [SRV-133]", () => {
    const items = run([failed("harness_error", { error: "é".repeat(5_000) })])
    const [fault] = endOf(items).errors
    assert.isAtMost(Buffer.byteLength(fault?.message ?? ""), 2_048)
    assert.deepInclude(items, { type: "notify", cursor: 3, kind: "error", data: fault?.message } as never)
  })

  it("a cancel adds no error when it was asked for here, and is told when it was not [SRV-132]", () => {
    assert.deepStrictEqual(
      endOf(run([cancelled])).errors.map(({ code }) => code),
      ["cancelled"]
    )
    const projection = new Projection(options)
    projection.cancelAsked()
    const items = entries([prompt, begin, cancelled]).flatMap((entry) => projection.push(entry))
    assert.deepInclude(endOf(items), { status: "cancelled", cancelled: true, errors: [], stopReason: "cancelled" })
  })

  it("a budget is told when it trips and not again at the end; the stopped response is no answer [SRV-264, SRV-267]", () => {
    const stop = { code: "stop", message: "max_rounds", details: { maxRounds: 1, message: "used 1 round" } }
    const items = run([
      response("a"),
      textEnd("one", "p1"),
      response("b"),
      { type: "diagnostic", diagnostic: stop },
      textEnd("two", "p2"),
      failed("budget", { diagnostics: [{ ...stop, details: { maxRounds: 1 } }] })
    ])
    assert.deepStrictEqual(
      kindsOf(items).filter((kind) => kind !== "text_replace"),
      ["start", "error", "cancelling", "run_finished", "result"]
    )
    assert.deepInclude(items, { type: "notify", cursor: 6, kind: "cancelling", data: { cause: "max_rounds" } } as never)
    assert.strictEqual(endOf(items).answer, "one")
  })

  it("two ends have no commit, and say so [SRV-304, SRV-305]", () => {
    for (const [code, more] of [
      ["lease_lost", { class: "session" }],
      ["store_unavailable", {}]
    ] as const) {
      const projection = new Projection(options)
      entries([prompt, begin, delta("half"), textEnd("half")]).forEach((entry) => projection.push(entry))
      const items = projection.break("broken", { code, ...more })
      assert.deepStrictEqual(kindsOf(items), ["error", "run_finished", "result"])
      const [line] = linesOf(items).slice(-1)
      assert.deepInclude(line, { committed: false, answer: "half", status: "failed" })
      assert.notProperty(line, "cursor")
      assert.deepStrictEqual(projection.push(entries([finish("late")])[0] as Entry), [])
    }
  })
})

describe("usage", () => {
  const tokens = (input: number | null, output: number | null, read: number | null = null) => ({
    input,
    output,
    reasoning: null,
    cache: { read, write: null }
  })
  const usage = (observation: object): EventPayload => ({ type: "usage", observation }) as EventPayload
  const deltaUsage = (id: string, ...counts: Parameters<typeof tokens>) =>
    usage({ kind: "delta", tokens: tokens(...counts), providerObservationId: id })
  const cumulative = (...counts: Parameters<typeof tokens>) => usage({ kind: "cumulative", tokens: tokens(...counts) })

  it("sums what was reported, each observation once, and counts answered requests [SRV-262, SRV-379]", () => {
    const items = run([
      response("a", 1),
      response("a2", 2),
      deltaUsage("a", 10, 3, 5),
      deltaUsage("a", 10, 3, 5),
      response("b", 1),
      deltaUsage("b", 20, 4),
      response("c", 1),
      failed("harness_error")
    ])
    const reported = items.flatMap((item) => (item.type === "notify" && item.kind === "usage" ? [item.data] : []))
    assert.deepStrictEqual(reported.at(-1), { input: 35, output: 7, rounds: 2 })
    reported.forEach((one, index) => {
      const before = reported[index - 1] ?? { input: 0, output: 0, rounds: 0 }
      assert.isTrue(one.input >= before.input && one.output >= before.output && one.rounds >= before.rounds)
    })
    assert.deepStrictEqual(endOf(items).usage, reported.at(-1))
    assert.deepStrictEqual(endOf(items).usageDetail, { cacheRead: 5, cacheWrite: null, reasoning: null, cost: null })
  })

  it("a cumulative report counts what it grew since the run before [SRV-146]", () => {
    const first = project(entries([prompt, begin, cumulative(100, 10), cumulative(150, 15), finish("x")]))
    assert.deepInclude(endOf(first.items).usage, { input: 150, output: 15 })
    const second = run([cumulative(210, 18), finish("y")], { baseline: first.projection.spending.baseline })
    assert.deepInclude(endOf(second).usage, { input: 60, output: 3 })
    const anew = run([cumulative(5, 1), finish("z")], { baseline: first.projection.spending.baseline })
    assert.deepInclude(endOf(anew).usage, { input: 5, output: 1 })
  })

  it("is left out where a harness reports no tokens, and zero where no request was answered", () => {
    assert.isUndefined(endOf(run([response("a"), deltaUsage("a", null, null), finish("x")])).usage)
    assert.isUndefined(endOf(run([finish("x")], { reportsRounds: false })).usage)
    assert.deepStrictEqual(endOf(run([response("a"), failed("harness_error")])).usage, {
      input: 0,
      output: 0,
      rounds: 0
    })
  })
})

describe("asks", () => {
  const ids = ["int_1", "int_2", "int_3"] as const
  const request = (requestId: string): EventPayload => ({
    type: "permission-request",
    requestId,
    tool: "files__write",
    arguments: { path: "a" },
    paths: ["a"],
    toolCallId: `call-${requestId}`,
    category: "write_local",
    options: [{ id: "once", label: "Allow", kind: "allow_once" }]
  })
  const resolve = (requestId: string, origin: string, more: object = {}): EventPayload =>
    ({
      type: "permission-resolved",
      requestId,
      tool: "files__write",
      decision: "allow_once",
      origin,
      ...more
    }) as EventPayload
  const byDriver = { by: authors.driver }
  const withdraw = (requestId: string, reason: string): EventPayload =>
    ({ type: "interaction-withdrawn", requestId, kind: "permission", reason }) as EventPayload
  const asks = (items: ReadonlyArray<Item>) =>
    items.flatMap((item) => {
      if (item.type !== "notify") return []
      if (item.kind === "ask") return [`? ${item.data.askId}`]
      if (item.kind === "ask_resolved") return [`${item.data.askId} ${item.data.outcome} ${item.data.by}`]
      return item.kind === "auto_approved" ? [`auto ${item.data.id} ${item.data.origin}`] : []
    })

  it("one is open at a time, the next when the one before is settled, and each is resolved once [SRV-180, SRV-200]", () => {
    const [a, b, c] = ids
    const items = run([
      request(a),
      request(b),
      request(c),
      resolve(a, "person", byDriver),
      withdraw(b, "expired"),
      resolve(c, "person"),
      finish("x")
    ])
    assert.deepStrictEqual(asks(items), [
      "? int_1",
      "int_1 allowed driver",
      "? int_2",
      "int_2 unanswered timeout",
      "? int_3",
      "int_3 allowed other_face"
    ])
  })

  it("what was settled while it waited is not shown; a grant that did it is told [SRV-182]", () => {
    const [a, b, c] = ids
    const items = run([
      request(a),
      request(b),
      request(c),
      resolve(b, "grant", { toolCallId: "c-b" }),
      withdraw(c, "replaced"),
      resolve(a, "person", byDriver)
    ])
    assert.deepStrictEqual(asks(items), ["? int_1", "auto c-b grant", "int_1 allowed driver"])
  })

  it("a call that policy approved at once is no ask", () => {
    assert.deepStrictEqual(asks(run([request("int_1"), resolve("int_1", "app_policy", { toolCallId: "c" })])), [
      "auto c app_policy"
    ])
    assert.deepStrictEqual(asks(run([request("int_1"), resolve("int_1", "policy", { decision: "deny" })])), [
      "? int_1",
      "int_1 refused policy"
    ])
  })

  it("an ask is told with the cursor of its request, when the journal has no more [SRV-181]", () => {
    const projection = new Projection(options)
    const journal = entries([prompt, begin, request("int_1")])
    assert.deepStrictEqual(asks(journal.flatMap((entry) => projection.push(entry))), [])
    const [ask] = projection.caughtUp()
    assert.deepInclude(ask, { kind: "ask", cursor: 3 })
    assert.deepStrictEqual(projection.caughtUp(), [])
  })

  it("an ended ask that the driver did not answer is remembered as missed [SRV-191]", () => {
    for (const [ending, missed] of [
      [resolve("int_1", "person", byDriver), undefined],
      [resolve("int_1", "person"), "int_1"],
      [withdraw("int_1", "expired"), "int_1"]
    ] as const) {
      const { projection } = project(entries([prompt, begin, request("int_1"), ending]))
      assert.strictEqual(projection.missedAsk, missed)
    }
  })

  it("a question is shown with its options and what may be answered", () => {
    const question: EventPayload = {
      type: "question",
      requestId: "int_1",
      questions: [
        { question: "Which?", options: [{ label: "a", description: "first" }, { label: "b" }], custom: false },
        { question: "x".repeat(9_000), options: [] }
      ]
    } as EventPayload
    const [, ask] = run([question], { answerTimeout: 30 })
    assert.deepInclude(ask, { kind: "ask" })
    const data =
      ask?.type === "notify" && ask.kind === "ask" && ask.data.kind === "ask" ? ask.data : assert.fail("no ask")
    assert.strictEqual(data.timeout, 30)
    assert.deepStrictEqual(data.questions[0], {
      question: "Which?",
      options: ["a", "b"],
      multiple: false,
      custom: false,
      optionDetails: [{ label: "a", description: "first" }, { label: "b" }]
    })
    assert.deepInclude(data.questions[1], { custom: true, questionTruncated: true })
  })
})

describe("op ids", () => {
  it("are the submit's on the run, and the answer's and the cancel's on what those cause [SRV-095, SRV-096, SRV-097]", () => {
    const lines = new RunLines(lineOptions)
    const resolved = (askId: string, by: "driver" | "timeout"): Item => ({
      type: "notify",
      kind: "ask_resolved",
      data: { askId, outcome: "allowed", by }
    })
    const opIds = (made: ReadonlyArray<RunLine>) => made.map(({ opId }) => opId)
    lines.answeredBy("int_1", "a1")
    lines.answeredBy("int_2", undefined)
    assert.deepStrictEqual(opIds(lines.lines([{ type: "delta", cursor: 1, text: "x" }])), ["o"])
    const [one, two, three] = ["int_1", "int_2", "int_3"].map((id) => resolved(id, "driver"))
    assert.deepStrictEqual(opIds(lines.lines([one as Item, two as Item])), ["a1", undefined])
    assert.deepStrictEqual(opIds(lines.lines([three as Item, resolved("int_1", "timeout")])), [undefined, "o"])
    assert.deepStrictEqual(opIds(lines.cancelling("cancel", "stop")), ["stop"])
    const [result] = lines.lines([run([cancelled]).at(-1) as Item])
    assert.deepInclude(result, { opId: "o", cancelOpId: "stop" })
    assert.deepStrictEqual(opIds(new RunLines(lineOptions).cancelling("eof", undefined)), ["o"])
  })
})
