import { createHash } from "node:crypto"
import { createRequire } from "node:module"
import { resolve } from "node:path"
import { defineConfig, type UserConfig } from "tsdown"

// A host is started for every app that embeds one, so what a start costs counts (bench: cold-start). CommonJS and one
// chunk for everything that a start needs load faster than linked modules; comments and names cost reading time.

const require = createRequire(import.meta.url)

/** Built-in modules which a start does without: they are loaded by the first call of one of their functions. */
const calledLater: ReadonlySet<string> = new Set([
  "node:child_process",
  "node:crypto",
  "node:dns/promises",
  "node:fs/promises"
])

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
const partsApart = {
  name: "parts-apart",
  resolveId: (id: string) => (id === "./Parts.ts" ? resolve("src/command/BuiltParts.ts") : undefined)
}

/** Ends a part with a key of its content, and makes it ASCII: what `src/command/CodeCache.ts` needs. */
const sealed = {
  name: "sealed",
  generateBundle: (_: unknown, bundle: Readonly<Record<string, { readonly type: string; code?: string }>>) => {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type !== "chunk" || chunk.code === undefined) continue
      const text = chunk.code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      chunk.code = `${text.trimEnd()}\n// part ${createHash("sha256").update(text).digest("hex")}\n`
    }
  }
}

const program = (entry: Readonly<Record<string, string>>): UserConfig => ({
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
  { ...program({ host: "src/faces/Programs.ts" }), plugins: [callLater, sealed] },
  { ...program({ "tool-runner": "src/tools/main.ts" }), plugins: [callLater, sealed] }
])
