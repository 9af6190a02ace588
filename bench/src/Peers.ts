/**
 * Other agents that are driven over stdio, when their packages are installed: how each is started and made ready. They get
 * homes of their own, no key and no network; what they would ask a model is answered on loopback.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { start, type MeasuredProcess } from "./MeasuredProcess.ts"
import { RawClient } from "./RawClient.ts"
import type { Bench } from "./Report.ts"
import { environment } from "./TackroomHost.ts"

export interface Peer {
  readonly name: string
  readonly version: string
  readonly start: (modelUrl?: string) => MeasuredProcess
  /** Makes it ready; resolves when the first request is answered. */
  readonly initialize: (program: MeasuredProcess) => Promise<RawClient>
  /** A cold start takes seconds: measured in a few rounds only. */
  readonly isSlow: boolean
}

export interface Missing {
  readonly name: string
  readonly package: string
}

const folderOf = (bench: Bench, name: string): string | undefined =>
  bench.peerRoots.map((root) => join(root, "node_modules", name)).find((folder) => existsSync(folder))

const versionOf = (folder: string): string =>
  (JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { readonly version: string }).version

const homeOf = (bench: Bench, name: string): string => {
  const home = join(bench.folder, `home-${name}`)
  mkdirSync(home, { recursive: true })
  return home
}

const codexConfig = (modelUrl: string): string => `model = "fake-1"
model_provider = "fake"
check_for_update_on_startup = false
[features]
plugins = false
apps = false
[model_providers.fake]
name = "Fake"
base_url = "${modelUrl}"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 1
stream_max_retries = 1
supports_websockets = false
[analytics]
enabled = false
`

/** Where nothing listens; an agent that only gets ready asks no model. */
const nowhere = "http://127.0.0.1:9/v1"

const codexEnvironment = (bench: Bench, name: string, modelUrl: string): Record<string, string> => {
  const home = homeOf(bench, name)
  writeFileSync(join(home, "config.toml"), codexConfig(modelUrl))
  return environment(bench, { HOME: home, CODEX_HOME: home, FAKE_KEY: "none", RUST_LOG: "error" })
}

/** The program itself, below the launcher of the package. */
const nativeCodex = (folder: string): string | undefined => {
  const scope = join(folder, "..")
  const vendors = readdirSync(scope)
    .filter((name) => name.startsWith("codex-"))
    .map((name) => join(scope, name, "vendor"))
    .filter((vendor) => existsSync(vendor))
  return vendors
    .flatMap((vendor) => readdirSync(vendor).map((target) => join(vendor, target, "bin", "codex")))
    .find((program) => existsSync(program))
}

const initializeCodex = async (program: MeasuredProcess): Promise<RawClient> => {
  const client = new RawClient(program, { withVersion: false })
  await client.request("initialize", { clientInfo: { name: "bench", title: "Bench", version: "1.0.0" } })
  client.notify("initialized")
  return client
}

const initializeAcp = async (program: MeasuredProcess): Promise<RawClient> => {
  const client = new RawClient(program)
  await client.request("initialize", { protocolVersion: 1, clientCapabilities: {} })
  return client
}

const codexPackage = "@openai/codex"

/** `codex app-server` as its package starts it, and the native program below the package's launcher. */
export const codex = (bench: Bench): { readonly command: Peer; readonly native: Peer | undefined } | undefined => {
  const folder = folderOf(bench, codexPackage)
  if (folder === undefined) return undefined
  const version = versionOf(folder)
  const peer = (name: string, command: string, args: ReadonlyArray<string>): Peer => ({
    name,
    version,
    isSlow: false,
    initialize: initializeCodex,
    start: (modelUrl = nowhere) => start({ command, args, env: codexEnvironment(bench, "codex", modelUrl) })
  })
  const native = nativeCodex(folder)
  return {
    command: peer("codex app-server", process.execPath, [join(folder, "bin", "codex.js"), "app-server"]),
    native: native === undefined ? undefined : peer("codex app-server, native program", native, ["app-server"])
  }
}

/** Codex over its adapter to ACP. */
export const codexAcp = (bench: Bench): Peer | undefined => {
  const folder = folderOf(bench, "@agentclientprotocol/codex-acp")
  return folder === undefined
    ? undefined
    : {
        name: "codex-acp",
        version: versionOf(folder),
        isSlow: true,
        initialize: initializeAcp,
        start: (modelUrl = nowhere) =>
          start({
            command: process.execPath,
            args: [join(folder, "dist", "index.js")],
            env: {
              ...codexEnvironment(bench, "codex-acp", modelUrl),
              MODEL_PROVIDER: "fake",
              NO_BROWSER: "1",
              INITIAL_AGENT_MODE: "workspace-write"
            }
          })
      }
}

const opencode = (bench: Bench): Peer | undefined => {
  const folder = folderOf(bench, "opencode-ai")
  const command = folder === undefined ? undefined : join(folder, "bin", "opencode.exe")
  return folder === undefined || command === undefined || !existsSync(command)
    ? undefined
    : {
        name: "opencode acp",
        version: versionOf(folder),
        isSlow: true,
        initialize: initializeAcp,
        start: () => {
          const home = homeOf(bench, "opencode")
          const off = ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE"]
          return start({
            command,
            args: ["acp"],
            cwd: home,
            env: environment(bench, {
              HOME: home,
              OPENCODE_PURE: "1",
              ...Object.fromEntries(off.map((name) => [`OPENCODE_DISABLE_${name}`, "1"]))
            })
          })
        }
      }
}

/** Every peer that can be started here, and the ones that cannot. */
export const findPeers = (
  bench: Bench
): { readonly found: ReadonlyArray<Peer>; readonly missing: ReadonlyArray<Missing> } => {
  const found: Array<Peer> = []
  const missing: Array<Missing> = []
  const app = codex(bench)
  if (app === undefined) missing.push({ name: "codex app-server", package: codexPackage })
  else found.push(app.command, ...(app.native === undefined ? [] : [app.native]))
  for (const [name, packageName, peer] of [
    ["codex-acp", "@agentclientprotocol/codex-acp", codexAcp(bench)],
    ["opencode acp", "opencode-ai", opencode(bench)]
  ] as const) {
    if (peer === undefined) missing.push({ name, package: packageName })
    else found.push(peer)
  }
  return { found, missing }
}
