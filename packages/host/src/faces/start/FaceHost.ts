/**
 * A host in this process for a command-line face, and the one session that it serves (serve-mode 1): the configuration
 * read, keys taken, host opened without the lock of its directory, session made or resumed, its harness opened.
 *
 * Everything lives as long as the scope. Whatever fails is `NotStarted`, and nothing else is started in its place
 * (SRV-006); a session that cannot be resumed is one of kind `restore`.
 */
import type { HarnessRef } from "@tackroom/protocol/events"
import { Scenario } from "@tackroom/protocol/scenario"
import { FaceConfig, maxConfigFileBytes, unknownFields, wireCodec } from "@tackroom/protocol/run"
import type { HarnessCapabilities } from "@tackroom/sdk/adapters"
import { makePrivateFolder } from "@tackroom/sdk/process"
import { builtInScenarios, forModel } from "@tackroom/sdk/scenario"
import { toWire } from "@tackroom/protocol/text"
import { Effect, Result, type Scope } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { harnessKeyOf, isNative, parseHarnessKey } from "../../harnesses/Harnesses.ts"
import * as Host from "../../Host.ts"
import { harnessOf, isScripted, type HostSession } from "../../runs/HostRows.ts"
import { makeCounters, snapshot } from "../stdio/Counters.ts"
import type { SharedArguments } from "./Flags.ts"
import { messageOf, notResumed, notStarted, NotStarted, tagOf } from "./NotStarted.ts"
import { keyVariables, setUp, type Setup } from "./Setup.ts"

/** What a face gives of its process. */
export interface FaceProcess {
  readonly version: string
  readonly cwd: string
  /** This process's environment; names of keys are removed from it. */
  readonly env: NodeJS.ProcessEnv
  /** Where state is kept when nobody says otherwise. */
  readonly stateDir: string
  /** How this program starts itself as its tool runner. */
  readonly runner: { readonly command: string; readonly args: ReadonlyArray<string> }
}

/** The budgets that hold for each run of this process, in the units of the command line; null is none. */
export interface FaceBudgets {
  readonly maxRounds: number | null
  /** Seconds. */
  readonly timeout: number | null
  readonly answerTimeout: number | null
}

/** What is known before anything is opened. */
export interface FacePlan {
  readonly config: FaceConfig
  readonly warnings: ReadonlyArray<string>
  readonly keys: ReadonlyMap<string, string>
  readonly setup: Setup
  readonly project: string | undefined
  readonly budgets: FaceBudgets
}

export interface FaceSession {
  readonly host: Host.Host
  readonly session: HostSession
  readonly capabilities: HarnessCapabilities
  readonly resumed: boolean
  readonly scripted: boolean
  /** The agent that is served; none when a harness was asked for by its key. */
  readonly agent: string | undefined
  /** The model as people write it. */
  readonly model: string | undefined
  readonly warnings: ReadonlyArray<string>
}

const faceConfig = wireCodec(FaceConfig)

/** The configuration of `--config`, and what in it nobody reads (SRV-005). */
const readConfig = (
  cwd: string,
  given: string | undefined
): { readonly config: FaceConfig; readonly warnings: ReadonlyArray<string> } => {
  if (given === undefined) return { config: {}, warnings: [] }
  const file = path.resolve(cwd, given)
  const refuse = (why: string) => notStarted(`${file}: ${why}`, "bad_config")
  let json: unknown
  try {
    if (fs.statSync(file).size > maxConfigFileBytes) throw refuse(`it has more than ${maxConfigFileBytes} bytes`)
    json = JSON.parse(fs.readFileSync(file, "utf8"))
  } catch (cause) {
    if (cause instanceof NotStarted) throw cause
    throw refuse(cause instanceof SyntaxError ? "it is not JSON" : messageOf(cause))
  }
  const decoded = faceConfig.decode(json)
  if (Result.isFailure(decoded)) {
    const { expected, path: at } = decoded.failure
    throw refuse(`${at === "" ? "" : `${at}: `}expected ${expected}`)
  }
  const warnings = unknownFields(FaceConfig, json).map((field) => `unknown field in the configuration: ${field}`)
  return { config: decoded.success, warnings }
}

/** Takes the keys out of the environment, whether or not they are needed (SRV-009). */
const takeKeys = (env: NodeJS.ProcessEnv, names: ReadonlyArray<string>): ReadonlyMap<string, string> => {
  const found = new Map<string, string>()
  for (const name of names) {
    const value = env[name]?.trim()
    delete env[name]
    if (value !== undefined && value !== "") found.set(name, value)
  }
  return found
}

/** The real path of a directory that was named on the command line (SRV-004). */
const directory = (cwd: string, given: string): string => {
  const full = path.resolve(cwd, given)
  try {
    const real = fs.realpathSync(full)
    if (fs.statSync(real).isDirectory()) return real
  } catch {
    // It is told below, as anything that is no directory.
  }
  throw notStarted(`${full} is not a directory`, "project")
}

