/**
 * Starting a host, or connecting to one that something else provides.
 */
import { platform } from "#platform"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { HostConfig, wireCodec } from "@tackroom/protocol/run"
import { utf8Length } from "@tackroom/protocol/text"
import { Effect } from "effect"
import { type ConnectOptions, Host } from "./Host.ts"
import type { HostTransport, TransportFactory } from "./HostTransport.ts"
import { makeStdioTransport } from "./StdioTransport.ts"

/** Options of {@link launchHost}. */
export interface LaunchOptions extends ConnectOptions {
  /** The host's program, found on PATH. Default `tackroom`. */
  readonly command?: string
  /** Arguments before `harness-stdio CONFIG`, e.g. the script of an interpreter. */
  readonly args?: ReadonlyArray<string>
  readonly config: HostConfig
  readonly cwd?: string
  /** Variables for the host, with their values, beside the allowed ones of this process (RUN-083). */
  readonly env?: Readonly<Record<string, string>>
  /** Takes secrets out of the host's stderr before it gets into an error. */
  readonly redact?: (text: string) => string
}

const codec = wireCodec(HostConfig)

/** Above this a configuration goes through a file instead of the command line (run-protocol section 6). */
const largestArgument = 32_768

const machine = Effect.all({ environment: platform.environment, self: platform.self })

/** The variables that a configuration names: they pass to the host (RUN-083). */
export const namedVariables = (config: HostConfig): ReadonlyArray<string> => [
  ...(config.storage !== undefined && config.storage !== null && "connectionEnv" in config.storage
    ? [config.storage.connectionEnv]
    : []),
  ...(config.telemetry?.headers ?? []).map((header) => header.valueEnv)
]

/** A connection to whatever `factory` makes; used for a host in this process and in tests. */
export const connectHost = (factory: TransportFactory, options: ConnectOptions = {}): Promise<Host> =>
  new Host(factory, options).open()

/**
 * Starts `tackroom harness-stdio` and opens the connection.
 *
 * Rejects with `LaunchFailed` when the program cannot be started, `StartupFailed` when the host says why it cannot,
 * `HostExited` when it ends before it says anything, `Unsupported` when it lacks a capability that is needed.
 *
 * ```ts
 * const host = await launchHost({ config: { stateDir: "/var/lib/app/host" } })
 * const agent = await host.agent({ id: "helper", instructions: "…", tools: ["files.read"] })
 * const session = await agent.session({ workspace: "/home/me/project" })
 * const run = session.run("What is in this directory?")
 * for await (const { summary } of run) if (summary?.type === "message") show(summary.text)
 * const { status } = await run.result
 * await host.close()
 * ```
 */
export const launchHost = (options: LaunchOptions): Promise<Host> => {
  const { config, command = "tackroom", cwd, env, redact } = options
  const factory = hostProgram(options, async (args) => {
    const { environment, self } = await Effect.runPromise(machine)
    return makeStdioTransport({
      command,
      args,
      environment,
      names: namedVariables(config),
      instanceId: `client-${self.pid}`,
      ...(cwd === undefined ? {} : { cwd }),
      ...(env === undefined ? {} : { variables: env }),
      ...(redact === undefined ? {} : { redact })
    })
  })
  return connectHost(factory, options)
}

/** The command line of a host with a configuration; `start` runs it, at the launch and at each restart. */
export const hostProgram = (
  options: Pick<LaunchOptions, "args" | "config">,
  start: (args: ReadonlyArray<string>) => Promise<HostTransport>
): TransportFactory => {
  const json = JSON.stringify(codec.encode(options.config))
  const launched = (argument: string): Promise<HostTransport> =>
    start([...(options.args ?? []), "harness-stdio", argument])
  return () => (utf8Length(json) <= largestArgument ? launched(json) : withFile(json, (path) => launched(`@${path}`)))
}

/** A file that only this user can read; it is gone with the host that read it. */
const withFile = async (json: string, use: (path: string) => Promise<HostTransport>): Promise<HostTransport> => {
  const directory = await mkdtemp(join(tmpdir(), "tackroom-config-"))
  const path = join(directory, "config.json")
  await writeFile(path, json, { mode: 0o600 })
  const remove = (): void => void rm(directory, { recursive: true, force: true }).catch(() => undefined)
  try {
    const transport = await use(path)
    return {
      ...transport,
      open: (listener) =>
        transport.open({
          onMessage: listener.onMessage,
          onClosed: (closed) => {
            remove()
            listener.onClosed(closed)
          }
        })
    }
  } catch (error) {
    remove()
    throw error
  }
}
