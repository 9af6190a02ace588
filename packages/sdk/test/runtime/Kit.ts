/** Runtimes over every store, for the tests of this folder. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Deferred, Effect, Layer, Scope, Exit, Context } from "effect"
import {
  AgentRuntime,
  type AgentRuntimeOptions,
  type EmbedderOptions,
  type RuntimeServices,
  Events,
  Sessions,
  Turns
} from "../../src/effect.ts"
import type { Envelope, EventPayload } from "@tackroom/protocol/events"
import type { RuntimeStore } from "../../src/store/RuntimeStore.ts"
import { createMemoryRuntimeStore } from "../../src/store/memory/index.ts"
import { createSqliteRuntimeStore } from "../../src/store/sqlite/index.ts"
import { isEnvelope } from "../../src/effect.ts"
import { programmable, type Programmable } from "./Programmable.ts"

export const harness = { id: "test", access: "native" } as const

/** A directory that is gone when the scope ends. */
export const directory: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "tackroom-")))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

export interface StoreKind {
  readonly name: "memory" | "sqlite"
  readonly make: (root: string) => RuntimeStore
}

export const stores: ReadonlyArray<StoreKind> = [
  { name: "memory", make: () => createMemoryRuntimeStore() },
  { name: "sqlite", make: (root) => createSqliteRuntimeStore({ root: join(root, "state") }) }
]

export interface Rig {
  readonly root: string
  readonly store: RuntimeStore
  readonly driver: Programmable
}

/** Runs a program in a runtime over a fresh store. */
export const within = <A, E>(
  kind: StoreKind,
  driver: Programmable,
  program: (rig: Rig) => Effect.Effect<A, E, RuntimeServices | Scope.Scope>,
  options: Partial<AgentRuntimeOptions> = {},
  embedder: EmbedderOptions = {}
): Effect.Effect<A, E> =>
  Effect.scoped(
    Effect.gen(function* () {
      const root = yield* directory
      const store = kind.make(root)
      yield* Effect.addFinalizer(() => store.close)
      const layer = AgentRuntime.layer({ store, harnesses: [driver.factory], ...options }, embedder)
      return yield* Effect.scoped(program({ root, store, driver })).pipe(Effect.provide(layer))
    })
  )

/** Runs a program with a fresh store, for tests that open runtimes on it themselves. */
export const scene = <A, E>(
  kind: StoreKind,
  program: (root: string, store: RuntimeStore) => Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.scoped(
    Effect.gen(function* () {
      const root = yield* directory
      const store = kind.make(root)
      yield* Effect.addFinalizer(() => store.close)
      return yield* program(root, store)
    })
  )

/** A runtime whose end the test decides: to leave turns, or to open another on the same store. */
export const openRuntime = Effect.fnUntraced(function* (
  store: RuntimeStore,
  driver: Programmable,
  options: Partial<AgentRuntimeOptions> = {},
  embedder: EmbedderOptions = {}
) {
  const scope = Scope.makeUnsafe()
  const services = yield* Layer.buildWithScope(
    AgentRuntime.layer({ store, harnesses: [driver.factory], ...options }, embedder),
    scope
  )
  const life = Context.get(services, AgentRuntime)
  return {
    services,
    life,
    close: (how: "cancel" | "leave" = "cancel") =>
      Effect.andThen(life.shutdown({ turns: how }), Scope.close(scope, Exit.void)),
    run: <A, E>(program: Effect.Effect<A, E, RuntimeServices>): Effect.Effect<A, E> => Effect.provide(program, services)
  }
})

export const create = (root: string, more: Record<string, unknown> = {}) =>
  Effect.flatMap(Effect.service(Sessions), (sessions) =>
    sessions.create({ directory: root, harness, title: "t", ...more })
  )

export const start = (sessionId: string, messageId: string, text = "go", more: Record<string, unknown> = {}) =>
  Effect.flatMap(Effect.service(Turns), (turns) => turns.start({ sessionId, messageId, text, ...more }))

export const outcome = (sessionId: string, messageId: string) =>
  Effect.flatMap(Effect.service(Turns), (turns) => turns.wait(sessionId, messageId))

export const journal = (sessionId: string) =>
  Effect.flatMap(Effect.service(Events), (events) =>
    Effect.map(events.read(sessionId, { limit: 1000 }), (page) => page.events)
  )

export const types = (events: ReadonlyArray<Envelope>): ReadonlyArray<string> =>
  events.map((event) => event.payload.type)

/** Waits, on a live subscription, for an event; it must be made before what causes the event. */
export const until = (
  sessionId: string,
  wanted: (payload: EventPayload, envelope: Envelope) => boolean,
  after?: number
): Effect.Effect<Effect.Effect<Envelope>, never, Events> =>
  Effect.map(Effect.service(Events), (events) => {
    const subscription = events.subscribe({ sessionId, ...(after === undefined ? {} : { after }) })
    return Effect.gen(function* () {
      while (true) {
        const item = yield* Effect.orDie(subscription.next)
        if (item === undefined) return yield* Effect.die("the subscription ended")
        if (isEnvelope(item) && wanted(item.payload, item)) {
          yield* subscription.close
          return item
        }
      }
    })
  })

/** A turn that tells when it began and goes on when it is let. */
export const gate = () => {
  const begun = Deferred.makeUnsafe<void>()
  const open = Deferred.makeUnsafe<void>()
  return {
    begun: Deferred.await(begun),
    release: Deferred.succeed(open, undefined),
    pass: Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(open))
  }
}

/** The code of the error an effect fails with. */
export const failing = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<string | undefined, never, R> =>
  Effect.map(Effect.exit(effect), (exit) => {
    const error = Exit.findErrorOption(exit)
    return error._tag === "Some" ? (error.value as { readonly code?: string }).code : undefined
  })

export { programmable }
