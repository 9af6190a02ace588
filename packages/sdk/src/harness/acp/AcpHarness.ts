/**
 * The driver of any ACP agent (agent-runtime 11, row acp): one process per session, started when it is needed, ended when it
 * is idle and can be reopened. It puts the parts of this folder together and holds what lives: conversations, their
 * processes, and what was learnt of the agent.
 *
 * Invariants: a prompt is sent once (HRN-013), and to a conversation that works on nothing else (HRN-012); an id is a new
 * conversation's only when the agent made one, and a bound one's only when the agent reopened it (HRN-004). A turn whose
 * process died fails with how it died; the next turn starts the agent again and reopens the conversation.
 */
import {
  type HarnessError,
  HarnessRejected,
  ResumeUnconfirmed,
  SessionMissing,
  UnsupportedOperation
} from "@tackroom/protocol"
import type { ExecutionBinding, HarnessEvent, SessionConfig, SessionConfigUpdate } from "@tackroom/protocol/events"
import { Deferred, Effect, Exit, Fiber, Scope, Semaphore, Stream } from "effect"
import type { EnvironmentSpec } from "../../process/index.ts"
import { toAcpMcpServers } from "../../mcp/Conversions.ts"
import {
  type HarnessContext,
  type HarnessDriver,
  type HarnessFactory,
  type McpServer,
  type NativeSession,
  type OpenSession,
  type SignIn,
  type SignInMethod,
  type TurnInput,
  TurnLost
} from "../Harness.ts"
import { makeTurnFibers, type TurnOutput } from "../TurnFibers.ts"
import {
  type AgentCommand,
  type AgentConnection,
  type AgentListener,
  AgentRefused,
  loadSdk,
  openAgent,
  orFail
} from "./AgentConnection.ts"
import type { AgentFacts, AuthMethod } from "./AgentFacts.ts"
import { configOptionsOf, offeredBy, type OfferedOptions, optionFor, setsByModes } from "./AgentOptions.ts"
import { type Conversation, makeConversation, type RunningPrompt } from "./Conversation.ts"
import { brokeProtocol } from "./Failures.ts"
import { fieldsOf, wordsOf } from "./Fields.ts"
import { access, capabilitiesOf, modelsOf } from "./Offers.ts"
import { promptBlocks } from "./Prompts.ts"
import { reopen } from "./Reopening.ts"
import { endOf, failed, forcedEnd } from "./TurnEnds.ts"
import { initialUpdates, runningCalls } from "./Updates.ts"

/** How an agent is started and talked to. @since 0.1.0 */
export interface AcpOptions {
  /** The program: a path, or a name on PATH. */
  readonly binary: string
  readonly args?: ReadonlyArray<string>
  /** Variables that the agent gets besides the short list of HRN-031; the names are taken from this process. */
  readonly env?: {
    readonly names?: ReadonlyArray<string>
    readonly variables?: Readonly<Record<string, string>>
  }
  /** The agent's own id of a way to sign in, used right after it was started (HRN-101). */
  readonly authMethod?: string
  readonly label?: string
  /** The program that the agent is told it works for. */
  readonly client?: { readonly name: string; readonly version: string }
  /** Milliseconds from the start to a ready agent. Default 30,000. */
  readonly initializeTimeoutMs?: number
  /** Milliseconds without work after which the process of a session is ended (HRN-040). Default 300,000. */
  readonly idleMs?: number
  /** Bytes of one frame. Default 32 MiB (HRN-043). */
  readonly maxFrameBytes?: number
}

const defaultIdleMs = 300_000
const defaultInitializeMs = 30_000
/** How long an agent may take to close or delete a conversation; its process is ended anyway. */
const farewellMs = 2_000
/** Values of variables shorter than this are words, not secrets. */
const secretLength = 8

type Category = "model" | "mode" | "thought_level"

