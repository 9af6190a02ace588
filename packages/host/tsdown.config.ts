import { createRequire } from "node:module"
import { defineConfig, type UserConfig } from "tsdown"

// A host is started for every app that embeds one, so what a start costs counts (bench: cold-start). CommonJS and one
// chunk for everything that a start needs load faster than linked modules; comments and names cost reading time.

const require = createRequire(import.meta.url)

/** Built-in modules which a start does without: they are loaded by the first call of one of their functions. */
const calledLater: ReadonlySet<string> = new Set(["node:child_process", "node:crypto", "node:fs/promises"])

const prefix = "\0called-later:"

const callLater = {
  name: "call-later",
  resolveId: (id: string) => (calledLater.has(id) ? `${prefix}${id}` : undefined),
  load: (id: string) => {
    if (!id.startsWith(prefix)) return undefined
    const name = id.slice(prefix.length)
    const functions = Object.entries<unknown>(require(name)).filter(
      ([key, value]) => typeof value === "function" && /^[a-z]\w*$/u.test(key)
    )
    return [
      `const real = () => process.getBuiltinModule(${JSON.stringify(name)})`,
      ...functions.map(([key]) => `export const ${key} = (...args) => real().${key}(...args)`)
    ].join("\n")
  }
}

/** What the program loads by subcommand is bundled by itself, so that none pays for another. */
const parts: ReadonlyMap<string, string> = new Map([
  ["../faces/Programs.ts", "./host.cjs"],
  ["../tools/main.ts", "./tool-runner.cjs"]
])

const partsApart = {
  name: "parts-apart",
  resolveId: (id: string) => {
    const file = parts.get(id)
    return file === undefined ? undefined : { id: file, external: true }
  }
}

const program = (entry: UserConfig["entry"]): UserConfig => ({
  entry,
  outDir: "dist/bin",
  format: "cjs",
  platform: "node",
  target: "node22.19",
  clean: false,
  dts: false,
  sourcemap: false,
  minify: true,
  treeshake: true,
  outExtensions: () => ({ js: ".cjs" }),
  // A part that is loaded later takes what it shares from its entry.
  inputOptions: { preserveEntrySignatures: "allow-extension" },
  outputOptions: { dynamicImportInCjs: false },
  plugins: [callLater],
  deps: { alwaysBundle: [/.*/], neverBundle: ["better-sqlite3"], onlyBundle: false }
})

const command = program({ tackroom: "src/cli.ts" })

export default defineConfig([
  { ...command, clean: true, plugins: [callLater, partsApart] },
  program({ host: "src/faces/Programs.ts" }),
  program({ "tool-runner": "src/tools/main.ts" })
])
