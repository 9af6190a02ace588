import { assert, describe, it } from "@effect/vitest"
import {
  Internal,
  isHarnessError,
  isRuntimeError,
  HarnessProcessExited,
  HarnessTimeout,
  harnessErrorCodes,
  InteractionAlreadyResolved,
  RuntimeDisposed,
  RuntimeError,
  type RuntimeErrorCode,
  runtimeErrorCodes,
  runtimeErrors,
  SessionNotFound,
  statusOf,
  StoreBusy
} from "@tackroom/protocol"
import { fromWire, toWire } from "@tackroom/protocol/text"
import { Effect, Schema } from "effect"

const decode = Schema.decodeUnknownSync(RuntimeError)
const encode = Schema.encodeUnknownSync(RuntimeError)

/** Section 16: code and status. */
const statuses: Readonly<Record<number, ReadonlyArray<string>>> = {
  400: ["cursor_invalid"],
  401: ["subscription_identity_required"],
  403: ["scope_mismatch", "goal_scope_mismatch", "subscription_denied"],
  404: ["session_not_found", "submission_not_found", "interaction_not_found", "goal_session_not_found"],
  409: [
    "session_conflict",
    "session_closed",
    "session_read_only",
    "session_immutable_field",
    "session_turn_in_progress",
    "session_recovering",
    "session_turn_fence_stale",
    "submission_conflict",
    "queue_revision_conflict",
    "queue_entry_started",
    "interaction_already_resolved",
    "goal_already_exists",
    "goal_action_unavailable",
    "cursor_ahead",
    "subagent_observation_conflict",
    "session_missing",
    "resume_unconfirmed",
    "harness_context_lost",
    "stale_config_revision"
  ],
  410: ["session_gone", "interaction_withdrawn"],
  413: ["prompt_too_large"],
  422: [
    "queue_invalid",
    "prompt_invalid",
    "invalid_execution_binding",
    "session_invalid",
    "config_invalid",
    "option_not_offered",
    "answer_invalid",
    "goal_invalid_objective",
    "harness_not_registered",
    "duplicate_provider",
    "duplicate_connection",
    "unknown_provider",
    "invalid_descriptor",
    "invalid_config",
    "disabled_connection",
    "immutable_connection_identity"
  ],
  429: ["queue_full", "too_many_interactions", "too_many_subscribers"],
  500: [
    "session_handoff_rollback_failed",
    "unsupported_runtime_store_schema",
    "runtime_store_corrupt_row",
    "store_dependency_missing",
    "runtime_option_invalid",
    "harness_duplicate",
    "internal"
  ],
  501: ["unsupported_operation", "goal_unavailable"],
  502: ["harness_process_exited", "harness_rejected", "harness_protocol"],
  503: [
    "harness_dependency_missing",
    "harness_program_missing",
    "harness_version_unsupported",
    "harness_auth_required",
    "harness_unavailable",
    "connection_unavailable",
    "store_busy",
    "store_unavailable",
    "runtime_disposed"
  ],
  504: ["harness_timeout"],
  507: ["store_full"]
}

describe("runtime errors", () => {
  for (const code of runtimeErrorCodes) {
    const schema = runtimeErrors[code] as unknown as Schema.Codec<RuntimeError>
    const toWireForm = toWire(schema)
    const fromWireForm = fromWire(schema)
    it.effect.prop(
      `${code} survives encoding, JSON and the wire names [RT-381]`,
      [schema],
      ([error]) =>
        Effect.sync(() => {
          const encoded: unknown = JSON.parse(JSON.stringify(encode(error)))
          assert.deepStrictEqual(encode(decode(encoded)), encoded)
          assert.deepStrictEqual(fromWireForm(toWireForm(encoded)), encoded)
          assert.isTrue(isRuntimeError(decode(encoded)))
        }),
      { arbitrary: { runs: 5 } }
    )
  }

  it("every code has the status of the table, and a class named after it", () => {
    const found = Object.entries(statuses).flatMap(([status, codes]) =>
      codes.map((code) => [code, Number(status)] as const)
    )
    assert.sameMembers(
      found.map(([code]) => code),
      [...runtimeErrorCodes]
    )
    for (const [code, status] of found) {
      const Class = runtimeErrors[code as RuntimeErrorCode]
      const ast = (Class as unknown as Schema.Top & { readonly identifier: string }).identifier
      const pascal = code.replace(/(?:^|_)([a-z])/gu, (_, letter: string) => letter.toUpperCase())
      assert.strictEqual(Class.name, pascal)
      assert.strictEqual(ast, `Runtime${pascal}Error`)
      assert.isAtLeast(status, 400)
    }
    assert.strictEqual(new SessionNotFound({ sessionId: "s" }).status, 404)
    assert.strictEqual(new StoreBusy({}).status, 503)
  })

  it("an error says what happened from its fields alone", () => {
    const error = new SessionNotFound({ sessionId: "ses_9" })
    assert.strictEqual(error.message, "There is no session ses_9")
    assert.strictEqual(error._tag, "SessionNotFound")
    assert.strictEqual(error.name, "SessionNotFound")
    assert.strictEqual(error.code, "session_not_found")
    assert.isFalse(error.retryable)
    assert.strictEqual(new RuntimeDisposed().message, "The runtime is disposed")
    assert.include(new HarnessProcessExited({ harness: "acp:x", exitCode: 3 }).message, "code 3")
  })

  it("message and retryable may be given", () => {
    assert.strictEqual(new StoreBusy({ message: "disk is slow" }).message, "disk is slow")
    assert.isTrue(new StoreBusy({}).retryable)
    assert.isFalse(new StoreBusy({ retryable: false }).retryable)
    assert.isTrue(new HarnessTimeout({ harness: "codex", retryable: true }).retryable)
  })

  it.effect("an error is caught by its tag", () =>
    Effect.gen(function* () {
      const failing = Effect.gen(function* () {
        return yield* new StoreBusy({})
      })
      const status = yield* failing.pipe(Effect.catchTag("StoreBusy", (error) => Effect.succeed(error.status)))
      assert.strictEqual(status, 503)
    })
  )

  it("decoding gives the class back and drops unknown members", () => {
    const error = decode({ ...(encode(new SessionNotFound({ sessionId: "s" })) as object), other: 1 })
    assert.instanceOf(error, SessionNotFound)
    assert.notProperty(error, "other")
  })

  it("the stored resolution travels with a late decision [RT-251]", () => {
    const resolution = { decision: "deny", origin: "person", at: "2026-01-31T12:00:00.000Z" } as const
    const error = new InteractionAlreadyResolved({ id: "int_1", resolution })
    assert.deepStrictEqual((decode(encode(error)) as InteractionAlreadyResolved).resolution, resolution)
  })

  it("an unexpected defect has a trace id and no detail [RT-380]", () => {
    const error = new Internal({ traceId: "abc" })
    assert.strictEqual(error.message, "Something went wrong inside; trace abc")
    assert.strictEqual(statusOf(error), 500)
    assert.strictEqual(statusOf(new Error("boom")), 500)
    assert.isFalse(isRuntimeError(new Error("boom")))
    assert.isFalse(isRuntimeError(null))
  })

  it("the errors of a driver are told from the rest", () => {
    assert.lengthOf(harnessErrorCodes, 10)
    assert.isTrue(isHarnessError(new HarnessTimeout({ harness: "codex" })))
    assert.isFalse(isHarnessError(new StoreBusy({})))
  })
})
