import { assert, describe, it } from "@effect/vitest"
import type { HarnessEvent } from "@tackroom/protocol/events"
import { Schema } from "effect"
import { elicitationAnswerOf, questionsOf } from "../../src/harness/acp/Elicitations.ts"
import { permissionAnswerOf } from "../../src/harness/acp/Permissions.ts"
import { profileOf } from "../../src/harness/acp/Profiles.ts"
import { promptBlocks } from "../../src/harness/acp/Prompts.ts"
import { type Frame, updateReader } from "../../src/harness/acp/Updates.ts"
import { makeFrames } from "../../src/harness/Frames.ts"

const update = (sessionUpdate: string, more: Record<string, unknown> = {}): Frame => ({
  _tag: "Update",
  update: { sessionUpdate, ...more }
})

const read = (...frames: ReadonlyArray<Frame>): ReadonlyArray<HarnessEvent> => {
  const reader = makeFrames(updateReader)
  reader.accept({ _tag: "Turn", messageId: "m" })
  return frames.flatMap((frame) => reader.accept(frame))
}

const chunk = (text: string, messageId?: string) =>
  update("agent_message_chunk", { content: { type: "text", text }, ...(messageId === undefined ? {} : { messageId }) })

const Status = Schema.Literals(["pending", "in_progress", "completed", "failed"])

const AnyCall = Schema.Struct({
  sessionUpdate: Schema.Literals(["tool_call", "tool_call_update"]),
  toolCallId: Schema.Literals(["a", "b"]),
  title: Schema.optionalKey(Schema.NullOr(Schema.String)),
  kind: Schema.optionalKey(Schema.Literals(["read", "execute", "other", "unheard of"])),
  status: Schema.optionalKey(Schema.NullOr(Status)),
  rawInput: Schema.optionalKey(Schema.Json),
  rawOutput: Schema.optionalKey(Schema.Json),
  content: Schema.optionalKey(Schema.Json),
  locations: Schema.optionalKey(Schema.Json)
})

const AnyUpdate = Schema.Union([
  AnyCall,
  Schema.Struct({ sessionUpdate: Schema.String, content: Schema.Json, entries: Schema.Json, used: Schema.Json })
])

describe("the updates of an ACP agent", () => {
  it("text goes on in one part until another message or a call comes between", () => {
    const parts = read(
      chunk("a"),
      chunk("b"),
      chunk("c", "2"),
      update("tool_call", { toolCallId: "t", title: "T" }),
      chunk("d", "2")
    ).flatMap((event) => (event.type === "text-delta" ? [event.partId] : []))
    assert.deepStrictEqual(parts, ["m.p1", "m.p1", "m.p2", "m.p3"])
  })

  it("what an agent's own terminal shows is the call's output, with the exit of its command", () => {
    const meta = (more: Record<string, unknown>) => ({ toolCallId: "t", _meta: more })
    const events = read(
      update("tool_call", { toolCallId: "t", title: "make", status: "in_progress" }),
      update("tool_call_update", meta({ terminal_output_delta: { data: "one\n", terminal_id: "t" } })),
      update("tool_call_update", {
        ...meta({ terminal_output_delta: { data: "two\n" }, terminal_exit: { exit_code: 0 } }),
        status: "completed"
      })
    )
    assert.deepStrictEqual(
      events.flatMap((event) => (event.type === "tool-output-delta" ? [[event.delta, event.stream]] : [])),
      [
        ["one\n", "combined"],
        ["two\n", "combined"]
      ]
    )
    assert.deepInclude(events.at(-1), { type: "tool-output", output: "one\ntwo\n", metadata: { exitCode: 0 } })
  })

  it("commands, options and inputs that are said again are not told again", () => {
    const commands = update("available_commands_update", { availableCommands: [{ name: "go" }] })
    const options = update("config_option_update", {
      configOptions: [{ id: "m", type: "boolean", currentValue: true }]
    })
    const call = (rawInput: unknown) => update("tool_call_update", { toolCallId: "t", title: "T", rawInput })
    const whole = { command: "ls", cwd: "/" }
    const events = read(commands, options, commands, options, call(whole), call({ command: "ls" }), call(whole))
    assert.deepStrictEqual(
      events.map(({ type }) => type),
      ["available-commands-update", "config-update", "tool-start", "tool-input"]
    )
    assert.strictEqual(read(call({ command: "l" }), call({ command: "ls" })).length, 3)
  })

  it.prop(
    "a call begins once, before anything else is said of it, and ends at most once, whatever the agent sends [HRN-014]",
    [Schema.Array(AnyUpdate)],
    ([updates]) => {
      const events = read(...updates.map((body): Frame => ({ _tag: "Update", update: body })))
      const begun = new Set<string>()
      const ended = new Set<string>()
      for (const event of events) {
        if (!("toolCallId" in event) || event.toolCallId === undefined) continue
        if (event.type === "tool-start") begun.add(event.toolCallId)
        assert.isTrue(begun.has(event.toolCallId))
        assert.isFalse(ended.has(event.toolCallId), "something after the end")
        if (event.type === "tool-output" || event.type === "tool-error") ended.add(event.toolCallId)
      }
    }
  )

  it.prop("no update of any shape throws", [Schema.Array(Schema.Json)], ([updates]) => {
    read(
      ...updates.map((body): Frame => ({
        _tag: "Update",
        update: typeof body === "object" && body !== null ? { ...body } : {}
      }))
    )
  })

  it("an effect that another tackroom reports as unknown stays unknown", () => {
    const events = read(
      update("tool_call", { toolCallId: "t", title: "T", status: "in_progress" }),
      update("tool_call_update", { toolCallId: "t", status: "failed", _meta: { tackroom: { uncertain: true } } })
    )
    assert.deepInclude(events.at(-1), { type: "tool-status", status: "uncertain" })
  })
})

