import { assert, describe, it } from "@effect/vitest"
import {
  AnswerBody,
  type FeedType,
  FeedEvent,
  feedFrames,
  feedTypes,
  HandoffBody,
  PermissionsBody,
  RigFile,
  RigFileSeat,
  rigPath,
  rigRouteNames,
  rigRoutes,
  seatCodec,
  SendBody
} from "@tackroom/protocol/seat"
import { Effect, Result, Schema, SchemaAST, Struct } from "effect"

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

/** One half of a body that takes exactly one of several fields: a generator finds none by chance. */
const only = (schema: { readonly fields: Schema.Struct.Fields }, name: string, others: ReadonlyArray<string>) => {
  const optional = schema.fields[name] as Schema.optionalKey<Schema.Constraint>
  return Schema.Struct({ ...Struct.omit(schema.fields, [name, ...others]), [name]: optional.schema })
}
const oneOf = (schema: { readonly fields: Schema.Struct.Fields }, ...names: ReadonlyArray<string>): Schema.Constraint =>
  Schema.Union(
    names.map((name) =>
      only(
        schema,
        name,
        names.filter((other) => other !== name)
      )
    )
  )

const generators: Readonly<Record<string, Schema.Constraint>> = {
  "body of createRig": Schema.Struct({ ...RigFile.fields, seats: Schema.Tuple([RigFileSeat]) }),
  "body of setPermissions": oneOf(PermissionsBody, "to", "deny", "default"),
  "body of answerAsk": oneOf(AnswerBody, "option", "text", "verb"),
  "body of handoffAsk": Schema.Struct({
    ...HandoffBody.fields,
    to: Schema.Union([
      Schema.Struct({ person: Schema.Literal("op1") }),
      Schema.Struct({ seat: Schema.Literal("a-b@c") })
    ])
  }),
  "body of sendSeat": Schema.Struct(Struct.omit(SendBody.fields, ["force"]))
}

const messages: ReadonlyArray<readonly [string, Schema.Constraint]> = [
  ...rigRouteNames.flatMap((name): ReadonlyArray<readonly [string, Schema.Constraint]> => [
    [`query of ${name}`, rigRoutes[name].query],
    [`body of ${name}`, rigRoutes[name].body],
    [`result of ${name}`, rigRoutes[name].result]
  ]),
  ...Object.entries(feedFrames),
  ["FeedEvent", FeedEvent] as const
].filter(([, { ast }]) => !(SchemaAST.isObjects(ast) && ast.propertySignatures.length === 0))

describe("messages of the rig API", () => {
  for (const [name, schema] of messages) {
    const codec = seatCodec(schema as Schema.Codec<unknown>)
    it.effect.prop(
      `${name} survives the wire, and members that nobody knows are dropped`,
      [(generators[name] ?? schema) as Schema.Codec<unknown>],
      ([generated]) =>
        Effect.sync(() => {
          const value = plain(generated)
          const wire = plain(codec.encode(value))
          assert.deepStrictEqual(Result.getOrThrow(codec.decode(wire)), value)
          assert.deepStrictEqual(Result.getOrThrow(codec.decode({ ...(wire as object), notInTheTable: 1 })), value)
        }),
      { arbitrary: { runs: 8 } }
    )
  }

  it("a body that may hold one of several fields takes exactly one", () => {
    const answer = seatCodec(AnswerBody)
    assert.isTrue(Result.isSuccess(answer.decode({ by: "op1", option: "allow" })))
    assert.isTrue(Result.isFailure(answer.decode({ by: "op1" })))
    assert.isTrue(Result.isFailure(answer.decode({ by: "op1", option: "allow", verb: "deny" })))
    const send = seatCodec(SendBody)
    assert.isTrue(Result.isFailure(send.decode({ text: "x", force: true })))
    assert.isTrue(Result.isSuccess(send.decode({ text: "x", force: true, reason: "r" })))
  })

  it("a rig names each of its seats once", () => {
    const seat = { pod: "dev", member: "a", harness: "otter", cwd: "/srv" }
    const rig = (...seats: ReadonlyArray<object>) => seatCodec(RigFile).decode({ format: 1, name: "mill", seats })
    assert.isTrue(Result.isSuccess(rig(seat, { ...seat, member: "b" })))
    assert.isTrue(Result.isFailure(rig(seat, seat)))
    assert.isTrue(Result.isFailure(rig()))
    assert.isTrue(Result.isFailure(rig({ ...seat, cwd: "srv" })))
  })

  it("a path carries its parameters escaped", () => {
    assert.strictEqual(rigPath("sendSeat", { seat: "dev-a@mill" }), "/api/rig/v1/seats/dev-a%40mill/send")
    assert.strictEqual(rigPath("status"), "/api/rig/v1/status")
  })

  it("no two routes share a method and a path, and every feed event has a view", () => {
    const places = rigRouteNames.map((name) => `${rigRoutes[name].method} ${rigRoutes[name].path}`)
    assert.strictEqual(new Set(places).size, places.length)
    const types = Object.keys(feedTypes) as ReadonlyArray<FeedType>
    assert.isTrue(types.every((type) => feedTypes[type] !== undefined))
  })
})
