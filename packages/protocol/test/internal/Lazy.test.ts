import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { lazyClass, lazySchema, memoised } from "../../src/internal/Lazy.ts"

describe("what is made at its first use", () => {
  it("is made once, undefined too", () => {
    let made = 0
    const value = memoised(() => {
      made += 1
      return undefined
    })
    assert.strictEqual(made, 0)
    value()
    value()
    assert.strictEqual(made, 1)
  })

  it("is a schema like any other", () => {
    let made = 0
    const Name = lazySchema(() => {
      made += 1
      return Schema.String.check(Schema.isMinLength(2)).annotate({ identifier: "Name" })
    })
    assert.strictEqual(made, 0)
    assert.isTrue(Schema.isSchema(Name))
    const Row = Schema.Struct({ name: Name, more: Schema.optionalKey(Schema.Array(Name)) })
    assert.deepStrictEqual(Schema.decodeUnknownSync(Row)({ name: "ab", more: ["cd"] }), { name: "ab", more: ["cd"] })
    assert.throws(() => Schema.decodeUnknownSync(Row)({ name: "a" }))
    assert.strictEqual(Name.pipe(Schema.toType).ast, Schema.toType(Name).ast)
    assert.strictEqual(made, 1)
  })

  it("is a base class that is made with the first instance, static member or question for its schema", () => {
    let made = 0
    const base = () =>
      lazyClass(
        () => {
          made += 1
          return Schema.TaggedError<Lost>("Lost")("Lost", { what: Schema.String })
        },
        { row: 1 }
      )
    class Lost extends base() {}
    class Other extends base() {}
    assert.isFalse(new Error("x") instanceof Lost)
    assert.strictEqual((Lost as unknown as { readonly row: number }).row, 1)
    assert.strictEqual(Lost.name, "Lost")
    assert.strictEqual(made, 0)
    const lost = new Lost({ what: "key" })
    assert.strictEqual(made, 1)
    assert.isTrue(lost instanceof Lost && lost instanceof Error)
    assert.isFalse(lost instanceof Other)
    assert.deepInclude(lost, { _tag: "Lost", what: "key" })
    assert.strictEqual((Lost as unknown as { readonly row: number }).row, 1)
    assert.strictEqual(Lost.identifier, "Lost")
    assert.instanceOf(Schema.decodeUnknownSync(Lost)({ _tag: "Lost", what: "key" }), Lost)
    assert.isTrue(Schema.isSchema(Other))
    assert.strictEqual(made, 2)
  })

  it("is a base class of classes below it", () => {
    class Above extends lazyClass(() => Schema.TaggedError<Above>("Above")("Above", { a: Schema.Int })) {}
    class Below extends Above {
      readonly below = true
    }
    const below = new Below({ a: 1 })
    assert.isTrue(below instanceof Above && below.below)
    assert.strictEqual(below.a, 1)
    assert.strictEqual(new Above({ a: 2 }).a, 2)
    assert.throws(() => new Above({ a: 1.5 }))
  })

  it.effect("is an error that fails an effect", () =>
    Effect.gen(function* () {
      class Gone extends lazyClass(() => Schema.TaggedError<Gone>("Gone")("Gone", {})) {}
      const tag = yield* Effect.gen(function* () {
        return yield* new Gone()
      }).pipe(Effect.catchTag("Gone", (gone) => Effect.succeed(gone._tag)))
      assert.strictEqual(tag, "Gone")
    })
  )
})
