/** What the cases of the driver contract stand on: the driver under test in a real runtime, recorded. */
import { isTerminalType, type HarnessEvent } from "@tackroom/protocol/events"
import { Context, Data, Deferred, Effect, Exit, Layer, Scope, Stream } from "effect"
import type { HarnessCapabilities } from "../harness/Capabilities.ts"
import { Barrier, type HarnessDriver, type HarnessFactory, type HarnessItem, Positioned } from "../harness/Harness.ts"
import { AgentRuntime, type RuntimeServices } from "../runtime/AgentRuntime.ts"
import { Events } from "../runtime/Events.ts"
import { HarnessRegistry } from "../runtime/HarnessRegistry.ts"
import { Interactions, type Response } from "../runtime/Interactions.ts"
import { Sessions } from "../runtime/Sessions.ts"
import { isEnvelope } from "../runtime/Subscriptions.ts"
import { Turns } from "../runtime/Turns.ts"
import type { RuntimeStore } from "../store/RuntimeStore.ts"
import type { HarnessCase, HarnessKitOptions, HarnessScene, HarnessVerdict } from "./harnessContract.ts"

/** A rule that does not hold. */
export class Broken extends Data.TaggedError("Broken")<{ readonly message: string }> {}

/** Fails unless it holds. */
export const check = (holds: boolean, message: string): Effect.Effect<void, Broken> =>
  holds ? Effect.void : Effect.fail(new Broken({ message }))

export const pass: HarnessVerdict = { verdict: "pass" }
export const skip = (reason: string): HarnessVerdict => ({ verdict: "skip", reason })

/** Records what each turn's stream emits, and whether it ended. */
export const recording = (factory: HarnessFactory) => {
  const items: Array<HarnessEvent> = []
  const counts = { runs: 0 }
  const over = Deferred.makeUnsafe<void>()
  const gone: Array<Deferred.Deferred<void>> = []
  const listen = <E>(stream: Stream.Stream<HarnessItem, E>): Stream.Stream<HarnessItem, E> => {
    counts.runs += 1
    const end = Deferred.makeUnsafe<void>()
    gone.push(end)
    return stream.pipe(
      Stream.ensuring(Deferred.succeed(end, undefined)),
      Stream.tap((item) =>
        Effect.sync(() => {
          if (!(item instanceof Barrier)) items.push(item instanceof Positioned ? item.event : item)
        })
      ),
      Stream.onEnd(Deferred.succeed(over, undefined))
    )
  }
  const recorded: HarnessFactory = {
    ...factory,
    make: (context) =>
      Effect.map(factory.make(context), (driver): HarnessDriver => ({
        ...driver,
        runTurn: (turn) => listen(driver.runTurn(turn)),
        recoverTurn: (turn) => listen(driver.recoverTurn(turn))
      }))
  }
  return {
    factory: recorded,
    items,
    counts,
    over: Deferred.await(over),
    /** Every stream is over and released. */
    idle: Effect.suspend(() => Effect.forEach(gone, (end) => Deferred.await(end), { discard: true }))
  }
}

export type Recorder = ReturnType<typeof recording>

/** What a case works with. */
export interface Scene {
  readonly store: RuntimeStore
  readonly recorder: Recorder
  readonly capabilities: HarnessCapabilities
  readonly driver: HarnessDriver
}

/** The bound of every case; a driver that hangs fails. */
const caseMs = 30_000

