import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as RuntimeErrors from "@tackroom/protocol"
import {
  Busy,
  commonErrors,
  Conflict,
  conflictReasons,
  fromErrorObject,
  fromRuntimeError,
  InternalFailure,
  InvalidCursor,
  InvalidParams,
  InvalidState,
  invalidStateReasons,
  isRunError,
  limitKeys,
  limitName,
  methodNames,
  methods,
  NotFound,
  responseOf,
  type RunError,
  runErrorData,
  runErrorKinds,
  runErrors,
  runErrorTable,
  toErrorObject,
  UnknownFailure
} from "@tackroom/protocol/run"

/** Section 5 of the specification, as it is written there. */
const table: ReadonlyArray<readonly [number, string, string]> = [
  [-32700, "parse_error", "ParseFailed"],
  [-32600, "invalid_request", "InvalidRequest"],
  [-32601, "method_not_found", "MethodNotFound"],
  [-32602, "invalid_params", "InvalidParams"],
  [-32603, "internal", "InternalFailure"],
  [-32000, "not_initialized", "NotInitialized"],
  [-32001, "already_initialized", "AlreadyInitialized"],
  [-32002, "not_found", "NotFound"],
  [-32003, "conflict", "Conflict"],
  [-32004, "busy", "Busy"],
  [-32005, "invalid_state", "InvalidState"],
  [-32006, "limit_exceeded", "LimitExceeded"],
  [-32007, "unsupported", "Unsupported"],
  [-32008, "credentials_missing", "CredentialsMissing"],
  [-32009, "provider_unavailable", "ProviderUnavailable"],
  [-32010, "invalid_cursor", "InvalidCursor"],
  [-32011, "frame_too_large", "FrameTooLarge"],
  [-32012, "sandbox_unavailable", "SandboxUnavailable"],
  [-32013, "storage_failure", "StorageFailed"],
  [-32014, "shutting_down", "ShuttingDown"],
  [-32015, "startup_failed", "StartupFailed"]
]

const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const context = { journalId: "jrn_1", ref: "ref_1" }

describe("the table of errors", () => {
  it("has every kind with its code and class, and no other [RUN-060]", () => {
    assert.deepStrictEqual(
      runErrorKinds.map((kind) => [runErrorTable[kind].code, kind, runErrors[kind].name]),
      table.map(([code, kind, name]) => [code, kind, name])
    )
  })

  it("names only kinds of the table in the methods", () => {
    for (const name of methodNames) for (const kind of methods[name].errors) assert.include(runErrorKinds, kind)
    for (const kind of commonErrors) assert.include(runErrorKinds, kind)
  })

  it("gives every class its code and HTTP status as annotations", () => {
    for (const kind of runErrorKinds) {
      const annotations = runErrors[kind].ast.annotations
      assert.strictEqual(annotations?.["jsonRpcCode"], runErrorTable[kind].code)
      assert.strictEqual(annotations?.["httpApiStatus"], runErrorTable[kind].status)
      assert.isAtLeast(runErrorTable[kind].status, 400)
    }
  })

  it("lists every reason once", () => {
    assert.lengthOf(new Set(conflictReasons), 11)
    assert.lengthOf(new Set(invalidStateReasons), 9)
  })

  for (const kind of runErrorKinds) {
    it.effect.prop(
      `${kind} crosses the wire and becomes the same class with the same fields [RUN-060]`,
      [runErrors[kind] as unknown as Schema.Codec<RunError>],
      ([error]) =>
        Effect.sync(() => {
          const object = toErrorObject(error)
          assert.strictEqual(object.code, runErrorTable[kind].code)
          assert.strictEqual(object.data.kind, kind)
          for (const key of Object.keys(object.data)) assert.match(key, /^[a-z_]+$/u)
          for (const absent of ["message", "_tag", "stack"]) assert.notProperty(object.data, absent)
          const back = fromErrorObject(json(object) as typeof object)
          assert.isTrue(back instanceof runErrors[kind])
          assert.deepStrictEqual(json(toErrorObject(back as RunError)), json(object))
        }),
      { arbitrary: { runs: 5 } }
    )
  }
})

