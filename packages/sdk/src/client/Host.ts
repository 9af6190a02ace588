/**
 * A host as an application uses it: agents, sessions, providers, and the promise that it comes back. Owns the connection
 * and its replacement: after the host's process ended it starts another one, says to it what the application had said
 * (keys in memory, MCP servers, tools), attaches the open sessions, and only then is `ready` again (RT-351, RUN-573).
 */
import {
  type AgentDefinition,
  type Capability,
  capabilityName,
  type InitializeResult,
  type McpRegisterParams,
  type McpServer,
  type MethodName,
  NotFound,
  type ParamsOf,
  type Profile,
  type ProviderSetResult,
  type ResultOf,
  Unsupported
} from "@tackroom/protocol/run"
import { AgentSession } from "./AgentSession.ts"
import { ClientClosed, HostExited, LaunchFailed } from "./ClientErrors.ts"
import { type HostClient, makeHostClient, type RequestOptions } from "./HostClient.ts"
import type { TransportFactory } from "./HostTransport.ts"
import type { InteractionHandlers, RunHost } from "./Run.ts"
import { type Tool, ToolBox } from "./Tools.ts"

/** What a host is doing, as its client sees it. `failed` and `closed` are final. */
export type HostStatus = "starting" | "ready" | "restarting" | "failed" | "closed"

/** Options of a connection to a host. */
export interface ConnectOptions extends InteractionHandlers {
  /** Start the host again when it ends (RT-351). Default true. */
  readonly restart?: boolean
  /** Names this application in the host's log. */
  readonly client?: { readonly name: string; readonly version: string }
  /** Capabilities without which the application cannot work; `agentRuns` is always needed. */
  readonly requires?: ReadonlyArray<Capability>
  /** Under which name tools are registered. Default `app`. */
  readonly owner?: string
  readonly onStatus?: (status: HostStatus) => void
  /** How long a start may take until `initialize` is answered. Milliseconds, default 30,000. */
  readonly startTimeoutMs?: number
}

/** A model provider, with its key as a closure: it is asked again when the host was started again. */
export interface ProviderOptions {
  readonly name: string
  readonly api: ParamsOf<"provider/set">["api"]
  readonly baseUrl?: string
  /** Reads the key in this process; it goes to the host and nowhere else. */
  readonly key?: () => string
  /** Where the host keeps the key. Default `memory`. */
  readonly storage?: "secure" | "memory"
  /** The scenario file of api `script`. */
  readonly scenario?: string
}

/** An agent's definition, whose tools may be closures of this application. */
export type AgentOptions = Omit<AgentDefinition, "tools"> & { readonly tools?: ReadonlyArray<string | Tool> }

/** A registered agent. */
export interface Agent {
  readonly id: string
  readonly profile: Profile
  readonly session: (options: Omit<ParamsOf<"agent/session">, "agent">) => Promise<AgentSession>
}

/** Restarts: 5 tries in 60 s, 0.2 s to 5 s apart (RT-351). */
const tries = 5
const triesMs = 60_000
const firstDelayMs = 200
const longestDelayMs = 5_000

interface Ready {
  readonly promise: Promise<HostClient>
  readonly resolve: (client: HostClient) => void
  readonly reject: (error: unknown) => void
}

const makeReady = (): Ready => {
  let resolve: Ready["resolve"] = () => undefined
  let reject: Ready["reject"] = () => undefined
  const promise = new Promise<HostClient>((yes, no) => {
    resolve = yes
    reject = no
  })
  // Whoever waits sees it; nobody has to wait.
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}

/** A host and its replacement after it ended. Made by `launchHost` and `connectHost`. */
export class Host {
  private readonly factory: TransportFactory
  private readonly options: ConnectOptions
  private readonly listeners = new Set<(status: HostStatus) => void>()
  private readonly providers = new Map<string, ProviderOptions>()
  private readonly servers = new Map<string, McpRegisterParams>()
  private readonly sessions = new Map<string, AgentSession>()
  private readonly tools: ToolBox
  private readonly starts: Array<number> = []
  private readonly closing = new AbortController()
  private ready: Ready = makeReady()
  private current: HostClient | undefined
  private opened: InitializeResult | undefined
  private state: HostStatus = "starting"
  private readonly runHost: RunHost = { ready: () => this.ready.promise }

