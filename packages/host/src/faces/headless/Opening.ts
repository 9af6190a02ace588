/**
 * From a setup to a session: a host in this process, its keys, a new session or one to go on with.
 *
 * It owns what is loaded late: everything it needs costs time, which a command line that cannot work should not pay.
 * Whatever fails here is `NotStarted`; a session that cannot be resumed is one of kind `restore` (HDL-006).
 */
import { Scenario } from "@tackroom/protocol/scenario"
import { toWire } from "@tackroom/protocol/text"
import { connectHost, makeInProcessTransport, type AgentSession, type Host } from "@tackroom/sdk/client"
import { builtInScenarios, forModel } from "@tackroom/sdk/scenario"
import * as fs from "node:fs"
import * as path from "node:path"
import { embedHost } from "../../EmbedHost.ts"
import { directory, messageOf, NotStarted, tagOf, type Edge } from "./Edge.ts"
import { decideBy } from "./Settlement.ts"
import type { Setup } from "./Setup.ts"

/** Puts the built-in scenario where the provider reads it: whole or not at all. */
const writeScenario = (setup: Setup): void => {
  if (setup.scenario === undefined) return
  const { file, id } = setup.scenario
  const builtIn = builtInScenarios.find((entry) => entry.id === id)
  if (builtIn === undefined) return
  fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
  const next = `${file}.${process.pid}`
  fs.writeFileSync(next, JSON.stringify(toScenarioFile(forModel(builtIn.scenario))), { mode: 0o600 })
  fs.renameSync(next, file)
}

const toScenarioFile = toWire(Scenario)

export const open = async (edge: Edge, setup: Setup, keys: ReadonlyMap<string, string>): Promise<Host> => {
  try {
    writeScenario(setup)
    const embedded = await embedHost(setup.config, {
      version: edge.version,
      environment: edge.env,
      runner: edge.runner,
      lock: false,
      decide: decideBy(edge.options.approve)
    })
    const host = await connectHost(async () => makeInProcessTransport(embedded), { restart: false })
    for (const { connection, variable } of setup.keys) {
      const apiKey = keys.get(variable)
      if (apiKey !== undefined) await setKey(host, connection, apiKey)
    }
    return host
  } catch (cause) {
    if (cause instanceof NotStarted) throw cause
    throw new NotStarted("unknown", messageOf(cause), tagOf(cause))
  }
}

const setKey = async (host: Host, connection: string, apiKey: string): Promise<void> => {
  try {
    await host.request("connection/set", { connection, apiKey, storage: "memory" })
  } catch (cause) {
    throw new NotStarted("unknown", `the key of ${connection} was refused: ${messageOf(cause)}`, tagOf(cause))
  }
}

export interface Opened {
  readonly session: AgentSession
  readonly agent: string
  readonly workspace: string
  readonly scripted: boolean
  readonly warnings: ReadonlyArray<string>
}

/** A session to go on with must be what the command line says it is (SRV-003). */
export const resume = async (edge: Edge, host: Host, setup: Setup, sessionId: string): Promise<Opened> => {
  const { agent, project } = edge.options
  // As a new session would have it: `script/hello` names a scenario, and the model has the scenario's own name.
  const model = edge.options.model === undefined ? undefined : setup.model
  const restore = (message: string) => new NotStarted("restore", message)
  let session: AgentSession
  try {
    session = await host.attach(sessionId)
  } catch (cause) {
    throw restore(`session ${sessionId} cannot be resumed: ${messageOf(cause)}`)
  }
  const state = session.attached?.state
  if (state === undefined) throw restore(`session ${sessionId} cannot be resumed`)
  if (agent !== undefined && agent !== state.agent) throw restore(`session ${sessionId} is one of agent ${state.agent}`)
  if (project !== undefined && directory(edge, project) !== state.workspace) {
    throw restore(`session ${sessionId} works in ${state.workspace}`)
  }
  const own = state.model
  if (
    model !== undefined &&
    own !== undefined &&
    `${own.connection}/${own.model}` !== `${model.connection}/${model.model}`
  ) {
    throw restore(`session ${sessionId} has the model ${own.connection}/${own.model}`)
  }
  return { session, agent: state.agent, workspace: state.workspace, scripted: state.scripted, warnings: [] }
}

export const create = async (edge: Edge, host: Host, setup: Setup): Promise<Opened> => {
  const workspace = directory(edge, edge.options.project ?? ".")
  try {
    const session = await host.session({
      agent: setup.agent,
      workspace,
      ...(setup.model === undefined ? {} : { model: setup.model })
    })
    const { scripted } = await session.state()
    return { session, agent: setup.agent, workspace, scripted, warnings: [] }
  } catch (cause) {
    throw new NotStarted("unknown", messageOf(cause), tagOf(cause))
  }
}
