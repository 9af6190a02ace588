/** The cases of the driver contract, over the real runtime. */
import type { Envelope } from "@tackroom/protocol/events"
import { isTerminalType } from "@tackroom/protocol/events"
import { Effect } from "effect"
import type { HarnessCapabilities } from "../harness/Capabilities.ts"
import type { HarnessFactory } from "../harness/Harness.ts"
import { Config } from "../runtime/Config.ts"
import { Events } from "../runtime/Events.ts"
import { Interactions } from "../runtime/Interactions.ts"
import { openInputOf } from "../runtime/NativeSessions.ts"
import { Sessions } from "../runtime/Sessions.ts"
import { isEnvelope } from "../runtime/Subscriptions.ts"
import { Turns } from "../runtime/Turns.ts"
import type { HarnessCase, HarnessKitOptions, HarnessPeer, HarnessScene } from "./harnessContract.ts"
import { crashCases } from "./harnessContractCrashes.ts"
import { Broken, check, declared, makeBench, skip } from "./harnessContractKit.ts"

/** The cases of one harness. */
export const harnessCases = (factory: HarnessFactory, options: HarnessKitOptions): ReadonlyArray<HarnessCase> => {
  const { directory, peer } = options
  const bench = makeBench(factory, options)
  const { answering, create, journal, make, start, wait } = bench

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
          if (capabilities.mcp !== "none") {
            const sessions = yield* Sessions
            const gone = { type: "stdio", command: "/no/such/program" } as const
            const harness = { id: factory.id, access: factory.access }
            // An opening waits for no server, and fails for none.
            const opened = sessions.create({ ...peer.hello.session, directory, harness, mcp: { gone } })
            const result = yield* Effect.result(opened)
            yield* check(result._tag === "Success", "a session with a server that is not there was not opened")
          }
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
            if (scene === undefined) return skip("HRN-002 misses the scene")
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
          if (scene === undefined) return skip("HRN-002 misses the scene")
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
    make(
      "HRN-070",
      "asks that are pending together are answered in reverse, each as it was asked",
      () =>
        Effect.gen(function* () {
          const scene = peer.parallel
          if (scene === undefined) return skip("the peer asks for one thing at a time")
          const interactions = yield* Interactions
          const events = yield* Events
          const session = yield* create(scene)
          const subscription = events.subscribe({ sessionId: session.id, after: 0 })
          const admission = yield* start(session.id, scene)
          const asked: Array<string> = []
          while (asked.length < 2) {
            const item = yield* subscription.next
            if (item !== undefined && isEnvelope(item) && item.payload.type === "permission-request") {
              asked.push(item.payload.requestId)
            }
          }
          yield* subscription.close
          for (const [i, id] of asked.toReversed().entries()) {
            yield* interactions.respond(id, { decision: i === 0 ? "allow_once" : "deny" })
          }
          yield* answering(session.id, () => ({ decision: "allow_once" }))
          yield* wait(session.id)
          const all = yield* journal(session.id)
          yield* check(terminals(all, admission.turnId) === 1, "not exactly one terminal event")
          const decisions = all.flatMap(({ payload }) =>
            payload.type === "permission-resolved" && asked.includes(payload.requestId)
              ? [[payload.requestId, payload.decision] as const]
              : []
          )
          yield* check(
            asked.every((id, i) => decisions.some((made) => made[0] === id && (made[1] === "deny") === (i === 0))),
            "an answer went to another ask"
          )
        }),
      "permissions"
    ),
    make(
      "HRN-070",
      "a message steered into a running turn is taken or refused, never lost",
      () =>
        Effect.gen(function* () {
          const scene = peer.long
          if (scene === undefined) return skip("the peer has no long scene")
          const turns = yield* Turns
          const session = yield* create(scene)
          yield* start(session.id, scene)
          const steered = yield* turns.start({
            sessionId: session.id,
            messageId: "kit-steer",
            text: "and this",
            delivery: "steer"
          })
          yield* turns.abort(session.id)
          yield* wait(session.id)
          const receipt = yield* Effect.flatMap(Effect.service(Sessions), (sessions) =>
            sessions.receipt(session.id, "kit-steer")
          )
          const kept = steered.delivery === "steer" ? ["steered", "uncertain"] : ["queued", "admitted", "settled"]
          yield* check(kept.includes(receipt.state), `the message is ${receipt.state} after ${steered.delivery}`)
        }),
      "steer"
    ),
    make(
      "HRN-018",
      "a change of the model is accepted with the config it makes, or refused",
      ({ driver }) =>
        Effect.gen(function* () {
          const config = yield* Config
          const session = yield* create(peer.hello)
          const [model] = yield* driver.models(directory)
          if (model === undefined) return skip("the harness lists no model")
          const { modelID, providerID } = model
          const changed = yield* Effect.result(config.update(session.id, { model: { modelID, providerID } }))
          if (changed._tag === "Failure") {
            return yield* check(changed.failure._tag !== "Internal", "the change failed without a reason")
          }
          yield* check(changed.success.model?.modelID === modelID, "the answer names another model")
          const read = yield* config.read(session.id)
          yield* check(read.model?.modelID === modelID, "the change was not kept")
        }),
      "models"
    ),
    make("HRN-042", "opened and closed again and again it stays as it was", ({ driver, recorder }) =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const session = yield* create(peer.hello)
        yield* start(session.id, peer.hello)
        yield* wait(session.id)
        yield* recorder.idle
        const before = yield* driver.health(directory)
        for (let cycle = 0; cycle < 20; cycle++) {
          yield* sessions.close(session.id)
          yield* start(session.id, peer.hello, `kit-cycle-${cycle}`)
          yield* wait(session.id, `kit-cycle-${cycle}`)
        }
        yield* recorder.idle
        const after = yield* driver.health(directory)
        yield* check((after.sessions ?? 0) <= (before.sessions ?? 0), "something of a closed session is left")
      })
    ),
    ...crashCases(bench, peer),
    make("HRN-011", "health is told without starting anything", ({ driver, recorder }) =>
      Effect.gen(function* () {
        const health = yield* driver.health(directory)
        yield* check(["ok", "degraded", "unavailable"].includes(health.status), "an unknown status")
        yield* check(recorder.counts.runs === 0, "a turn was run")
      })
    )
  ]
}