  /** Use `launchHost` or `connectHost`. */
  constructor(factory: TransportFactory, options: ConnectOptions) {
    this.factory = factory
    this.options = options
    this.tools = new ToolBox(options.owner ?? "app")
    if (options.onStatus !== undefined) this.listeners.add(options.onStatus)
  }

  /** Starts the first connection. Rejects when there is none to be had; the host is then `failed`. */
  async open(): Promise<this> {
    this.setStatus("starting")
    try {
      this.live(await this.connect())
    } catch (error) {
      this.giveUp(error)
      throw error
    }
    return this
  }

  get status(): HostStatus {
    return this.state
  }

  /** What the host said at its last start: version, capabilities, limits, journal id. */
  get info(): InitializeResult {
    if (this.opened === undefined) throw new LaunchFailed({ message: "the host has not started" })
    return this.opened
  }

  /** The process id of the host that runs now, where it has one. */
  get pid(): number | undefined {
    return this.current?.pid
  }

  /** Calls a method by its name on the wire, as soon as the host is ready. Nothing is repeated (RT-352). */
  async request<M extends MethodName>(method: M, params: ParamsOf<M>, options?: RequestOptions): Promise<ResultOf<M>> {
    const client = await this.ready.promise
    return client.request(method, params, options)
  }

  /** Creates a provider or gives it a key. The key is read now, and again after a restart. */
  async provider(options: ProviderOptions): Promise<ProviderSetResult> {
    const client = await this.ready.promise
    const result = await client.providerSet(providerParams(options))
    this.providers.set(options.name, options)
    return result
  }

  /** Registers an MCP server; values of its environment and headers are resolved by the caller. */
  async mcp(server: McpRegisterParams): Promise<McpServer> {
    this.need("mcpServers")
    const client = await this.ready.promise
    const result = await client.mcpRegister(server)
    this.servers.set(server.name, server)
    return result.server
  }

  /** Registers an agent, its closures first. An equal repeat changes nothing. `memoryScope` switches memory on (RT-358). */
  async agent(options: AgentOptions): Promise<Agent> {
    const { tools: given, ...definition } = options
    const closures = (given ?? []).filter((one) => typeof one !== "string")
    if (closures.length > 0) {
      this.need("applicationCallbacks")
      const descriptors = this.tools.add(closures)
      const client = await this.ready.promise
      if (descriptors.length > 0) await client.applicationRegister({ owner: this.tools.owner, tools: descriptors })
    }
    const agent: AgentDefinition = {
      ...definition,
      ...(given === undefined
        ? {}
        : { tools: given.map((one) => (typeof one === "string" ? one : one.qualifiedName)) }),
      ...(definition.memoryScope === undefined ? {} : { memory: true })
    }
    const client = await this.ready.promise
    const registered = await client.agentRegister({ agent })
    return {
      id: agent.id,
      profile: registered.agent,
      session: (session) => this.session({ ...session, agent: agent.id })
    }
  }

  /** Creates a session of a registered agent. */
  async session(params: ParamsOf<"agent/session">): Promise<AgentSession> {
    const client = await this.ready.promise
    const { session } = await client.agentSession(params)
    return this.keep(session)
  }

  /** Goes on with a session that exists: `attached` tells its state, its runs and its cursors. */
  async attach(sessionId: string): Promise<AgentSession> {
    const client = await this.ready.promise
    const attached = await client.sessionAttach({ sessionId })
    return this.keep(attached.session, attached)
  }

  /** Listens to the status. Returns the removal. */
  onStatus(listener: (status: HostStatus) => void): () => void {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }

  /** Ends the host: stdin, TERM, KILL. What waits rejects (RT-357). */
  async close(): Promise<void> {
    if (this.state === "closed") return
    this.setStatus("closed")
    this.closing.abort(new ClientClosed())
    this.ready.reject(new ClientClosed())
    this.ready = makeReady()
    this.ready.reject(new ClientClosed())
    await this.current?.close()
  }