/** A session with its process, while it has one. */
interface Slot {
  readonly conversation: Conversation
  readonly lock: Semaphore.Semaphore
  agent: AgentConnection | undefined
  /** The MCP servers that the conversation is opened with, also when its process has rested. */
  servers: ReadonlyArray<McpServer>
  scope: Scope.Closeable | undefined
  /** The agent holds something that would be lost with the process, if it could not be reopened. */
  prompted: boolean
  idle: Fiber.Fiber<void> | undefined
  closed: boolean
}

const environmentOf = ({ env }: AcpOptions, more: Readonly<Record<string, string>> = {}): EnvironmentSpec => ({
  list: "harness",
  variables: { ...env?.variables, ...more },
  ...(env?.names === undefined ? {} : { names: env.names })
})

const commandOf = (harness: string, options: AcpOptions): AgentCommand => {
  const variables = options.env?.variables ?? {}
  const secrets = Object.values(variables).filter((value) => value.length >= secretLength)
  return {
    harness,
    command: options.binary,
    args: options.args ?? [],
    env: environmentOf(options),
    redact: (text) => secrets.reduce((rest, secret) => rest.replaceAll(secret, "[secret]"), text),
    authMethod: options.authMethod,
    client: options.client,
    initializeTimeoutMs: options.initializeTimeoutMs ?? defaultInitializeMs,
    maxFrameBytes: options.maxFrameBytes
  }
}

/** The servers of a session for its agent; the runtime gives none that the agent does not take. */
const serversFor = ({ facts }: AgentConnection, { servers }: Slot) =>
  toAcpMcpServers(Object.fromEntries(servers.map((server) => [server.name, server])), { http: facts.mcpHttp }).servers

/** An agent that cannot start a server may say with what it tried. */
const withoutValues = (servers: ReadonlyArray<McpServer>, text: string): string =>
  servers
    .flatMap((server) => Object.values(server.transport === "stdio" ? server.env : server.headers))
    .filter((value) => value.length >= secretLength)
    .reduce((rest, value) => rest.replaceAll(value, "[secret]"), text)

const signInMethod = (options: AcpOptions, { description, id, name, terminal }: AuthMethod): SignInMethod => ({
  id,
  name,
  ...(description === undefined ? {} : { description }),
  ...(terminal === undefined
    ? {}
    : {
        terminal: {
          command: options.binary,
          args: [...(options.args ?? []), ...terminal.args],
          env: environmentOf(options, terminal.env)
        }
      })
})

