import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema, Struct } from "effect"
import {
  AgentDefinition,
  ApplicationResult,
  decodeNotification,
  decodeParams,
  decodeResult,
  encodeParams,
  encodeResult,
  HostConfig,
  type InvalidParams,
  methodNames,
  methods,
  notificationNames,
  notifications,
  RespondParams,
  MemoryForgetParams,
  MemoryListParams,
  SubagentDefinition,
  TeamTaskParams,
  toErrorObject,
  unknownFields,
  type WireCodec,
  wireCodec
} from "@tackroom/protocol/run"

const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

/** Generated values may have no prototype; what goes over a wire has one. */
const plain = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== "object" || value === null) return Object.is(value, -0) ? 0 : value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, plain(member)]))
}

const succeeded = <A>(result: Result.Result<A, InvalidParams>): A =>
  Result.isFailure(result) ? assert.fail(result.failure.message) : result.success

const failed = <A>(result: Result.Result<A, InvalidParams>): InvalidParams =>
  Result.isSuccess(result) ? assert.fail("decoding succeeded") : result.failure

/** The two halves of params that take exactly one of two fields: a generator finds neither by chance. */
const oneOf = (schema: { readonly fields: Schema.Struct.Fields }, first: string, second: string): Schema.Constraint => {
  const half = (name: string, other: string) => {
    const optional = schema.fields[name] as Schema.optionalKey<Schema.Constraint>
    return Schema.Struct({ ...Struct.omit(schema.fields, [other]), [name]: optional.schema })
  }
  return Schema.Union([half(first, second), half(second, first)])
}

const on = Schema.Literal(true)
const worker = Schema.Struct({ ...Struct.omit(SubagentDefinition.fields, ["approvals"]), planning: on, memory: on })
const agent = Schema.Struct({
  ...Struct.omit(AgentDefinition.fields, ["approvals"]),
  planning: on,
  memory: on,
  subagents: Schema.Array(worker).check(Schema.isMaxLength(3))
})

const generators: { readonly [name: string]: Schema.Constraint } = {
  "params of agent/register": Schema.Struct({ agent }),
  "params of run/respond": oneOf(RespondParams, "decision", "answer"),
  "params of interaction/respond": oneOf(RespondParams, "decision", "answer"),
  "params of team/task": oneOf(TeamTaskParams, "add", "transition"),
  "params of memory/list": oneOf(MemoryListParams, "agent", "memoryScope"),
  "params of memory/forget": oneOf(MemoryForgetParams, "agent", "memoryScope"),
  "application/result": oneOf(ApplicationResult, "output", "error")
}

const messages: ReadonlyArray<readonly [string, Schema.Constraint]> = [
  ...methodNames.flatMap((name): ReadonlyArray<readonly [string, Schema.Constraint]> => [
    [`params of ${name}`, methods[name].params],
    [`result of ${name}`, methods[name].result]
  ]),
  ...notificationNames.map((name): readonly [string, Schema.Constraint] => [name, notifications[name].params]),
  ["HostConfig", HostConfig]
]

const strangers = (value: unknown): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? { ...value, not_in_the_table: { deep: [1] }, notInTheTable: 1, constructor: "x" }
    : value

describe("every message", () => {
  for (const [name, schema] of messages) {
    const codec: WireCodec<unknown> = wireCodec(schema)
    it.effect.prop(
      `${name}: what was encoded decodes to itself, and unknown members are dropped both ways [RUN-590]`,
      [(generators[name] ?? schema) as Schema.Codec<unknown>],
      ([generated]) =>
        Effect.sync(() => {
          const value = plain(generated)
          const wire = json(codec.encode(value))
          const decoded = succeeded(codec.decode(wire))
          assert.deepStrictEqual(decoded, value)
          assert.deepStrictEqual(json(codec.encode(decoded)), wire)
          assert.deepStrictEqual(succeeded(codec.decode(strangers(wire))), value)
          assert.deepStrictEqual(json(codec.encode(strangers(value))), wire)
        }),
      { arbitrary: { runs: 10 } }
    )
  }
})

const session = { session_id: "ses_A" }
const start = { ...session, submission_id: "m-1", text: "hello" }
const member = { id: "a", instructions: "", tools: ["files.read"] }