  private keep(ref: AgentSession["ref"], attached?: AgentSession["attached"]): AgentSession {
    const session = new AgentSession({
      host: this.runHost,
      ref,
      handlers: this.options,
      onClosed: () => void this.sessions.delete(ref.sessionId),
      ...(attached === undefined ? {} : { attached })
    })
    this.sessions.set(ref.sessionId, session)
    return session
  }

  private need(capability: Capability): void {
    if (this.info.capabilities[capability]) return
    throw new Unsupported({ feature: capabilityName(capability) })
  }

  private setStatus(status: HostStatus): void {
    this.state = status
    for (const listener of this.listeners) listener(status)
  }

  /** A connection that is initialized and able. What fails leaves no process behind. */
  private async connect(): Promise<HostClient> {
    const transport = await this.factory()
    const client = makeHostClient(transport)
    try {
      const signal = AbortSignal.any([AbortSignal.timeout(this.options.startTimeoutMs ?? 30_000), this.closing.signal])
      const info = await client.initialize(
        { protocolVersion: 1, ...(this.options.client === undefined ? {} : { client: this.options.client }) },
        { signal }
      )
      for (const capability of new Set<Capability>(["agentRuns", ...(this.options.requires ?? [])])) {
        if (!info.capabilities[capability]) throw new Unsupported({ feature: capabilityName(capability) })
      }
      this.opened = info
      this.tools.serve(client)
      return client
    } catch (error) {
      await client.close()
      throw error
    }
  }

  private live(client: HostClient): void {
    if (this.state === "closed") {
      void client.close()
      return
    }
    this.current = client
    this.setStatus("ready")
    this.ready.resolve(client)
    void client.closed.then((how) => this.ended(new HostExited(how)))
  }

  private ended(exited: HostExited): void {
    if (this.state === "closed" || this.state === "failed") return
    if (this.options.restart === false) return this.giveUp(exited)
    this.ready = makeReady()
    this.setStatus("restarting")
    void this.restart(exited)
  }

  private giveUp(error: unknown): void {
    if (this.state === "closed") return
    this.ready.reject(error)
    this.ready = makeReady()
    this.ready.reject(error)
    this.setStatus("failed")
  }

  private async restart(exited: unknown): Promise<void> {
    let last = exited
    for (;;) {
      const now = performance.now()
      while (this.starts.length > 0 && now - (this.starts[0] ?? now) > triesMs) this.starts.shift()
      if (this.starts.length >= tries) return this.giveUp(last)
      const wait = Math.min(longestDelayMs, firstDelayMs * 2 ** this.starts.length)
      this.starts.push(now)
      await pause(wait, this.closing.signal)
      if (this.closing.signal.aborted) return
      try {
        const client = await this.connect()
        try {
          await this.rebind(client)
        } catch (error) {
          await client.close()
          throw error
        }
        return this.live(client)
      } catch (error) {
        last = error
      }
    }
  }

  /** Says to a fresh host what the one before had been told and does not keep (RUN-573). */
  private async rebind(client: HostClient): Promise<void> {
    for (const provider of this.providers.values()) {
      if (provider.key !== undefined && provider.storage !== "secure")
        await client.providerSet(providerParams(provider))
    }
    for (const server of this.servers.values()) await client.mcpRegister(server)
    const tools = this.tools.descriptors
    if (tools.length > 0) await client.applicationRegister({ owner: this.tools.owner, tools })
    for (const session of this.sessions.values()) {
      try {
        await client.sessionAttach({ sessionId: session.id })
      } catch (error) {
        // A session that is gone is told to whoever uses it next; it must not keep the others waiting.
        if (!(error instanceof NotFound)) throw error
      }
    }
  }
}

const providerParams = (options: ProviderOptions): ParamsOf<"provider/set"> => ({
  name: options.name,
  api: options.api,
  ...(options.baseUrl === undefined ? {} : { baseUrl: options.baseUrl }),
  ...(options.scenario === undefined ? {} : { scenario: options.scenario }),
  ...(options.key === undefined
    ? {}
    : { credentials: { apiKey: options.key(), storage: options.storage ?? ("memory" as const) } })
})

/** Waits, or less long when the signal aborts. */
const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      signal.removeEventListener("abort", done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener("abort", done, { once: true })
  })
