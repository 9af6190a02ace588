/**
 * The harness `scripted` (agent-runtime 11): plays scenarios, or an exported session, behind the driver contract. It needs
 * no key, no network and no process, and says `scripted` in every title and model id (HRN-280).
 *
 * It owns the turns that play now and where each session stands. It does not own the scenarios (`scenario/`), nor what an
 * answer means: asks go through the runtime.
 *
 * Invariant: where a session stands is what its journal says. It is brought up to date at the start of each turn, so a turn
 * taken up after a crash goes on with the next response, and no call is played twice.
 */
import { HarnessRejected, type HarnessError, HarnessUnavailable, UnsupportedOperation } from "@tackroom/protocol"
import type {
  Command,
  ConfigOption,
  HarnessEvent,
  ModelRef,
  PromptInput,
  SessionConfig,
  SessionConfigUpdate
} from "@tackroom/protocol/events"
import type { Scenario } from "@tackroom/protocol/scenario"
import { Effect, Stream } from "effect"
import { builtInScenarios, scriptedModelId, scriptProvider } from "../../scenario/index.ts"
import { noCapabilities } from "../Capabilities.ts"
import {
  type HarnessContext,
  type HarnessDriver,
  type HarnessFactory,
  type HarnessItem,
  type ModelOption,
  type TurnInput,
  TurnLost
} from "../Harness.ts"
import { makeTurnFibers, type TurnOutput } from "../TurnFibers.ts"
import { type Fixture, playFixture } from "./Fixture.ts"
import { applyEvent, copyProgress, emptyProgress, type Progress } from "./Progress.ts"
import { playTurn, textOfPrompt } from "./TurnPlayer.ts"

/** @since 0.1.0 */
export interface ScriptedOptions {
  /** Played beside the built-in ones and listed before them; the first is the default. One of a built-in's name replaces it. */
  readonly scenarios?: ReadonlyArray<Scenario>
  /** An exported session, replayed turn by turn instead of any scenario (HRN-281). */
  readonly fixture?: Fixture
  /** Divides every wait: 2 plays twice as fast, 0 without any wait. Default 1. */
  readonly speed?: number
}

const id = "scripted"
const access = "native"

const pageSize = 1000
/** Sessions whose standing is kept between turns; one beyond these is read again from its journal. */
const keptSessions = 1024

interface Choice {
  readonly id: string
  readonly title: string
  readonly description: string
  readonly scenario: Scenario
}

const choicesOf = (options: ScriptedOptions): ReadonlyArray<Choice> => {
  const own = (options.scenarios ?? []).map((scenario): Choice => ({
    id: scenario.name,
    title: scenario.name.includes("scripted") ? scenario.name : `${scenario.name} (scripted)`,
    description: "A scenario of this application",
    scenario
  }))
  return [...own, ...builtInScenarios.filter((entry) => !own.some((choice) => choice.id === entry.id))]
}

const modeOf = (turn: TurnInput): "ask" | "auto" | "full" => {
  const order = ["ask", "auto", "full"] as const
  const wanted = order.find((mode) => mode === (turn.prompt.permissionMode ?? turn.config.permissionMode)) ?? "auto"
  const ceiling = turn.config.permissionCeiling ?? "full"
  return order[Math.min(order.indexOf(wanted), order.indexOf(ceiling))] ?? "ask"
}

const applyUpdate = (config: SessionConfig, update: SessionConfigUpdate): SessionConfig => {
  const merged = Object.entries({ ...config, ...update }).filter(([, value]) => value !== null && value !== undefined)
  return Object.fromEntries(merged) as SessionConfig
}

