import { assert, describe, it } from "@effect/vitest"
import type { ConfigOption, EventPayload } from "@tackroom/protocol/events"
import { eventTypes } from "@tackroom/protocol/events"
import { Schema } from "effect"
import { chunkBytes, chunksOf } from "../../src/faces/acp/Bounds.ts"
import { clientOf } from "../../src/faces/acp/Client.ts"
import { stopOf } from "../../src/faces/acp/Ending.ts"
import { configOptions, modesOf } from "../../src/faces/acp/Options.ts"
import { Projection, rows } from "../../src/faces/acp/Projection.ts"
import { Refusal, refusalOf } from "../../src/faces/acp/Refusals.ts"
import { Replay } from "../../src/faces/acp/Replay.ts"
import * as Requests from "../../src/faces/acp/Requests.ts"
import { decodePage, encodePage } from "../../src/faces/acp/SessionPages.ts"
import { HarnessProcessExited, Internal, StoreFull } from "@tackroom/protocol"
import type { Entry } from "../../src/runs/Entries.ts"

const quiet = clientOf(undefined)
const told = clientOf({ session: { notices: {}, compaction: {}, configOptions: { boolean: {} } } })

const entries = (payloads: ReadonlyArray<EventPayload>): ReadonlyArray<Entry> =>
  payloads.map((payload, index) => ({ cursor: index + 1, turnId: "trn_1", afterTurn: undefined, payload }))

const project = (client: typeof quiet, ...payloads: ReadonlyArray<EventPayload>) => {
  const projection = new Projection(() => client, { options: [] })
  return entries(payloads).flatMap((entry) => projection.push(entry).map(({ update }) => update))
}

const replay = (...payloads: ReadonlyArray<EventPayload>) => {
  const machine = new Replay(() => quiet)
  for (const entry of entries(payloads)) machine.push(entry)
  return machine.end()
}

const text = (partId: string, delta: string): EventPayload => ({ type: "text-delta", delta, messageId: "m", partId })
const whole = (partId: string, words: string): EventPayload => ({
  type: "text-end",
  channel: "text",
  text: words,
  messageId: "m",
  partId
})
const call: EventPayload = { type: "tool-start", toolCallId: "c", toolName: "shell__run", kind: "shell" }