describe("an error", () => {
  it("has a message made from its fields, or the one it was given", () => {
    assert.strictEqual(new NotFound({ what: "mcp_server", id: "git" }).message, "there is no mcp server git")
    const given = new InvalidState({ reason: "run_active", submissionId: "q-7", message: "wait for q-7" })
    assert.strictEqual(given.message, "wait for q-7")
    assert.strictEqual(String(given), "InvalidState: wait for q-7")
    assert.isTrue(isRunError(given))
    assert.isFalse(isRunError(new Error("busy")))
  })

  it.effect("fails an effect with its tag", () =>
    Effect.gen(function* () {
      const found = yield* Effect.fail(new Busy({ retryAfterMs: 250 })).pipe(
        Effect.catchTag("Busy", (error) => Effect.succeed(error.retryAfterMs))
      )
      assert.strictEqual(found, 250)
    })
  )

  it("is written as the transcripts show it", () => {
    assert.deepStrictEqual(
      json(toErrorObject(new InvalidCursor({ reason: "ahead", sessionId: "ses_A", head: 19, journalId: "jrn_7Q" }))),
      {
        code: -32010,
        message: "cursor is ahead of the journal",
        data: { kind: "invalid_cursor", reason: "ahead", session_id: "ses_A", head: 19, journal_id: "jrn_7Q" }
      }
    )
    assert.deepStrictEqual(
      json(toErrorObject(new Conflict({ reason: "response_differs", id: "int_4", response: "2025" })).data as object),
      { kind: "conflict", reason: "response_differs", id: "int_4", response: "2025" }
    )
  })

  it("writes nothing that is not of its row", () => {
    const error = Object.assign(new Busy({ retryAfterMs: 1 }), { secret: "sk-1", cause: new Error("sk-2") })
    assert.deepStrictEqual(json(toErrorObject(error).data), { kind: "busy", retry_after_ms: 1 })
  })

  it("of an unknown kind, or with data that do not fit, stays readable for a client", () => {
    const unknown = fromErrorObject({ code: -32099, message: "new", data: { kind: "brand_new", a: 1 } })
    assert.instanceOf(unknown, UnknownFailure)
    assert.deepInclude(unknown, { kind: "brand_new", code: -32099, message: "new" })
    assert.instanceOf(fromErrorObject({ code: -32004, message: "x", data: { kind: "busy" } }), UnknownFailure)
    assert.instanceOf(fromErrorObject({ code: -32000, message: "x" }), UnknownFailure)
    const prototype = fromErrorObject({ code: 1, message: "x", data: JSON.parse('{"kind":"__proto__"}') })
    assert.instanceOf(prototype, UnknownFailure)
  })

  it("takes unknown data fields and null for absent", () => {
    const data = { kind: "not_found", what: "session", id: null, later: 1 }
    const back = fromErrorObject({ code: -32002, message: "x", data })
    assert.instanceOf(back, NotFound)
    assert.notProperty(toErrorObject(back as RunError).data, "later")
  })
})

