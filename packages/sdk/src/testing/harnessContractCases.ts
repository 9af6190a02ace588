/** The cases of the driver contract, over the real runtime. */
import type { Envelope } from "@tackroom/protocol/events"
import { isTerminalType } from "@tackroom/protocol/events"
import { Data, Deferred, Effect, Stream, type Scope } from "effect"
import type { HarnessCapabilities } from "../harness/Capabilities.ts"
import { Barrier, type HarnessDriver, type HarnessFactory, type HarnessItem } from "../harness/Harness.ts"
import { HarnessRegistry } from "../runtime/HarnessRegistry.ts"
import { AgentRuntime, type RuntimeServices } from "../runtime/AgentRuntime.ts"
import { Events } from "../runtime/Events.ts"
import { Interactions, type Response } from "../runtime/Interactions.ts"
import { openInputOf } from "../runtime/NativeSessions.ts"
import { Sessions } from "../runtime/Sessions.ts"
import { isEnvelope } from "../runtime/Subscriptions.ts"
import { Turns } from "../runtime/Turns.ts"
import type { RuntimeStore } from "../store/RuntimeStore.ts"
import type { HarnessCase, HarnessKitOptions, HarnessPeer, HarnessScene, HarnessVerdict } from "./harnessContract.ts"

class Broken extends Data.TaggedError("Broken")<{ readonly message: string }> {}

const check = (holds: boolean, message: string): Effect.Effect<void, Broken> =>
  holds ? Effect.void : Effect.fail(new Broken({ message }))

const pass: HarnessVerdict = { verdict: "pass" }
const skip = (reason: string): HarnessVerdict => ({ verdict: "skip", reason })