describe("input", () => {
  it("takes null for absent where a field is optional, and only there", () => {
    const params = { ...session, submission_id: null, wait_ms: null, cursors: null, max_events: null, journal_id: null }
    assert.deepStrictEqual(succeeded(decodeParams("run/wait", params)), { sessionId: "ses_A" })
    assert.strictEqual(failed(decodeParams("run/wait", { session_id: null })).path, "session_id")
    const agent = { ...member, name: null, model: null, subagents: null, approvals: { mode: "always", tools: null } }
    assert.deepStrictEqual(succeeded(decodeParams("agent/register", { agent })), {
      agent: { ...member, approvals: { mode: "always" } }
    })
  })

  it("keeps a null that is a value", () => {
    const wire = { owner: "crm", invocation_id: "inv_1", output: null }
    assert.deepStrictEqual(succeeded(decodeNotification("application/result", wire)), {
      owner: "crm",
      invocationId: "inv_1",
      output: null
    })
    const config = wireCodec(HostConfig)
    assert.deepStrictEqual(succeeded(config.decode({ state_dir: "/state", telemetry: null, storage: null })), {
      stateDir: "/state",
      telemetry: null
    })
  })

  it("takes absent params for empty ones", () => {
    assert.deepStrictEqual(succeeded(decodeParams("agent/list", undefined)), {})
    assert.strictEqual(failed(decodeParams("session/state", undefined)).path, "session_id")
    for (const params of ["x", [], 1])
      assert.strictEqual(failed(decodeParams("agent/list", params)).expected, "an object")
  })

  it("ignores a field under its TypeScript name", () => {
    assert.deepStrictEqual(succeeded(decodeParams("run/wait", { ...session, waitMs: 5, submissionId: "x" })), {
      sessionId: "ses_A"
    })
  })

  it("takes a key such as __proto__ as plain data, in both directions [RUN-013]", () => {
    const params = JSON.parse(
      '{"session_id":"ses_A","cursors":{"__proto__":4,"constructor":5},"__proto__":{"wait_ms":9}}'
    )
    const decoded = succeeded(decodeParams("run/wait", params))
    assert.deepStrictEqual(Object.entries(decoded.cursors ?? {}), [
      ["__proto__", 4],
      ["constructor", 5]
    ])
    assert.isUndefined(decoded.waitMs)
    assert.strictEqual(
      JSON.stringify(encodeParams("run/wait", decoded)),
      '{"session_id":"ses_A","cursors":{"__proto__":4,"constructor":5}}'
    )
    const errors = JSON.parse('{"__proto__":{"kind":"busy","message":"later"}}')
    const result = { cancelled: [], teamCancelled: false, errors }
    assert.strictEqual(
      JSON.stringify(encodeResult("run/cancel", result)),
      '{"cancelled":[],"team_cancelled":false,"errors":{"__proto__":{"kind":"busy","message":"later"}}}'
    )
  })

  it("lets lone surrogates and U+0000 of a text through unchanged [RUN-014]", () => {
    const text = "a\ud800b\u0000c\u2028"
    assert.strictEqual(succeeded(decodeParams("run/start", { ...start, text })).text, text)
  })

  it("maps no key of free JSON and of maps", () => {
    const tools = [
      {
        qualified_name: "crm.add",
        description: "Add",
        version: "1",
        input_schema: { type: "object", my_key: { aB: 1 } }
      }
    ]
    const decoded = succeeded(decodeParams("application/register", { owner: "crm", tools }))
    assert.deepStrictEqual(decoded.tools[0]?.inputSchema, { type: "object", my_key: { aB: 1 } })
    const mcp = { name: "git", transport: { type: "stdio", command: "git-mcp", env: { GIT_DIR: "x", some_key: "y" } } }
    assert.deepStrictEqual(encodeParams("mcp/register", succeeded(decodeParams("mcp/register", mcp))), mcp)
  })

  it("takes an input without type for a message [RUN-362]", () => {
    assert.deepStrictEqual(succeeded(decodeParams("session/send", { ...session, input: { text: "hi" } })).input, {
      type: "message",
      text: "hi"
    })
    const answer = { type: "answer", interaction_id: "int_4", text: "2025" }
    assert.deepStrictEqual(
      encodeParams("session/send", succeeded(decodeParams("session/send", { ...session, input: answer }))),
      { ...session, input: answer }
    )
  })

  it("lets every value of a cursor through to the host, which answers invalid_cursor [RUN-141]", () => {
    const cursors = { ses_A: "x", ses_B: 1.5, ses_C: -1 }
    assert.deepStrictEqual(succeeded(decodeParams("run/wait", { ...session, cursors })).cursors, cursors)
    assert.strictEqual(succeeded(decodeParams("event/read", { ...session, after: "x" })).after, "x")
    assert.strictEqual(failed(decodeParams("run/wait", { ...session, cursors: [] })).path, "cursors")
  })
})

