/**
 * The map of the house as data: who may import whom, where outside packages are held, and where a program meets the world.
 * `architecture.test.ts` reads it against all sources. A new arrow is a decision and starts here.
 */

export interface Area {
  /** Folder from the root of the repository. */
  readonly folder: string
  /** Name in package.json, for areas that are packages. */
  readonly name?: string
  /** Workspace packages its sources may import; an entry with a subpath allows that subpath alone. */
  readonly imports: ReadonlyArray<string>
}

const everything = ["@tackroom/protocol", "@tackroom/sdk", "@tackroom/host", "@tackroom/runner", "@tackroom/server"]

export const areas: ReadonlyArray<Area> = [
  { folder: "packages/protocol", name: "@tackroom/protocol", imports: [] },
  { folder: "packages/sdk", name: "@tackroom/sdk", imports: ["@tackroom/protocol"] },
  { folder: "packages/host", name: "@tackroom/host", imports: ["@tackroom/protocol", "@tackroom/sdk"] },
  { folder: "packages/runner", name: "@tackroom/runner", imports: ["@tackroom/protocol", "@tackroom/sdk/process"] },
  {
    folder: "packages/server",
    name: "@tackroom/server",
    imports: ["@tackroom/protocol", "@tackroom/sdk", "@tackroom/host"]
  },
  { folder: "apps/playground", name: "@tackroom/playground", imports: ["@tackroom/protocol"] },
  { folder: "bench", name: "@tackroom/bench", imports: everything },
  { folder: "scripts", imports: everything },
  { folder: "test/e2e", name: "@tackroom/e2e", imports: everything },
  { folder: "test/setup", imports: [] }
]

/** Packages from outside that only some folders import; `effect` and Node's own modules are everywhere the area allows. */
export const holders: Readonly<Record<string, ReadonlyArray<string>>> = {
  "better-sqlite3": [
    "packages/sdk/src/store/sqlite/",
    "packages/host/src/state/",
    "packages/host/src/catalog/",
    "packages/server/src/database/",
    "packages/server/src/rig/Home.ts"
  ],
  yaml: ["packages/server/src/rig/"],
  "@agentclientprotocol/sdk": [
    "packages/sdk/src/harness/acp/",
    "packages/host/src/faces/acp/",
    "packages/runner/src/agent/",
    "packages/runner/src/conformance/acp/Schema.ts",
    "bench/src/"
  ],
  "@lydell/node-pty": ["packages/runner/src/conformance/"],
  "@modelcontextprotocol/client": ["packages/host/src/mcp/"],
  "@ai-sdk/anthropic": ["packages/host/src/models/"],
  "@ai-sdk/openai": ["packages/host/src/models/"],
  "@ai-sdk/openai-compatible": ["packages/host/src/models/"],
  "@ai-sdk/provider": ["packages/host/src/models/"]
}

/** Folders that may use nothing but `effect`, Node's own modules and the entries named. */
export const selfContained: Readonly<Record<string, ReadonlyArray<string>>> = {
  // The runner takes this part alone (D-21); the rules of line splitting are pure and exist once, in protocol.
  "packages/sdk/src/process": ["@tackroom/protocol/text"]
}

/** Folder and file names that say nothing. */
export const meaninglessNames = ["util", "utils", "helper", "helpers", "common", "misc", "types", "shared-types"]

/** Modules of `src` that are entries or halves of one, not concepts; every other one is a PascalCase noun. */
export const entryModules = [
  /\/(?:index|main|cli)\.ts$/,
  /^packages\/sdk\/src\/(?:effect|capabilities|adapters)\.ts$/,
  /^packages\/sdk\/src\/platform\/(?:node|browser)\.ts$/,
  // A contract kit is called like the function that it exports.
  /^packages\/sdk\/src\/testing\/(?:store|harness|adapter)Contract[A-Za-z]*\.ts$/
]

/** Globals that hide an input or an output. Time comes from `Clock`, chance from a passed-in source, variables from the edge. */
export const forbiddenGlobals = [/^console\./, /^process\.env$/, /^Date\.now$/, /^Math\.random$/, /^new Date\(\)$/]

/** Where a program meets the world: everything is allowed there. */
export const edges = [/\/(?:main|cli)\.ts$/]

export interface Exception {
  readonly path: string
  readonly global: string
  readonly reason: string
}

/** Single uses outside the edges. */
export const exceptions: ReadonlyArray<Exception> = [
  {
    path: "packages/sdk/src/platform/node.ts",
    global: "process.env",
    reason: "the Node half of #platform is the edge of the sdk: it hands the variables on as a value"
  },
  {
    path: "packages/host/src/faces/HarnessStdio.ts",
    global: "process.env",
    reason: "the program harness-stdio: it scrubs its own environment before it starts anything (RUN-084)"
  },
  {
    path: "packages/host/src/faces/HarnessStdio.ts",
    global: "Date.now",
    reason: "the program harness-stdio: its log has a clock before anything else exists"
  },
  {
    path: "packages/host/src/command/External.ts",
    global: "process.env",
    reason: "the program of another package gets this one's environment, as with git"
  }
]

/** Modules that load a file whose name they are given: the built parts of the program, beside each other. */
export const loaders: ReadonlyArray<string> = ["packages/host/src/command/CodeCache.ts"]

/** What no light entry may load (RT-001, RT-002): store drivers, stores, and the SDKs of harnesses. */
export const heavyPackages = [
  "better-sqlite3",
  "pg",
  "@effect/sql-pg",
  "@anthropic-ai/claude-agent-sdk",
  "@agentclientprotocol/sdk",
  "@cursor/sdk",
  "@openai/codex-sdk",
  "@opencode-ai/sdk",
  "@earendil-works/pi-coding-agent",
  "@modelcontextprotocol/client",
  "@modelcontextprotocol/sdk"
]

/** Subpaths of each published package. A change here is a change of the public contract. */
export const exportMaps: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "@tackroom/protocol": {
    ".": "./src/index.ts",
    "./events": "./src/events/index.ts",
    "./run": "./src/run/index.ts",
    "./scenario": "./src/scenario/index.ts",
    "./seat": "./src/seat/index.ts",
    "./serve": "./src/serve/index.ts",
    "./text": "./src/text/index.ts",
    "./package.json": "./package.json"
  },
  "@tackroom/sdk": {
    ".": "./src/index.ts",
    "./effect": "./src/effect.ts",
    "./client": "./src/client/index.ts",
    "./capabilities": "./src/capabilities.ts",
    "./adapters": "./src/adapters.ts",
    "./process": "./src/process/index.ts",
    "./testing": "./src/testing/index.ts",
    "./stores/memory": "./src/store/memory/index.ts",
    "./stores/sqlite": "./src/store/sqlite/index.ts",
    "./harnesses": "./src/harness/index.ts",
    "./harnesses/acp": "./src/harness/acp/index.ts",
    "./harnesses/host": "./src/harness/host/index.ts",
    "./harnesses/scripted": "./src/harness/scripted/index.ts",
    "./harnesses/serve": "./src/harness/serve/index.ts",
    "./mcp-resolver": "./src/mcp/index.ts",
    "./scenario": "./src/scenario/index.ts",
    "./package.json": "./package.json"
  },
  "@tackroom/host": {
    ".": "./src/index.ts",
    "./package.json": "./package.json"
  },
  "@tackroom/runner": {
    "./package.json": "./package.json"
  },
  "@tackroom/server": {
    "./package.json": "./package.json"
  }
}
