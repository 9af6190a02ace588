/**
 * What a command-line face makes of its command line and configuration: the host's configuration, the agent, the model, and
 * which variables hold keys (SRV-002, SRV-009, AGT-337). Pure: it names variables and reads none.
 *
 * The connection `script` and the agent `assistant` are built in; a configuration that has one of the name wins. Keys are
 * never part of the configuration that comes out.
 */
import type { HarnessRef } from "@tackroom/protocol/events"
import type { AgentDefinition, AgentModel, FaceConfig, HostConfig, ProviderConfig } from "@tackroom/protocol/run"
import { builtInScenarios, findBuiltIn, scriptedModelId, scriptProvider } from "@tackroom/sdk/scenario"
import { parseHarnessKey, isNative, nativeHarness } from "../../harnesses/Harnesses.ts"
import { splitModel, type SharedArguments } from "./Flags.ts"

export interface Setup {
  readonly config: HostConfig
  /** The agent of a new session. */
  readonly agent: string
  /** No agent of anybody's: a harness was asked for by its key, and this one only carries it. */
  readonly isBare: boolean
  /** The model of a new session, where it is not the agent's own. */
  readonly model: AgentModel | undefined
  /** Where the key of each connection is, whether or not the variable is set. */
  readonly keys: ReadonlyArray<{ readonly connection: string; readonly variable: string }>
  /** The connection that cannot work without a key. */
  readonly needsKey: string | undefined
  /** The built-in scenario that the connection `script` plays, and the file it has to be in. */
  readonly scenario: { readonly id: string; readonly file: string } | undefined
}

/** What runs the sessions of its agent. */
export const harnessOf = ({ agent, config }: Setup): HarnessRef =>
  (config.agents ?? []).find(({ id }) => id === agent)?.harness ?? nativeHarness

export interface Refused {
  readonly refused: string
}

export const assistantId = "assistant"

const fileTools = ["files.read", "files.list", "files.search", "files.write", "files.edit", "shell.run", "web.fetch"]

const instructions = `You work in a project directory on a person's machine, with tools to read, search, write and edit files, to run commands and to fetch web pages.

Look before you change: read the files that matter first. Keep changes small and to the point, and check them when the project has a way to. A person approves what writes, runs or goes to the network; when they refuse, respect the reason and find another way or say what is missing. For work of several steps keep a plan. Ask when a decision is the person's to make and you cannot find out by yourself.

End with a short account of what you did and what is left.`

/** The built-in agent: all native tools, planning, a person approves everything but reading. */
export const assistant = (hasSearch: boolean): AgentDefinition => ({
  id: assistantId,
  name: "Assistant",
  description: "Works in a project directory with all native tools",
  instructions,
  tools: hasSearch ? [...fileTools, "web.search"] : fileTools,
  planning: true,
  approvals: { mode: "always" }
})

/** Agents that only carry a harness are never mistaken for one of a configuration. */
const bareId = (ref: HarnessRef): string => `harness.${ref.access}.${ref.id}`

/** A harness without an agent of ours: it has its own instructions, tools and limits. */
const bare = (ref: HarnessRef): AgentDefinition => ({
  id: bareId(ref),
  name: ref.id,
  instructions: "",
  tools: [],
  harness: ref,
  maxRounds: Number.MAX_SAFE_INTEGER,
  timeoutSeconds: 2_147_483
})

const vendors: ReadonlyMap<string, { readonly api: "responses" | "anthropic"; readonly variable: string }> = new Map([
  ["openai", { api: "responses", variable: "OPENAI_API_KEY" }],
  ["anthropic", { api: "anthropic", variable: "ANTHROPIC_API_KEY" }]
])

/** The variables that may hold keys and that no child may see. */
export const keyVariables = (config: FaceConfig, options: SharedArguments): ReadonlyArray<string> => [
  ...new Set([
    ...[...vendors.values()].map(({ variable }) => variable),
    ...Object.values(config.serve?.keys ?? {}),
    ...(options.keyEnv === undefined ? [] : [options.keyEnv])
  ])
]

const chooseAgent = (options: SharedArguments, config: FaceConfig): string => {
  const [only, another] = config.agents ?? []
  return (
    options.agent ??
    (options.harness === undefined ? undefined : assistantId) ??
    config.serve?.agent ??
    (only !== undefined && another === undefined ? only.id : undefined) ??
    assistantId
  )
}

