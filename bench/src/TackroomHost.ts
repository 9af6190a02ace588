/**
 * Starts our host for a measure: a configuration with one scripted provider and agent per scenario, so that a model answers
 * at once and every millisecond is the host's own.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { start, type MeasuredProcess } from "./MeasuredProcess.ts"
import { RawClient, type Json } from "./RawClient.ts"
import type { Bench } from "./Report.ts"

/** What a scripted agent plays and may use. */
export interface ScriptedAgent {
  readonly id: string
  /** Responses as the scenario file has them; past the last one the message is echoed. */
  readonly responses: ReadonlyArray<unknown>
  readonly tools?: ReadonlyArray<string>
  readonly approvals?: "always" | "never"
}

export interface HostOptions {
  readonly stateDir: string
  readonly config?: Json
  /** Folder of Node's compile cache; by default one that all hosts of a run share. */
  readonly codeCache?: string
  readonly nodeOptions?: ReadonlyArray<string>
}

export interface Host {
  readonly program: MeasuredProcess
  readonly client: RawClient
  readonly workspace: string
}

/** An agent whose answers are the messages themselves. */
export const echoAgent: ScriptedAgent = { id: "echo", responses: [] }

/** Writes the scenarios and answers the configuration of providers and agents. */
export const scripted = (folder: string, agents: ReadonlyArray<ScriptedAgent>): Json => {
  mkdirSync(folder, { recursive: true })
  return {
    providers: agents.map(({ id, responses }) => {
      const scenario = join(folder, `${id}.json`)
      writeFileSync(scenario, JSON.stringify({ scenario: 1, name: id, default: responses, exhausted: "echo" }))
      return { name: id, api: "script", scenario }
    }),
    agents: agents.map(({ approvals = "never", id, tools = [] }) => ({
      id,
      instructions: "Answer.",
      tools,
      planning: tools.length === 0,
      approvals: { mode: approvals },
      model: { connection: id, model: "scripted" }
    }))
  }
}

export const workspaceOf = (bench: Bench): string => {
  const workspace = join(bench.folder, "workspace")
  mkdirSync(workspace, { recursive: true })
  return workspace
}

/** Variables of a child: a home of its own and nothing else of ours. */
export const environment = (bench: Bench, more: Readonly<Record<string, string>> = {}): Record<string, string> => {
  const home = join(bench.folder, "home")
  mkdirSync(home, { recursive: true })
  return { PATH: bench.path, HOME: home, ...more }
}

export const startHost = (bench: Bench, options: HostOptions): Host => {
  const config = JSON.stringify({ sandbox: "none", ...options.config, state_dir: options.stateDir })
  const program = start({
    command: process.execPath,
    args: [...(options.nodeOptions ?? []), bench.tackroom, "harness-stdio", config],
    env: environment(bench, { NODE_COMPILE_CACHE: options.codeCache ?? join(bench.folder, "code-cache") })
  })
  return { program, client: new RawClient(program), workspace: workspaceOf(bench) }
}

export const initialize = (client: RawClient): Promise<Json> =>
  client.request("initialize", { protocol_version: 1, client: { name: "bench", version: "1" } })

/** A host that has answered `initialize`, ended when the body is done. */
export const withHost = async <A>(bench: Bench, options: HostOptions, body: (host: Host) => Promise<A>): Promise<A> => {
  const host = startHost(bench, options)
  try {
    await initialize(host.client)
    return await body(host)
  } finally {
    await host.program.finish()
  }
}

export const createSession = async (host: Host, agent: string): Promise<string> => {
  const { session } = await host.client.request<{ readonly session: { readonly session_id: string } }>(
    "agent/session",
    {
      agent,
      workspace: host.workspace
    }
  )
  return session.session_id
}

export interface RunState {
  readonly status: string
  readonly final_output: string | null
  readonly interruptions: ReadonlyArray<{ readonly id: string }>
  readonly events?: ReadonlyArray<unknown>
  readonly cursors?: Readonly<Record<string, number>>
  readonly more_events?: boolean
  readonly error?: Json
}

export const startRun = (host: Host, sessionId: string, submissionId: string, text: string): Promise<Json> =>
  host.client.request("run/start", { session_id: sessionId, submission_id: submissionId, text })

/** Waits, approving whatever is asked, until the run is over; fails when it does not complete. */
export const finishRun = async (host: Host, sessionId: string, submissionId: string): Promise<RunState> => {
  for (;;) {
    const state = await host.client.request<RunState>("run/wait", {
      session_id: sessionId,
      submission_id: submissionId,
      wait_ms: 5_000
    })
    if (state.status === "completed") return state
    if (state.status === "interrupted") {
      for (const { id } of state.interruptions) {
        await host.client.request("run/respond", { session_id: sessionId, interaction_id: id, decision: "once" })
      }
    } else if (state.status !== "running") throw new Error(`the run is ${state.status}: ${JSON.stringify(state.error)}`)
  }
}

/** Follows a run with its events; answers how many there were and their bytes as JSON. */
export const followRun = async (
  host: Host,
  sessionId: string,
  submissionId: string
): Promise<{ readonly events: number; readonly pages: number }> => {
  let cursors: Readonly<Record<string, number>> = {}
  let events = 0
  for (let pages = 1; ; pages++) {
    const state = await host.client.request<RunState>("run/wait", {
      session_id: sessionId,
      submission_id: submissionId,
      wait_ms: 5_000,
      max_events: 1_000,
      cursors
    })
    events += state.events?.length ?? 0
    cursors = state.cursors ?? cursors
    if (state.status === "completed" && state.more_events !== true) return { events, pages }
    if (state.status !== "running" && state.status !== "completed") {
      throw new Error(`the run is ${state.status}: ${JSON.stringify(state.error)}`)
    }
  }
}
