import { assert, describe, it } from "@effect/vitest"
import { fileURLToPath } from "node:url"
import { requirements } from "./requirements.ts"
import { citationsOf, readCitations } from "./requirements/Citations.ts"
import { uncited } from "./requirements/uncited.ts"

const citations = readCitations(fileURLToPath(new URL("../..", import.meta.url)))
const cited = new Set(citations.cited.map((citation) => citation.id))
const known = new Map(requirements.map((rule) => [rule.id, rule]))

describe("the manifest of requirements", () => {
  it("names each rule once, in its own short words", () => {
    assert.strictEqual(known.size, requirements.length)
    assert.deepStrictEqual(
      requirements.filter((rule) => rule.title.length === 0 || rule.title.length > 90).map((rule) => rule.id),
      []
    )
    assert.strictEqual(new Set(requirements.map((rule) => rule.title)).size, requirements.length)
  })

  it("knows every rule that a test cites", () => {
    assert.deepStrictEqual(
      citations.cited.filter(({ id }) => !known.has(id)).map(({ id, file }) => `${id} in ${file}`),
      []
    )
  })

  it("reads every bracket that is meant as a citation", () => {
    assert.deepStrictEqual(
      citations.malformed.map(({ text, file }) => `${text} in ${file}`),
      []
    )
  })

  it("holds no rule open that a test cites", () => {
    assert.deepStrictEqual(
      requirements.filter((rule) => rule.open !== undefined && cited.has(rule.id)).map((rule) => rule.id),
      []
    )
  })

  it("lists exactly the rules that no test cites; `node test/e2e/requirements/update.ts` rewrites the list", () => {
    assert.deepStrictEqual(
      uncited.map((entry) => entry.id),
      requirements.filter((rule) => rule.open === undefined && !cited.has(rule.id)).map((rule) => rule.id)
    )
    assert.deepStrictEqual(
      uncited.filter((entry) => entry.reason.trim() === "").map((entry) => entry.id),
      []
    )
  })
})

describe("a citation", () => {
  const of = (source: string, kit = false) => citationsOf("a.test.ts", source, kit)
  const ids = (source: string, kit = false) => of(source, kit).cited.map((citation) => citation.id)

  it("stands in brackets in a name", () => {
    assert.deepStrictEqual(ids('it("counts [RUN-001, RT-002]", () => {})'), ["RUN-001", "RT-002"])
    assert.deepStrictEqual(ids("it(`counts ${n} [RUN-003]`, () => {})"), ["RUN-003"])
    assert.deepStrictEqual(ids('it("counts [RUN-001] [RUN-002]", () => {})'), ["RUN-001", "RUN-002"])
  })

  it("is not made by comments, indexes or bare ids", () => {
    assert.deepStrictEqual(ids("// it says [RUN-001]\nconst a = list[0]\nconst b = 'RUN-001'"), [])
  })

  it("is refused in another form", () => {
    assert.deepStrictEqual(
      of('it("counts [RUN-1 to RUN-3]", () => {})').malformed.map((one) => one.text),
      ["[RUN-1 to RUN-3]"]
    )
  })

  it("is read from the fields of a kit's cases, and there alone", () => {
    const source = 'const one = { id: "STO-001", rules: ["STO-002", "STO-003"] }'
    assert.deepStrictEqual(ids(source, true), ["STO-001", "STO-002", "STO-003"])
    assert.deepStrictEqual(ids(source), [])
  })
})