const make = (
  id: string,
  options: AcpOptions,
  context: HarnessContext
): Effect.Effect<HarnessDriver, HarnessError, Scope.Scope> =>
  Effect.gen(function* () {
    const harness = `${access}:${id}`
    const command = commandOf(harness, options)
    const idleMs = options.idleMs ?? defaultIdleMs
    const driverScope = yield* Effect.scope
    const sdk = yield* Effect.cached(loadSdk(harness))
    const turns = makeTurnFibers()
    const slots = new Map<string, Slot>()
    /** Prompts by turn, from before they are sent until their outcome is known. */
    const prompts = new Map<string, RunningPrompt>()
    /** What was learnt last; the same program answers the same. */
    let known: { readonly facts: AgentFacts; readonly offered: OfferedOptions } | undefined
    /** Ways to sign in, asked for as a client with a terminal has them. */
    let ways: AgentFacts["authMethods"] | undefined
    /** The way that a person has chosen. */
    let chosenWay: string | undefined

    const unsupported = (operation: string) => Effect.fail(new UnsupportedOperation({ harness, operation }))

    const start = (
      listener: AgentListener,
      place: { readonly directory: string; readonly sessionId: string | undefined },
      servers: () => ReadonlyArray<McpServer> = () => [],
      more: Partial<AgentCommand> = {}
    ): Effect.Effect<AgentConnection, HarnessError, Scope.Scope> =>
      Effect.gen(function* () {
        const owner = yield* Effect.mapError(context.processes, () =>
          brokeProtocol(harness, "start", "no processes here")
        )
        const redact = (text: string): string => withoutValues(servers(), command.redact(text))
        return yield* openAgent({ sdk: yield* sdk, owner, command: { ...command, ...more, redact }, listener }, place)
      })

    // Processes of sessions

    const slotOf = (sessionId: string, directory: string): Effect.Effect<Slot> =>
      Effect.suspend(() => {
        const found = slots.get(sessionId)
        if (found !== undefined && found.conversation.directory === directory) return Effect.succeed(found)
        return Effect.map(makeConversation(context, { sessionId, directory }), (conversation) => {
          const again = slots.get(sessionId)
          if (again !== undefined && again.conversation.directory === directory) return again
          const slot: Slot = {
            conversation,
            lock: Semaphore.makeUnsafe(1),
            agent: undefined,
            servers: [],
            scope: undefined,
            prompted: false,
            idle: undefined,
            closed: false
          }
          slots.set(sessionId, slot)
          return slot
        })
      })

    const endProcess = (slot: Slot): Effect.Effect<void> =>
      Effect.suspend(() => {
        const { scope } = slot
        slot.scope = undefined
        slot.agent = undefined
        return scope === undefined ? Effect.void : Scope.close(scope, Exit.void)
      })

    /** The session's agent, started when there is none or it is gone. Under the slot's lock. */
    const greeted = (slot: Slot): Effect.Effect<AgentConnection, HarnessError> =>
      Effect.gen(function* () {
        if (slot.agent !== undefined && !slot.agent.isOver()) return slot.agent
        yield* endProcess(slot)
        const scope = yield* Scope.fork(driverScope)
        const { directory, listener, sessionId } = slot.conversation
        const agent = yield* start(listener, { directory, sessionId }, () => slot.servers).pipe(
          Scope.provide(scope),
          Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
        )
        slot.scope = scope
        slot.agent = agent
        known = { facts: agent.facts, offered: known?.offered ?? initialUpdates.offered }
        return agent
      })

    const opened = (slot: Slot, offered: OfferedOptions): Effect.Effect<void> => {
      if (slot.agent !== undefined) known = { facts: slot.agent.facts, offered }
      return slot.conversation.deliver({ _tag: "Offered", offered })
    }

    /** The agent with the bound conversation open, as after a start of the runtime or of the process. */
    const live = (slot: Slot): Effect.Effect<AgentConnection, SessionMissing | ResumeUnconfirmed | HarnessError> =>
      Effect.gen(function* () {
        const upstream = slot.conversation.upstream()
        if (slot.agent !== undefined && !slot.agent.isOver()) return slot.agent
        const agent = yield* greeted(slot)
        if (upstream === undefined) return agent
        if (agent.facts.reopens === undefined) {
          return yield* new ResumeUnconfirmed({
            harness,
            operation: "resumeSession",
            reason: "its process is gone, and it cannot reopen a conversation",
            retryable: false
          })
        }
        yield* reopened(slot, agent, upstream)
        return agent
      })

    const isIdle = (slot: Slot): boolean =>
      slot.conversation.running() === undefined && runningCalls(slot.conversation.state()) === 0

    const stayAwake = (slot: Slot): Effect.Effect<void> =>
      Effect.suspend(() => {
        const { idle } = slot
        slot.idle = undefined
        return idle === undefined ? Effect.void : Fiber.interrupt(idle)
      })

    /** Ends the process when nothing happens for a while, if the agent can take the conversation up again (HRN-040). */
    const restAfter = (slot: Slot): Effect.Effect<void> =>
      Effect.gen(function* () {
        yield* stayAwake(slot)
        if (slot.closed || slot.agent?.facts.reopens === undefined) return
        const rest: Effect.Effect<void> = Effect.flatMap(Effect.sleep(idleMs), () =>
          slot.lock.withPermits(1)(
            Effect.suspend(() => {
              if (!isIdle(slot)) return Effect.succeed(true)
              if (!slot.prompted && slot.conversation.upstream() !== undefined) return Effect.succeed(false)
              return Effect.as(Effect.uninterruptible(endProcess(slot)), false)
            })
          )
        ).pipe(Effect.flatMap((again) => (again ? rest : Effect.void)))
        slot.idle = yield* Effect.forkIn(rest, driverScope)
      })

    const locked = <A, E>(slot: Slot, work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
      slot.lock
        .withPermits(1)(Effect.andThen(stayAwake(slot), work))
        .pipe(Effect.ensuring(restAfter(slot)))

    // Choices

    const setChoice = Effect.fnUntraced(function* (
      slot: Slot,
      agent: AgentConnection,
      category: Category,
      value: string
    ): Effect.fn.Return<void, UnsupportedOperation | HarnessError> {
      const { conversation } = slot
      const { offered } = conversation.state()
      const option = optionFor(offered, category)
      if (option === undefined)
        return yield* new UnsupportedOperation({ harness, operation: `choice of a ${category}` })
      if (option.currentValue === value) return
      if (!(option.selectOptions ?? []).some((choice) => choice.id === value)) {
        return yield* new HarnessRejected({
          harness,
          operation: "configure",
          detail: `it offers no ${category} of that id`
        })
      }
      const sessionId = conversation.upstream() ?? ""
      if (setsByModes(offered, category)) {
        yield* orFail(agent.request("session/set_mode", { sessionId, modeId: value }))
        return yield* conversation.deliver({
          _tag: "Update",
          update: { sessionUpdate: "current_mode_update", currentModeId: value }
        })
      }
      const answer = yield* orFail(
        agent.request("session/set_config_option", { sessionId, configId: option.id, value })
      )
      yield* conversation.deliver({
        _tag: "Update",
        update: { sessionUpdate: "config_option_update", configOptions: offeredBy(answer).options }
      })
    })

    const chosen = Effect.fnUntraced(function* (
      slot: Slot,
      agent: AgentConnection,
      choices: ReadonlyArray<readonly [Category, string | undefined | null]>
    ): Effect.fn.Return<void, UnsupportedOperation | HarnessError> {
      for (const [category, value] of choices) {
        if (value !== undefined && value !== null) yield* setChoice(slot, agent, category, value)
      }
    })

    /** The mode in which a person is asked, where the agent's default is another (HRN-106). */
    const askingMode = (slot: Slot, agent: AgentConnection): string | undefined => {
      const mode = agent.facts.profile.askingMode
      const offered = optionFor(slot.conversation.state().offered, "mode")?.selectOptions ?? []
      return offered.some((choice) => choice.id === mode) ? mode : undefined
    }

    /** The choices of a session that was just opened; the agent must take them. */
    const chosenAtOpening = (
      slot: Slot,
      agent: AgentConnection,
      operation: "openSession" | "resumeSession",
      choices: Parameters<typeof chosen>[2]
    ): Effect.Effect<void, HarnessError> =>
      chosen(slot, agent, choices).pipe(
        Effect.catchTag("UnsupportedOperation", (error) =>
          Effect.fail(new HarnessRejected({ harness, operation, detail: error.message }))
        )
      )

    /** A new process is in its agent's own mode again, whichever one the conversation was left in. */
    const reopened = Effect.fnUntraced(function* (slot: Slot, agent: AgentConnection, upstream: string) {
      const reopening = reopen(harness, agent, slot.conversation, upstream, serversFor(agent, slot))
      yield* opened(slot, yield* signedIn(agent, reopening))
      yield* chosenAtOpening(slot, agent, "resumeSession", [["mode", askingMode(slot, agent)]])
    })

    const nativeOf = (slot: Slot, upstreamSessionId: string): NativeSession => {
      const commands = slot.conversation.state().commands
      return {
        upstreamSessionId,
        upstreamState: "confirmed",
        configOptions: configOptionsOf(slot.conversation.state().offered),
        ...(commands.length === 0 ? {} : { commands })
      }
    }

    /** Agents that keep a sign-in in their process want it again in the next one. */
    const signedIn = <A, E extends { readonly _tag: string }>(
      agent: AgentConnection,
      call: Effect.Effect<A, E | HarnessError>
    ): Effect.Effect<A, E | HarnessError> =>
      Effect.catchIf(
        call,
        (error) => error._tag === "HarnessAuthRequired" && chosenWay !== undefined,
        () => Effect.andThen(orFail(agent.request("authenticate", { methodId: chosenWay ?? "" })), call)
      )

    const openNew = Effect.fnUntraced(function* (slot: Slot, input: OpenSession) {
      const upstream = slot.conversation.upstream()
      if (upstream !== undefined && slot.agent?.isOver() === false) return nativeOf(slot, upstream)
      slot.servers = input.mcp ?? []
      const agent = yield* greeted(slot)
      slot.conversation.unnamed()
      const mcpServers = serversFor(agent, slot)
      const answer = yield* signedIn(
        agent,
        orFail(agent.request("session/new", { cwd: slot.conversation.directory, mcpServers }))
      )
      const made = wordsOf(fieldsOf(answer)?.["sessionId"])
      if (made === undefined) return yield* brokeProtocol(harness, "session/new", "its answer names no session")
      slot.prompted = false
      slot.conversation.named(made)
      yield* opened(slot, offeredBy(answer))
      yield* chosenAtOpening(slot, agent, "openSession", [
        ["model", input.model],
        ["thought_level", input.variant],
        ["mode", input.permissionMode ?? askingMode(slot, agent)]
      ])
      return nativeOf(slot, made)
    })

    const resume = Effect.fnUntraced(function* (
      slot: Slot,
      binding: ExecutionBinding,
      servers: ReadonlyArray<McpServer>
    ) {
      const upstream = binding.upstreamSessionId
      if (slot.conversation.upstream() === upstream && slot.agent?.isOver() === false) return nativeOf(slot, upstream)
      slot.servers = servers
      const agent = yield* greeted(slot)
      if (agent.facts.reopens === undefined) {
        return yield* new ResumeUnconfirmed({
          harness,
          operation: "resumeSession",
          reason: "it does not offer to reopen a conversation",
          retryable: false
        })
      }
      yield* reopened(slot, agent, upstream)
      slot.prompted = true
      return nativeOf(slot, upstream)
    })

    // Turns

    const prompt = Effect.fnUntraced(function* (
      slot: Slot,
      agent: AgentConnection,
      running: RunningPrompt
    ): Effect.fn.Return<HarnessEvent, HarnessError> {
      const { conversation } = slot
      const { input } = running
      const blocks = promptBlocks(input.prompt, {
        takes: agent.facts.takes,
        directory: conversation.directory,
        instructions: slot.prompted ? undefined : input.config.instructions
      })
      if ("refused" in blocks) return failed(input, blocks.refused, "harness_error")
      slot.prompted = true
      running.sent = true
      return yield* agent
        .request(
          "session/prompt",
          { sessionId: conversation.upstream() ?? "", prompt: [...blocks] },
          conversation.answered(running)
        )
        .pipe(
          Effect.map((answer) => endOf(input, answer)),
          Effect.catchIf(
            (error): error is AgentRefused => error._tag === "AgentRefused",
            (refused) => Effect.succeed(refusedTurn(input, agent, refused))
          ),
          Effect.catch((error) =>
            // We ended the process because it did not listen: what it did ended with it (RT-160).
            slot.closed && running.cancelled ? Effect.as(agent.child.closed, forcedEnd(input)) : Effect.fail(error)
          )
        )
    })

    const refusedTurn = (input: TurnInput, agent: AgentConnection, refused: AgentRefused): HarnessEvent => {
      if (agent.facts.profile.isMissing(refused, input.binding.upstreamSessionId)) {
        return failed(input, refused.failure.message, "session_missing")
      }
      const event = failed(input, refused.failure.message, "harness_error")
      return refused.failure._tag === "HarnessAuthRequired" ? { ...event, errorClass: "credential" } : event
    }

    const perform = Effect.fnUntraced(function* (
      slot: Slot,
      input: TurnInput,
      output: TurnOutput
    ): Effect.fn.Return<void, HarnessError> {
      const ready = yield* Effect.result(
        Effect.gen(function* () {
          const agent = yield* live(slot)
          const { config, prompt } = input
          yield* chosen(slot, agent, [
            ["model", (prompt.model ?? config.model)?.modelID],
            ["thought_level", prompt.variant ?? config.variant],
            ["mode", prompt.permissionMode ?? config.permissionMode]
          ])
          return agent
        })
      )
      if (ready._tag === "Failure") {
        const error = ready.failure
        const { _tag } = error
        if (_tag === "SessionMissing" || _tag === "ResumeUnconfirmed" || _tag === "UnsupportedOperation") {
          output.close()
          const code = _tag === "SessionMissing" ? "session_missing" : "harness_error"
          return yield* output.emit([failed(input, error.message, code)])
        }
        return yield* Effect.fail(error)
      }
      const running = yield* slot.conversation.begin(input)
      prompts.set(input.turnId, running)
      const end = yield* Effect.gen(function* () {
        const prompting = yield* Effect.forkChild(
          Effect.ensuring(prompt(slot, ready.success, running), slot.conversation.answered(running)),
          { startImmediately: true }
        )
        yield* slot.conversation.forward(running, output)
        return yield* Fiber.join(prompting)
      }).pipe(
        Effect.onExit((exit) =>
          Effect.suspend(() => {
            prompts.delete(input.turnId)
            const cancelled = Exit.isSuccess(exit) && exit.value.type === "cancelled"
            return slot.conversation.over(running, cancelled ? "cancelled" : "ended")
          })
        )
      )
      output.close()
      yield* output.emit([end])
    })

    const runTurn: HarnessDriver["runTurn"] = (input) =>
      turns.run(input, (output) =>
        Effect.flatMap(slotOf(input.binding.sessionId, input.binding.directory), (slot) =>
          locked(slot, perform(slot, input, output))
        )
      )

    const cancel: HarnessDriver["cancel"] = (ref) =>
      Effect.gen(function* () {
        const slot = slots.get(ref.binding.sessionId)
        const running = prompts.get(ref.turnId)
        // The agent knows nothing of it: there is nobody to ask.
        if (slot === undefined || running?.sent !== true) return yield* turns.cancel(ref.turnId)
        if (!running.cancelled) {
          running.cancelled = true
          yield* slot.agent?.notify("session/cancel", { sessionId: slot.conversation.upstream() ?? "" }) ?? Effect.void
        }
        // Cancelled is what the agent says is cancelled (RT-160).
        const outcome = yield* Deferred.await(running.outcome)
        return outcome === "cancelled" ? ("acknowledged" as const) : ("idle" as const)
      })

    // What is asked without a session

    const probe = Effect.fnUntraced(function* (directory: string) {
      const conversation = yield* makeConversation(context, { sessionId: "probe", directory })
      return yield* Effect.scoped(
        Effect.gen(function* () {
          const place = { directory, sessionId: undefined }
          const agent = yield* start(conversation.listener, place, () => [], { terminalAuth: true })
          ways = agent.facts.authMethods
          const made = yield* Effect.result(agent.request("session/new", { cwd: directory, mcpServers: [] }))
          if (made._tag === "Failure") {
            if (made.failure._tag !== "AgentRefused") return yield* made.failure
            return { facts: agent.facts, offered: initialUpdates.offered, refused: made.failure.failure }
          }
          const sessionId = wordsOf(fieldsOf(made.success)?.["sessionId"])
          if (sessionId !== undefined) yield* farewell(agent, sessionId, agent.facts.deletes ? "delete" : "close")
          return { facts: agent.facts, offered: offeredBy(made.success), refused: undefined }
        })
      )
    })

    /** Starts the agent for a question to it alone. */
    const asked = <A>(directory: string, question: (agent: AgentConnection) => Effect.Effect<A, HarnessError>) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { listener } = yield* makeConversation(context, { sessionId: "probe", directory })
          const place = { directory, sessionId: undefined }
          const agent = yield* start(listener, place, () => [], { authMethod: undefined, terminalAuth: true })
          ways = agent.facts.authMethods
          return yield* question(agent)
        })
      )

    const signIn: SignIn = {
      known: () => (ways ?? known?.facts.authMethods ?? []).map((way) => signInMethod(options, way)),
      methods: (directory) =>
        asked(directory, ({ facts }) => Effect.succeed(facts.authMethods.map((way) => signInMethod(options, way)))),
      use: (methodId, directory) =>
        asked(directory, (agent) => {
          const isOffered = agent.facts.authMethods.some(
            ({ id: one, terminal }) => one === methodId && terminal === undefined
          )
          if (!isOffered) {
            return Effect.fail(
              new HarnessRejected({ harness, operation: "authenticate", detail: "it offers no such way to sign in" })
            )
          }
          return Effect.map(orFail(agent.request("authenticate", { methodId })), () => {
            chosenWay = methodId
          })
        })
    }

    const farewell = (agent: AgentConnection, sessionId: string, how: "close" | "delete"): Effect.Effect<void> => {
      const can = how === "close" ? agent.facts.closes : agent.facts.deletes
      if (!can || agent.isOver()) return Effect.void
      return Effect.ignore(
        Effect.timeoutOption(
          agent.request(`session/${how}` as "session/close" | "session/delete", { sessionId }),
          farewellMs
        )
      )
    }

    /** What the agent offers now: from a session that is open in this directory, else from one made for the question. */
    const offeredIn = (directory: string): Effect.Effect<OfferedOptions, HarnessError> =>
      Effect.gen(function* () {
        for (const slot of slots.values()) {
          const { conversation } = slot
          if (
            conversation.directory === directory &&
            conversation.upstream() !== undefined &&
            slot.agent !== undefined
          ) {
            return conversation.state().offered
          }
        }
        const found = yield* probe(directory)
        known = found
        return found.refused === undefined ? found.offered : yield* Effect.fail(found.refused)
      })

    const capabilities: HarnessDriver["capabilities"] = ({ directory, sessionId }) =>
      Effect.gen(function* () {
        if (sessionId !== undefined) {
          const slot = yield* slotOf(sessionId, directory)
          // A turn holds the lock for as long as it runs; its agent is there.
          const agent = slot.agent?.isOver() === false ? slot.agent : yield* locked(slot, greeted(slot))
          return capabilitiesOf(id, agent.facts, slot.conversation.state().offered)
        }
        const found = known ?? (yield* probe(directory))
        known = found
        return capabilitiesOf(id, found.facts, found.offered)
      })

    const release = (sessionId: string, how: "close" | "delete"): Effect.Effect<void> =>
      Effect.suspend(() => {
        const slot = slots.get(sessionId)
        if (slot === undefined) return Effect.void
        slot.closed = true
        slots.delete(sessionId)
        const upstream = slot.conversation.upstream()
        return Effect.gen(function* () {
          yield* stayAwake(slot)
          if (slot.agent !== undefined && upstream !== undefined) yield* farewell(slot.agent, upstream, how)
          yield* endProcess(slot)
        })
      })

    const configure = (binding: ExecutionBinding, update: SessionConfigUpdate) =>
      Effect.gen(function* (): Effect.fn.Return<SessionConfig, UnsupportedOperation | HarnessError> {
        if (update.agent !== undefined && update.agent !== null) return yield* unsupported("choice of an agent")
        const slot = yield* slotOf(binding.sessionId, binding.directory)
        const choices = [
          ["model", update.model?.modelID],
          ["thought_level", update.variant],
          ["mode", update.permissionMode]
        ] as const
        if (choices.some(([, value]) => value !== undefined && value !== null)) {
          const running = slot.conversation.running() !== undefined
          const agent = running && slot.agent !== undefined ? slot.agent : yield* locked(slot, confirmed(slot))
          yield* chosen(slot, agent, choices)
        }
        const { model, permissionMode, variant } = update
        return {
          harness: { id, access },
          ...(model === undefined || model === null ? {} : { model }),
          ...(variant === undefined || variant === null ? {} : { variant }),
          ...(permissionMode === undefined || permissionMode === null ? {} : { permissionMode })
        }
      })

    const confirmed = (slot: Slot): Effect.Effect<AgentConnection, HarnessError> =>
      live(slot).pipe(
        Effect.catchTag(["SessionMissing", "ResumeUnconfirmed"], (error) =>
          Effect.fail(new HarnessRejected({ harness, operation: "configure", detail: error.message }))
        )
      )

    return {
      capabilities,
      openSession: (input) =>
        Effect.flatMap(slotOf(input.sessionId, input.directory), (slot) => locked(slot, openNew(slot, input))),
      resumeSession: (binding, servers = []) =>
        Effect.flatMap(slotOf(binding.sessionId, binding.directory), (slot) =>
          locked(slot, resume(slot, binding, servers))
        ),
      runTurn,
      recoverTurn: () => Stream.fail(new TurnLost({ message: "The agent's process is gone, and the turn with it" })),
      betweenTurns: (binding) =>
        Stream.unwrap(
          Effect.map(slotOf(binding.sessionId, binding.directory), ({ conversation }) =>
            Stream.flatMap(Stream.fromQueue(conversation.between), (events) => Stream.fromIterable(events))
          )
        ),
      steer: () => unsupported("steer"),
      cancel,
      configure,
      configOptions: (directory) =>
        Effect.flatMap(offeredIn(directory), (offered) => {
          const found = configOptionsOf(offered)
          return found.length === 0 ? unsupported("configOptions") : Effect.succeed(found)
        }),
      models: (directory) =>
        Effect.flatMap(offeredIn(directory), (offered) => {
          const option = optionFor(offered, "model")
          return option === undefined ? unsupported("models") : Effect.succeed(modelsOf(id, option))
        }),
      commands: (directory, sessionId) =>
        Effect.sync(() => {
          const own = sessionId === undefined ? undefined : slots.get(sessionId)
          const slot = own ?? [...slots.values()].find(({ conversation }) => conversation.directory === directory)
          return slot?.conversation.state().commands ?? []
        }),
      signIn,
      closeSession: (binding) => release(binding.sessionId, "close"),
      deleteSession: (binding) => release(binding.sessionId, "delete"),
      health: () =>
        Effect.sync(() => ({
          status: "ok" as const,
          sessions: [...slots.values()].filter(({ agent }) => agent?.isOver() === false).length,
          ...(known?.facts.name === undefined
            ? {}
            : { message: [known.facts.name, known.facts.version].filter((word) => word !== undefined).join(" ") })
        }))
    }
  })

/**
 * The factory of an agent that speaks the Agent Client Protocol on its stdio. `id` names it in this runtime; the key of its
 * sessions is `acp:id`. Needs the optional peer `@agentclientprotocol/sdk`, loaded when the agent is first used.
 *
 * ```ts
 * createAgentRuntime({ store, harnesses: [acp("opencode", { binary: "opencode", args: ["acp"] })] })
 * ```
 *
 * @since 0.1.0
 */
export const acp = (id: string, options: AcpOptions): HarnessFactory => ({
  id,
  access,
  definition: {
    label: options.label ?? id,
    authEnv: null,
    peer: { package: "@agentclientprotocol/sdk", range: "^2.4.0" }
  },
  make: (context) => make(id, options, context)
})
