import { assert, describe, it } from "@effect/vitest"
import type { Envelope, EventPayload } from "@tackroom/protocol/events"
import {
  Busy,
  CredentialsMissing,
  InvalidCursor,
  InvalidState,
  LimitExceeded,
  NotFound,
  SandboxUnavailable,
  type Interruption,
  type RunState
} from "@tackroom/protocol/run"
import { Effect } from "effect"
import { host } from "../../src/harness/host/index.ts"
import { HarnessRegistry } from "../../src/runtime/HarnessRegistry.ts"
import { AgentRuntime, Interactions, Sessions, Turns, type RuntimeServices } from "../../src/effect.ts"
import { createMemoryRuntimeStore } from "../../src/store/memory/index.ts"
import { directory, failing, journal, until } from "../runtime/Kit.ts"
import {
  hostSession,
  journalId,
  runState,
  type Script,
  type ScriptedHost,
  scriptedHost,
  stateOf
} from "./ScriptedHost.ts"

const ref = { id: "host", access: "native" } as const

/** Runs a program against a host that says what is written. */
const against = <A, E>(
  script: Script | ((workspace: string) => Script),
  program: (scripted: ScriptedHost, workspace: string) => Effect.Effect<A, E, RuntimeServices>
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const workspace = yield* directory
      const scripted = yield* Effect.promise(() =>
        scriptedHost(workspace, typeof script === "function" ? script(workspace) : script)
      )
      yield* Effect.addFinalizer(() => Effect.promise(() => scripted.host.close()))
      const layer = AgentRuntime.layer({
        store: createMemoryRuntimeStore(),
        harnesses: [host({ connection: scripted.host, agent: "helper" })]
      })
      return yield* Effect.provide(program(scripted, workspace), layer)
    })
  )

const create = (workspace: string, more: Record<string, unknown> = {}) =>
  Effect.flatMap(Effect.service(Sessions), (sessions) =>
    sessions.create({ id: "s", directory: workspace, harness: ref, title: "t", ...more })
  )

const run = Effect.fnUntraced(function* (workspace: string, prompt: Record<string, unknown> = { text: "go" }) {
  const turns = yield* Turns
  yield* create(workspace)
  yield* turns.start({ sessionId: "s", messageId: "m", ...prompt })
  return yield* turns.wait("s", "m")
})

const own = (events: ReadonlyArray<Envelope>): ReadonlyArray<EventPayload> =>
  events.flatMap((event) => (event.turnId === undefined ? [] : [event.payload]))

const approval = (more: Partial<Extract<Interruption, { kind: "approval" }>> = {}): Interruption => ({
  id: "int_1",
  sessionId: hostSession,
  agent: "helper",
  submissionId: "m",
  turnId: "trn_1",
  createdAt: "2026-01-01T00:00:00.000Z",
  kind: "approval",
  tool: "files__write",
  arguments: { path: "a" },
  category: "write_local",
  qualifiedName: "files.write",
  callId: "c1",
  decisions: ["once", "session", "deny"],
  reason: "policy",
  ...more
})

const question = (more: Partial<Extract<Interruption, { kind: "question" }>> = {}): Interruption => ({
  id: "int_2",
  sessionId: hostSession,
  agent: "helper",
  submissionId: "m",
  turnId: "trn_1",
  createdAt: "2026-01-01T00:00:00.000Z",
  kind: "question",
  question: "Which?",
  options: ["Green", "Red"],
  allowText: false,
  topic: "agent",
  ...more
})

/** Waits with a state until the host was answered, then says the next one. */
const untilAnswered = (first: RunState, last: RunState) => {
  let answered: () => void = () => undefined
  const answer = new Promise<void>((resolve) => {
    answered = resolve
  })
  return {
    "run/wait": [first, () => answer.then(() => last)],
    "run/respond": [
      ({ decision, answer: text }: { readonly decision?: string; readonly answer?: string }) => {
        answered()
        return { alreadyResolved: false, response: decision ?? text ?? "" }
      }
    ]
  } satisfies Script
}

