import { assert, describe, it } from "@effect/vitest"
import {
  checkAnswer,
  checkCancel,
  checkSubmit,
  encodeOp,
  errorLine,
  readOp,
  refusalDetails,
  refusalReasons,
  ServeOp,
  type ReadOp,
  type ServeView
} from "@tackroom/protocol/serve"
import { Effect, Result, Schema } from "effect"

const read = (fields: object): ReadOp => {
  const result = readOp(fields as Record<string, unknown>)
  return Result.isSuccess(result) ? result.success : assert.fail(JSON.stringify(result.failure))
}
const refused = (fields: object) => {
  const result = readOp(fields as Record<string, unknown>)
  if (Result.isSuccess(result)) return assert.fail(`accepted: ${JSON.stringify(result.success)}`)
  const { opId, refusal } = result.failure
  return [refusal.reason, "field" in refusal.detail ? refusal.detail.field : undefined, opId] as const
}
const submit = (more: object) => ({ op: "submit", run_id: "1", prompt: "go", ...more })
const text = (value: string | number | boolean): string => String(value)

describe("reading ops", () => {
  it.effect.prop(
    "every op that a driver can write is read back as what it says [SRV-042]",
    [ServeOp],
    ([op]) =>
      Effect.sync(() => {
        const wire = { ...(JSON.parse(encodeOp(op)) as object), unknown_field: { deep: [1] } }
        const result = readOp(wire as Record<string, unknown>)
        const texts = [op.opId, "runId" in op ? op.runId : "", "askId" in op ? op.askId : ""]
        const odd = texts.some((id) => typeof id === "string" && (!id.isWellFormed() || id.includes("\0")))
        if (Result.isFailure(result)) {
          const { reason } = result.failure.refusal
          if (op.op === "submit") assert.include(["missing_field", "bad_field"], reason)
          else assert.isTrue(odd && reason === "bad_field", JSON.stringify([op, result.failure]))
          return
        }
        const back = result.success
        assert.strictEqual(back.op, op.op)
        assert.strictEqual(back.opId, op.opId === undefined ? undefined : text(op.opId))
        if (op.op === "submit" && back.op === "submit") {
          assert.deepStrictEqual(
            [back.runId, back.prompt, back.submissionId],
            [text(op.runId), op.prompt, op.submissionId]
          )
        }
        if (op.op === "answer" && back.op === "answer") {
          assert.lengthOf(back.answers, op.answers.length)
          assert.strictEqual(back.askId, op.askId === undefined ? undefined : text(op.askId))
        }
      }),
    { arbitrary: { runs: 200 } }
  )

  it.effect.prop(
    "no JSON object makes the reader throw, and each is read or refused with a reason of the table",
    [Schema.Record(Schema.Literals(["op", "op_id", "run_id", "prompt", "answers", "ask_id"]), Schema.Json)],
    ([fields]) =>
      Effect.sync(() => {
        for (const op of [fields["op"], "submit", "answer", "cancel", "hello"]) {
          const result = readOp({ ...fields, op })
          if (Result.isFailure(result)) assert.include(refusalReasons, result.failure.refusal.reason)
        }
      }),
    { arbitrary: { runs: 200 } }
  )

  it("a missing or non-string op and an unknown one are refused, the name cut [SRV-093]", () => {
    assert.deepStrictEqual(refused({}), ["bad_op", undefined, undefined])
    assert.deepStrictEqual(refused({ op: 7, op_id: "x" }), ["bad_op", undefined, "x"])
    assert.deepStrictEqual(refused({ op: "SUBMIT" }), ["unknown_op", undefined, undefined])
    const result = readOp({ op: "x".repeat(1_000) })
    assert.isTrue(Result.isFailure(result))
    if (Result.isFailure(result)) {
      const line = errorLine(result.failure.refusal)
      assert.deepStrictEqual(line.error.detail, { op: "x".repeat(64) })
      assert.notInclude(line.message, "x".repeat(65))
    }
  })

  it("an op id is text, a safe integer or a boolean, and null is none [SRV-094, SRV-099]", () => {
    assert.strictEqual(read({ op: "ping", op_id: 7 }).opId, "7")
    assert.strictEqual(read({ op: "ping", op_id: false }).opId, "false")
    assert.strictEqual(read({ op: "ping", op_id: "" }).opId, "")
    assert.notProperty(read({ op: "ping", op_id: null }), "opId")
    for (const bad of [{}, [], 1.5, 2 ** 53, "x".repeat(257)]) {
      assert.deepStrictEqual(refused({ op: "ping", op_id: bad }), ["bad_field", "op_id", undefined])
    }
    assert.strictEqual(read({ op: "ping", op_id: "😀".repeat(256) }).opId, "😀".repeat(256))
  })

  it("lone surrogates and U+0000 stay in texts and are refused in ids [SRV-043]", () => {
    const prompt = "a\ud800b\0"
    assert.include(read(submit({ prompt })), { prompt })
    assert.deepStrictEqual(refused(submit({ run_id: "a\0" })), ["bad_field", "run_id", undefined])
    assert.deepStrictEqual(refused(submit({ op_id: "\udc00" })), ["bad_field", "op_id", undefined])
    assert.deepStrictEqual(refused({ op: "cancel", run_id: "\ud800" }), ["bad_field", "run_id", undefined])
    const ask = { op: "answer", run_id: "1", answers: ["y\0"], ask_id: "\0" }
    assert.deepStrictEqual(refused(ask), ["bad_field", "ask_id", undefined])
    assert.deepInclude(read({ ...ask, ask_id: "a" }), { answers: ["y\0"] })
  })

  it("a submit is read in the order run id, prompt, submission id [SRV-100]", () => {
    for (const missing of ["", 0, false, null, undefined]) {
      assert.deepStrictEqual(refused({ op: "submit", run_id: missing, prompt: 1 }), [
        "missing_field",
        "run_id",
        undefined
      ])
    }
    assert.deepStrictEqual(refused(submit({ run_id: true })), ["bad_field", "run_id", undefined])
    assert.deepStrictEqual(refused(submit({ run_id: 1e300, prompt: "" })), ["bad_field", "run_id", undefined])
    assert.deepStrictEqual(refused(submit({ prompt: null, submission_id: 1 })), ["missing_field", "prompt", undefined])
    assert.deepStrictEqual(refused(submit({ prompt: " \n", submission_id: 1 })), ["bad_field", "prompt", undefined])
    for (const submission of [1, "", "a\u0007", "schedule/x", "x".repeat(201)]) {
      assert.deepStrictEqual(refused(submit({ submission_id: submission })), ["bad_field", "submission_id", undefined])
    }
    assert.include(read(submit({ run_id: -3 })), { runId: "-3" })
  })

  it("fields that would raise a budget are ignored and named [SRV-261]", () => {
    const op = read(submit({ max_rounds: 99, budgets: {}, project: "/" }))
    assert.deepStrictEqual(op.op === "submit" ? op.ignored : [], ["max_rounds", "budgets"])
  })

  it("answers are 1 to 64 values or lists of them, each told by its path [SRV-190]", () => {
    const answer = (answers: unknown) => ({ op: "answer", run_id: "1", answers })
    for (const bad of [undefined, null, "yes", [], Array.from({ length: 65 }, () => "a")]) {
      assert.deepStrictEqual(refused(answer(bad)), ["bad_field", "answers", undefined])
    }
    assert.deepStrictEqual(refused(answer(["a", {}])), ["bad_field", "answers[1]", undefined])
    assert.deepStrictEqual(refused(answer(["a", ["b", ["c"]]])), ["bad_field", "answers[1][1]", undefined])
    const read_ = read(answer(["a", 1.5, true, null, ["x", 2, null]]))
    assert.deepStrictEqual(read_.op === "answer" ? read_.answers : [], ["a", "1.5", "true", "", ["x", "2", ""]])
  })

  it("versions are read leniently; only usable ones without ours are refused [SRV-120, SRV-121, SRV-122]", () => {
    const fine = [undefined, null, [], "x", [1, 2], ["1"], [" 1.0 "], 1, "1", [{}, "two", 1.5], {}, true]
    for (const versions of fine) {
      assert.notProperty(read({ op: "hello", protocol_versions: versions }), "refusal", JSON.stringify(versions))
    }
    const hello = read({ op: "hello", protocol_versions: ["2", 3.0, "x"], protocol_version: 1 })
    assert.deepStrictEqual(hello.op === "hello" ? hello.refusal : undefined, {
      reason: "version",
      detail: { requested: [2, 3], supported: [1] }
    })
    assert.property(read({ op: "hello", protocol_version: 2 }), "refusal")
  })
})