describe("invalid params", () => {
  it("name the first bad field by its wire path, and at most ten [RUN-061]", () => {
    const error = failed(
      decodeParams("agent/register", {
        agent: {
          ...member,
          max_rounds: 0,
          subagents: [
            { ...member, id: "b" },
            { ...member, id: "-", memory_scope: 7, max_output_tokens: "many" }
          ]
        }
      })
    )
    assert.deepStrictEqual(
      error.issues.map(({ path }) => path),
      [
        "agent.max_rounds",
        "agent.subagents[1].id",
        "agent.subagents[1].memory_scope",
        "agent.subagents[1].max_output_tokens"
      ]
    )
    assert.strictEqual(error.path, "agent.max_rounds")
    assert.strictEqual(error.expected, "an integer from 1 to 1000")
    const many = Array.from({ length: 12 }, () => 1)
    assert.strictEqual(failed(decodeParams("run/wait", { ...session, known_interactions: many })).issues.length, 10)
  })

  it("quote a key that is no plain name", () => {
    const transport = { type: "stdio", command: "x", env: { "a b": 1 } }
    assert.strictEqual(failed(decodeParams("mcp/register", { name: "git", transport })).path, 'transport.env["a b"]')
  })

  it("say what was expected and never repeat a value [RUN-061]", () => {
    const secret = "sk-THE-SECRET"
    const cases = [
      decodeParams("provider/set", { name: secret + "!", api: secret, base_url: secret, credentials: secret }),
      decodeParams("provider/set", {
        name: "x",
        api: "responses",
        credentials: { api_key: secret + "\n", storage: secret }
      }),
      decodeParams("run/respond", { ...session, interaction_id: "i", decision: secret }),
      decodeParams("session/send", { ...session, input: { type: secret } }),
      decodeParams("agent/register", { agent: { ...member, approvals: { mode: "only", tools: [`x.${secret}`] } } }),
      decodeParams("mcp/register", { name: "git", transport: { type: "http", url: secret } })
    ]
    for (const result of cases) {
      const text = JSON.stringify(toErrorObject(failed(result as Result.Result<unknown, InvalidParams>)))
      assert.notInclude(text, secret)
    }
  })

  it("are the same for the wrong field, both and none of an answer [RUN-440]", () => {
    const respond = { ...session, interaction_id: "int_1" }
    assert.strictEqual(failed(decodeParams("run/respond", respond)).expected, "exactly one of decision and answer")
    failed(decodeParams("run/respond", { ...respond, decision: "once", answer: "x" }))
    assert.strictEqual(failed(decodeParams("memory/list", {})).expected, "exactly one of agent and memory_scope")
    succeeded(decodeParams("run/respond", { ...respond, decision: "once", answer: null }))
  })
})

const accepts = (value: unknown, decode: (value: unknown) => Result.Result<unknown, InvalidParams>): boolean =>
  Result.isSuccess(decode(value))

