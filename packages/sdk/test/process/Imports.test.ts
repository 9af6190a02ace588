import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"

const folder = fileURLToPath(new URL("../../src/process/", import.meta.url))

const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"))

const importsOf = (file: string): ReadonlyArray<string> =>
  [...readFileSync(folder + file, "utf8").matchAll(/(?:from|import)\s+"([^"]+)"/g)].map((match) => match[1] ?? "")

describe("@tackroom/sdk/process", () => {
  it("imports effect, Node built-ins and the pure rules of the wires only, so that a runner stays light", () => {
    const outside = files.flatMap((file) =>
      importsOf(file)
        .filter(
          (name) =>
            !/^(?:effect(?:\/[A-Z]\w*)?|node:[a-z_/]+|@tackroom\/protocol\/text)$/.test(name) && !name.startsWith("./")
        )
        .filter((name) => !(name.startsWith("../") && file.startsWith("internal/")))
        .map((name) => `${file}: ${name}`)
    )
    assert.isAbove(files.length, 10)
    assert.deepStrictEqual(outside, [])
  })
})