describe("the projection", () => {
  it("has one row for each canonical event", () => {
    assert.deepStrictEqual(Object.keys(rows).toSorted(), [...eventTypes].toSorted())
  })

  it("a terminal of the client is shown in place of its output, one of the harness is not [ACP-213]", () => {
    const events: ReadonlyArray<EventPayload> = [
      call,
      { type: "tool-terminal", toolCallId: "c", terminalId: "t" },
      { type: "tool-output-delta", toolCallId: "c", delta: "said", stream: "combined" },
      { type: "tool-error", toolCallId: "c", error: "cancelled", code: "cancelled" }
    ]
    const shows = (has: boolean) => {
      const projection = new Projection(() => quiet, { options: [], terminals: { has: (id) => has && id === "t" } })
      return entries(events)
        .flatMap((entry) => projection.push(entry))
        .flatMap(({ update }) => ("content" in update && Array.isArray(update.content) ? [update.content] : []))
    }
    const terminal = { type: "terminal" as const, terminalId: "t" }
    const shown = (words: string) => ({ type: "content" as const, content: { type: "text" as const, text: words } })
    assert.deepStrictEqual(shows(true), [[terminal], [terminal, shown("cancelled")]])
    assert.deepStrictEqual(shows(false), [[shown("said")], [shown("said"), shown("cancelled")]])
    const [told] = replay(...events)
    assert.deepInclude(told, { content: [shown("said"), shown("cancelled")] })
  })

  it("withdrawn text is named by the next chunk", () => {
    const updates = project(
      quiet,
      { type: "response-start", responseId: "r1" },
      text("p1", "no"),
      { type: "response-retracted", responseIds: ["r1"], reason: "again" },
      { type: "response-start", responseId: "r2" },
      text("p2", "yes")
    )
    assert.deepStrictEqual(updates[1], {
      sessionUpdate: "agent_message_chunk",
      messageId: "p2",
      content: { type: "text", text: "yes" },
      _meta: { tackroom: { retracted: ["p1"] } }
    })
  })

  it("an unknown end is a failed call that says so [ACP-122]", () => {
    const updates = project(quiet, call, { type: "tool-status", toolCallId: "c", status: "uncertain" })
    assert.deepInclude(updates[1], { status: "failed", _meta: { tackroom: { uncertain: true } } })
    assert.match(JSON.stringify(updates[1]), /not known whether/u)
  })

  it("a call that no person was asked about says who approved it", () => {
    const updates = project(quiet, call, {
      type: "permission-resolved",
      requestId: "int_1",
      tool: "shell__run",
      toolCallId: "c",
      decision: "allow_once",
      origin: "policy"
    } as EventPayload)
    assert.deepStrictEqual(updates[1], {
      sessionUpdate: "tool_call_update",
      toolCallId: "c",
      _meta: { tackroom: { autoApproved: true } }
    })
  })

  it("notices and compactions go to a client that takes them, and to no other [ACP-124]", () => {
    const events: ReadonlyArray<EventPayload> = [
      { type: "harness-notice", code: "x", message: "Look out", severity: "warn" },
      { type: "session-compaction", phase: "started" },
      { type: "session-compaction", phase: "completed", summary: "short" },
      { type: "session-retry", message: "busy" }
    ]
    assert.deepStrictEqual(project(quiet, ...events), [])
    assert.deepStrictEqual(
      project(told, ...events).map(({ sessionUpdate }) => sessionUpdate),
      ["notice", "compaction_update", "compaction_update", "notice"]
    )
  })

  it("large contents are cut, replaced or left out [ACP-006]", () => {
    const large = "x".repeat(400_000)
    const [, input, diff, output] = project(
      quiet,
      call,
      { type: "tool-input", toolCallId: "c", input: { command: "cat", large } },
      { type: "file-diff", toolCallId: "c", path: "/a", oldText: large, newText: "y" },
      { type: "tool-output", toolCallId: "c", output: large }
    )
    assert.notProperty(input, "rawInput")
    assert.match(JSON.stringify(diff), /\/a changed from 400000 to 1 bytes/u)
    assert.notProperty(output, "rawOutput")
    assert.match(JSON.stringify(output), /bytes are left out here/u)
    const many = Array.from({ length: 8 }, (_, i): EventPayload => ({
      type: "file-diff",
      toolCallId: "c",
      path: `/${i}`,
      newText: "z".repeat(200_000)
    }))
    const last = project(quiet, call, ...many).at(-1)
    assert.isTrue(JSON.stringify(last).length < 1_048_576)
    assert.match(JSON.stringify(last), /more pieces of this call/u)
  })

  it.prop("chunks are at most their size, and together the text", [Schema.String], ([words]) => {
    const long = words.repeat(3_000)
    const chunks = chunksOf(long)
    assert.strictEqual(chunks.join(""), long)
    assert.isTrue(chunks.every((chunk) => Buffer.byteLength(chunk) <= chunkBytes))
  })
})

describe("the replay", () => {
  it("leaves out what was withdrawn and tells each call once, with its last state [ACP-064, ACP-065]", () => {
    const updates = replay(
      { type: "user-message", messageId: "u", parts: [{ type: "text", text: "hi" }], delivery: "start" },
      { type: "response-start", responseId: "r1" },
      text("p1", "no"),
      whole("p1", "no"),
      { type: "response-retracted", responseIds: ["r1"], reason: "again" },
      { type: "response-start", responseId: "r2" },
      whole("p2", "a".repeat(chunkBytes + 1)),
      call,
      { type: "tool-status", toolCallId: "c", status: "running" },
      { type: "tool-error", toolCallId: "c", error: "no", code: "failed" }
    )
    assert.deepStrictEqual(
      updates.map((update) => [update.sessionUpdate, "messageId" in update ? update.messageId : undefined]),
      [
        ["user_message_chunk", "u"],
        ["agent_message_chunk", "p2"],
        ["agent_message_chunk", "p2"],
        ["tool_call", undefined]
      ]
    )
    assert.deepInclude(updates.at(-1), { toolCallId: "c", status: "failed" })
  })
})