describe("bounds", () => {
  it("hold the same for every caller of the codec, whatever carries the params [RUN-590]", () => {
    const frozen = Object.freeze({ ...start, text: "x" })
    assert.deepStrictEqual(succeeded(decodeParams("turn/start", frozen)), succeeded(decodeParams("run/start", frozen)))
  })

  it("a text has 524,288 bytes at most, counted in UTF-8, and is not blank", () => {
    const decode = (text: unknown) => decodeParams("run/start", { ...start, text })
    assert.isTrue(accepts("a".repeat(524_288), decode))
    assert.isFalse(accepts("a".repeat(524_289), decode))
    assert.isTrue(accepts("é".repeat(262_144), decode))
    assert.isFalse(accepts(`${"é".repeat(262_144)}a`, decode))
    assert.isTrue(accepts("😀".repeat(131_072), decode))
    assert.isFalse(accepts("😀".repeat(131_073), decode))
    for (const blank of ["", " ", "\n\t\u00a0"]) assert.isFalse(accepts(blank, decode))
  })

  it("a submission id has 1 to 200 characters, no control characters and no reserved prefix", () => {
    const decode = (id: unknown) => decodeParams("run/start", { ...start, submission_id: id })
    assert.isTrue(accepts("😀".repeat(200), decode))
    assert.isFalse(accepts("😀".repeat(201), decode))
    assert.isTrue(accepts("x".repeat(200), decode))
    for (const id of ["", "x".repeat(201), "a\u0000", "a\n", "a\u0085", "a\ud800", 1])
      assert.isFalse(accepts(id, decode))
    for (const prefix of ["ow-schedule/", "schedule/", "team/", "goal/"]) {
      assert.isFalse(accepts(`${prefix}1`, decode))
      assert.isTrue(accepts(`x${prefix}1`, decode))
      const send = (id: unknown) =>
        decodeParams("session/send", { ...session, submission_id: id, input: { text: "x" } })
      assert.isFalse(accepts(`${prefix}1`, send))
      const wait = (id: unknown) => decodeParams("run/wait", { ...session, submission_id: id })
      assert.isTrue(accepts(`${prefix}1`, wait))
    }
  })

  it("beside a control, a submission id may be one of the host's own [RUN-363]", () => {
    const input = { type: "approval", interaction_id: "int_1", decision: "once" }
    const decode = (id: unknown) => decodeParams("session/send", { ...session, submission_id: id, input })
    assert.isTrue(accepts("ow-schedule/sch_1/170", decode))
  })

  it("instructions have 262,144 bytes at most", () => {
    const decode = (instructions: unknown) => decodeParams("agent/register", { agent: { ...member, instructions } })
    assert.isTrue(accepts("", decode))
    assert.isTrue(accepts("é".repeat(131_072), decode))
    assert.isFalse(accepts(`${"é".repeat(131_072)}a`, decode))
  })

  it("an answer has 1 to 16,384 bytes, a reason 2,000 characters", () => {
    const decode = (answer: unknown) => decodeParams("run/respond", { ...session, interaction_id: "i", answer })
    assert.isTrue(accepts("a".repeat(16_384), decode))
    for (const answer of ["", "a".repeat(16_385)]) assert.isFalse(accepts(answer, decode))
    const reason = (text: unknown) =>
      decodeParams("run/respond", { ...session, interaction_id: "i", decision: "deny", reason: text })
    assert.isTrue(accepts("😀".repeat(2_000), reason))
    assert.isFalse(accepts("😀".repeat(2_001), reason))
  })

  it("an id has at most 200 characters, whatever they are", () => {
    const decode = (id: unknown) => decodeParams("session/state", { session_id: id })
    assert.isTrue(accepts("", decode))
    assert.isTrue(accepts("😀".repeat(200), decode))
    assert.isFalse(accepts("x".repeat(201), decode))
  })

  it("a wait is a whole number of milliseconds from 0 on, and a page holds at least one event [RUN-036, RUN-190]", () => {
    const wait = (waitMs: unknown) => decodeParams("run/wait", { ...session, wait_ms: waitMs })
    for (const ms of [0, 5_000, 60_000]) assert.isTrue(accepts(ms, wait))
    for (const ms of [-1, 0.5, "1"]) assert.isFalse(accepts(ms, wait))
    const page = (maxEvents: unknown) => decodeParams("event/read", { ...session, max_events: maxEvents })
    for (const events of [1, 1_000, 5_000]) assert.isTrue(accepts(events, page))
    assert.isFalse(accepts(0, page))
  })

  it("a piece of an artifact has 1 to 524,288 bytes from an offset of 0 on", () => {
    const read = (piece: object) => decodeParams("artifact/read", { ...session, artifact_id: "art_1", ...piece })
    const decode = (piece: unknown) => read(piece as object)
    for (const piece of [{ length: 1 }, { length: 524_288 }, { offset: 0 }]) assert.isTrue(accepts(piece, decode))
    for (const piece of [{ length: 0 }, { length: 524_289 }, { offset: -1 }]) assert.isFalse(accepts(piece, decode))
  })

  it("a workspace is an absolute path of at most 4,096 bytes", () => {
    const decode = (workspace: unknown) => decodeParams("agent/session", { agent: "a", workspace })
    for (const path of ["/srv/app", "C:\\work", `/${"a".repeat(4_095)}`]) assert.isTrue(accepts(path, decode))
    for (const path of ["", "srv/app", "./x", "/a\u0000", `/${"a".repeat(4_096)}`]) {
      assert.isFalse(accepts(path, decode))
    }
  })

  it("a base URL is http or https, without user info, query or fragment", () => {
    const decode = (url: unknown) => decodeParams("provider/set", { name: "x", api: "responses", base_url: url })
    for (const url of ["https://api.example.org/v1", "HTTP://localhost:8080", "http://[::1]:1/x"]) {
      assert.isTrue(accepts(url, decode), url)
    }
    for (const url of ["ftp://x", "https://u:p@x/", "https://x/?q", "https://x/#f", "x", "https://"]) {
      assert.isFalse(accepts(url, decode), url)
    }
  })

  it("a scenario belongs to api script, and to no other", () => {
    const decode = (rest: unknown) => decodeParams("provider/set", { name: "x", ...(rest as object) })
    assert.isTrue(accepts({ api: "script", scenario: "/s.json" }, decode))
    assert.isFalse(accepts({ api: "script" }, decode))
    assert.isFalse(accepts({ api: "responses", scenario: "/s.json" }, decode))
  })

  it("no MCP server has the name of a native tool provider", () => {
    const transport = { type: "stdio", command: "x" }
    const decode = (name: unknown) => decodeParams("mcp/register", { name, transport })
    for (const name of ["git", "filesystem", "a".repeat(32)]) assert.isTrue(accepts(name, decode))
    for (const name of ["files", "team", "Git", "1a", "a".repeat(33), ""]) assert.isFalse(accepts(name, decode))
  })
})

