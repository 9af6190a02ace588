/**
 * Turns as the other parts and the callers see them (4.2): starting, waiting for and aborting them, and what a queue starts
 * next. It joins the parts that do it and decides only the order of a start.
 *
 * Implements RT-080, RT-111, RT-119, RT-147.
 *
 * @since 0.1.0
 */
import { RuntimeDisposed, ScopeMismatch, SessionNotFound, type RuntimeError } from "@tackroom/protocol"
import { Context, Effect, FiberSet, Layer } from "effect"
import type { OwnTurn } from "../harness/Harness.ts"
import type { QueueRow } from "../store/Rows.ts"
import type { StoreFailure } from "../store/RuntimeStore.ts"
import { Store } from "../store/Store.ts"
import { Aborting } from "./Aborting.ts"
import { ActiveTurns } from "./ActiveTurns.ts"
import {
  admissionOf,
  checkAttachments,
  checkPrompt,
  type Admission,
  type CheckedPrompt,
  type EmbeddedStart,
  type StartFailure,
  type StartTurn
} from "./Admission.ts"
import { Admitting } from "./Admitting.ts"
import { Hub } from "./Hub.ts"
import { Leases } from "./Leases.ts"
import { Minting } from "./Minting.ts"
import { NativeSessions } from "./NativeSessions.ts"
import { Options } from "./Options.ts"
import { Settling } from "./Settling.ts"
import { Steering } from "./Steering.ts"
import type { TurnPhase } from "./TurnFold.ts"
import { Waiting } from "./Waiting.ts"

export type { AbortResult } from "./Aborting.ts"
export type { Admission, EmbeddedStart, StartTurn } from "./Admission.ts"

/** Milliseconds after which a harness's own turn asks again for its place. */
const ownTurnRetryMs = 50

export class Turns extends Context.Service<
  Turns,
  {
    readonly start: (input: StartTurn, embedded?: EmbeddedStart) => Effect.Effect<Admission, StartFailure>
    readonly abort: Aborting["Service"]["abort"]
    readonly wait: Waiting["Service"]["wait"]
    readonly whenIdle: Waiting["Service"]["whenIdle"]
    /** What the session's turn is doing now; undefined when no turn runs here. */
    readonly phase: (sessionId: string) => TurnPhase | undefined
    /** Starts the first entry of a queue that may start (RT-111, RT-119). */
    readonly startNext: (sessionId: string) => Effect.Effect<void, StartFailure>
    readonly stopAll: (how: "cancel" | "leave") => Effect.Effect<void>
  }