const idle: ServeView = {
  activeRunId: null,
  isOver: false,
  isCancelling: false,
  wasUsed: (id) => id === "old",
  openAsk: undefined,
  missedAsk: undefined
}
const working: ServeView = { ...idle, activeRunId: "1" }
const asking: ServeView = { ...working, openAsk: "int_2" }

describe("checks against the active run", () => {
  const reasonOf = (refusal: { readonly reason: string } | undefined) => refusal?.reason
  const submitOp = (runId: string) => ({ op: "submit", runId, prompt: "x", ignored: [] }) as const
  const answerOp = (runId: string | null, askId?: string) =>
    ({ op: "answer", runId, answers: ["y"], ...(askId === undefined ? {} : { askId }) }) as const

  it("a submit is busy before its run id was used [SRV-100, SRV-101, SRV-102]", () => {
    assert.isUndefined(checkSubmit(submitOp("new"), idle))
    assert.strictEqual(reasonOf(checkSubmit(submitOp("old"), idle)), "run_id_reused")
    assert.deepStrictEqual(checkSubmit(submitOp("old"), working)?.detail, { activeRunId: "1" })
  })

  it("a cancel names the active run, also twice, or none [SRV-103]", () => {
    assert.isUndefined(checkCancel({ op: "cancel", runId: "1" }, working))
    assert.isUndefined(checkCancel({ op: "cancel", runId: "1" }, { ...working, isCancelling: true }))
    assert.strictEqual(reasonOf(checkCancel({ op: "cancel", runId: "1" }, { ...working, isOver: true })), "unknown_run")
    assert.strictEqual(reasonOf(checkCancel({ op: "cancel", runId: "2" }, working)), "unknown_run")
    const missing = checkCancel({ op: "cancel", runId: null }, idle) ?? assert.fail("accepted")
    assert.include(errorLine(missing).message, "(missing)")
  })

  it("an answer is checked for run, missed ask, its ask, an open ask [SRV-190, SRV-191, SRV-192]", () => {
    assert.isUndefined(checkAnswer(answerOp("1"), asking))
    assert.isUndefined(checkAnswer(answerOp("1", "int_2"), { ...asking, missedAsk: "int_1" }))
    assert.strictEqual(reasonOf(checkAnswer(answerOp(null), asking)), "unknown_run")
    assert.deepStrictEqual(checkAnswer(answerOp("1"), { ...asking, missedAsk: "int_1" })?.detail, { askId: "int_1" })
    assert.strictEqual(reasonOf(checkAnswer(answerOp("1"), { ...working, missedAsk: "int_1" })), "ambiguous_answer")
    const stale = checkAnswer(answerOp("1", "int_1"), asking) ?? assert.fail("accepted")
    assert.deepStrictEqual(stale.detail, { askId: "int_1", pendingAskId: "int_2" })
    assert.include(errorLine(stale).message, "int_1")
    assert.include(errorLine(stale).message, "int_2")
    assert.strictEqual(reasonOf(checkAnswer(answerOp("1", "int_1"), working)), "no_pending_ask")
    assert.strictEqual(reasonOf(checkAnswer(answerOp("1"), { ...asking, isCancelling: true })), "no_pending_ask")
  })
})

describe("refusals", () => {
  for (const reason of refusalReasons) {
    it.effect.prop(
      `${reason} is one sentence, said twice, with its detail in wire names`,
      [refusalDetails[reason] as unknown as Schema.Codec<object>],
      ([detail]) =>
        Effect.sync(() => {
          const line = errorLine({ reason, detail } as never, "o")
          assert.strictEqual(line.message, line.error.message)
          assert.isAtMost(Buffer.byteLength(line.message), 2_048)
          assert.deepInclude(line, { protocol: 1, type: "error", opId: "o" })
          for (const name of Object.keys(line.error.detail ?? {})) assert.match(name, /^[a-z_]+$/u)
        }),
      { arbitrary: { runs: 20 } }
    )
  }
})