const asking = { type: "tool-start", tool_call_id: "c1", tool_name: "files__write" } as const
const requested = {
  type: "permission-request",
  request_id: "int_1",
  tool: "files__write",
  title: "Write a",
  tool_call_id: "c1",
  paths: ["a"],
  options: [{ id: "once", label: "Once", kind: "allow_once" }]
} as const

describe("a session of a host", () => {
  it.live("is made once per session id, with its directory, and bound to its journal [HRN-003]", () =>
    against({}, (scripted, workspace) =>
      Effect.gen(function* () {
        yield* create(workspace)
        const [made] = scripted.of("agent/session")
        assert.deepStrictEqual(made, { agent: "helper", workspace, name: "t", creation_id: "s" })
      })
    )
  )

  it.live("takes nothing that is the agent's own", () =>
    against({}, (_, workspace) =>
      Effect.gen(function* () {
        for (const field of ["instructions", "permissionMode"] as const) {
          assert.strictEqual(yield* failing(create(workspace, { [field]: "x" })), "harness_rejected", field)
        }
      })
    )
  )

  const resume = (script: (workspace: string) => Script) =>
    against(script, (_, workspace) =>
      Effect.gen(function* () {
        const driver = yield* Effect.flatMap(Effect.service(HarnessRegistry), (registry) => registry.driver(ref))
        const binding = {
          workspaceId: "default",
          directory: workspace,
          sessionId: "s",
          connectionId: "native:host",
          upstreamSessionId: hostSession,
          upstreamState: "confirmed",
          ownerKey: journalId
        } as const
        return yield* Effect.result(driver.resumeSession(binding))
      })
    )

  it.live(
    "is missing on the host's own word only, and else unconfirmed with the reason [HRN-004, HRN-005, HRN-007]",
    () =>
      Effect.gen(function* () {
        const attached = (workspace: string, state: "idle" | "closed" = "idle", sessionId = hostSession): Script => ({
          "session/attach": [
            {
              session: { sessionId, agent: "helper", journalId, workspace },
              state: stateOf(workspace, { state }),
              runs: [],
              cursors: { [sessionId]: 1 }
            }
          ]
        })
        const refused = (error: Error) => () => ({ "session/attach": [error] })
        const cursor = { head: 1, journalId: "jrn_other" }
        const cases: ReadonlyArray<readonly [(workspace: string) => Script, string, string | undefined]> = [
          [refused(new NotFound({ what: "session", id: hostSession })), "SessionMissing", undefined],
          [refused(new NotFound({ what: "agent", id: "helper" })), "HarnessRejected", undefined],
          [
            refused(new InvalidCursor({ reason: "journal_replaced", ...cursor })),
            "ResumeUnconfirmed",
            "journal_replaced"
          ],
          [() => attached("/somewhere/else"), "ResumeUnconfirmed", "directory_mismatch"],
          [(workspace) => attached(workspace, "idle", "ses_other"), "ResumeUnconfirmed", "another_session"],
          [(workspace) => attached(workspace, "closed"), "ResumeUnconfirmed", "session_closed"]
        ]
        for (const [script, tag, reason] of cases) {
          const result = yield* resume(script)
          assert.strictEqual(result._tag === "Failure" ? result.failure._tag : "Success", tag)
          if (reason !== undefined && result._tag === "Failure") assert.propertyVal(result.failure, "reason", reason)
        }
      })
  )
})

