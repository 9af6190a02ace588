import { readdirSync, readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { eventTypes } from "@tackroom/protocol/events"
import {
  limits,
  limitKeys,
  limitName,
  methodNames,
  methods,
  notificationNames,
  runErrorKinds,
  runErrorTable
} from "@tackroom/protocol/run"
import { documents, printed } from "../../scripts/Documents.ts"

interface OpenRpc {
  readonly methods: ReadonlyArray<{
    readonly name: string
    readonly params: ReadonlyArray<{ readonly name: string; readonly required: boolean; readonly schema: object }>
    readonly errors: ReadonlyArray<{ readonly $ref: string }>
  }>
  readonly "x-notifications": ReadonlyArray<{ readonly name: string }>
  readonly "x-limits": object
  readonly components: { readonly errors: Readonly<Record<string, { readonly code: number }>> }
}

const all = documents()
const document = (file: string): unknown => all.get(file) ?? assert.fail(`no ${file}`)
const openrpc = document("openrpc.json") as OpenRpc

/** Every object of a document, with the key under which it is. */
const walk = (value: unknown, visit: (key: string, member: unknown) => void): void => {
  if (typeof value !== "object" || value === null) return
  for (const [key, member] of Object.entries(value)) {
    visit(key, member)
    walk(member, visit)
  }
}

describe("openrpc.json", () => {
  it("names exactly the methods and notifications of the tables", () => {
    assert.deepStrictEqual(
      openrpc.methods.map(({ name }) => name),
      [...methodNames]
    )
    assert.deepStrictEqual(
      openrpc["x-notifications"].map(({ name }) => name),
      [...notificationNames]
    )
  })

  it("has params by name, in snake_case, and which of them are required", () => {
    const start = openrpc.methods.find(({ name }) => name === "run/start")
    assert.deepStrictEqual(
      start?.params.map(({ name, required }) => [name, required]),
      [
        ["session_id", true],
        ["submission_id", true],
        ["text", true]
      ]
    )
    for (const method of openrpc.methods) for (const { name } of method.params) assert.match(name, /^[a-z_]+$/u)
  })

  it("has every kind of error with its code [RUN-060]", () => {
    const { errors } = openrpc.components
    assert.deepStrictEqual(Object.keys(errors), [...runErrorKinds])
    for (const kind of runErrorKinds) assert.strictEqual(errors[kind]?.code, runErrorTable[kind].code)
    for (const method of openrpc.methods) {
      for (const { $ref } of method.errors) assert.property(errors, $ref.replace("#/components/errors/", ""))
    }
    const own = methods["run/start"].errors.map((kind) => `#/components/errors/${kind}`)
    const start = openrpc.methods.find(({ name }) => name === "run/start")
    assert.includeMembers(start?.errors.map(({ $ref }) => $ref) ?? [], own)
  })

  it("has the limits", () => {
    assert.deepStrictEqual(
      openrpc["x-limits"],
      Object.fromEntries(limitKeys.map((key) => [limitName(key), limits[key]]))
    )
  })
})

/** Between a runner and a rig the wire writes names as TypeScript does; every other family writes snake_case. */
const fieldName = (file: string): RegExp =>
  ["launch-record.schema.json", "seat-messages.schema.json"].includes(file)
    ? /^[a-z][A-Za-z0-9]*$/u
    : /^[a-z][a-z0-9_]*$/u

describe("every document", () => {
  for (const [file, content] of all) {
    it(`${file} refers only to what it defines, and names fields as the wire does`, () => {
      const text = printed(content)
      walk(content, (key, member) => {
        if (key === "$ref") {
          const path = String(member).replace("#/", "").split("/")
          let target: unknown = content
          for (const step of path) target = (target as Readonly<Record<string, unknown>>)[step]
          assert.isObject(target, String(member))
        }
        if (key === "properties") for (const name of Object.keys(member as object)) assert.match(name, fieldName(file))
      })
      assert.notInclude(text, "Encoded")
      assert.notInclude(text, "wireDefaults")
    })
  }

  it("has the patterns of its fields", () => {
    const agent = JSON.stringify(document("agent-definition.schema.json"))
    assert.include(agent, '"pattern":"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"')
    assert.include(agent, '"x-max-bytes":262144')
    assert.include(JSON.stringify(openrpc), '"pattern":"^[A-Za-z0-9._:@-]{1,128}$"')
  })

  it("has one definition per event type", () => {
    const events = document("events.schema.json") as { readonly anyOf: ReadonlyArray<object> }
    assert.lengthOf(events.anyOf, eventTypes.length)
  })

  it("is committed as it is generated", () => {
    const directory = new URL("../../schemas/", import.meta.url)
    assert.sameMembers(readdirSync(directory), [...all.keys()])
    for (const [file, content] of all) {
      assert.strictEqual(
        readFileSync(new URL(file, directory), "utf8"),
        printed(content),
        `${file} differs: run the generator`
      )
    }
  })
})
