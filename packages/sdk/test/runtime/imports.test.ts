import { readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"

const source = fileURLToPath(new URL("../../src", import.meta.url))

/** Everything that is loaded with a module: files of this package, and names of others. Types are not loaded. */
const reach = (
  entry: string,
  platform: "browser" | "node"
): { readonly files: Set<string>; readonly packages: Set<string> } => {
  const files = new Set<string>()
  const packages = new Set<string>()
  const visit = (file: string): void => {
    if (files.has(file)) return
    files.add(file)
    const text = readFileSync(file, "utf8")
    for (const match of text.matchAll(/^(?:import|export)\s+(?!type\b)([^;"']*?from\s+)?["']([^"']+)["']/gmu)) {
      const clause = match[1] ?? ""
      const names = /\{([^}]*)\}/u.exec(clause)?.[1]
      const onlyTypes =
        names !== undefined &&
        !/^\s*[A-Za-z_*]/u.test(clause.replace(/^\{/u, "{")) &&
        names.split(",").every((name) => name.trim() === "" || name.trim().startsWith("type "))
      if (onlyTypes) continue
      const name = match[2] ?? ""
      if (name === "#platform") visit(join(source, "platform", `${platform}.ts`))
      else if (name.startsWith(".")) visit(join(dirname(file), name))
      else packages.add(name)
    }
    for (const match of text.matchAll(/\bimport\(\s*["']([^"']+)["']\s*\)/gu)) packages.add(`lazy:${match[1]}`)
  }
  visit(join(source, entry))
  return { files, packages }
}

describe("what an entry loads", () => {
  for (const entry of ["index.ts", "capabilities.ts"]) {
    it(`${entry} reaches no Node built-in in a browser [RT-004]`, () => {
      const { packages } = reach(entry, "browser")
      assert.deepStrictEqual(
        [...packages].filter((name) => name.startsWith("node:") || name.startsWith("lazy:node:")),
        []
      )
    })
  }

  for (const entry of ["index.ts", "effect.ts", "capabilities.ts"]) {
    it(`${entry} loads no store driver and no harness [RT-001, RT-006]`, () => {
      const { files, packages } = reach(entry, "node")
      const loaded = [...files].map((file) => relative(source, file))
      assert.deepStrictEqual(
        loaded.filter((file) => /^store\/(?:memory|sqlite|postgres)\//u.test(file) || /^harness\/[a-z]+\//u.test(file)),
        []
      )
      assert.deepStrictEqual(
        [...packages].filter((name) => !/^(?:effect|@tackroom\/protocol|node:)/u.test(name)),
        []
      )
    })
  }

  it("the harnesses load no harness's own SDK at import [RT-002]", () => {
    const { packages } = reach("harness/index.ts", "node")
    assert.deepStrictEqual(
      [...packages].filter((name) => !/^(?:effect|@tackroom\/protocol|node:|lazy:)/u.test(name)),
      []
    )
  })
})