describe("requests", () => {
  const request = (options: ReadonlyArray<{ id: string; label: string; kind?: "allow_once" | "reject_once" }>) =>
    ({ type: "permission-request", requestId: "int_1", tool: "t", paths: [], options }) as Parameters<
      typeof Requests.choicesOf
    >[0]

  it("options keep their order; one without a kind is last, equal ids are told apart, none are two [ACP-150]", () => {
    const choices = Requests.choicesOf(
      request([
        { id: "x", label: "No kind" },
        { id: "a", label: "A", kind: "allow_once" },
        { id: "a", label: "A again", kind: "reject_once" }
      ])
    )
    assert.deepStrictEqual(choices.options, [
      { optionId: "a", name: "A", kind: "allow_once" },
      { optionId: "a#2", name: "A again", kind: "reject_once" },
      { optionId: "x", name: "No kind", kind: "allow_once" }
    ])
    assert.deepStrictEqual(
      Requests.choicesOf(request([])).options.map(({ optionId }) => optionId),
      ["allow", "deny"]
    )
  })

  it("only an offered option grants [ACP-153]", () => {
    const choices = Requests.choicesOf(request([{ id: "a", label: "A", kind: "allow_once" }]))
    const decided = (optionId: string) =>
      Requests.decisionOf(choices, { outcome: { outcome: "selected", optionId } }, false)
    assert.deepStrictEqual(decided("a"), { decision: "allow_once", optionId: "a" })
    assert.deepStrictEqual(decided("b"), { decision: "deny" })
    assert.deepStrictEqual(Requests.decisionOf(choices, { outcome: { outcome: "cancelled" } }, false), {
      decision: "deny"
    })
    assert.deepStrictEqual(Requests.decisionOf(choices, undefined, false), { decision: "deny" })
  })

  const question = (more: object = {}) =>
    ({
      type: "question",
      requestId: "int_2",
      questions: [
        { question: "Which?", header: "Colour", options: [{ label: "Red" }, { label: "Green" }], ...more },
        { question: "Which ones?", options: [{ label: "A" }, { label: "B" }], multiple: true, custom: false }
      ]
    }) as Parameters<typeof Requests.form>[1]

  it("a question with options and own text has a second field, whose text wins [ACP-161]", () => {
    const { requestedSchema } = Requests.form("s", question()) as {
      requestedSchema: { properties: object; required: unknown }
    }
    assert.deepStrictEqual(Object.keys(requestedSchema.properties), ["q1", "q1_other", "q2"])
    assert.deepStrictEqual(requestedSchema.required, ["q2"])
    const answers = (content: Record<string, string | Array<string>>) =>
      Requests.formAnswers(question(), { action: "accept", content })
    assert.deepStrictEqual(answers({ q1: "Red", q1_other: "Blue", q2: ["A", "B"] }), {
      answers: [["Blue"], ["A", "B"]]
    })
    assert.deepStrictEqual(answers({ q1: "Red" }), { answers: [["Red"], []] })
  })

  it("a decline is a refusal, and anything else that is no answer is none [ACP-162]", () => {
    assert.deepStrictEqual(Requests.formAnswers(question(), { action: "decline" }), { answers: null })
    assert.isUndefined(Requests.formAnswers(question(), { action: "cancel" }))
    assert.isUndefined(Requests.formAnswers(question(), { action: "something new" }))
    assert.isUndefined(Requests.formAnswers(question(), undefined))
  })

  it("a secret is asked in no way, and what has no options is no choice [ACP-164]", () => {
    assert.isTrue(Requests.hasSecret(question({ secret: true })))
    assert.isFalse(Requests.fitsChoices(question({ secret: true })))
    assert.isFalse(Requests.fitsChoices(question({ options: [] })))
    assert.isFalse(Requests.fitsChoices(question({ options: Array.from({ length: 17 }, () => ({ label: "x" })) })))
    assert.isTrue(Requests.fitsChoices(question()))
    const skipped = { outcome: { outcome: "selected", optionId: "skip" } } as const
    assert.deepStrictEqual(Requests.choiceAnswer(question(), 0, skipped), [])
  })
})

