import { createRequire } from "node:module"
import { defineConfig, type UserConfig } from "tsdown"

// A seat's agent starts when the runner is ready to start it (SEAT-003), so what a start loads counts. CommonJS and one
// chunk for what every start needs load faster than linked modules; the agent's protocol is a chunk of its own, loaded while
// the agent starts.

const require = createRequire(import.meta.url)

/** Built-in modules which a start does without: they are loaded by the first call of one of their functions. */
const calledLater: ReadonlySet<string> = new Set(["node:https", "node:crypto"])

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
  outputOptions: { dynamicImportInCjs: false },
  // The pseudo-terminal is a native module, and a peer that the checks alone need.
  deps: { alwaysBundle: [/.*/], neverBundle: ["@lydell/node-pty"], onlyBundle: false }
})

export default defineConfig([
  { ...program({ "tackroom-seat": "src/main.ts" }), clean: true, plugins: [callLater] },
  program({ "tackroom-conformance": "src/conformance/cli.ts" }),
  // What the checks start: the agent and the MCP server of a case, and the reference of the self-test.
  program({ "conformance-runner-agent": "src/conformance/runner/agent/main.ts" }),
  program({ "conformance-runner-reference": "src/conformance/runner/reference/main.ts" }),
  program({ "conformance-serve-reference": "src/conformance/serve/reference/main.ts" }),
  program({ "conformance-acp-reference": "src/conformance/acp/reference/main.ts" }),
  program({ "conformance-acp-server": "src/conformance/acp/server/main.ts" })
])