/** The means of the cases of one harness. */
export const makeBench = (factory: HarnessFactory, options: HarnessKitOptions) => {
  const { directory } = options
  const ref = { id: factory.id, access: factory.access }

  const inRuntime = <A, E>(
    store: RuntimeStore,
    recorder: Recorder,
    program: (scene: Scene) => Effect.Effect<A, E, RuntimeServices | Scope.Scope>
  ) =>
    Effect.scoped(
      Effect.gen(function* () {
        yield* Effect.flatMap(Effect.service(AgentRuntime), (life) => life.ready)
        const driver = yield* Effect.flatMap(Effect.service(HarnessRegistry), (registry) => registry.driver(ref))
        const capabilities = yield* driver.capabilities({ directory })
        return yield* program({ store, recorder, capabilities, driver })
      })
    ).pipe(Effect.provide(AgentRuntime.layer({ store, harnesses: [recorder.factory] })))

  const make = (
    id: string,
    title: string,
    program: (scene: Scene) => Effect.Effect<HarnessVerdict | void, unknown, RuntimeServices | Scope.Scope>,
    requires?: keyof HarnessCapabilities
  ): HarnessCase => ({
    id,
    title: `${title} [${id}]`,
    ...(requires === undefined ? {} : { requires }),
    run: () =>
      Effect.runPromise(
        Effect.gen(function* () {
          const store = options.makeStore()
          const result = yield* inRuntime(store, recording(factory), (scene) =>
            requires !== undefined && !declared(scene.capabilities, requires)
              ? Effect.succeed(skip(`${requires} is not declared`))
              : program(scene)
          ).pipe(
            Effect.timeoutOrElse({
              duration: caseMs,
              orElse: () => Effect.fail(new Broken({ message: `not done after ${caseMs} ms` }))
            }),
            Effect.ensuring(store.close)
          )
          return result ?? pass
        })
      )
  })

  const create = (scene: HarnessScene, id?: string) =>
    Effect.flatMap(Effect.service(Sessions), (sessions) =>
      sessions.create({ directory, harness: ref, ...scene.session, ...(id === undefined ? {} : { id }) })
    )

  const start = (sessionId: string, scene: HarnessScene, messageId = "kit-1") =>
    Effect.flatMap(Effect.service(Turns), (turns) => turns.start({ sessionId, messageId, text: scene.prompt }))

  const wait = (sessionId: string, messageId = "kit-1") =>
    Effect.flatMap(Effect.service(Turns), (turns) => turns.wait(sessionId, messageId))

  const journal = (sessionId: string) =>
    Effect.map(
      Effect.flatMap(Effect.service(Events), (events) => events.read(sessionId, { limit: 1000 })),
      (page) => page.events
    )

  /** Answers every ask of the session, in the order asked for, until the turn ends. */
  const answering = (sessionId: string, response: (index: number) => Response) =>
    Effect.gen(function* () {
      const events = yield* Events
      const interactions = yield* Interactions
      const subscription = events.subscribe({ sessionId, after: 0 })
      const asked: Array<string> = []
      while (true) {
        const item = yield* subscription.next
        if (item === undefined || !isEnvelope(item)) continue
        const { payload } = item
        if (isTerminalType(payload.type)) break
        if (payload.type !== "permission-request" && payload.type !== "question") continue
        const row = yield* interactions.row(payload.requestId)
        if (row?.state !== "pending") continue
        asked.push(payload.requestId)
        yield* interactions.respond(payload.requestId, response(asked.length - 1))
      }
      yield* subscription.close
      return asked
    })

  /** A runtime that the case closes itself, as a process that ends would. */
  const open = (store: RuntimeStore, recorder: Recorder) =>
    Effect.gen(function* () {
      const scope = Scope.makeUnsafe()
      const services = yield* Layer.buildWithScope(AgentRuntime.layer({ store, harnesses: [recorder.factory] }), scope)
      const life = Context.get(services, AgentRuntime)
      yield* life.ready
      return {
        run: <A, E>(program: Effect.Effect<A, E, RuntimeServices>) => Effect.provide(program, services),
        leave: Effect.andThen(life.shutdown({ turns: "leave" }), Scope.close(scope, Exit.void))
      }
    })

  /** Only what needs a store and no runtime of its own. */
  const bare = (
    id: string,
    title: string,
    program: (store: RuntimeStore, recorder: () => Recorder) => Effect.Effect<HarnessVerdict | void, unknown>
  ): HarnessCase => ({
    id,
    title: `${title} [${id}]`,
    run: () =>
      Effect.runPromise(
        Effect.suspend(() => {
          const store = options.makeStore()
          return program(store, () => recording(factory)).pipe(
            Effect.timeoutOrElse({
              duration: caseMs,
              orElse: () => Effect.fail(new Broken({ message: `not done after ${caseMs} ms` }))
            }),
            Effect.ensuring(store.close),
            Effect.map((result) => result ?? pass)
          )
        })
      )
  })

  return { answering, bare, create, journal, make, open, ref, start, wait }
}

/** Whether a capability is declared. */
export const declared = (capabilities: HarnessCapabilities, name: keyof HarnessCapabilities): boolean => {
  const value = capabilities[name]
  return value !== false && value !== "none" && value !== "unsupported"
}