describe("a run of a host", () => {
  it.live("is a turn: its id the submission's, its events the host's, its end the run's status [HRN-240]", () =>
    against(
      {
        "run/wait": [
          runState({
            status: "running",
            said: [
              { type: "user-message", message_id: "m", parts: [], delivery: "start" },
              { type: "turn-start", message_id: "m", assistant_message_id: "m_r", origin: "user" },
              { type: "session-title", title: "from the host's prompt", title_source: "prompt" },
              { type: "session-info", archived: true },
              { type: "session-closed", reason: "closed" },
              { type: "response-start", response_id: "r1" },
              { type: "text-delta", delta: "hi", message_id: "m_r", part_id: "p" },
              { type: "never-heard-of", some_field: 1 },
              { type: "text-delta", delta: 7, message_id: "m_r", part_id: "p" }
            ]
          }),
          runState({
            from: 10,
            finalOutput: "hi",
            said: [
              { type: "text-end", message_id: "m_r", part_id: "p", channel: "text", text: "hi" },
              { type: "finish", session_id: hostSession, assistant_message_id: "m_r", reason: "refusal" }
            ]
          })
        ]
      },
      (scripted, workspace) =>
        Effect.gen(function* () {
          const outcome = yield* run(workspace)
          assert.isTrue(outcome.status === "completed" && outcome.reason === "refusal")
          assert.deepStrictEqual(scripted.of("run/start")[0], {
            session_id: hostSession,
            submission_id: "m",
            text: "go"
          })
          const [first, second] = scripted.of("run/wait")
          assert.deepStrictEqual(first?.["cursors"], { [hostSession]: 1 })
          assert.deepStrictEqual(second?.["cursors"], { [hostSession]: 10 })
          assert.strictEqual(first?.["journal_id"], journalId)
          const events = own(yield* journal("s"))
          assert.deepStrictEqual(
            events.map((event) => event.type),
            [
              "user-message",
              "turn-start",
              "response-start",
              "text-delta",
              "harness-notice",
              "diagnostic",
              "text-end",
              "finish"
            ].toSpliced(1, 0, ...events.filter((event) => event.type === "session-status").map((event) => event.type))
          )
          const session = yield* Effect.flatMap(Effect.service(Sessions), (sessions) => sessions.get("s"))
          assert.strictEqual(session?.title, "t")
        })
    )
  )

  const endings: ReadonlyArray<readonly [string, Script, string, string | undefined]> = [
    ["a lost key", { "run/start": [new CredentialsMissing({ provider: "p" })] }, "harness_error", "credential"],
    [
      "a lost wall",
      { "run/start": [new SandboxUnavailable({ sandbox: "process", check: "start", detail: "d", hint: "h" })] },
      "harness_error",
      "workspace"
    ],
    [
      "a text that is too long",
      { "run/start": [new LimitExceeded({ limit: "text_bytes", max: 1 })] },
      "not_accepted",
      undefined
    ],
    ["somebody else's run", { "run/start": [new InvalidState({ reason: "run_active" })] }, "not_accepted", "session"],
    [
      "a session that is gone",
      { "run/wait": [new NotFound({ what: "session", id: hostSession })] },
      "session_missing",
      "session"
    ],
    [
      "a journal that was replaced",
      { "run/wait": [new InvalidCursor({ reason: "journal_replaced", head: 1, journalId: "jrn_2" })] },
      "harness_context_lost",
      "session"
    ],
    [
      "a run that failed",
      { "run/wait": [runState({ status: "failed", failure: "truncated" })] },
      "truncated",
      undefined
    ],
    [
      "a model that failed",
      { "run/wait": [runState({ status: "failed", failure: "model_error" })] },
      "harness_error",
      "model"
    ],
    [
      "a run that says why",
      {
        "run/wait": [
          runState({
            status: "failed",
            failure: "internal",
            said: [
              {
                type: "error",
                error: "the process of the agent died",
                code: "harness_process_exited",
                error_class: "harness",
                assistant_message_id: "m_r"
              }
            ]
          })
        ]
      },
      "harness_process_exited",
      "harness"
    ]
  ]
  for (const [what, script, code, errorClass] of endings) {
    it.live(`${what} ends the turn as ${code} [HRN-015, HRN-016]`, () =>
      against(script, (_, workspace) =>
        Effect.gen(function* () {
          const outcome = yield* run(workspace)
          const error = outcome.status === "failed" ? outcome.error : undefined
          assert.deepStrictEqual([error?.code, error?.errorClass], [code, errorClass])
        })
      )
    )
  }

  it.live("takes text alone and refuses the rest before anything is started", () =>
    against({}, (scripted, workspace) =>
      Effect.gen(function* () {
        const outcome = yield* run(workspace, { text: "go", system: "be quick" })
        assert.isTrue(outcome.status === "failed" && outcome.error.code === "not_accepted")
        assert.deepStrictEqual(scripted.of("run/start"), [])
      })
    )
  )

  it.live("is asked for again when the host is busy, and started again when its start was cut short [HRN-013]", () =>
    against(
      {
        "run/start": [
          new Busy({ retryAfterMs: 1 }),
          {
            submissionId: "m",
            turn: { turnId: "trn_1", sessionId: hostSession },
            duplicate: false,
            cursors: { [hostSession]: 1 }
          }
        ],
        "run/wait": [
          new Busy({ retryAfterMs: 1 }),
          new InvalidState({ reason: "not_admitted" }),
          runState({ finalOutput: "done" })
        ]
      },
      (scripted, workspace) =>
        Effect.gen(function* () {
          const outcome = yield* run(workspace)
          assert.strictEqual(outcome.status, "completed")
          assert.deepStrictEqual(new Set(scripted.of("run/start").map((one) => one["submission_id"])), new Set(["m"]))
          assert.strictEqual(scripted.of("run/start").length, 3)
        })
    )
  )

  it.live("whose session takes messages into a running turn is steered [HRN-070]", () => {
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    return against(
      (workspace) => ({
        "session/attach": [
          {
            session: { sessionId: hostSession, agent: "helper", journalId, workspace },
            state: stateOf(workspace, { capabilities: { steering: true, timers: false } }),
            runs: [],
            cursors: { [hostSession]: 1 }
          }
        ],
        "run/wait": [runState({ status: "running" }), () => held.then(() => runState({ finalOutput: "done" }))],
        "session/send": [
          () => {
            release()
            return {
              type: "message",
              submissionId: "m2",
              turn: { turnId: "trn_1", sessionId: hostSession },
              duplicate: false,
              cursors: {}
            }
          }
        ]
      }),
      (scripted, workspace) =>
        Effect.gen(function* () {
          const turns = yield* Turns
          yield* create(workspace)
          yield* turns.start({ sessionId: "s", messageId: "m", text: "go" })
          const steered = yield* turns.start({ sessionId: "s", messageId: "m2", text: "left", delivery: "steer" })
          assert.strictEqual(steered.delivery, "steer")
          yield* turns.wait("s", "m")
          assert.deepStrictEqual(scripted.of("session/send"), [
            { session_id: hostSession, submission_id: "m2", input: { type: "message", text: "left" } }
          ])
        })
    )
  })
})