/** Records what each turn's stream emits, and whether it ended. */
const recording = (factory: HarnessFactory) => {
  const items: Array<Exclude<HarnessItem, Barrier>> = []
  const counts = { runs: 0 }
  const over = Deferred.makeUnsafe<void>()
  const listen = <E>(stream: Stream.Stream<HarnessItem, E>): Stream.Stream<HarnessItem, E> => {
    counts.runs += 1
    return stream.pipe(
      Stream.tap((item) =>
        Effect.sync(() => {
          if (!(item instanceof Barrier)) items.push(item)
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
  return { factory: recorded, items, counts, over: Deferred.await(over) }
}

type Recorder = ReturnType<typeof recording>

interface Scene {
  readonly store: RuntimeStore
  readonly recorder: Recorder
  readonly capabilities: HarnessCapabilities
  readonly driver: HarnessDriver
}

/** The bound of every case; a driver that hangs fails. */
const caseMs = 30_000

export const harnessCases = (factory: HarnessFactory, options: HarnessKitOptions): ReadonlyArray<HarnessCase> => {
  const { directory, peer } = options
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

  const terminals = (events: ReadonlyArray<Envelope>, turnId: string | undefined): number =>
    events.filter((event) => event.turnId === turnId && isTerminalType(event.payload.type)).length

  const sceneFor = (name: keyof HarnessPeer): HarnessScene | undefined => peer[name]

  return [
    make(
      "HRN-001",
      "what is not declared fails as unsupported, never with an empty answer",
      ({ capabilities, driver }) =>
        Effect.gen(function* () {
          const calls: ReadonlyArray<
            readonly [keyof HarnessCapabilities, Effect.Effect<unknown, { readonly _tag: string }>]
          > = [
            ["models", driver.models(directory)],
            ["configOptions", driver.configOptions(directory)],
            ["commands", driver.commands(directory)]
          ]
          for (const [name, call] of calls) {
            if (declared(capabilities, name)) continue
            const result = yield* Effect.result(call)
            yield* check(
              result._tag === "Failure" && result.failure._tag === "UnsupportedOperation",
              `${name} is not declared, and its call did not fail as unsupported`
            )
          }
        })
    ),
    make(
      "HRN-002",
      "every declared capability has a scene that shows it, and its call works",
      ({ capabilities, driver }) =>
        Effect.gen(function* () {
          yield* check(
            capabilities.harness === factory.id && capabilities.access === factory.access,
            "the capabilities name another harness"
          )
          const shown: ReadonlyArray<readonly [keyof HarnessCapabilities, keyof HarnessPeer]> = [
            ["permissions", "permission"],
            ["questions", "question"],
            ["abort", "long"]
          ]
          for (const [name, scene] of shown) {
            yield* check(
              !declared(capabilities, name) || sceneFor(scene) !== undefined,
              `${name} is declared without a scene`
            )
          }
          if (capabilities.models) yield* driver.models(directory)
          if (capabilities.configOptions) yield* driver.configOptions(directory)
          if (capabilities.commands) yield* driver.commands(directory)
        })
    ),
    make("HRN-003", "opening one session id twice gives one native session", ({ driver }) =>
      Effect.gen(function* () {
        const session = yield* create(peer.hello, "kit-open")
        const row = yield* Effect.flatMap(Effect.service(Sessions), (sessions) => sessions.row(session.id))
        const first = yield* driver.openSession(openInputOf(row))
        const second = yield* driver.openSession(openInputOf(row))
        yield* check(first.upstreamSessionId === second.upstreamSessionId, "two native sessions were made")
      })
    ),
    make(
      "HRN-004",
      "resuming opens exactly the bound conversation",
      ({ driver, store }) =>
        Effect.gen(function* () {
          const session = yield* create(peer.hello)
          yield* start(session.id, peer.hello)
          yield* wait(session.id)
          const binding = yield* store.binding(session.id)
          if (binding === undefined) return yield* new Broken({ message: "the session has no binding" })
          const resumed = yield* driver.resumeSession(binding)
          yield* check(resumed.upstreamSessionId === binding.upstreamSessionId, "another conversation was opened")
        }),
      "resume"
    ),
    make("HRN-009", "a turn has exactly one terminal event, and then its stream ends", ({ recorder }) =>
      Effect.gen(function* () {
        const session = yield* create(peer.hello)
        const admission = yield* start(session.id, peer.hello)
        const outcome = yield* wait(session.id)
        yield* check(outcome.status === "completed", `the turn ended ${outcome.status}`)
        yield* check(terminals(yield* journal(session.id), admission.turnId) === 1, "not exactly one terminal event")
        const ended = yield* Effect.timeoutOption(recorder.over, 5_000)
        yield* check(ended._tag === "Some", "the stream did not end after its terminal event")
        const emitted = recorder.items.filter((item) => isTerminalType(item.type)).length
        yield* check(emitted === 1, `the driver emitted ${emitted} terminal events`)
        yield* check(
          recorder.items.some((item) => item.type === "text-delta" || item.type === "text-end"),
          "the turn said nothing"
        )
      })
    ),
    make("HRN-012", "a second prompt goes to the harness after the first turn only", ({ recorder }) =>
      Effect.gen(function* () {
        const turns = yield* Turns
        const session = yield* create(peer.hello)
        yield* start(session.id, peer.hello)
        yield* turns.start({ sessionId: session.id, messageId: "kit-2", text: peer.hello.prompt, delivery: "queue" })
        yield* wait(session.id, "kit-1")
        yield* wait(session.id, "kit-2")
        yield* check(recorder.counts.runs === 2, `${recorder.counts.runs} prompts were sent`)
      })
    ),
    make("HRN-014", "one tool id is one call, with one end", () =>
      Effect.gen(function* () {
        const scene = peer.tool
        if (scene === undefined) return skip("the peer has no tool scene")
        const session = yield* create(scene)
        yield* start(session.id, scene)
        yield* answering(session.id, () => ({ decision: "allow_once" }))
        yield* wait(session.id)
        const events = yield* Events
        const calls = (yield* events.list(session.id)).flatMap((message) =>
          message.parts.flatMap((part) => (part.type === "tool" ? [part] : []))
        )
        yield* check(calls.length > 0, "no tool was called")
        yield* check(new Set(calls.map((part) => part.callId)).size === calls.length, "a call shows twice")
        yield* check(
          calls.every((part) => part.state.status !== "running" && part.state.status !== "pending"),
          "a call has no end"
        )
      })
    ),
    ...(["allow_once", "deny"] as const).map((decision) =>
      make(
        "HRN-070",
        `a permission answered ${decision} lets the turn come to an end`,
        () =>
          Effect.gen(function* () {
            const scene = peer.permission
            if (scene === undefined) return yield* new Broken({ message: "permissions are declared without a scene" })
            const session = yield* create(scene)
            const admission = yield* start(session.id, scene)
            const asked = yield* answering(session.id, () => ({ decision }))
            yield* wait(session.id)
            yield* check(asked.length > 0, "nothing was asked")
            yield* check(
              terminals(yield* journal(session.id), admission.turnId) === 1,
              "not exactly one terminal event"
            )
          }),
        "permissions"
      )
    ),
    make(
      "HRN-070",
      "a question that is answered lets the turn complete",
      () =>
        Effect.gen(function* () {
          const scene = peer.question
          if (scene === undefined) return yield* new Broken({ message: "questions are declared without a scene" })
          const interactions = yield* Interactions
          const session = yield* create(scene)
          yield* start(session.id, scene)
          const pending = Effect.flatMap(interactions.list({ sessionId: session.id }), ([first]) =>
            Effect.succeed(first)
          )
          const asked = yield* answering(session.id, () => ({ answers: [["Green"]] })).pipe(
            Effect.catch((error) => Effect.flatMap(pending, () => Effect.fail(error)))
          )
          const outcome = yield* wait(session.id)
          yield* check(asked.length > 0, "nothing was asked")
          yield* check(outcome.status === "completed", `the turn ended ${outcome.status}`)
        }),
      "questions"
    ),
    ...[0, 1, 5].map((delay) =>
      make(
        "HRN-070",
        `a cancel after ${delay} ms leaves one terminal event`,
        () =>
          Effect.gen(function* () {
            const scene = peer.long ?? peer.hello
            const turns = yield* Turns
            const session = yield* create(scene)
            const admission = yield* start(session.id, scene)
            if (delay > 0) yield* Effect.sleep(delay)
            const answer = yield* turns.abort(session.id)
            yield* check(answer.ok, "the cancel did not settle the turn")
            yield* wait(session.id)
            yield* check(
              terminals(yield* journal(session.id), admission.turnId) === 1,
              "not exactly one terminal event"
            )
          }),
        "abort"
      )
    ),
    make(
      "HRN-070",
      "a cancel during an ask withdraws it and cancels the turn",
      () =>
        Effect.gen(function* () {
          const scene = peer.permission ?? peer.question
          if (scene === undefined) return skip("the peer asks nothing")
          const turns = yield* Turns
          const events = yield* Events
          const interactions = yield* Interactions
          const session = yield* create(scene)
          const subscription = events.subscribe({ sessionId: session.id })
          yield* start(session.id, scene)
          let waits = true
          while (waits) {
            const item = yield* subscription.next
            if (item === undefined || !isEnvelope(item)) continue
            waits = item.payload.type !== "permission-request" && item.payload.type !== "question"
          }
          yield* subscription.close
          yield* turns.abort(session.id)
          const outcome = yield* wait(session.id)
          yield* check(outcome.status === "cancelled", `the turn ended ${outcome.status}`)
          const left = yield* interactions.list({ sessionId: session.id })
          yield* check(left.length === 0, "an ask is still pending")
        }),
      "abort"
    ),
    make("HRN-070", "a turn that fails is failed, with a code", () =>
      Effect.gen(function* () {
        const scene = peer.failure
        if (scene === undefined) return skip("the peer has no failing scene")
        const session = yield* create(scene)
        yield* start(session.id, scene)
        const outcome = yield* wait(session.id)
        yield* check(outcome.status === "failed", `the turn ended ${outcome.status}`)
      })
    ),
    make("HRN-011", "health is told without starting anything", ({ driver, recorder }) =>
      Effect.gen(function* () {
        const health = yield* driver.health(directory)
        yield* check(["ok", "degraded", "unavailable"].includes(health.status), "an unknown status")
        yield* check(recorder.counts.runs === 0, "a turn was run")
      })
    )
  ]
}

/** Whether a capability is declared. */
const declared = (capabilities: HarnessCapabilities, name: keyof HarnessCapabilities): boolean => {
  const value = capabilities[name]
  return value !== false && value !== "none" && value !== "unsupported"
}
