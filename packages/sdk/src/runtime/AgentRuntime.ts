/**
 * The runtime as one layer: the composition of the parts in this folder, and its life.
 *
 * Implements RT-020, RT-022, RT-024, RT-028.
 *
 * @since 0.1.0
 */
import type { RuntimeError } from "@tackroom/protocol"
import { Context, Deferred, Effect, Layer } from "effect"
import { HarnessHost, HarnessRegistry } from "./HarnessRegistry.ts"
import type { StoreInfo } from "../store/RuntimeStore.ts"
import { Store } from "../store/Store.ts"
import { Aborting } from "./Aborting.ts"
import { ActiveTurns } from "./ActiveTurns.ts"
import { Admitting } from "./Admitting.ts"
import { Asks } from "./Asks.ts"
import { Cancelling } from "./Cancelling.ts"
import { Config } from "./Config.ts"
import { Events } from "./Events.ts"
import { hostLayer } from "./HarnessServices.ts"
import { Hub } from "./Hub.ts"
import { Interactions } from "./Interactions.ts"
import { Journal } from "./Journal.ts"
import { Leases } from "./Leases.ts"
import { McpServers } from "./McpServers.ts"
import { Minting } from "./Minting.ts"
import { NativeSessions } from "./NativeSessions.ts"
import { NewSessions } from "./NewSessions.ts"
import { Notices } from "./Notices.ts"
import {
  Options,
  resolveOptions,
  type AgentRuntimeOptions,
  type EmbedderOptions,
  type ResolvedOptions
} from "./Options.ts"
import { Permissions, Questions } from "./Permissions.ts"
import { Processes } from "./Processes.ts"
import { Queue } from "./Queue.ts"
import { Recovery } from "./Recovery.ts"
import { Secrets } from "./Secrets.ts"
import { Sessions } from "./Sessions.ts"
import { SessionViews } from "./SessionViews.ts"
import { Capabilities, Commands, Health, Todos } from "./Status.ts"
import { Settling } from "./Settling.ts"
import { Steering } from "./Steering.ts"
import { Subscriptions } from "./Subscriptions.ts"
import { TurnRunner } from "./TurnRunner.ts"
import { Turns } from "./Turns.ts"
import { Waiting } from "./Waiting.ts"

/** Every service of a runtime, for programs that are composed of Effect layers. */
export type RuntimeServices =
  | AgentRuntime
  | Sessions
  | Turns
  | Queue
  | Events
  | Subscriptions
  | Interactions
  | Permissions
  | Questions
  | Todos
  | Commands
  | Config
  | Health
  | Capabilities
  | HarnessRegistry
  | Recovery
  | ActiveTurns
  | Hub
  | McpServers
  | Secrets
  | Store

/** How a runtime is closed (D-7). */
export interface DisposeOptions {
  readonly turns?: "cancel" | "leave"
}

/** What every part stands on: options, store, ids, secrets, the hub and the journal. */
const ground = (options: ResolvedOptions) =>
  Leases.layer.pipe(
    Layer.provideMerge(Journal.layer),
    Layer.provideMerge(Layer.mergeAll(Hub.layer, ActiveTurns.layer)),
    Layer.provideMerge(Layer.mergeAll(Minting.layer, Secrets.layer)),
    Layer.provideMerge(Layer.mergeAll(Layer.succeed(Options, options), Layer.succeed(Store, options.store)))
  )

/** Harnesses and what they ask. */
const harnesses = NativeSessions.layer.pipe(
  Layer.provideMerge(HarnessRegistry.layer),
  Layer.provideMerge(Layer.effect(HarnessHost, hostLayer)),
  Layer.provideMerge(Interactions.layer),
  Layer.provideMerge(Layer.mergeAll(Asks.layer, Processes.layer, McpServers.layer)),
  Layer.provideMerge(Notices.layer)
)