const make = (options: ScriptedOptions, context: HarnessContext): HarnessDriver => {
  const choices = choicesOf(options)
  const { journal } = context
  const speed = options.speed ?? 1
  const turns = makeTurnFibers()
  /** What was steered into a running turn and not taken up yet. */
  const steered = new Map<string, Array<PromptInput>>()
  const kept = new Map<string, { readonly cursor: number; readonly progress: Progress }>()
  const configs = new Map<string, SessionConfig>()

  const find = (name: string): Choice | undefined =>
    choices.find((choice) => choice.id === name || scriptedModelId(choice.id) === name)

  /** Accepts `demo`, `scripted-demo` and both with the provider in front. */
  const findModel = (model: string): Choice | undefined =>
    find(model.startsWith(`${scriptProvider}/`) ? model.slice(scriptProvider.length + 1) : model)

  const unknownModel = (operation: string, model: string): HarnessRejected =>
    new HarnessRejected({
      harness: id,
      operation,
      message: `There is no scripted scenario "${model}"; there are ${choices.map((choice) => choice.id).join(", ")}`
    })

  const wait = (ms: number): Effect.Effect<void> => (ms > 0 && speed > 0 ? Effect.sleep(ms / speed) : Effect.void)

  const keep = (sessionId: string, cursor: number, progress: Progress): void => {
    kept.delete(sessionId)
    kept.set(sessionId, { cursor, progress })
    for (const oldest of kept.keys()) {
      if (kept.size <= keptSessions) return
      kept.delete(oldest)
    }
  }

  /** Where the session stands at its head. What is kept lies before the turn, so that its events are counted once. */
  const standing = Effect.fnUntraced(function* (turn: TurnInput) {
    const sessionId = turn.binding.sessionId
    const known = kept.get(sessionId)
    const usable = known !== undefined && known.cursor <= turn.startCursor
    const progress = usable ? copyProgress(known.progress) : emptyProgress()
    let cursor = usable ? known.cursor : 0
    let marked = false
    for (;;) {
      const page = yield* journal.read(sessionId, cursor, pageSize)
      for (const event of page.events) {
        if (!marked && event.seq > turn.startCursor) {
          marked = true
          keep(sessionId, cursor, copyProgress(progress))
        }
        applyEvent(progress, event.payload, event.turnId ?? undefined)
        cursor = event.seq
      }
      if (page.events.length === 0 || cursor >= page.head) break
    }
    if (!marked) keep(sessionId, cursor, copyProgress(progress))
    return progress
  })

  interface Selection {
    readonly choice: Choice | undefined
    readonly name: string
    readonly fromStart: boolean
  }

  /** A command of a scenario's name plays that scenario from its start; else the prompt's model, the session's, the first. */
  const select = (turn: TurnInput): Selection => {
    const command = /^\/([^\s/]+)(?:\s|$)/u.exec(textOfPrompt(turn.prompt))?.[1]
    const commanded = command === undefined ? undefined : find(command)
    if (commanded !== undefined) return { choice: commanded, name: commanded.id, fromStart: true }
    const model: ModelRef | undefined = turn.prompt.model ?? turn.config.model
    if (model === undefined) return { choice: choices[0], name: "default", fromStart: false }
    return { choice: findModel(model.modelID), name: model.modelID, fromStart: false }
  }

  const perform = Effect.fnUntraced(function* (turn: TurnInput, output: TurnOutput, resumed: boolean) {
    const { close: closing, durable } = output
    configs.set(turn.binding.sessionId, turn.config)
    const progress = yield* Effect.mapError(
      standing(turn),
      (cause) =>
        new HarnessUnavailable({
          harness: id,
          operation: "runTurn",
          message: `the session's journal could not be read: ${cause.message}`
        })
    )
    const emit = (...events: ReadonlyArray<HarnessEvent>): Effect.Effect<void> => {
      for (const event of events) applyEvent(progress, event, turn.turnId)
      return output.emit(events)
    }
    if (resumed) {
      yield* emit({
        type: "harness-notice",
        code: "turn_resumed",
        severity: "info",
        message: "The turn goes on after a restart."
      })
    }
    if (options.fixture !== undefined) {
      const index = progress.turns - (progress.turnId === turn.turnId ? 1 : 0)
      return yield* playFixture({ context, turn, emit, durable, wait, closing, fixture: options.fixture, index })
    }
    const { choice, name, fromStart } = select(turn)
    if (choice === undefined) {
      closing()
      return yield* emit({
        type: "error",
        error: unknownModel("runTurn", name).message,
        code: "harness_error",
        errorClass: "model",
        assistantMessageId: turn.assistantMessageId
      })
    }
    return yield* playTurn({
      context,
      turn,
      progress,
      emit,
      durable,
      wait,
      closing,
      scenario: choice.scenario,
      fromStart,
      mode: modeOf(turn),
      takeSteered: () => steered.get(turn.turnId)?.splice(0) ?? []
    })
  })

  const start = (turn: TurnInput, resumed: boolean): Stream.Stream<HarnessItem, HarnessError> =>
    turns
      .run(turn, (output) => perform(turn, output, resumed))
      .pipe(Stream.ensuring(Effect.sync(() => steered.delete(turn.turnId))))

  const commands: ReadonlyArray<Command> = choices.map((choice) => ({
    name: choice.id,
    description: `${choice.title}: ${choice.description}`,
    source: "harness"
  }))

  const configOptions: ReadonlyArray<ConfigOption> = [
    {
      id: "model",
      name: "Scenario (scripted)",
      category: "model",
      type: "select",
      selectOptions: choices.map((choice) => ({
        id: `${scriptProvider}/${scriptedModelId(choice.id)}`,
        name: choice.title,
        description: choice.description
      }))
    }
  ]

  return {
    capabilities: () => Effect.succeed(capabilitiesOf(options)),
    openSession: (input) =>
      Effect.suspend(() => {
        if (input.model !== undefined && findModel(input.model) === undefined) {
          return Effect.fail(unknownModel("openSession", input.model))
        }
        return Effect.succeed({
          upstreamSessionId: input.sessionId,
          upstreamState: "confirmed" as const,
          configOptions,
          commands
        })
      }),
    resumeSession: (binding) =>
      Effect.succeed({
        upstreamSessionId: binding.upstreamSessionId,
        upstreamState: "confirmed",
        configOptions,
        commands
      }),
    runTurn: (turn) => start(turn, false),
    recoverTurn: (turn) => {
      if (options.fixture !== undefined) {
        return Stream.fail(new TurnLost({ message: "The scripted harness has no record of this turn." }))
      }
      return start(turn, true)
    },
    betweenTurns: () => Stream.empty,
    steer: (turn, prompt) =>
      Effect.suspend((): Effect.Effect<"taken" | "no_active_turn" | "declined", UnsupportedOperation> => {
        if (options.fixture !== undefined) return new UnsupportedOperation({ harness: id, operation: "steer" })
        const state = turns.state(turn.turnId)
        if (state === "none" || state === "closing") return Effect.succeed("no_active_turn")
        if (state === "cancelled") return Effect.succeed("declined")
        const waiting = steered.get(turn.turnId)
        if (waiting === undefined) steered.set(turn.turnId, [prompt])
        else waiting.push(prompt)
        return Effect.succeed("taken")
      }),
    cancel: (turn) => turns.cancel(turn.turnId),
    configure: (binding, update) =>
      Effect.suspend(() => {
        const model = update.model?.modelID
        if (model !== undefined && findModel(model) === undefined) return Effect.fail(unknownModel("configure", model))
        const config = applyUpdate(configs.get(binding.sessionId) ?? { harness: { id, access } }, update)
        configs.set(binding.sessionId, config)
        return Effect.succeed(config)
      }),
    configOptions: () => Effect.succeed(configOptions),
    models: () =>
      Effect.succeed(
        choices.map((choice): ModelOption => ({
          providerID: scriptProvider,
          modelID: scriptedModelId(choice.id),
          name: choice.title,
          connected: true
        }))
      ),
    commands: () => Effect.succeed(commands),
    closeSession: (binding) => Effect.sync(() => void configs.delete(binding.sessionId)),
    deleteSession: (binding) =>
      Effect.sync(() => {
        configs.delete(binding.sessionId)
        kept.delete(binding.sessionId)
      }),
    health: () => Effect.succeed({ status: "ok", sessions: turns.size(), message: "scripted" })
  }
}

const capabilitiesOf = (options: ScriptedOptions) => ({
  ...noCapabilities({ id, access }),
  modelSelection: "optional" as const,
  abort: true,
  steer: options.fixture === undefined,
  resume: "exact" as const,
  turnRecovery: options.fixture === undefined ? ("resume" as const) : ("none" as const),
  reconnect: true,
  replay: true,
  permissions: true,
  questions: true,
  todos: true,
  commands: true,
  configOptions: true,
  models: true,
  attachments: { image: true, pdf: true, audio: true, file: true },
  instructionChannel: "native" as const,
  rounds: true,
  movable: true
})

/**
 * The factory of the harness `scripted`. Importing it loads nothing else (RT-002).
 *
 * ```ts
 * createAgentRuntime({ store, harnesses: [scripted()] })
 * ```
 *
 * @since 0.1.0
 */
export const scripted = (options: ScriptedOptions = {}): HarnessFactory => ({
  id,
  access,
  definition: { label: "Scripted", authEnv: null },
  make: (context) => Effect.sync(() => make(options, context))
})
