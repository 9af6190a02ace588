import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { repository, runProgram, temporary } from "./Program.ts"

/** The documents whose TypeScript must be true. Blocks marked `run` need nothing from outside and are run as well. */
const documents = [
  "README.md",
  "ARCHITECTURE.md",
  "docs/acp.md",
  "docs/run-protocol.md",
  ...["agent", "concepts", "architecture", "recipes", "api", "acp", "host", "serve"].map(
    (name) => `packages/sdk/docs/${name}.md`
  )
]

interface Example {
  readonly name: string
  readonly code: string
  readonly run: boolean
}

const block = /^```ts(?<run> run)?\n(?<code>[\s\S]*?)^```$/gmu

const examplesOf = (document: string): ReadonlyArray<Example> =>
  [...fs.readFileSync(path.join(repository, document), "utf8").matchAll(block)].map(({ groups }, index) => ({
    name: `${document.replaceAll(/[^A-Za-z0-9]+/gu, "_")}_${index + 1}.ts`,
    code: `${groups?.["code"] ?? ""}\nexport {}\n`,
    run: groups?.["run"] !== undefined
  }))

const examples = documents.flatMap(examplesOf)

/** The host's package sees every other one by name and itself, so the examples lie in its `dist`, which no list of files has. */
const workshop = Effect.acquireRelease(
  Effect.sync(() => {
    const cache = path.join(repository, "packages/host/dist/.examples")
    fs.mkdirSync(cache, { recursive: true })
    const directory = fs.mkdtempSync(path.join(cache, "run-"))
    for (const { code, name } of examples) fs.writeFileSync(path.join(directory, name), code)
    const config = {
      extends: path.join(repository, "tsconfig.base.json"),
      compilerOptions: {
        types: ["node"],
        noEmit: true,
        composite: false,
        declaration: false,
        declarationMap: false,
        rewriteRelativeImportExtensions: false
      },
      files: examples.map(({ name }) => name)
    }
    fs.writeFileSync(path.join(directory, "tsconfig.json"), JSON.stringify(config))
    return directory
  }),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
)

describe("the examples in the documents", () => {
  it("are there for every package [RT-007]", () => {
    const all = examplesOf("README.md")
      .map(({ code }) => code)
      .join("")
    for (const name of ["@tackroom/protocol", "@tackroom/sdk", "@tackroom/sdk/client", "@tackroom/host"]) {
      assert.include(all, `"${name}`)
    }
  })

  it.live(
    "compile against the packages as they are [RT-007]",
    () =>
      Effect.gen(function* () {
        const directory = yield* workshop
        const tsc = path.join(repository, "node_modules/.bin/tsc")
        const ended = yield* runProgram(tsc, ["-p", directory], { env: { PATH: process.env["PATH"] ?? "" } })
        // Faults of the sources themselves are for the type check of the workspace.
        const wrong = ended.stdout.split("\n").filter((line) => line.includes(".examples"))
        assert.deepStrictEqual(wrong, [])
        assert.strictEqual(ended.stderr, "")
      }),
    120_000
  )

  it.live("run, where they need nothing from outside", () =>
    Effect.gen(function* () {
      const directory = yield* workshop
      const place = yield* temporary
      const runnable = examples.filter(({ run }) => run)
      assert.isAbove(runnable.length, 1)
      const preload = ["--import", "data:text/javascript,process.chdir(process.env.PLACE)"]
      for (const { name } of runnable) {
        const ended = yield* runProgram(process.execPath, [...preload, path.join(directory, name)], {
          env: { PLACE: place }
        })
        assert.strictEqual(ended.stderr, "", name)
        assert.deepStrictEqual([ended.code, ended.stdout === ""], [0, false], name)
      }
    })
  )

  it("links between documents lead somewhere", () => {
    for (const document of documents) {
      const text = fs.readFileSync(path.join(repository, document), "utf8")
      for (const [, target = ""] of text.matchAll(/\]\((?!https?:|#)([^)#]+)/gu)) {
        const file = path.resolve(path.dirname(path.join(repository, document)), target)
        assert.isTrue(fs.existsSync(file), `${document}: ${target}`)
      }
    }
  })
})