/** The provider of the connection that `--model` names, where the configuration has none of that name. */
const chosenProvider = (
  { baseUrl }: SharedArguments,
  model: AgentModel | undefined,
  configured: ReadonlyArray<ProviderConfig>
): ProviderConfig | Refused | undefined => {
  if (model === undefined || model.connection === scriptProvider) return undefined
  const name = model.connection
  if (configured.some((provider) => provider.name === name)) {
    return baseUrl === undefined ? undefined : { refused: `the configuration already has the connection ${name}` }
  }
  const vendor = vendors.get(name)
  if (baseUrl !== undefined) return { name, api: name === "anthropic" ? "anthropic" : "chat-completions", baseUrl }
  if (vendor !== undefined) return { name, api: vendor.api }
  const known = [...vendors.keys(), scriptProvider, ...configured.map((provider) => provider.name)]
  return { refused: `there is no connection ${name}: known are ${known.join(", ")}; others need --base-url` }
}

/** The model of a new session: what was asked for, else the agent's own, else the scripted demonstration. */
const chooseModel = (
  asked: AgentModel | undefined,
  definition: AgentDefinition | undefined
): AgentModel | undefined => {
  if (asked !== undefined) return asked
  const own = definition?.model !== undefined || definition?.fallbackModel !== undefined
  return own ? undefined : { connection: scriptProvider, model: scriptedModelId(builtInScenarios[0]?.id ?? "demo") }
}

/** A session on a harness that is not ours: its model is its own to name. */
const setUpForeign = (
  options: SharedArguments,
  config: FaceConfig,
  stateDir: string,
  harness: HarnessRef,
  agent: string | undefined
): Setup => {
  const { serve: _serve, ...rest } = config
  const added = agent === undefined ? [bare(harness)] : []
  return {
    config: { ...rest, stateDir, agents: [...(config.agents ?? []), ...added] },
    agent: agent ?? bareId(harness),
    isBare: agent === undefined,
    model: options.model === undefined ? undefined : { connection: harness.id, model: options.model },
    keys: [],
    needsKey: undefined,
    scenario: undefined
  }
}

/** Works it all out, or says why it cannot be. */
export const setUp = (
  options: SharedArguments,
  config: FaceConfig,
  stateDir: string,
  scenarios: string
): Setup | Refused => {
  const configured = config.providers ?? []
  const asked = options.harness === undefined ? undefined : parseHarnessKey(options.harness, config.harnesses ?? {})
  if (asked !== undefined && "refused" in asked) return asked
  if (asked !== undefined && !isNative(asked)) return setUpForeign(options, config, stateDir, asked, undefined)
  const agent = chooseAgent(options, config)
  const agents = config.agents ?? []
  const known = agents.find(({ id }) => id === agent)
  if (known?.harness !== undefined && !isNative(known.harness)) {
    return setUpForeign(options, config, stateDir, known.harness, agent)
  }
  const added = known === undefined && agent === assistantId ? [assistant(config.web?.searchUrl !== undefined)] : []

  const wanted = options.model === undefined ? undefined : splitModel(options.model)
  if (options.model !== undefined && wanted === undefined) {
    return { refused: `the model ${options.model} is not CONNECTION/MODEL` }
  }
  const provider = chosenProvider(options, wanted, configured)
  if (provider !== undefined && "refused" in provider) return provider
  const model = chooseModel(wanted, known)

  const ownScript = configured.some(({ name }) => name === scriptProvider)
  const builtIn = findBuiltIn(model?.connection === scriptProvider ? model.model : "demo")
  if (!ownScript && builtIn === undefined) {
    const names = builtInScenarios.map(({ id }) => id).join(", ")
    return { refused: `there is no built-in scenario ${model?.model ?? ""}: there are ${names}` }
  }
  const scenario = ownScript || builtIn === undefined ? undefined : { id: builtIn.id, file: scenarios }

  const connection = wanted?.connection
  const keys = new Map<string, string>([...vendors].map(([name, { variable }]) => [name, variable] as const))
  for (const [name, variable] of Object.entries(config.serve?.keys ?? {})) keys.set(name, variable)
  if (connection !== undefined && options.keyEnv !== undefined) keys.set(connection, options.keyEnv)
  // A key of a vendor goes to that vendor: not to an endpoint that only borrows its name.
  if (connection !== undefined && options.keyEnv === undefined && options.baseUrl !== undefined) keys.delete(connection)

  const live = connection !== undefined && connection !== scriptProvider ? connection : undefined
  const { serve: _serve, ...rest } = config
  return {
    config: {
      ...rest,
      stateDir,
      agents: [...agents, ...added],
      providers: [
        ...configured,
        ...(provider === undefined ? [] : [provider]),
        ...(scenario === undefined ? [] : [{ name: scriptProvider, api: "script" as const, scenario: scenario.file }])
      ]
    },
    agent,
    isBare: false,
    model:
      model?.connection === scriptProvider && builtIn !== undefined && !ownScript
        ? { connection: scriptProvider, model: scriptedModelId(builtIn.id) }
        : model,
    keys: [...keys].map(([name, variable]) => ({ connection: name, variable })),
    needsKey: live !== undefined && keys.has(live) ? live : undefined,
    scenario
  }
}