describe("what a host asks", () => {
  const decisions = [
    ["allow_once", "once"],
    ["allow_always", "session"],
    ["deny", "deny"]
  ] as const
  for (const [decision, told] of decisions) {
    it.live(`an approval decided ${decision} is told as ${told}, and asked once [HRN-070]`, () => {
      const script = untilAnswered(
        runState({ status: "interrupted", interruptions: [approval()], said: [asking, requested] }),
        runState({ from: 3, finalOutput: "done" })
      )
      return against(script, (scripted, workspace) =>
        Effect.gen(function* () {
          const turns = yield* Turns
          const interactions = yield* Interactions
          yield* create(workspace)
          const asked = yield* until("s", (payload) => payload.type === "permission-request")
          yield* turns.start({ sessionId: "s", messageId: "m", text: "go" })
          const { payload } = yield* asked
          assert.isTrue(payload.type === "permission-request" && payload.title === "Write a")
          if (payload.type !== "permission-request") return
          assert.deepStrictEqual(
            payload.options.map((option) => [option.id, option.label, option.kind]),
            [
              ["once", "Once", "allow_once"],
              ["session", "Allow for this session", "allow_always"],
              ["deny", "Deny", "reject_once"]
            ]
          )
          yield* interactions.respond(payload.requestId, { decision, note: "because" })
          assert.strictEqual((yield* turns.wait("s", "m")).status, "completed")
          assert.deepStrictEqual(scripted.of("run/respond"), [
            { session_id: hostSession, interaction_id: "int_1", decision: told, reason: "because" }
          ])
          assert.deepStrictEqual(scripted.of("run/wait").at(-1)?.["known_interactions"], ["int_1"])
        })
      )
    })
  }

  it.live("a question keeps its options, and its answer goes back as one text [HRN-070]", () => {
    const script = untilAnswered(
      runState({ status: "interrupted", interruptions: [question()] }),
      runState({ finalOutput: "done" })
    )
    return against(script, (scripted, workspace) =>
      Effect.gen(function* () {
        const turns = yield* Turns
        const interactions = yield* Interactions
        yield* create(workspace)
        const asked = yield* until("s", (payload) => payload.type === "question")
        yield* turns.start({ sessionId: "s", messageId: "m", text: "go" })
        const { payload } = yield* asked
        if (payload.type !== "question") return assert.fail("no question")
        assert.strictEqual(
          yield* failing(interactions.respond(payload.requestId, { answers: [["Blue"]] })),
          "answer_invalid"
        )
        yield* interactions.respond(payload.requestId, { answers: [["Red"]] })
        yield* turns.wait("s", "m")
        assert.deepStrictEqual(scripted.of("run/respond"), [
          { session_id: hostSession, interaction_id: "int_2", answer: "Red" }
        ])
      })
    )
  })

  it.live("an answer that the host refuses ends its run and the turn, and is not passed over", () => {
    const refused: Script = {
      "run/wait": [
        runState({ status: "interrupted", interruptions: [question()] }),
        () => new Promise<RunState>(() => undefined)
      ],
      "run/respond": [new LimitExceeded({ limit: "answer_bytes", max: 1 })]
    }
    return against(refused, (scripted, workspace) =>
      Effect.gen(function* () {
        const turns = yield* Turns
        const interactions = yield* Interactions
        yield* create(workspace)
        const asked = yield* until("s", (payload) => payload.type === "question")
        yield* turns.start({ sessionId: "s", messageId: "m", text: "go" })
        const { payload } = yield* asked
        if (payload.type !== "question") return
        yield* interactions.respond(payload.requestId, { answers: null })
        const outcome = yield* turns.wait("s", "m")
        assert.isTrue(outcome.status === "failed" && outcome.error.message.includes("answer"))
        assert.strictEqual(scripted.of("run/cancel").length, 1)
      })
    )
  })

  it.live("one that was answered elsewhere is taken back here [HRN-070]", () =>
    against(
      {
        "run/wait": [
          runState({ status: "interrupted", interruptions: [approval()], said: [asking, requested] }),
          () => asked.then(() => runState({ status: "running", from: 3, said: [resolved] })),
          () => taken.then(() => runState({ from: 4, finalOutput: "done" }))
        ]
      },
      (scripted, workspace) =>
        Effect.gen(function* () {
          const turns = yield* Turns
          yield* create(workspace)
          const shown = yield* until("s", (payload) => payload.type === "permission-request")
          const back = yield* until("s", (payload) => payload.type === "interaction-withdrawn")
          yield* turns.start({ sessionId: "s", messageId: "m", text: "go" })
          yield* shown
          letAsked()
          const { payload } = yield* back
          assert.isTrue(payload.type === "interaction-withdrawn" && payload.reason === "replaced")
          letTaken()
          assert.strictEqual((yield* turns.wait("s", "m")).status, "completed")
          assert.deepStrictEqual(scripted.of("run/respond"), [])
        })
    )
  )
})

const resolved = {
  type: "permission-resolved",
  request_id: "int_1",
  tool: "files__write",
  decision: "allow_once",
  origin: "person"
} as const
let letAsked: () => void = () => undefined
let letTaken: () => void = () => undefined
const asked = new Promise<void>((resolve) => {
  letAsked = resolve
})
const taken = new Promise<void>((resolve) => {
  letTaken = resolve
})