describe("an error of the runtime", () => {
  /** The second table of section 5: code, kind, and what else the answer says. */
  const rows: ReadonlyArray<readonly [RuntimeErrors.RuntimeError, Readonly<Record<string, unknown>>]> = [
    [new RuntimeErrors.SessionNotFound({ sessionId: "s" }), { kind: "not_found", what: "session", id: "s" }],
    [new RuntimeErrors.SubmissionNotFound({ messageId: "m" }), { kind: "not_found", what: "run", id: "m" }],
    [new RuntimeErrors.InteractionNotFound({ id: "i" }), { kind: "not_found", what: "interaction", id: "i" }],
    [new RuntimeErrors.ScopeMismatch({}), { kind: "not_found", what: "session" }],
    [new RuntimeErrors.HarnessNotRegistered({ harness: "h" }), { kind: "not_found" }],
    [new RuntimeErrors.SessionGone({ sessionId: "s" }), { kind: "invalid_state", reason: "session_closed" }],
    [new RuntimeErrors.SessionClosed({ sessionId: "s" }), { kind: "invalid_state", reason: "session_closed" }],
    [new RuntimeErrors.SessionReadOnly({ sessionId: "s" }), { kind: "invalid_state", reason: "worker_session" }],
    [new RuntimeErrors.SessionTurnInProgress({ sessionId: "s" }), { kind: "invalid_state", reason: "run_active" }],
    [new RuntimeErrors.SessionRecovering({ sessionId: "s" }), { kind: "invalid_state", reason: "run_active" }],
    [
      new RuntimeErrors.InteractionWithdrawn({ id: "i", reason: "turn_ended" }),
      { kind: "invalid_state", reason: "turn_ended", interactionId: "i" }
    ],
    [
      new RuntimeErrors.SubmissionConflict({ messageId: "m" }),
      { kind: "conflict", reason: "submission_text_differs", id: "m" }
    ],
    [new RuntimeErrors.SessionConflict({ sessionId: "s" }), { kind: "conflict", reason: "creation_differs", id: "s" }],
    [
      new RuntimeErrors.InteractionAlreadyResolved({
        id: "i",
        resolution: { decision: "allow_once", origin: "person", at: "2026-11-30T09:00:00.000Z" }
      }),
      { kind: "conflict", reason: "response_differs", id: "i", response: "once" }
    ],
    [new RuntimeErrors.PromptInvalid({ path: "parts[0]" }), { kind: "invalid_params", path: "parts[0]" }],
    [new RuntimeErrors.OptionNotOffered({ id: "i" }), { kind: "invalid_params", path: "decision" }],
    [new RuntimeErrors.AnswerInvalid({ id: "i" }), { kind: "invalid_params", path: "answer" }],
    [new RuntimeErrors.InvalidExecutionBinding({ field: "directory" }), { kind: "invalid_params", path: "workspace" }],
    [
      new RuntimeErrors.SessionInvalid({ field: "permissionMode" }),
      { kind: "invalid_params", path: "permission_mode" }
    ],
    [new RuntimeErrors.ConfigInvalid({ field: "model" }), { kind: "invalid_params", path: "model" }],
    [new RuntimeErrors.PromptTooLarge({ limit: 9 }), { kind: "limit_exceeded", limit: "text_bytes", max: 9 }],
    [new RuntimeErrors.QueueFull({ limit: 64 }), { kind: "limit_exceeded", max: 64 }],
    [new RuntimeErrors.TooManyInteractions({ limit: 64 }), { kind: "limit_exceeded", max: 64 }],
    [new RuntimeErrors.TooManySubscribers({ limit: 1 }), { kind: "limit_exceeded", max: 1 }],
    [new RuntimeErrors.UnsupportedOperation({ operation: "fork" }), { kind: "unsupported", feature: "fork" }],
    [new RuntimeErrors.HarnessAuthRequired({ harness: "h" }), { kind: "credentials_missing", provider: "h" }],
    [
      new RuntimeErrors.HarnessProcessExited({ harness: "h", exitCode: 3, stderrTail: "x".repeat(3_000) }),
      { kind: "provider_unavailable", what: "model_provider", name: "h", exitCode: 3, stderrTail: "x".repeat(2_048) }
    ],
    [new RuntimeErrors.HarnessContextLost({ harness: "h" }), { kind: "provider_unavailable" }],
    [new RuntimeErrors.CursorInvalid({}), { kind: "invalid_cursor", reason: "malformed", journalId: "jrn_1" }],
    [new RuntimeErrors.CursorAhead({ head: 7 }), { kind: "invalid_cursor", reason: "ahead", head: 7 }],
    [new RuntimeErrors.StoreBusy({}), { kind: "busy" }],
    [new RuntimeErrors.SessionTurnFenceStale({ sessionId: "s" }), { kind: "busy" }],
    [new RuntimeErrors.StoreFull({}), { kind: "storage_failure", store: "sessions", outcome: "not_written" }],
    [new RuntimeErrors.StoreUnavailable({}), { kind: "storage_failure", outcome: "unknown" }],
    [new RuntimeErrors.RuntimeStoreCorruptRow({ table: "t", key: "k" }), { kind: "storage_failure" }],
    [new RuntimeErrors.RuntimeDisposed({}), { kind: "shutting_down" }],
    [new RuntimeErrors.Internal({ traceId: "t-1" }), { kind: "internal", ref: "t-1" }],
    [new RuntimeErrors.QueueInvalid({}), { kind: "internal", ref: "ref_1" }]
  ]

  for (const [error, expected] of rows) {
    it(`${error.code} is answered as ${expected["kind"] as string} [RUN-060]`, () => {
      assert.deepInclude(fromRuntimeError(error, context), expected)
    })
  }

  for (const [code, Class] of Object.entries(RuntimeErrors.runtimeErrors)) {
    it.effect.prop(
      `${code} has an answer that fits its kind`,
      [Class as unknown as Schema.Codec<RuntimeErrors.RuntimeError>],
      ([error]) =>
        Effect.sync(() => {
          const answer = fromRuntimeError(error, context)
          assert.isTrue(isRunError(answer))
          assert.isTrue(Schema.is(runErrorData[answer.kind])({ ...(json(answer) as object) }), answer.kind)
        }),
      { arbitrary: { runs: 3 } }
    )
  }

  it("names the lead, the run and the operation when the host knows them", () => {
    const known = { ...context, leadSessionId: "ses_L", submissionId: "m-1", operation: "admit" }
    assert.deepInclude(fromRuntimeError(new RuntimeErrors.SessionReadOnly({ sessionId: "s" }), known), {
      leadSessionId: "ses_L"
    })
    assert.deepInclude(fromRuntimeError(new RuntimeErrors.SessionTurnInProgress({ sessionId: "s" }), known), {
      submissionId: "m-1"
    })
    assert.deepInclude(fromRuntimeError(new RuntimeErrors.StoreFull({}), known), { operation: "admit" })
  })

  it("shows a stored resolution as the response that was given", () => {
    const at = "2026-11-30T09:00:00.000Z"
    const decided = (decision: "allow_once" | "allow_always" | "deny" | "reject_always") =>
      responseOf({ decision, origin: "person", at })
    assert.deepStrictEqual(
      [decided("allow_once"), decided("allow_always"), decided("deny"), decided("reject_always")],
      ["once", "session", "deny", "deny"]
    )
    assert.strictEqual(responseOf({ answers: [["2025"]], origin: "person", at }), "2025")
  })

  it("names a limit by its wire name where there is one", () => {
    assert.include(limitKeys.map(limitName), "text_bytes")
    assert.deepInclude(new InvalidParams({ path: "a", expected: "b", issues: [] }), { message: "a: expected b" })
    assert.include(new InternalFailure({ ref: "ref_1" }).message, "ref_1")
  })
})
