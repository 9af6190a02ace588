import { assert, describe, it } from "@effect/vitest"
import {
  AskSettled,
  askStates,
  InvalidField,
  isSeatError,
  postReactionTo,
  reactionTo,
  readSeatError,
  refusalCode,
  SeatAmbiguous,
  seatErrorBody,
  seatErrorCodes,
  seatErrors,
  seatErrorStatus,
  stateReactions,
  UnknownRefusal,
  WordsNotAnAnswer
} from "@tackroom/protocol/seat"

/** Statuses of the contract, as they are written there. */
const contract: Readonly<Record<string, number>> = {
  denied_by_seat: 409,
  options_unsupported: 422,
  stale_generation: 409,
  activity_grant_wrong_seat: 403,
  activity_grant_stale: 409,
  activity_grant_revoked: 401,
  activity_grant_pending: 409,
  duplicate_request: 409
}

const samples = [
  new InvalidField({ path: "options[0].kind", expected: "a string" }),
  new SeatAmbiguous({ seat: "dev", matches: ["dev-a@mill", "dev-a@barn"] }),
  new AskSettled({ askId: "ask_1", state: "answered", optionId: "allow", by: "op1", at: "2026-11-30T09:00:00.000Z" }),
  new WordsNotAnAnswer({ wouldPermit: "proceed_once" }),
  new seatErrors.internal({})
]

describe("errors of the seat contract", () => {
  it("each code has one class and one status", () => {
    assert.strictEqual(new Set(Object.values(seatErrors)).size, seatErrorCodes.length)
    for (const [code, status] of Object.entries(contract)) {
      assert.strictEqual(seatErrorStatus[code as keyof typeof seatErrorStatus], status, code)
    }
  })

  it("an error survives the wire with its code, message and fields", () => {
    for (const error of samples) {
      const body: unknown = JSON.parse(JSON.stringify(seatErrorBody(error)))
      const read = readSeatError(seatErrorStatus[error.code], body)
      assert.isTrue(isSeatError(read))
      assert.strictEqual(read.constructor, error.constructor)
      assert.deepStrictEqual(JSON.parse(JSON.stringify(seatErrorBody(read as typeof error))), body)
    }
  })

  it("the body has no tag, no stack and no status", () => {
    assert.deepStrictEqual(seatErrorBody(new seatErrors.denied_by_seat({})), {
      ok: false,
      code: "denied_by_seat",
      error: "requests of this seat are refused"
    })
  })

  it("what another service answers is kept, and what is no refusal has no code", () => {
    const foreign = readSeatError(418, { ok: false, code: "teapot" })
    assert.instanceOf(foreign, UnknownRefusal)
    assert.deepStrictEqual([foreign.code, foreign.message], ["teapot", "the service answered 418"])
    assert.isUndefined(refusalCode("<html>"))
    assert.isUndefined(refusalCode(null))
    assert.isUndefined(refusalCode({ code: 7 }))
    // A code of the table whose fields are missing is not that error.
    assert.instanceOf(readSeatError(409, { ok: false, code: "ask_settled" }), UnknownRefusal)
  })
})

describe("what a runner does with what came back", () => {
  it("cancels only what certainly is not live, holds only what an operator refused, and permits the rest", () => {
    assert.deepStrictEqual(
      Object.keys(contract).map((code) => reactionTo(code)),
      ["refuse_and_hold", "refuse_and_hold", "cancel", "cancel", "cancel", "permit", "permit", "permit"]
    )
    for (const code of [undefined, "internal", "ask_not_found", "teapot", "toString"]) {
      assert.strictEqual(reactionTo(code), "permit")
    }
    assert.deepStrictEqual(
      askStates.map((state) => stateReactions[state]),
      ["read_again", "deliver", "deliver", "cancel", "cancel", "cancel"]
    )
  })

  it("stops posting only when no post of the process can count again", () => {
    assert.deepStrictEqual(
      ["activity_grant_pending", "activity_hook_unauthorized", "activity_grant_stale", "rate_limited", undefined].map(
        postReactionTo
      ),
      ["retry_soon", "read_endpoint", "stop_posting", "give_up", "give_up"]
    )
  })
})
