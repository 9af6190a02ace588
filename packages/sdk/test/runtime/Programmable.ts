/** A harness for tests whose turns do what the test says: the far end of the runtime. */
import { Cause, Deferred, Effect, Queue, Stream } from "effect"
import { UnsupportedOperation } from "@tackroom/protocol"
import type { HarnessEvent } from "@tackroom/protocol/events"
import { noCapabilities, type HarnessCapabilities } from "../../src/harness/Capabilities.ts"
import type {
  HarnessContext,
  HarnessDriver,
  HarnessFactory,
  HarnessItem,
  TurnInput
} from "../../src/harness/Harness.ts"

/** What a turn of the test's driver is given. */
export interface TurnScript {
  readonly input: TurnInput
  readonly context: HarnessContext
  readonly emit: (...events: ReadonlyArray<HarnessItem>) => Effect.Effect<void>
  readonly finish: (finalText?: string) => HarnessEvent
}

export interface ProgrammableOptions {
  readonly id?: string
  readonly capabilities?: Partial<HarnessCapabilities>
  /** Runs as the turn; its end ends the stream. */
  readonly turn?: (script: TurnScript) => Effect.Effect<void>
  readonly recover?: (script: TurnScript) => Effect.Effect<void>
  readonly driver?: (base: HarnessDriver, context: HarnessContext) => Partial<HarnessDriver>
}

export const finishOf = (input: TurnInput, finalText?: string): HarnessEvent => ({
  type: "finish",
  sessionId: input.binding.sessionId,
  assistantMessageId: input.assistantMessageId,
  reason: "end_turn",
  ...(finalText === undefined ? {} : { finalText })
})

export const text = (input: TurnInput, delta: string, partId = "p1"): HarnessEvent => ({
  type: "text-delta",
  delta,
  messageId: input.assistantMessageId,
  partId
})

export interface Programmable {
  readonly factory: HarnessFactory
  readonly opened: Array<string>
  readonly resumed: Array<string>
  readonly closed: Array<string>
  readonly prompts: Array<TurnInput>
  readonly recovered: Array<TurnInput>
  readonly cancels: Array<string>
}

/** By default a turn says hello and finishes; a cancel is acknowledged and ends the stream with `cancelled`. */
export const programmable = (options: ProgrammableOptions = {}): Programmable => {
  const seen = { opened: [], resumed: [], closed: [], prompts: [], recovered: [], cancels: [] } as {
    opened: Array<string>
    resumed: Array<string>
    closed: Array<string>
    prompts: Array<TurnInput>
    recovered: Array<TurnInput>
    cancels: Array<string>
  }
  const id = options.id ?? "test"
  const capabilities: HarnessCapabilities = {
    ...noCapabilities({ id, access: "native" }),
    abort: true,
    resume: "exact",
    turnRecovery: "resume",
    permissions: true,
    questions: true,
    rounds: true,
    ...options.capabilities
  }
  const factory: HarnessFactory = {
    id,
    access: "native",
    definition: { label: "Test", authEnv: null },
    make: (context) =>
      Effect.sync(() => {
        const cancels = new Map<string, Deferred.Deferred<void>>()
        const play = (input: TurnInput, run: (script: TurnScript) => Effect.Effect<void>): Stream.Stream<HarnessItem> =>
          Stream.unwrap(
            Effect.gen(function* () {
              const queue = yield* Queue.unbounded<HarnessItem, Cause.Done>()
              const cancelled = Deferred.makeUnsafe<void>()
              cancels.set(input.turnId, cancelled)
              const script: TurnScript = {
                input,
                context,
                emit: (...events) => Queue.offerAll(queue, events).pipe(Effect.asVoid),
                finish: (finalText) => finishOf(input, finalText)
              }
              const body = Effect.raceFirst(
                Effect.as(run(script), false),
                Effect.as(Deferred.await(cancelled), true)
              ).pipe(
                Effect.flatMap((wasCancelled) =>
                  wasCancelled
                    ? Queue.offer(queue, {
                        type: "cancelled",
                        sessionId: input.binding.sessionId,
                        assistantMessageId: input.assistantMessageId,
                        reason: "requested"
                      } as const)
                    : Effect.void
                ),
                Effect.andThen(Queue.end(queue))
              )
              yield* Effect.forkScoped(
                Effect.flatMap(Effect.exit(body), (exit) =>
                  exit._tag === "Failure" && !Cause.hasInterruptsOnly(exit.cause)
                    ? Queue.failCause(queue, exit.cause)
                    : Effect.void
                )
              )
              return Stream.fromQueue(queue)
            })
          )
        const missing = (operation: string) => Effect.fail(new UnsupportedOperation({ harness: id, operation }))
        const base: HarnessDriver = {
          capabilities: () => Effect.succeed(capabilities),
          openSession: (input) =>
            Effect.sync(() => {
              seen.opened.push(input.sessionId)
              return { upstreamSessionId: `up-${input.sessionId}`, upstreamState: "confirmed" }
            }),
          resumeSession: (binding) =>
            Effect.sync(() => {
              seen.resumed.push(binding.sessionId)
              return { upstreamSessionId: binding.upstreamSessionId, upstreamState: "confirmed" }
            }),
          runTurn: (input) => {
            seen.prompts.push(input)
            return play(input, options.turn ?? ((script) => script.emit(text(input, "hello"), script.finish())))
          },
          recoverTurn: (input) => {
            seen.recovered.push(input)
            return play(input, options.recover ?? ((script) => script.emit(script.finish("recovered"))))
          },
          betweenTurns: () => Stream.empty,
          steer: () => missing("steer"),
          cancel: (turn) =>
            Effect.gen(function* () {
              seen.cancels.push(turn.turnId)
              const cancelled = cancels.get(turn.turnId)
              if (cancelled === undefined) return "idle" as const
              yield* Deferred.succeed(cancelled, undefined)
              return "acknowledged" as const
            }),
          configure: () => missing("configure"),
          configOptions: () => missing("configOptions"),
          models: () => missing("models"),
          commands: () => missing("commands"),
          closeSession: (binding) =>
            Effect.sync(() => {
              seen.closed.push(binding.sessionId)
            }),
          deleteSession: () => Effect.void,
          health: () => Effect.succeed({ status: "ok" })
        }
        return { ...base, ...options.driver?.(base, context) }
      })
  }
  return { factory, ...seen }
}
