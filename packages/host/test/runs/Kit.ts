/**
 * A host over a folder of its own, driven through the handlers as a face does, with scripted models. It uses the clock of
 * the test that opens it, so that waits are steps of a `TestClock` where a test needs them.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"
import type {
  AgentDefinition,
  Failure,
  HostConfig,
  Interruption,
  MethodName,
  ParamsOf,
  ResultOf,
  RunError,
  RunState
} from "@tackroom/protocol/run"
import { Effect, Exit, Scope } from "effect"
import { version as programVersion } from "../../src/command/Version.ts"
import { embed, makePrepare } from "../../src/faces/stdio/Dispatch.ts"
import * as Host from "../../src/Host.ts"

const program = fileURLToPath(new URL("../../src/cli.ts", import.meta.url))

export const counters = () => ({
  framesIn: 0,
  framesRefused: 0,
  notificationsIgnored: 0,
  responsesIgnored: 0,
  applicationRefused: 0,
  progressDropped: 0,
  logLinesDropped: 0,
  busyAnswers: 0
})

export const call = (tool: string, args: unknown) => ({ call: { tool, arguments: args } })
export const say = (text: string) => ({ text })

export type Steps = ReadonlyArray<object>
export interface ScenarioParts {
  readonly default?: ReadonlyArray<Steps>
  readonly agents?: Readonly<Record<string, ReadonlyArray<Steps>>>
  readonly exhausted?: "error" | "echo"
}

export interface Folder {
  readonly root: string
  readonly stateDir: string
  readonly workspace: string
  /** Writes a scenario file and gives its path. */
  readonly scenario: (name: string, scenario: ScenarioParts) => string
  /** Every byte the host keeps on disk. */
  readonly kept: () => string
}

/** A folder for one test. */
export const folder: Effect.Effect<Folder, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => {
    const root = mkdtempSync(join(tmpdir(), "tackroom-host-"))
    const workspace = join(root, "work")
    const stateDir = join(root, "state")
    mkdirSync(workspace)
    const bytesOf = (directory: string): string =>
      readdirSync(directory)
        .map((name) => join(directory, name))
        .map((file) => (statSync(file).isDirectory() ? bytesOf(file) : readFileSync(file, "latin1")))
        .join("\n")
    return {
      root,
      stateDir,
      workspace,
      scenario: (name: string, scenario: ScenarioParts) => {
        const file = join(root, `${name}.json`)
        writeFileSync(file, JSON.stringify({ scenario: 1, name, ...scenario }))
        return file
      },
      kept: () => bytesOf(stateDir)
    }
  }),
  ({ root }) => Effect.sync(() => rmSync(root, { recursive: true, force: true, maxRetries: 5 }))
)

type Handlers = { readonly [M in MethodName]: (params: ParamsOf<M>) => Effect.Effect<ResultOf<M>, RunError> }

export interface Opened {
  /** The methods in camelCase. */
  readonly api: Handlers
  /** One request in wire form, with the checks of a face. */
  readonly wire: (method: string, params?: object) => Effect.Effect<unknown, RunError>
  readonly host: Host.Host
  readonly close: Effect.Effect<void>
}

export type OpenOptions = Partial<Omit<Host.HostOptions, "counters" | "runner">> & {
  /** Default true: recovered turns go on as after `initialize`. */
  readonly initialize?: boolean
}

/** Opens a host on a configuration; it closes with the scope, or before. */
export const openHost = (config: HostConfig, options: OpenOptions = {}) =>
  Effect.gen(function* () {
    const scope = yield* Effect.acquireRelease(Scope.make(), (scope) => Scope.close(scope, Exit.void))
    const { initialize = true, ...rest } = options
    const host = yield* Host.open(
      { config, warnings: [] },
      {
        version: programVersion(),
        environment: process.env,
        lock: true,
        counters,
        runner: { command: process.execPath, args: [program, "tool-runner"] },
        ...rest
      }
    ).pipe(Scope.provide(scope))
    const { capabilities, handlers, waits } = host.methods
    const wire = embed(makePrepare({ handlers, waits, capabilities }), host.initialized)
    if (initialize) yield* Effect.orDie(wire("initialize", {}))
    return {
      api: handlers as unknown as Handlers,
      wire: (method: string, params: object = {}) => wire(method, params),
      host,
      close: Scope.close(scope, Exit.void)
    } satisfies Opened
  })

/** An agent whose model is the provider `script`. */
export const agent = (more: Partial<AgentDefinition> = {}): AgentDefinition => ({
  id: "helper",
  instructions: "Play the scenario.",
  model: { connection: "script", model: "scripted" },
  planning: true,
  ...more
})

export interface Stage extends Opened {
  readonly folder: Folder
  readonly config: HostConfig
  readonly sessionId: string
  /** Closes the host and opens it again on the same folder. */
  readonly reopen: (options?: OpenOptions) => Effect.Effect<Stage, never, Scope.Scope>
}

export interface StageOptions {
  readonly scenario?: ReadonlyArray<Steps> | ScenarioParts
  readonly agent?: Partial<AgentDefinition>
  readonly config?: Partial<HostConfig>
  readonly open?: OpenOptions
}