describe("options", () => {
  const config = { harness: { id: "h", access: "native" } } as const
  const flag: ConfigOption = { id: "fast", type: "boolean", currentValue: true }

  it("a boolean is a choice of two for a client without booleans [ACP-083]", () => {
    assert.deepStrictEqual(configOptions([flag], config, told), [
      { id: "fast", name: "fast", type: "boolean", currentValue: true }
    ])
    assert.deepInclude(configOptions([flag], config, quiet)[0], { type: "select", currentValue: "on" })
  })

  it("the current value is always one of the values [ACP-082]", () => {
    const model: ConfigOption = {
      id: "model",
      type: "select",
      currentValue: "gone",
      selectOptions: [{ id: "a" }, { id: "b" }]
    }
    assert.deepInclude(configOptions([model], config, quiet)[0], { currentValue: "a", category: "model" })
    const chosen = { ...config, model: { providerID: "p", modelID: "b" } }
    assert.deepInclude(configOptions([model], chosen, quiet)[0], { currentValue: "b" })
    assert.isUndefined(modesOf([model], config))
  })
})

describe("endings and errors", () => {
  const failed = (code: "timeout" | "cancel_unacknowledged" | "harness_error", cancelled = false) =>
    stopOf({ type: "error", code, error: "broken", assistantMessageId: "m" }, cancelled)

  it("a turn's end has its word; a cancelled prompt never fails [ACP-180, ACP-121]", () => {
    assert.deepStrictEqual(failed("timeout"), { stopReason: "max_turn_requests", stop: "timeout" })
    assert.deepStrictEqual(failed("cancel_unacknowledged", true), {
      stopReason: "cancelled",
      stop: "cancel_unacknowledged"
    })
    const plain = failed("harness_error")
    assert.deepInclude(plain instanceof Refusal ? plain.data : {}, { reason: "turn_failed", class: "unknown" })
  })

  it("errors have a stable reason and nothing of what failed [ACP-240]", () => {
    const reasonOf = (cause: unknown) => {
      const { code, data } = refusalOf(cause, "ses_1")
      return [code, "reason" in data ? data.reason : undefined]
    }
    assert.deepStrictEqual(reasonOf(new StoreFull({})), [-32_603, "store"])
    assert.deepStrictEqual(reasonOf(new HarnessProcessExited({ harness: "h", stderrTail: "secret" })), [
      -32_603,
      "harness_unavailable"
    ])
    assert.notInclude(
      JSON.stringify(refusalOf(new HarnessProcessExited({ harness: "h", stderrTail: "secret" }), "s")),
      "secret"
    )
    assert.deepStrictEqual(reasonOf(new Internal({ traceId: "t" })), [-32_603, "internal"])
    assert.deepStrictEqual(reasonOf(new Error("secret stack")), [-32_603, "internal"])
    assert.notInclude(refusalOf(new Error("secret stack"), "s").message, "secret")
  })

  it("a position belongs to the list that gave it [ACP-076]", () => {
    const page = encodePage("next", "filter")
    assert.strictEqual(decodePage(page, "filter"), "next")
    assert.isUndefined(decodePage(page, "another"))
    assert.isUndefined(decodePage("????", "filter"))
  })
})
