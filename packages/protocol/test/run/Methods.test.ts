import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import * as Events from "@tackroom/protocol/events"
import * as Run from "@tackroom/protocol/run"
import {
  capabilityKeys,
  capabilityName,
  decodeParams,
  effectiveLimits,
  effectiveMaxEvents,
  effectiveWaitMs,
  isMethodName,
  isNotificationName,
  limitKeys,
  limitName,
  limits,
  lowerableLimits,
  methodNames,
  methods,
  notificationNames,
  notifications,
  requestKind
} from "@tackroom/protocol/run"
import { fromWireName, toWireName } from "@tackroom/protocol/text"
import { fieldNames, schemasOf } from "../events/Schemas.ts"

/** Section 2 of the specification: every method and the capability that gates it. */
const table: Readonly<Record<string, string | null>> = {
  initialize: null,
  "host/info": null,
  "agent/register": "dynamic_agents",
  "agent/list": "agent_runs",
  "agent/session": "agent_runs",
  "agent/close": "agent_runs",
  "run/start": "agent_runs",
  "run/wait": "agent_runs",
  "run/respond": "agent_runs",
  "run/cancel": "agent_runs",
  "session/send": "session_send",
  "session/state": "session_send",
  "session/attach": "agent_runs",
  "session/list": "session_list",
  "session/revoke": "session_send",
  "turn/start": "agent_runs",
  "event/read": "agent_runs",
  "interaction/respond": "agent_runs",
  "artifact/read": "artifacts",
  "team/get": "teams",
  "team/list": "teams",
  "team/cancel": "teams",
  "team/task": "teams",
  "provider/set": "providers",
  "provider/list": "providers",
  "connection/set": "providers",
  "connection/list": "providers",
  "connection/remove": "providers",
  "mcp/register": "mcp_servers",
  "mcp/list": "mcp_servers",
  "application/register": "application_callbacks",
  "memory/list": "memory_tools",
  "memory/forget": "memory_tools",
  "schedule/list": "scheduled_tasks",
  "schedule/cancel": "scheduled_tasks"
}

describe("the method table", () => {
  it("has every method with its capability, and no other [RUN-123]", () => {
    const actual = methodNames.map((name) => {
      const { capability } = methods[name]
      return [name, capability === null ? null : capabilityName(capability)]
    })
    assert.deepStrictEqual(Object.fromEntries(actual), table)
  })

  it("names an idempotency key for whatever can change something, but initialize", () => {
    for (const name of methodNames) {
      const row: Run.MethodRow = methods[name]
      assert.strictEqual(row.idempotencyKey !== undefined, row.mutating && name !== "initialize", name)
    }
  })

  it("has the notifications, each in one direction", () => {
    assert.deepStrictEqual(
      notificationNames.map((name) => [name, notifications[name].direction]),
      [
        ["application/event", "host_to_app"],
        ["application/result", "app_to_host"],
        ["application/progress", "app_to_host"]
      ]
    )
  })

  it("knows its names, and those only", () => {
    assert.isTrue(isMethodName("run/wait"))
    for (const name of ["application/result", "run/Wait", "__proto__", "constructor", "toString", ""]) {
      assert.isFalse(isMethodName(name))
    }
    assert.isTrue(isNotificationName("application/result"))
    assert.isFalse(isNotificationName("run/wait"))
  })
})

describe("the kind of a request", () => {
  const kindOf = (method: Run.MethodName, params: unknown): Run.RequestKind => {
    const decoded = decodeParams(method, params)
    return Result.isFailure(decoded) ? assert.fail(decoded.failure.message) : requestKind(method, decoded.success)
  }
  const session = { session_id: "s" }
  const answer = { type: "answer", interaction_id: "i", text: "x" }

  it("is control for a decision, an answer and a cancel [RUN-032]", () => {
    const respond = { ...session, interaction_id: "i", answer: "x" }
    for (const name of ["run/respond", "interaction/respond"] as const)
      assert.strictEqual(kindOf(name, respond), "control")
    assert.strictEqual(kindOf("run/cancel", session), "control")
    assert.strictEqual(kindOf("team/cancel", { team_id: "t" }), "control")
    assert.strictEqual(kindOf("session/send", { ...session, input: answer }), "control")
    assert.strictEqual(kindOf("session/send", { ...session, input: { text: "x" } }), "ordinary")
  })

  it("is wait for run/wait, and for event/read with a time to wait [RUN-033]", () => {
    assert.strictEqual(kindOf("run/wait", session), "wait")
    assert.strictEqual(kindOf("event/read", { ...session, wait_ms: 1 }), "wait")
    assert.strictEqual(kindOf("event/read", { ...session, wait_ms: 0 }), "ordinary")
    assert.strictEqual(kindOf("event/read", session), "ordinary")
  })
})

