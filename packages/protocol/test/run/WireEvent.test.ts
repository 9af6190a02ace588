import { assert, describe, it } from "@effect/vitest"
import { Effect, type Schema } from "effect"
import { type Envelope, type EventPayload, eventSchemas, eventTypes } from "@tackroom/protocol/events"
import { fromWireEvent, summaryOf, toWireEvent, type WireEvent } from "@tackroom/protocol/run"

const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const plain = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== "object" || value === null) return Object.is(value, -0) ? 0 : value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, plain(member)]))
}

const at = "2026-11-30T09:00:02.113Z"

const envelope = (payload: EventPayload, rest: Partial<Envelope> = {}): Envelope => ({
  sessionId: "ses_A",
  workspaceId: "default",
  directory: "/srv/app",
  cursor: 11,
  at,
  contractVersion: 1,
  payload,
  ...rest
})

const place = ["session_id", "workspace_id", "directory", "contract_version", "cursor", "payload"]

describe("an event in wire form", () => {
  for (const type of eventTypes) {
    it.effect.prop(
      `${type} is flattened in snake_case, and comes back as it was [RUN-181]`,
      [eventSchemas[type] as unknown as Schema.Codec<EventPayload>],
      ([generated]) =>
        Effect.sync(() => {
          const payload = plain(generated) as EventPayload
          const wire = toWireEvent(envelope(payload, { turnId: "trn_1" }))
          assert.deepInclude(wire, { seq: 11, at, turn_id: "trn_1", type })
          for (const key of Object.keys(wire)) assert.match(key, /^[a-z][a-z_]*$/u)
          const back = fromWireEvent(json(wire) as WireEvent)
          assert.deepStrictEqual(back, { cursor: 11, at, turnId: "trn_1", payload })
          assert.deepStrictEqual(toWireEvent(envelope(payload, { turnId: "trn_1" })), wire)
        }),
      { arbitrary: { runs: 5 } }
    )
  }

  it("has no payload field of the names that the envelope uses [RUN-173]", () => {
    for (const type of eventTypes) {
      const fields = Object.keys((eventSchemas[type] as unknown as Schema.Struct<Schema.Struct.Fields>).fields)
      for (const taken of ["seq", "at", "turnId", "afterTurn", "artifacts"]) assert.notInclude(fields, taken)
    }
  })

  it("leaves out the place and what has no value", () => {
    const wire = toWireEvent(envelope({ type: "conversation-reset", trigger: "user" }))
    assert.deepStrictEqual(Object.keys(wire), ["seq", "at", "type", "trigger"])
    for (const name of place) assert.notProperty(wire, name)
    const late = toWireEvent(envelope({ type: "conversation-reset", trigger: "user" }, { afterTurn: "trn_2" }))
    assert.propertyVal(late, "after_turn", "trn_2")
  })

  it("is the one of the transcripts", () => {
    const metadata = { dispatch: true, tool: "files__write" }
    const payload: EventPayload = { type: "tool-status", toolCallId: "c1", status: "running", metadata }
    assert.strictEqual(
      JSON.stringify(toWireEvent(envelope(payload, { turnId: "trn_1" }))),
      `{"seq":11,"at":"${at}","turn_id":"trn_1","type":"tool-status","tool_call_id":"c1","status":"running","metadata":{"dispatch":true,"tool":"files__write"}}`
    )
  })

  it("maps no name inside free JSON", () => {
    const input = { filePath: "a", nested: { keyName: [{ aB: 1 }] } }
    const wire = toWireEvent(envelope({ type: "tool-input", toolCallId: "c1", input }))
    assert.deepStrictEqual(wire["input"], input)
  })

  it("points at a cut field by its wire name, and back", () => {
    const artifacts = [
      { path: "/finalText", artifactId: "art_1", bytes: 70_000, mime: "text/plain" },
      { path: "/raw/someKey", artifactId: "art_2", bytes: 70_000, mime: "text/plain" }
    ]
    const payload: EventPayload = {
      type: "finish",
      sessionId: "ses_A",
      assistantMessageId: "m_r",
      reason: "end_turn",
      finalText: "…"
    }
    const wire = toWireEvent(envelope(payload, { artifacts }))
    assert.deepStrictEqual(wire.artifacts, [
      { path: "/final_text", artifact_id: "art_1", bytes: 70_000, mime: "text/plain" },
      { path: "/raw/someKey", artifact_id: "art_2", bytes: 70_000, mime: "text/plain" }
    ])
    assert.deepStrictEqual(fromWireEvent(wire)?.artifacts, artifacts)
  })

  it("of an unknown type is written with its values untouched, and skipped by a reader [RUN-175]", () => {
    const payload = { type: "brand-new", someField: { keptAs: "is" } } as unknown as EventPayload
    const wire = toWireEvent(envelope(payload))
    assert.deepInclude(wire, { seq: 11, type: "brand-new", some_field: { keptAs: "is" } })
    assert.isUndefined(fromWireEvent(wire))
  })
})

