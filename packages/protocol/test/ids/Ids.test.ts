import { assert, describe, it } from "@effect/vitest"
import * as Ids from "@tackroom/protocol"
import { Effect, Schema } from "effect"

const random = (fill: number, length = 10): Uint8Array => new Uint8Array(length).fill(fill)

describe("ids", () => {
  it("a ULID holds the time first and eighty random bits after it", () => {
    assert.strictEqual(Ids.ulid(0, random(0)), "0".repeat(26))
    assert.strictEqual(Ids.ulid(0xffff_ffff_ffff, random(0xff)), `7${"Z".repeat(25)}`)
    assert.strictEqual(Ids.ulid(1_469_918_176_385, random(0)).slice(0, 10), "01ARYZ6S41")
    assert.strictEqual(Ids.ulid(0, Uint8Array.of(0, 0, 0, 0, 1, 0, 0, 0, 0, 31)), `${"0".repeat(17)}1${"0".repeat(7)}Z`)
  })

  it.effect.prop(
    "a minted id passes its own check, and a later one sorts after it",
    [Schema.Natural, Schema.Uint8Array],
    ([time, bytes]) =>
      Effect.sync(() => {
        const at = time % 0xffff_ffff_fffe
        const filled = random(0)
        filled.set(bytes.subarray(0, 10))
        const isUlid = Schema.is(Schema.String.check(Schema.isULID()))
        assert.isTrue(isUlid(Ids.ulid(at, filled)))
        assert.isTrue(Schema.is(Ids.TurnId)(Ids.mintId("turn", at, filled)))
        assert.isTrue(Schema.is(Ids.InteractionId)(Ids.mintId("interaction", at, filled)))
        assert.isTrue(Schema.is(Ids.ArtifactId)(Ids.mintId("artifact", at, filled)))
        assert.isTrue(Schema.is(Ids.SessionId)(Ids.mintId("session", at, filled)))
        assert.isTrue(Ids.ulid(at, filled) < Ids.ulid(at + 1, random(0)))
      })
  )

  it("minting refuses too few random bytes and a time beyond 48 bits", () => {
    assert.throws(() => Ids.ulid(0, random(0, 9)), RangeError)
    assert.throws(() => Ids.ulid(-1, random(0)), RangeError)
    assert.throws(() => Ids.ulid(0x1_0000_0000_0000, random(0)), RangeError)
    assert.throws(() => Ids.uuidV4(random(0, 15)), RangeError)
  })

  it("a minted message id is msg_ and a version 4 UUID [RT-084]", () => {
    assert.strictEqual(Ids.mintMessageId(random(0, 16)), "msg_00000000-0000-4000-8000-000000000000")
    assert.strictEqual(Ids.mintMessageId(random(0xff, 16)), "msg_ffffffff-ffff-4fff-bfff-ffffffffffff")
  })

  it("the assistant's message id is made from the user's [RT-148]", () => {
    assert.strictEqual(Ids.assistantMessageIdOf("m-1"), "m-1_r")
  })

  it("a caller's message id has 1 to 200 characters without control characters", () => {
    for (const good of ["a", "x".repeat(200), "😀".repeat(200), "with space", "ses/1"]) {
      assert.isUndefined(Ids.callerMessageIdProblem(good), good)
    }
    for (const bad of ["", "x".repeat(201), "a\nb", "a\u0000", "a\u0085", "\u007f", "a\ud800"]) {
      assert.isString(Ids.callerMessageIdProblem(bad), JSON.stringify(bad))
    }
  })

  it("a caller's message id with a reserved prefix is refused [RT-090]", () => {
    for (const prefix of ["ow-schedule/", "schedule/", "team/", "goal/"]) {
      assert.isString(Ids.callerMessageIdProblem(`${prefix}1`))
      assert.isTrue(Ids.hasReservedPrefix(`${prefix}1`))
      assert.isTrue(Schema.is(Ids.MessageId)(`${prefix}1`))
    }
    assert.isUndefined(Ids.callerMessageIdProblem("teams/1"))
  })

  it("a caller's session id has 1 to 128 characters of the allowed set", () => {
    assert.isUndefined(Ids.callerSessionIdProblem("My.session_1:a@b-c"))
    for (const bad of ["", "a/b", "a b", "é", "x".repeat(129)]) assert.isString(Ids.callerSessionIdProblem(bad))
  })

  it("a turn, interaction or artifact id without its prefix is refused", () => {
    assert.isFalse(Schema.is(Ids.TurnId)("ses_1"))
    assert.isFalse(Schema.is(Ids.InteractionId)("9"))
    assert.isFalse(Schema.is(Ids.ArtifactId)("art_"))
    assert.isFalse(Schema.is(Ids.ArtifactId)("art_a/b"))
  })

  it("a cursor is an integer of 0 or more that a double holds exactly", () => {
    const isCursor = Schema.is(Ids.Cursor)
    for (const good of [0, 1, Number.MAX_SAFE_INTEGER]) assert.isTrue(isCursor(good))
    for (const bad of [-1, 1.5, "1", Number.NaN, Infinity, 2 ** 53, null]) assert.isFalse(isCursor(bad), String(bad))
  })
})