describe("the limits", () => {
  it("have the wire names and values of section 29", () => {
    const wire = Object.fromEntries(limitKeys.map((key) => [limitName(key), limits[key]]))
    assert.lengthOf(limitKeys, 36)
    assert.deepInclude(wire, {
      frame_bytes: 1_048_576,
      wait_ms_default: 1_000,
      wait_ms_max: 5_000,
      max_events_default: 256,
      max_events_max: 1_000,
      event_page_bytes: 524_288,
      event_bytes: 262_144,
      inline_bytes: 65_536,
      artifact_bytes: 33_554_432,
      artifact_chunk_bytes: 524_288,
      text_bytes: 524_288,
      answer_bytes: 16_384,
      instructions_bytes: 262_144,
      pending_requests: 256,
      pending_request_bytes: 16_777_216,
      active_turns: 32,
      agents: 16,
      subagents: 15,
      subagent_levels: 1,
      tools_per_agent: 128,
      application_tools: 128,
      application_pending: 64,
      application_result_bytes: 131_072,
      application_idle_ms: 120_000,
      application_timeout_ms: 600_000,
      providers: 64,
      mcp_servers: 16,
      mcp_tools: 512,
      memory_entries: 1_000,
      memory_entry_bytes: 8_192,
      schedules_per_session: 32,
      schedule_min_interval_s: 60,
      team_tasks: 256,
      team_deliveries_per_run: 200,
      shell_timeout_s_default: 120,
      shell_timeout_s_max: 600
    })
  })

  it("of a host are the table's, lowered where its configuration says so", () => {
    assert.deepStrictEqual(effectiveLimits(), limits)
    assert.deepStrictEqual(effectiveLimits({ activeTurns: 2 }), { ...limits, activeTurns: 2 })
    assert.lengthOf(lowerableLimits, 4)
  })

  it("make a longer wait and a larger page count as the largest [RUN-036, RUN-190]", () => {
    assert.deepStrictEqual(
      [undefined, 0, 4_999, 5_000, 5_001, 1e9].map((ms) => effectiveWaitMs(ms)),
      [1_000, 0, 4_999, 5_000, 5_000, 5_000]
    )
    assert.strictEqual(effectiveWaitMs(undefined, 0), 0)
    assert.deepStrictEqual(
      [undefined, 1, 1_000, 1_001].map((events) => effectiveMaxEvents(events)),
      [256, 1, 1_000, 1_000]
    )
    assert.strictEqual(effectiveMaxEvents(undefined, 100), 100)
  })
})

describe("the capabilities", () => {
  it("have the wire names of section 7", () => {
    assert.deepStrictEqual(capabilityKeys.map(capabilityName), [
      "agent_runs",
      "dynamic_agents",
      "application_callbacks",
      "session_send",
      "session_model_override",
      "memory_tools",
      "scheduled_tasks",
      "providers",
      "mcp_servers",
      "teams",
      "artifacts",
      "session_list",
      "secure_storage",
      "scripted_provider"
    ])
  })
})

describe("the exported schemas", () => {
  it("have names that the key mapping takes there and back, no two to one", () => {
    const schemas = [
      ...schemasOf(Run).map(([, schema]) => schema),
      ...methodNames.flatMap((name) => [methods[name].params, methods[name].result])
    ]
    const names = new Set(schemas.flatMap((schema) => Array.from(fieldNames(schema))))
    const wire = new Map([...names].map((name) => [toWireName(name), name]))
    assert.strictEqual(wire.size, names.size)
    for (const [key, name] of wire) assert.strictEqual(fromWireName(key), name)
  })

  it("have identifiers of their own", () => {
    const seen = new Map<string, unknown>()
    for (const [name, schema] of [...schemasOf(Run), ...schemasOf(Events)]) {
      const identifier = Schema.resolveAnnotations(schema)?.["identifier"]
      if (typeof identifier !== "string") continue
      const known = seen.get(identifier)
      assert.isTrue(known === undefined || known === schema, `${name}: another schema is called ${identifier}`)
      seen.set(identifier, schema)
    }
    assert.isAbove(seen.size, 100)
  })
})