describe("a summary", () => {
  const alias = "files__write"
  const rows: ReadonlyArray<readonly [string, EventPayload, unknown]> = [
    [
      "a text part's end is a message",
      { type: "text-end", messageId: "m_r", partId: "p", channel: "text", text: "Done" },
      { type: "message", text: "Done" }
    ],
    [
      "a thinking part's end is none",
      { type: "text-end", messageId: "m_r", partId: "p", channel: "thinking", text: "x" },
      null
    ],
    [
      "a dispatch record starts a tool",
      { type: "tool-status", toolCallId: "c", status: "running", metadata: { dispatch: true, tool: alias } },
      { type: "tool_started", tool: alias }
    ],
    [
      "another running status is none",
      { type: "tool-status", toolCallId: "c", status: "running", metadata: { tool: alias } },
      null
    ],
    ["a status without metadata is none", { type: "tool-status", toolCallId: "c", status: "running" }, null],
    [
      "an output finishes a tool",
      { type: "tool-output", toolCallId: "c", output: {}, metadata: { tool: alias, outcome: "completed" } },
      { type: "tool_finished", tool: alias }
    ],
    [
      "an error after dispatch finishes a tool",
      { type: "tool-error", toolCallId: "c", error: "x", metadata: { tool: alias, outcome: "failed" } },
      { type: "tool_finished", tool: alias }
    ],
    [
      "a call that did not run finishes nothing",
      {
        type: "tool-error",
        toolCallId: "c",
        error: "x",
        code: "denied",
        metadata: { tool: alias, outcome: "not_run" }
      },
      null
    ],
    [
      "an uncertain end finishes a tool",
      { type: "tool-status", toolCallId: "c", status: "uncertain", metadata: { tool: alias, outcome: "unknown" } },
      { type: "tool_finished", tool: alias }
    ],
    [
      "an approval by the policy is told",
      { type: "permission-resolved", requestId: "int_1", tool: alias, decision: "allow_once", origin: "app_policy" },
      { type: "auto_approved", tool: alias }
    ],
    [
      "an approval by the reviewer is told",
      { type: "permission-resolved", requestId: "int_1", tool: alias, decision: "allow_once", origin: "reviewer" },
      { type: "auto_approved", tool: alias }
    ],
    [
      "an approval by a person is none",
      { type: "permission-resolved", requestId: "int_1", tool: alias, decision: "allow_once", origin: "person" },
      null
    ],
    [
      "an approval by a grant is none",
      { type: "permission-resolved", requestId: "int_1", tool: alias, decision: "allow_once", origin: "grant" },
      null
    ],
    [
      "a todo list updates the plan",
      {
        type: "todo-update",
        todos: [
          { id: "1", content: "a", status: "pending", priority: "high" },
          { content: "b", status: "completed" }
        ]
      },
      {
        type: "plan_updated",
        plan: {
          items: [
            { id: "1", content: "a", status: "pending" },
            { content: "b", status: "completed" }
          ]
        }
      }
    ],
    [
      "a proposed plan updates the plan",
      { type: "proposed-plan-complete", planMarkdown: "# Plan" },
      { type: "plan_updated", plan: { markdown: "# Plan" } }
    ],
    ["every other event is none", { type: "step-start", newMessageId: "m2" }, null]
  ]
  for (const [name, payload, expected] of rows) {
    it(`${name} [RUN-180]`, () => {
      assert.deepStrictEqual(summaryOf(payload), expected)
    })
  }

  for (const type of eventTypes) {
    it.effect.prop(
      `of ${type} is the same for the event as it is and as it is replayed [RUN-180]`,
      [eventSchemas[type] as unknown as Schema.Codec<EventPayload>],
      ([generated]) =>
        Effect.sync(() => {
          const payload = plain(generated) as EventPayload
          const replayed = fromWireEvent(json(toWireEvent(envelope(payload))) as WireEvent)
          assert.isDefined(replayed)
          if (replayed !== undefined) assert.deepStrictEqual(summaryOf(replayed.payload), summaryOf(payload))
        }),
      { arbitrary: { runs: 3 } }
    )
  }
})