const budget = (flag: number | null | undefined, configured: number | null | undefined): number | null => {
  const value = flag === undefined ? configured : flag
  return value === undefined || value === null || value <= 0 ? null : value
}

/** The flag, else the variable, else the configuration, else the state's usual place. */
const stateDirectory = (face: FaceProcess, options: SharedArguments, config: FaceConfig): string => {
  const variable = face.env["TACKROOM_STATE_DIR"]
  const given = options.stateDir ?? (variable === "" ? undefined : variable)
  return given === undefined ? (config.stateDir ?? face.stateDir) : path.resolve(face.cwd, given)
}

/** Reads configuration and keys and works out what to open. The keys are out of the environment afterwards. */
export const plan = (
  face: FaceProcess,
  options: SharedArguments & { readonly answerTimeout?: number | null | undefined }
): Effect.Effect<FacePlan, NotStarted> =>
  Effect.try({
    try: () => {
      const { config, warnings } = readConfig(face.cwd, options.config)
      const keys = takeKeys(face.env, keyVariables(config, options))
      const project = options.project === undefined ? undefined : directory(face.cwd, options.project)
      const stateDir = stateDirectory(face, options, config)
      const setup = setUp(options, config, stateDir, path.join(stateDir, "scenarios", "script.json"))
      if ("refused" in setup) throw notStarted(setup.refused)
      const missing = setup.keys.find((entry) => entry.connection === setup.needsKey && !keys.has(entry.variable))
      if (missing !== undefined) {
        throw notStarted(`the connection ${missing.connection} needs a key in ${missing.variable}`, "credential")
      }
      const { serve } = config
      return {
        config,
        warnings,
        keys,
        setup,
        project,
        budgets: {
          maxRounds: budget(options.maxRounds, serve?.maxRounds),
          timeout: budget(options.timeout, serve?.timeout),
          answerTimeout: budget(options.answerTimeout, serve?.answerTimeout)
        }
      }
    },
    catch: (cause) => (cause instanceof NotStarted ? cause : notStarted(messageOf(cause), tagOf(cause)))
  })

const toScenarioFile = toWire(Scenario)

/** Puts the built-in scenario where the provider reads it: whole or not at all. */
const writeScenario = ({ scenario }: Setup): void => {
  const builtIn = builtInScenarios.find((entry) => entry.id === scenario?.id)
  if (scenario === undefined || builtIn === undefined) return
  makePrivateFolder(path.dirname(scenario.file))
  const next = `${scenario.file}.${process.pid}`
  fs.writeFileSync(next, JSON.stringify(toScenarioFile(forModel(builtIn.scenario))), { mode: 0o600 })
  fs.renameSync(next, scenario.file)
}

const failed = (cause: { readonly message: string }): NotStarted => notStarted(cause.message, tagOf(cause))

const milliseconds = (seconds: number): number => Math.max(1, Math.round(seconds * 1_000))

/** Opens the host. `more` is what a face decides about what its agents ask. */
export const openHost = (
  face: FaceProcess,
  { budgets, keys, setup }: FacePlan,
  more: Pick<Host.HostOptions, "decide" | "decideAlone" | "onSecret">
): Effect.Effect<Host.Host, NotStarted, Scope.Scope> =>
  Effect.gen(function* () {
    yield* Effect.try({ try: () => writeScenario(setup), catch: (cause) => notStarted(messageOf(cause), "state_dir") })
    const { answerTimeout, maxRounds, timeout } = budgets
    const host = yield* Host.open(
      { config: setup.config, warnings: [] },
      {
        version: face.version,
        environment: face.env,
        lock: false,
        counters: () => snapshot(makeCounters()),
        runner: face.runner,
        turnBudget: {
          ...(maxRounds === null ? {} : { maxRounds }),
          ...(timeout === null ? {} : { wallMs: milliseconds(timeout) })
        },
        ...(answerTimeout === null ? {} : { interactionTimeoutMs: milliseconds(answerTimeout) }),
        cancelGraceMs: 5_000,
        killGraceMs: 2_000,
        ...more
      }
    ).pipe(Effect.mapError(failed))
    for (const { connection, variable } of setup.keys) {
      const apiKey = keys.get(variable)
      if (apiKey === undefined || host.providers.find(connection) === undefined) continue
      yield* host.providers
        .connect({ connection, apiKey, storage: "memory" })
        .pipe(
          Effect.mapError((cause) => notStarted(`the key of ${connection} was refused: ${cause.message}`, cause._tag))
        )
    }
    return host
  })

