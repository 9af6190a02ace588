import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { aliasOf, makeTools, schemaDigest, splitQualifiedName, Tools } from "../../src/tools/Tools.ts"

const free = () => false
const declared = (qualifiedName: string, source: "native" | "internal" = "native") => ({
  qualifiedName,
  source,
  category: "read" as const,
  description: "",
  schema: { type: "object", additionalProperties: false }
})

describe("Tools", () => {
  it("a qualified name is split at its first dot [AGT-031]", () => {
    assert.deepStrictEqual(splitQualifiedName("docs.v1.search/all"), { provider: "docs", tool: "v1.search/all" })
    for (const bad of [
      "",
      "docs",
      ".x",
      "docs.",
      "1docs.x",
      "do cs.x",
      "docs.a b",
      `docs.${"x".repeat(129)}`,
      "docs.é"
    ]) {
      assert.strictEqual(splitQualifiedName(bad), undefined, bad)
    }
  })

  it("an alias joins provider and tool and keeps only safe chars [AGT-032]", () => {
    assert.strictEqual(aliasOf("files.read", free), "files__read")
    assert.strictEqual(aliasOf("docs.v1.search/all", free), "docs__v1_search_all")
  })

  it("an alias that is too long or taken ends in eight hex digits of the name's digest [AGT-032]", () => {
    const long = aliasOf(`p.${"x".repeat(100)}`, free)
    assert.match(long, /^p__x{52}_[0-9a-f]{8}$/)
    assert.strictEqual(long.length, 64)
    const other = aliasOf("docs.a/b", (alias) => alias === "docs__a_b")
    assert.match(other, /^docs__a_b_[0-9a-f]{8}$/)
  })

  it.effect("an alias stays with the tool that had it first [AGT-032]", () =>
    Effect.gen(function* () {
      const tools = makeTools()
      const [first] = yield* tools.register([declared("docs.a.b")])
      const [second] = yield* tools.register([declared("docs.a/b")])
      assert.strictEqual(first?.alias, "docs__a_b")
      assert.match(second?.alias ?? "", /^docs__a_b_[0-9a-f]{8}$/)
      assert.strictEqual(tools.findAlias("docs__a_b")?.qualifiedName, "docs.a.b")
    })
  )

  it.effect("a refused registration adds nothing", () =>
    Effect.gen(function* () {
      const tools = makeTools()
      const before = tools.list().length
      const refused = yield* Effect.flip(tools.register([declared("docs.a"), declared("no dot")]))
      assert.strictEqual(refused.reason, "name")
      const taken = yield* Effect.flip(tools.register([declared("docs.a"), declared("files.read")]))
      assert.strictEqual(taken.reason, "taken")
      assert.strictEqual(tools.list().length, before)
    })
  )

  it.effect("native tools have a category, internal ones have none [AGT-034]", () =>
    Effect.gen(function* () {
      const tools = yield* Tools
      const categories = Object.fromEntries(tools.list().map((tool) => [tool.alias, tool.category ?? tool.source]))
      assert.deepStrictEqual(categories, {
        files__read: "read",
        files__list: "read",
        files__search: "read",
        files__write: "write_local",
        files__edit: "write_local",
        shell__run: "exec",
        web__fetch: "network",
        web__search: "network",
        plan__update: "internal",
        ask_user: "internal"
      })
    }).pipe(Effect.provide(Tools.layer))
  )

  it("every input is a closed object", () => {
    for (const tool of makeTools().list()) {
      assert.strictEqual(tool.schema["additionalProperties"], false, tool.qualifiedName)
      assert.strictEqual(tool.schema["type"], "object", tool.qualifiedName)
    }
  })

  it("a binding holds source, version, schema digest and category [AGT-121]", () => {
    const tool = makeTools().find("shell.run")
    assert.deepStrictEqual(tool?.binding, {
      source: "native",
      version: "1",
      schemaDigest: schemaDigest(tool?.schema ?? {}),
      category: "exec"
    })
    assert.notStrictEqual(
      makeTools({ shellSecondsMax: 60 }).find("shell.run")?.binding.schemaDigest,
      tool?.binding.schemaDigest
    )
  })

  it("a schema's digest does not depend on the order of its members [AGT-121]", () => {
    assert.strictEqual(
      schemaDigest({ a: 1, b: { c: [1, 2], d: null } }),
      schemaDigest({ b: { d: null, c: [1, 2] }, a: 1 })
    )
    assert.notStrictEqual(schemaDigest({ a: [1, 2] }), schemaDigest({ a: [2, 1] }))
  })
})