/** Turns from their admission to their end, and what recovery takes up. */
const work = Recovery.layer.pipe(
  Layer.provideMerge(Turns.layer),
  Layer.provideMerge(Layer.mergeAll(Steering.layer, Aborting.layer, Waiting.layer)),
  Layer.provideMerge(Admitting.layer),
  Layer.provideMerge(TurnRunner.layer),
  Layer.provideMerge(Settling.layer),
  Layer.provideMerge(Cancelling.layer)
)

/** The namespaces of section 4. */
const namespaces = Layer.mergeAll(
  Events.layer,
  Config.layer,
  Health.layer,
  Capabilities.layer,
  Todos.layer,
  Commands.layer,
  Permissions.layer,
  Questions.layer
).pipe(
  Layer.provideMerge(Layer.mergeAll(Subscriptions.layer, Queue.layer)),
  Layer.provideMerge(Sessions.layer),
  Layer.provideMerge(NewSessions.layer),
  Layer.provideMerge(SessionViews.layer)
)

/** The layer of checked options. */
export const compose = (options: ResolvedOptions): Layer.Layer<RuntimeServices> =>
  AgentRuntime.layerNoDeps.pipe(
    Layer.provideMerge(namespaces),
    Layer.provideMerge(work),
    Layer.provideMerge(harnesses),
    Layer.provideMerge(ground(options))
  )

/** The life of a runtime: when it is ready, when recovered work may go on, and its end. */
export class AgentRuntime extends Context.Service<
  AgentRuntime,
  {
    /** Store open and migrated, recovery pass done (RT-022). Fails with the store's error (RT-020). */
    readonly ready: Effect.Effect<StoreInfo, RuntimeError>
    /** Lets classified turns go on, when `autoStart` was false (RUN-124). */
    readonly startRecovered: (sessionId?: string) => Effect.Effect<void>
    /** Sessions whose turn waits for `startRecovered`. */
    readonly waitingForStart: () => ReadonlyArray<string>
    /** Ends turns and subscriptions; the services of the layer end with its scope. Idempotent. */
    readonly shutdown: (options?: DisposeOptions) => Effect.Effect<void>
    readonly disposed: () => boolean
  }
>()("@tackroom/sdk/runtime/AgentRuntime") {
  /**
   * All services of a runtime. Closing the layer's scope is `shutdown` with turns cancelled, unless it was called before.
   *
   * @throws RuntimeOptionInvalid, HarnessDuplicate at once
   */
  static readonly layer = (
    options: AgentRuntimeOptions,
    embedder: EmbedderOptions = {}
  ): Layer.Layer<RuntimeServices> => compose(resolveOptions(options, embedder))

  static readonly layerNoDeps = Layer.effect(
    AgentRuntime,
    Effect.gen(function* () {
      const store = yield* Store
      const leases = yield* Leases
      const recovery = yield* Recovery
      const processes = yield* Processes
      const turns = yield* Turns
      const subscriptions = yield* Subscriptions
      const ready = Deferred.makeUnsafe<StoreInfo, RuntimeError>()
      const over = Deferred.makeUnsafe<void>()
      let closing = false

      const open = Effect.gen(function* () {
        const info = yield* store.open
        yield* processes.reap
        yield* recovery.pass
        return info
      })
      yield* Effect.forkScoped(Effect.flatMap(Effect.exit(open), (exit) => Deferred.done(ready, exit)))

      const shutdown = (how: DisposeOptions = {}): Effect.Effect<void> =>
        Effect.suspend(() => {
          if (closing) return Deferred.await(over)
          closing = true
          return Effect.uninterruptible(
            Effect.gen(function* () {
              yield* turns.stopAll(how.turns ?? "cancel")
              yield* subscriptions.closeAll
              yield* Effect.ignore(leases.unregister)
              yield* Deferred.succeed(over, undefined)
            })
          )
        })
      yield* Effect.addFinalizer(() => shutdown())

      return AgentRuntime.of({
        ready: Deferred.await(ready),
        startRecovered: (sessionId) => recovery.start(sessionId),
        waitingForStart: recovery.waiting,
        shutdown,
        disposed: () => closing
      })
    })
  )
}