/** A host with one scripted agent and one session of it. */
export const stage = (options: StageOptions = {}): Effect.Effect<Stage, never, Scope.Scope> =>
  Effect.gen(function* () {
    const place = yield* folder
    const { scenario = [] } = options
    const file = place.scenario("script", Array.isArray(scenario) ? { default: scenario } : (scenario as ScenarioParts))
    const config: HostConfig = {
      stateDir: place.stateDir,
      sandbox: "none",
      providers: [{ name: "script", api: "script", scenario: file }],
      agents: [agent(options.agent)],
      ...options.config
    }
    const opened = yield* Effect.orDie(openHost(config, options.open))
    const created = yield* Effect.orDie(
      opened.api["agent/session"]({ agent: "helper", workspace: place.workspace, creationId: "stage" })
    )
    const make = (opened: Opened): Stage => ({
      ...opened,
      folder: place,
      config,
      sessionId: created.session.sessionId,
      reopen: (again) =>
        Effect.gen(function* () {
          yield* opened.close
          return make(yield* Effect.orDie(openHost(config, again ?? options.open)))
        })
    })
    return make(opened)
  })

/** Starts a run. */
export const start = (stage: Stage, submissionId = "m-1", text = "Go on") =>
  stage.api["run/start"]({ sessionId: stage.sessionId, submissionId, text })

/** Waits until the run is no longer just running. */
export const settled = (stage: Stage, submissionId = "m-1", known: ReadonlyArray<string> = []) =>
  Effect.gen(function* () {
    while (true) {
      const state = yield* stage.api["run/wait"]({
        sessionId: stage.sessionId,
        submissionId,
        waitMs: 5_000,
        knownInteractions: known
      })
      if (state.status !== "running" && !(state.status === "interrupted" && known.length > 0)) return state
      if (state.interruptions.some((one) => !known.includes(one.id))) return state
    }
  })

/** Waits for the end of the run, whatever is pending before. */
export const ended = (stage: Stage, submissionId = "m-1") =>
  Effect.gen(function* () {
    let known: ReadonlyArray<string> = []
    while (true) {
      const state = yield* settled(stage, submissionId, known)
      if (state.status !== "running" && state.status !== "interrupted") return state
      known = state.interruptions.map((one) => one.id)
    }
  })

/** Starts a run and waits for its end. */
export const run = (stage: Stage, submissionId = "m-1", text?: string) =>
  Effect.andThen(start(stage, submissionId, text), ended(stage, submissionId))

/** Waits until something is pending. */
export const interrupted = (stage: Stage, submissionId = "m-1", count = 1) =>
  Effect.gen(function* () {
    let known: ReadonlyArray<string> = []
    while (true) {
      const state = yield* settled(stage, submissionId, known)
      if (state.interruptions.length >= count || (state.status !== "running" && state.status !== "interrupted")) {
        return state
      }
      known = state.interruptions.map((one) => one.id)
    }
  })

export type Event = { readonly type: string; readonly seq: number } & Readonly<Record<string, unknown>>

/** The session's journal, whole. */
export const journal = (stage: Pick<Stage, "api" | "sessionId">, sessionId = stage.sessionId) =>
  Effect.gen(function* () {
    const events: Array<Event> = []
    let after = 0
    while (true) {
      const page = yield* stage.api["event/read"]({ sessionId, after, maxEvents: 1_000 })
      events.push(...(page.events as unknown as ReadonlyArray<Event>))
      if (!page.moreEvents) return events
      after = page.cursor
    }
  })

/** Waits for an event of a type behind a cursor, and gives it. */
export const awaitEvent = (
  stage: Pick<Stage, "api" | "sessionId">,
  type: string,
  from = 0,
  fits: (event: Event) => boolean = () => true
) =>
  Effect.gen(function* () {
    let after = from
    while (true) {
      const page = yield* stage.api["event/read"]({ sessionId: stage.sessionId, after, waitMs: 5_000 })
      const found = (page.events as unknown as ReadonlyArray<Event>).find((event) => event.type === type && fits(event))
      if (found !== undefined) return found
      after = page.cursor
    }
  })

/** A member of a JSON value, by keys; undefined where there is none. */
export const at = (value: unknown, ...keys: ReadonlyArray<string | number>): unknown =>
  keys.reduce<unknown>(
    (here, key) => (typeof here === "object" && here !== null ? Reflect.get(here, key) : undefined),
    value
  )

export const ofType = (events: ReadonlyArray<Event>, type: string) => events.filter((event) => event.type === type)

/** The first interruption of the state, which must be there. */
export const first = (state: RunState): Interruption => {
  const [one] = state.interruptions
  assert.isDefined(one, `nothing is pending in a run that is ${state.status}`)
  return one as Interruption
}

export const approval = (state: RunState) => {
  const one = first(state)
  assert.strictEqual(one.kind, "approval")
  return one as Extract<Interruption, { readonly kind: "approval" }>
}

export const question = (state: RunState) => {
  const one = first(state)
  assert.strictEqual(one.kind, "question")
  return one as Extract<Interruption, { readonly kind: "question" }>
}

export const respond = (stage: Stage, interactionId: string, decision: "once" | "session" | "deny", reason?: string) =>
  stage.api["run/respond"]({
    sessionId: stage.sessionId,
    interactionId,
    decision,
    ...(reason === undefined ? {} : { reason })
  })

export const answer = (stage: Stage, interactionId: string, text: string) =>
  stage.api["run/respond"]({ sessionId: stage.sessionId, interactionId, answer: text })

/** The error of a call that has to fail. */
export const failure = <A>(effect: Effect.Effect<A, RunError>) =>
  Effect.map(Effect.flip(effect), (error) => ({ ...error, kind: error.kind }) as Readonly<Record<string, unknown>>)

export const failed = (state: RunState, failure: Failure) => {
  assert.deepStrictEqual([state.status, state.failure], ["failed", failure])
}