/** A session to go on with must be what the command line says it is (SRV-003). */
const disagreement = (
  session: HostSession,
  options: SharedArguments,
  { project, setup }: FacePlan
): string | undefined => {
  const { agentId, model, sessionId, workspace } = session
  if (options.agent !== undefined && options.agent !== agentId) return `session ${sessionId} is one of agent ${agentId}`
  if (options.harness !== undefined) {
    const asked: HarnessRef | { readonly refused: string } = parseHarnessKey(
      options.harness,
      setup.config.harnesses ?? {}
    )
    const own = harnessOf(session)
    if ("refused" in asked || harnessKeyOf(asked) !== harnessKeyOf(own)) {
      return `session ${sessionId} is one of harness ${harnessKeyOf(own)}`
    }
  }
  if (project !== undefined && project !== workspace) return `session ${sessionId} works in ${workspace}`
  // As a new session would have it: `script/hello` names a scenario, and the model has the scenario's own name.
  if (options.model === undefined || setup.model === undefined || model === null) return undefined
  return setup.model.connection === model.connection && setup.model.model === model.model
    ? undefined
    : `session ${sessionId} has the model ${model.connection}/${model.model}`
}

const resume = Effect.fnUntraced(function* (host: Host.Host, options: SharedArguments, plan: FacePlan, id: string) {
  const cannot = (why: string) => notResumed(`session ${id} cannot be resumed: ${why}`)
  const session = yield* host.sessions.find(id).pipe(Effect.mapError((cause) => cannot(cause.message)))
  if (session.closedAt !== null) return yield* cannot("it is closed")
  const differs = disagreement(session, options, plan)
  if (differs !== undefined) return yield* notResumed(differs)
  const queued = yield* host.runs.queued(id).pipe(Effect.mapError((cause) => cannot(cause.message)))
  if (queued > 0) return yield* cannot("messages wait in its queue")
  return session
})

const create = Effect.fnUntraced(function* (face: FaceProcess, host: Host.Host, plan: FacePlan) {
  const { project, setup } = plan
  const workspace = project ?? (yield* Effect.try({ try: () => directory(face.cwd, "."), catch: failedPath }))
  return yield* host.sessions
    .create({ agent: setup.agent, workspace, ...(setup.model === undefined ? {} : { model: setup.model }) })
    .pipe(Effect.mapError(failed))
})

const failedPath = (cause: unknown): NotStarted =>
  cause instanceof NotStarted ? cause : notStarted(messageOf(cause), "project")

/** How long the harness may take to open its session (SRV-006). */
const openPatience = "60 seconds"

/** Makes or resumes the session, and opens its harness. */
export const openSession = (
  face: FaceProcess,
  host: Host.Host,
  options: SharedArguments,
  plan: FacePlan
): Effect.Effect<FaceSession, NotStarted> =>
  Effect.gen(function* () {
    const resumed = options.session !== undefined
    const made = resumed ? undefined : yield* create(face, host, plan)
    const session = resumed
      ? yield* resume(host, options, plan, options.session)
      : yield* host.sessions.find(made?.session.sessionId ?? "").pipe(Effect.mapError(failed))
    const { model, sessionId } = session
    const isOwn = isNative(harnessOf(session))
    if (isOwn && model !== null) {
      yield* host.providers
        .resolve(model.connection)
        .pipe(
          Effect.mapError((cause) =>
            notStarted(cause.message, cause._tag === "CredentialsMissing" ? "credential" : cause._tag)
          )
        )
    }
    const cannot = (message: string, tag: string | undefined) =>
      resumed ? notResumed(`session ${sessionId} cannot be resumed: ${message}`) : notStarted(message, tag)
    const capabilities = yield* host.runs.open(sessionId).pipe(
      Effect.mapError((cause) => cannot(cause.message, cause._tag)),
      Effect.timeoutOrElse({
        duration: openPatience,
        orElse: () => Effect.fail(cannot(`the harness did not open its session in ${openPatience}`, "timeout"))
      })
    )
    const { maxRounds } = plan.budgets
    if (maxRounds !== null && !capabilities.rounds) {
      return yield* notStarted(`--max-rounds: the harness ${harnessKeyOf(harnessOf(session))} does not report rounds`)
    }
    const missing = host.clientServers
      .states(sessionId)
      .flatMap(({ error, name, status }) =>
        status === "failed" ? [`the MCP server ${name} is left out: ${error ?? "it failed"}`] : []
      )
    const isBare = session.definition.member.harness !== undefined && session.agentId === plan.setup.agent
    return {
      host,
      session,
      capabilities,
      resumed,
      scripted: isScripted(session),
      agent: isBare && plan.setup.isBare ? undefined : session.agentId,
      model: model === null ? undefined : isOwn ? `${model.connection}/${model.model}` : model.model,
      warnings: [
        ...(isScripted(session) ? ["the model is scripted"] : []),
        ...(made?.warnings ?? []),
        ...plan.warnings,
        ...host.warnings,
        ...missing
      ]
    }
  })