describe("results", () => {
  const event = Object.freeze({ seq: 1, at: "2026-11-30T09:00:00.000Z", type: "text-end", message_id: "m_r" })
  const state = {
    status: "running",
    finalOutput: null,
    interruptions: [],
    submissionId: "m-1",
    cursor: 1,
    events: [{ agent: "a", sessionId: "ses_A", event, summary: null }],
    cursors: { ses_A: 1 },
    moreEvents: false,
    usage: { inputTokens: null, outputTokens: 0, cachedInputTokens: null, rounds: 1 },
    journalId: "jrn_1"
  } as const

  it("hand an event in wire form through as the same object, in both directions [RUN-181]", () => {
    const wire = encodeResult("run/wait", state) as { readonly events: ReadonlyArray<{ readonly event: unknown }> }
    assert.strictEqual(wire.events[0]?.event, event)
    assert.strictEqual(succeeded(decodeResult("run/wait", wire)).events?.[0]?.event, event)
    const page = { events: [event], cursor: 1, head: 1, moreEvents: false, journalId: "jrn_1" }
    assert.strictEqual(
      (encodeResult("event/read", page) as { readonly events: ReadonlyArray<unknown> }).events[0],
      event
    )
  })

  it("leave out what has no value and keep a null that says something", () => {
    const wire = encodeResult("run/wait", { ...state, failure: undefined } as unknown as typeof state)
    assert.notProperty(wire, "failure")
    assert.notProperty(wire, "board")
    assert.propertyVal(wire, "final_output", null)
    assert.deepPropertyVal(wire, "usage", {
      input_tokens: null,
      output_tokens: 0,
      cached_input_tokens: null,
      rounds: 1
    })
  })
})

describe("configuration", () => {
  it("names its unknown fields by path, and none in free JSON [RUN-080]", () => {
    const config = {
      state_dir: "/s",
      stateDir: 1,
      agents: [{ ...member, colour: 1, model: { connection: "c", model: "m", size: 1 } }],
      servers: [{ name: "git", transport: { type: "stdio", command: "x", shell: true, env: { any_name: "1" } } }],
      harnesses: { claude: { anything: { goes: 1 } } },
      telemetry: { endpoint: "http://x", level: 1 }
    }
    assert.deepStrictEqual(unknownFields(HostConfig, config), [
      "stateDir",
      "agents[0].colour",
      "agents[0].model.size",
      "servers[0].transport.shell",
      "telemetry.level"
    ])
  })

  it("holds no key of a provider, under whatever name [RUN-086]", () => {
    const config = wireCodec(HostConfig)
    const provider = { name: "x", api: "responses" }
    const decode = (fields: object) => config.decode({ state_dir: "/s", providers: [{ ...provider, ...fields }] })
    succeeded(decode({}))
    assert.strictEqual(failed(decode({ api_key: "k" })).path, "providers[0].api_key")
    assert.strictEqual(failed(decode({ credentials: {} })).path, "providers[0].credentials")
  })

  it("lowers a limit and raises none", () => {
    const config = wireCodec(HostConfig)
    const decode = (limits: object) => config.decode({ state_dir: "/s", limits })
    succeeded(decode({ active_turns: 32, max_events_max: 1 }))
    for (const limits of [{ active_turns: 33 }, { active_turns: 0 }, { shell_timeout_s_max: 601 }])
      failed(decode(limits))
  })

  it("names the state directory, as an absolute path [RUN-080]", () => {
    const config = wireCodec(HostConfig)
    assert.strictEqual(failed(config.decode({})).path, "state_dir")
    assert.strictEqual(failed(config.decode({ state_dir: "state" })).expected, "an absolute path")
  })
})