>()("@tackroom/sdk/runtime/Turns") {
  static readonly layer = Layer.effect(
    Turns,
    Effect.gen(function* () {
      const store = yield* Store
      const hub = yield* Hub
      const actives = yield* ActiveTurns
      const settling = yield* Settling
      const natives = yield* NativeSessions
      const leases = yield* Leases
      const admitting = yield* Admitting
      const steering = yield* Steering
      const aborting = yield* Aborting
      const waiting = yield* Waiting
      const options = yield* Options
      const minting = yield* Minting
      const background = yield* FiberSet.make<void>()
      const fork = yield* FiberSet.runtime(background)()
      let stopping = false

      const directoryOf = (sessionId: string): Effect.Effect<string, StoreFailure | RuntimeError> =>
        Effect.suspend(() => {
          const facts = hub.facts(sessionId)
          if (facts !== undefined) return Effect.succeed(facts.directory)
          return Effect.flatMap(store.getSession(sessionId), (row) => {
            if (row === undefined) return Effect.fail(new SessionNotFound({ sessionId }))
            admitting.remember(row)
            return Effect.succeed(row.directory)
          })
        })

      const checkFiles = Effect.fnUntraced(function* (sessionId: string, checked: CheckedPrompt) {
        const row = yield* store.getSession(sessionId)
        if (row === undefined) return yield* new SessionNotFound({ sessionId })
        const driver = yield* natives.driver(row)
        const capabilities = yield* driver.capabilities({ directory: row.directory, sessionId })
        yield* checkAttachments(checked.parts, capabilities)
      })

      const start = Effect.fnUntraced(function* (
        input: StartTurn,
        embedded: EmbeddedStart = {}
      ): Effect.fn.Return<Admission, StartFailure> {
        if (stopping) return yield* new RuntimeDisposed({})
        yield* leases.register
        const { sessionId, onAdmitted } = input
        const own = embedded.own === true
        const checked = yield* checkPrompt(input, own)
        const directory = yield* directoryOf(sessionId)
        if (input.directory !== undefined && input.directory !== directory)
          return yield* new ScopeMismatch({ sessionId })
        if (checked.hasFiles) yield* checkFiles(sessionId, checked)
        const messageId = checked.prompt.messageId ?? minting.messageId()
        const entry = yield* admitting.message(sessionId, messageId, checked, "start")
        const committed = yield* admitting.admit(
          {
            sessionId,
            checked,
            messageId,
            origin: embedded.origin ?? "user",
            entry,
            fromQueue: false,
            fallback: false,
            own
          },
          embedded,
          onAdmitted
        )
        const outcome = committed.value
        if (outcome._tag === "Duplicate" && outcome.receipt.state === "steering") {
          return yield* steering.lost(outcome.receipt, checked, directory)
        }
        if (outcome._tag !== "Steering") return admissionOf(outcome, directory)
        return yield* steering.hand(outcome, checked, directory, own)
      })

      const startEntry = Effect.fnUntraced(function* (row: QueueRow): Effect.fn.Return<void, StartFailure> {
        const checked: CheckedPrompt = { prompt: row.prompt, parts: row.parts, digest: row.digest, hasFiles: false }
        const entry = yield* admitting.message(row.sessionId, row.messageId, checked, "queue")
        yield* admitting.admit(
          {
            sessionId: row.sessionId,
            checked,
            messageId: row.messageId,
            origin: "queue",
            entry,
            fromQueue: true,
            fallback: false,
            own: true
          },
          options.embedder.admissionOps === undefined
            ? {}
            : { ops: (outcome) => options.embedder.admissionOps?.(row.sessionId, outcome) ?? [] }
        )
      })

      const startNext = Effect.fnUntraced(function* (sessionId: string): Effect.fn.Return<void, StartFailure> {
        if (stopping) return
        const queue = yield* store.queue(sessionId)
        const first = queue.entries[0]
        if (first === undefined || queue.held !== null) return
        yield* Effect.catchTags(startEntry(first), {
          // Somebody else started it, or a turn runs: it starts after that.
          SessionTurnInProgress: () => Effect.void,
          SessionRecovering: () => Effect.void
        })
      })

      // ------------------------------------------------------------ turns of the harness's own

      /** A turn runs, or a queued message is about to start one: a harness's own turn comes after that (RT-147). */
      const afterOthers = <A>(
        sessionId: string,
        admit: Effect.Effect<A, StartFailure>
      ): Effect.Effect<A, StartFailure> =>
        Effect.catchTags(admit, {
          SessionTurnInProgress: () =>
            waiting
              .whenIdle(sessionId)
              .pipe(
                Effect.andThen(Effect.sleep(ownTurnRetryMs)),
                Effect.andThen(Effect.suspend(() => afterOthers(sessionId, admit)))
              )
        })

      const begin = Effect.fnUntraced(function* (
        sessionId: string,
        own: OwnTurn
      ): Effect.fn.Return<void, StartFailure> {
        if (stopping) return
        const row = yield* store.getSession(sessionId)
        if (row === undefined) return yield* new SessionNotFound({ sessionId })
        yield* afterOthers(
          sessionId,
          Effect.suspend(() =>
            stopping
              ? Effect.fail(new RuntimeDisposed({}))
              : admitting.admit({
                  sessionId,
                  checked: { prompt: {}, parts: [], digest: "", hasFiles: false },
                  messageId: minting.messageId(),
                  origin: own.origin,
                  entry: undefined,
                  fromQueue: false,
                  fallback: false,
                  own: true,
                  begun: {
                    run: own.run,
                    assistantId: minting.messageId(),
                    parentMessageId: own.parentMessageId ?? row.lastTurn?.messageId
                  }
                })
          )
        )
      })

      natives.beginWith((sessionId, own) =>
        begin(sessionId, own).pipe(
          Effect.catch((error) =>
            error._tag === "RuntimeDisposed"
              ? Effect.void
              : Effect.logWarning("A turn that a harness began could not be admitted", error)
          )
        )
      )

      settling.onSettled((sessionId, next) => {
        if (next === undefined || stopping) return
        fork(
          startNext(sessionId).pipe(
            Effect.catch((error) => Effect.logWarning("A queued message could not start", error))
          )
        )
      })

      return Turns.of({
        start,
        abort: aborting.abort,
        wait: waiting.wait,
        whenIdle: waiting.whenIdle,
        phase: (sessionId) => actives.get(sessionId)?.phase(),
        startNext,
        stopAll: (how) =>
          Effect.suspend(() => {
            stopping = true
            return aborting.stopAll(how)
          })
      })
    })
  )
}