describe("answers to an ACP agent", () => {
  const options = [
    { optionId: "b", name: "B", kind: "reject_once" as const },
    { optionId: "a", name: "A", kind: "allow_once" as const },
    { optionId: "a2", name: "A2", kind: "allow_once" as const }
  ]
  const decided = (decision: "allow_once" | "allow_always" | "deny" | "reject_always", optionId?: string) =>
    permissionAnswerOf(options, {
      interactionId: "int_1",
      decision,
      origin: "person",
      ...(optionId === undefined ? {} : { optionId })
    }).outcome

  it("an option of the decision's kind is selected, the named one if it is of that kind [HRN-108]", () => {
    assert.deepStrictEqual(decided("allow_once"), { outcome: "selected", optionId: "a" })
    assert.deepStrictEqual(decided("allow_once", "a2"), { outcome: "selected", optionId: "a2" })
    assert.deepStrictEqual(decided("allow_always"), { outcome: "selected", optionId: "a" })
    assert.deepStrictEqual(decided("deny"), { outcome: "selected", optionId: "b" })
  })

  it("a refusal never selects a grant, and a decision without an option is cancelled [HRN-108]", () => {
    assert.deepStrictEqual(decided("deny", "a"), { outcome: "selected", optionId: "b" })
    assert.deepStrictEqual(permissionAnswerOf(options, undefined).outcome, { outcome: "cancelled" })
    const onlyGrants = options.slice(1)
    const answer = permissionAnswerOf(onlyGrants, { interactionId: "i", decision: "deny", origin: "person" })
    assert.deepStrictEqual(answer.outcome, { outcome: "cancelled" })
  })

  it("a form's fields are questions, and answers go back in the form's types", () => {
    const asked = questionsOf({
      mode: "form",
      sessionId: "s",
      message: "Tell me",
      requestedSchema: {
        type: "object",
        properties: {
          sure: { type: "boolean", title: "Sure?" },
          count: { type: "integer" },
          many: { type: "array", items: { anyOf: [{ const: "1", title: "One" }] } },
          free: { type: "string" }
        }
      }
    })
    assert.isDefined(asked)
    assert.deepStrictEqual(
      asked.questions.map(({ custom, multiple, options, question }) => [question, options.length, multiple, custom]),
      [
        ["Sure?", 2, undefined, false],
        ["Tell me", 0, undefined, true],
        ["Tell me", 1, true, false],
        ["Tell me", 0, undefined, true]
      ]
    )
    assert.deepStrictEqual(elicitationAnswerOf(asked, [["Yes"], ["3"], ["One"], ["words"]]), {
      action: "accept",
      content: { sure: true, count: 3, many: ["1"], free: "words" }
    })
    assert.deepStrictEqual(elicitationAnswerOf(asked, null), { action: "decline" })
    assert.deepStrictEqual(elicitationAnswerOf(asked, undefined), { action: "cancel" })
  })

  it("a prompt's parts are blocks; what the agent does not take is refused", () => {
    const takes = { image: true, audio: false, embedded: false }
    const how = { takes, directory: "/w", instructions: undefined }
    assert.deepStrictEqual(
      promptBlocks(
        {
          parts: [
            { type: "text", text: "see" },
            { type: "file", mime: "image/png", data: "AAAA" },
            { type: "file", mime: "text/plain", url: "a b.txt" },
            { type: "agent", name: "helper" }
          ]
        },
        how
      ),
      [
        { type: "text", text: "see" },
        { type: "image", mimeType: "image/png", data: "AAAA" },
        { type: "resource_link", uri: "file:///w/a%20b.txt", name: "a b.txt", mimeType: "text/plain" },
        { type: "text", text: "@helper" }
      ]
    )
    assert.property(promptBlocks({ parts: [{ type: "file", mime: "audio/wav", data: "AAAA" }] }, how), "refused")
  })

  it("the row of an agent is found by its name [HRN-106]", () => {
    assert.isFalse(profileOf("gemini-cli").resumes)
    assert.isTrue(profileOf("some agent").resumes)
    assert.strictEqual(profileOf("@agentclientprotocol/claude-agent-acp").askingMode, "default")
  })
})
