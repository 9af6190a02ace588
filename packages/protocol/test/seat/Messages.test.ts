import { assert, describe, it } from "@effect/vitest"
import {
  ActivityAnswer,
  activityEvents,
  activityKind,
  ActivityPost,
  beatLiveness,
  Declaration,
  FailedRecord,
  identifierText,
  idleLiveness,
  LaunchRecord,
  OpenedRecord,
  PermissionRead,
  PermissionSubmit,
  permissionSubmit,
  PermissionSubmitted,
  PermissionWithdraw,
  PermissionWithdrawn,
  permitOption,
  readLaunchRecord,
  readWait,
  rejectOption,
  seatCodec,
  writeLaunchRecord
} from "@tackroom/protocol/seat"
import { Effect, Result, Schema, Struct } from "effect"

const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

/** Generated values may have no prototype and a negative zero; what goes over a wire has neither. */
const plain = (value: unknown): unknown => json(value)

const messages: ReadonlyArray<readonly [string, Schema.Constraint, Schema.Constraint?]> = [
  ["an activity post", ActivityPost],
  ["the answer to an activity post", ActivityAnswer],
  ["a permission submit", PermissionSubmit],
  ["the answer to a submit", PermissionSubmitted],
  ["the answer to a read", PermissionRead],
  ["a withdraw", PermissionWithdraw],
  ["the answer to a withdraw", PermissionWithdrawn],
  ["a declaration", Declaration],
  [
    "a launch record",
    LaunchRecord,
    // The other form's field is never there, which a generator does not find by chance.
    Schema.Union([
      Schema.Struct(Struct.omit(OpenedRecord.fields, ["error"])),
      Schema.Struct(Struct.omit(FailedRecord.fields, ["nativeRef"]))
    ])
  ]
]

describe("messages between a runner and a rig", () => {
  for (const [name, schema, generator] of messages) {
    const codec = seatCodec(schema as Schema.Codec<unknown>)
    it.effect.prop(
      `${name} survives the wire, and members that nobody knows are dropped`,
      [(generator ?? schema) as Schema.Codec<unknown>],
      ([generated]) =>
        Effect.sync(() => {
          const value = plain(generated)
          const wire = json(codec.encode(value))
          assert.deepStrictEqual(Result.getOrThrow(codec.decode(wire)), value)
          const strange = { ...(wire as object), notInTheTable: { deep: [1] }, constructor: "x" }
          assert.deepStrictEqual(Result.getOrThrow(codec.decode(strange)), value)
        }),
      { arbitrary: { runs: 40 } }
    )
  }

  it("a bad field is named as the wire writes it, and its value is not repeated", () => {
    const refused = permissionSubmit.decode({
      turnId: "1",
      requestId: 7,
      toolCall: {},
      options: [
        { optionId: "a", name: "A", kind: "allow_once" },
        { optionId: 3, name: "secret-name" }
      ]
    })
    const issues = Result.isFailure(refused) ? refused.failure : assert.fail("it was taken")
    assert.deepStrictEqual(
      issues.map(({ path }) => path),
      ["options[1].optionId", "options[1].kind"]
    )
    assert.notInclude(JSON.stringify(issues), "secret-name")
  })

  it("a request id is compared by its text, whatever its type", () => {
    assert.deepStrictEqual([7, "7", null].map(identifierText), ["7", "7", "null"])
  })
})

describe("what a post means", () => {
  it("is told by its two words", () => {
    const pairs = Object.entries(activityEvents).map(([name, pair]) => [name, activityKind(pair)])
    assert.deepStrictEqual(pairs, [
      ["accepted", "accepted"],
      ["agentMessage", "agent_message"],
      ["liveness", "beat"],
      ["permissionResolved", "permission_resolved"],
      ["permissionPrompt", "permission_prompt"],
      ["runtimeError", "runtime_error"],
      ["idleHeartbeat", "idle_heartbeat"]
    ])
    const kind = (hookEvent: string, subtype: string) => activityKind({ hookEvent, subtype })
    assert.strictEqual(kind("PreToolUse", "execute"), "tool")
    assert.strictEqual(kind("Stop", "a reason of tomorrow"), "stop")
    assert.strictEqual(kind("Stop", "other_exited"), "exit")
    assert.strictEqual(kind("UserPromptSubmit", "queued"), "unmapped")
    assert.strictEqual(kind("stop", "end_turn"), "unmapped")
    assert.strictEqual(activityKind({ hookEvent: "Stop", subtype: "end_turn", eventFamily: "session" }), "unmapped")
  })

  it("its liveness is read by its kind", () => {
    assert.deepStrictEqual([1, 3600, 0, 3601, 1.5, "60", null, undefined].map(idleLiveness), [
      1,
      3600,
      ...Array.from({ length: 6 }, () => undefined)
    ])
    assert.deepStrictEqual([30, 1, 1000, "x", undefined, Number.NaN].map(beatLiveness), [30, 5, 60, 30, 30, 30])
  })

  it("a wait is a whole number of at most 25 seconds, and anything else is none", () => {
    assert.deepStrictEqual(
      ["0", "7", "25", "26", "1e1", "-1", "1.5", "", null, undefined].map(readWait),
      [0, 7, 25, 25, 0, 0, 0, 0, 0, 0]
    )
  })
})

describe("the option that a default takes", () => {
  const options = ["allow_always", "reject_always", "allow_once", "reject_once", "allow_once"].map((kind, index) => ({
    kind,
    optionId: String(index)
  }))
  it("is the one that lasts shorter, and the first of its kind", () => {
    assert.strictEqual(permitOption(options)?.optionId, "2")
    assert.strictEqual(rejectOption(options)?.optionId, "3")
    assert.strictEqual(permitOption(options.slice(0, 2))?.optionId, "0")
    assert.isUndefined(permitOption([{ kind: "proceed" }]))
  })
})

describe("a launch record file", () => {
  const expected = { attempt: "3f", harness: "otter" }
  const record = { format: 1, attempt: "3f", harness: "otter", nativeRef: "c-81", producer: "x" } as const
  const read = (value: unknown) => readLaunchRecord(JSON.stringify(value), expected)

  it("reads back what was written", () => {
    assert.deepStrictEqual(readLaunchRecord(writeLaunchRecord(record), expected), record)
  })

  it("is not usable for another attempt, another preset, or in neither form", () => {
    assert.isUndefined(read({ ...record, attempt: "4f" }))
    assert.isUndefined(read({ ...record, harness: "badger" }))
    assert.isUndefined(read({ ...record, format: 2 }))
    assert.isUndefined(read({ ...record, error: "missing" }))
    assert.isUndefined(read({ ...record, nativeRef: undefined }))
    assert.isUndefined(read({ ...record, nativeRef: "" }))
    assert.isUndefined(read({ ...record, nativeRef: "a\u0007b" }))
    assert.isUndefined(read({ ...record, nativeRef: "é".repeat(513) }))
    assert.isUndefined(read([record]))
    assert.isUndefined(readLaunchRecord("{", expected))
    assert.isUndefined(readLaunchRecord(JSON.stringify(record) + " ".repeat(16_384), expected))
  })

  it("is usable with a producer that is missing, too long or no text, and with members nobody knows", () => {
    const { producer, ...without } = record
    assert.deepStrictEqual(read(without), without)
    assert.deepStrictEqual(read({ ...record, producer: 7 }), without)
    assert.strictEqual(read({ ...record, producer: producer.repeat(600) })?.producer, producer.repeat(500))
    assert.deepStrictEqual(read({ ...record, later: true }), record)
  })
})
