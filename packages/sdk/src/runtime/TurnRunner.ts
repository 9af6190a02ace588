/**
 * Runs one admitted turn: gets the harness's session, hands the prompt over, and takes the driver's stream into the
 * journal. It decides no admission; `Settling` writes the end.
 *
 * `handedOver` is committed before the driver sees the prompt. When the harness's session is open and a place is free, it
 * is part of the admission's own transaction, because the hand-over is then the very next step; otherwise it is a commit of
 * its own. So the first row of table 5.6 applies to turns that had to wait for something, and a turn that is marked may in
 * rare cases not have reached its driver: it is then treated as handed over, which repeats nothing (RT-171).
 *
 * Implements RT-146 to RT-148, RT-151, RT-162, RT-171.
 *
 * @since 0.1.0
 */
import { HarnessTimeout, type HarnessError } from "@tackroom/protocol"
import { isTerminal, type EventPayload, type HarnessEvent } from "@tackroom/protocol/events"
import { Context, Deferred, Effect, Exit, Fiber, FiberSet, Layer, Stream } from "effect"
import { Barrier, Positioned, type HarnessItem, type TurnInput, type TurnLost } from "../harness/Harness.ts"
import { outranks } from "../store/Projection.ts"
import { Store } from "../store/Store.ts"
import { ActiveTurns, type ActiveTurn, type Opened, type Stop } from "./ActiveTurns.ts"
import { Asks } from "./Asks.ts"
import { Cancelling } from "./Cancelling.ts"
import { Journal } from "./Journal.ts"
import { Minting } from "./Minting.ts"
import { NativeSessions } from "./NativeSessions.ts"
import { Options } from "./Options.ts"
import { makePlaces, type Places } from "./Places.ts"
import { Settling, toolEnd } from "./Settling.ts"
import { endOf, openFailed } from "./StreamEnds.ts"
import { isLost } from "./StoreTrouble.ts"
import { backlogLimit } from "./TurnLog.ts"
import { makeBudgets } from "./TurnBudgets.ts"
import type { StreamEnd } from "./TurnMachine.ts"

export class TurnRunner extends Context.Service<
  TurnRunner,
  {
    /** Runs the turn to its end. Never fails: what goes wrong is the turn's outcome, or the turn is lost. */
    readonly run: (active: ActiveTurn, hasPlace: boolean) => Effect.Effect<void>
    /** Settles a turn that no driver works on: recovery, and what dispose could not end. */
    readonly finish: (active: ActiveTurn, end: StreamEnd) => Effect.Effect<void>
    readonly places: Places
  }
>()("@tackroom/sdk/runtime/TurnRunner") {
  static readonly layer = Layer.effect(
    TurnRunner,
    Effect.gen(function* () {
      const store = yield* Store
      const journal = yield* Journal
      const actives = yield* ActiveTurns
      const natives = yield* NativeSessions
      const asks = yield* Asks
      const settling = yield* Settling
      const budgets = makeBudgets({ cancelling: yield* Cancelling, minting: yield* Minting })
      const options = yield* Options
      const streams = yield* FiberSet.make<void, unknown>()
      const forkStream = yield* FiberSet.runtime(streams)()
      const places = makePlaces(options.maxActiveTurns)

      /** One event of the driver as it is journaled: ids are the admission's (RT-148), titles keep their rank. */
      const normal = (active: ActiveTurn, event: HarnessEvent): HarnessEvent | undefined => {
        switch (event.type) {
          case "text-delta":
          case "thinking-delta":
          case "text-end":
            return event.messageId === active.turn.assistantId
              ? event
              : { ...event, messageId: active.turn.assistantId }
          // Liveness is the runtime's to say (RT-151).
          case "session-status":
            return undefined
          case "session-title":
            return outranks(event.titleSource, active.session.titleSource) ? event : undefined
          default:
            return event
        }
      }

      const firstEvent = (active: ActiveTurn): Effect.Effect<void> =>
        Effect.suspend(() => {
          if (active.mode !== "recover" || active.turn.recoveries === 0) return Effect.void
          active.turn = { ...active.turn, recoveries: 0 }
          // A sign of progress: the count of recoveries starts again (RUN-523).
          return Effect.ignore(active.log.patch({ turn: { recoveries: 0 } }))
        })

      const take = (active: ActiveTurn, items: ReadonlyArray<HarnessItem>, from = 0): Effect.Effect<void> =>
        Effect.suspend(() => {
          for (let i = from; i < items.length; i++) {
            const whole = items[i]
            if (whole === undefined) continue
            const item = whole instanceof Positioned ? whole.event : whole
            if (item instanceof Barrier) {
              const reached = Effect.flatMap(Effect.exit(active.log.flush), (exit) =>
                // A log that cannot be written ends the turn; a driver must not act on an unwritten record.
                Exit.isSuccess(exit) ? Deferred.done(item.committed, Exit.void) : Effect.never
              )
              return Effect.flatMap(reached, () => take(active, items, i + 1))
            }
            if (active.ending) return late(active, items.slice(i))
            if (isTerminal(item)) {
              return Effect.flatMap(settling.settle(active, { _tag: "Terminal", event: item }), () =>
                take(active, items, i + 1)
              )
            }
            const event = normal(active, item)
            if (event === undefined) continue
            active.log.accept(event, whole instanceof Positioned ? whole.peerCursor : undefined)
            if (event.type === "response-start" || event.type === "usage") budgets.tooMany(active)
            if (active.turn.recoveries > 0 && !(event.type === "harness-notice" && event.code === "turn_resumed")) {
              return Effect.flatMap(firstEvent(active), () => take(active, items, i + 1))
            }
          }
          return active.log.backlog() > backlogLimit ? Effect.ignore(active.log.flush) : Effect.void
        })

      /** Output after the end joins that turn's message and changes no outcome (RT-146). */
      const late = (active: ActiveTurn, items: ReadonlyArray<HarnessItem>): Effect.Effect<void> => {
        const payloads: Array<EventPayload> = []
        for (const whole of items) {
          const item = whole instanceof Positioned ? whole.event : whole
          if (item instanceof Barrier) Deferred.doneUnsafe(item.committed, Exit.void)
          else if (!isTerminal(item) && item.type !== "session-status" && active.turn.state === "settled") {
            const event = normal(active, item)
            if (event !== undefined) payloads.push(event)
          }
        }
        if (payloads.length === 0) return Effect.void
        return journal
          .outside(active.session.id, payloads, { afterTurn: active.turn.id })
          .pipe(Effect.catch((error) => Effect.logWarning("Late output could not be journaled", error)))
      }

      const inputOf = (active: ActiveTurn, opened: Opened, freshContext: boolean): TurnInput => ({
        binding: opened.binding,
        turnId: active.turn.id,
        messageId: active.turn.messageId,
        assistantMessageId: active.turn.assistantId,
        prompt: active.turn.prompt,
        config: active.session.config,
        origin: active.turn.origin,
        freshContext,
        startCursor: active.turn.startSeq,
        ...(active.turn.peerCursor === null ? {} : { peerCursor: active.turn.peerCursor }),
        roundFits: budgets.roundFits(active)
      })

      // ------------------------------------------------------------ one turn

      const handOver = Effect.fnUntraced(function* (active: ActiveTurn) {
        if (active.turn.handedOver) return
        yield* active.log.patch({ turn: { handedOver: true, state: "running" }, session: { phase: "running" } })
        active.turn = { ...active.turn, handedOver: true, state: "running" }
      })

      const prepareDriver = Effect.fnUntraced(function* (active: ActiveTurn) {
        const { opened, reset } = yield* natives.ensure(active.session, {
          fresh: active.turn.prompt.allowFreshContext === true
        })
        active.opened = opened
        if (reset) active.log.accept({ type: "conversation-reset", trigger: "session_missing" })
        return reset
      })

      const firstEventTimer = (active: ActiveTurn): Effect.Effect<never, HarnessTimeout> => {
        const limit = options.firstEventTimeoutMs
        if (limit === null) return Effect.never
        const before = active.log.fold.events
        return Effect.flatMap(Effect.sleep(limit), () =>
          active.log.fold.events > before
            ? Effect.never
            : Effect.fail(new HarnessTimeout({ harness: active.session.harnessId, operation: "runTurn" }))
        )
      }

      const drive = Effect.fnUntraced(function* (active: ActiveTurn) {
        // A turn whose end has begun is not given to anybody; the ladder tells when it may be settled.
        if (active.cancelState._tag !== "Idle") return yield* Effect.never
        const ensured = yield* Effect.result(prepareDriver(active))
        if (ensured._tag === "Failure") return yield* settling.settle(active, openFailed(ensured.failure))
        const opened = active.opened
        if (opened === undefined || active.cancelState._tag !== "Idle") return yield* Effect.never
        if (active.mode === "recover") {
          active.recovering = false
          const phase = active.pendingAsks > 0 ? "waiting" : "running"
          active.log.add({ type: "session-status", status: "busy", phase })
          yield* active.log.patch({ turn: { state: "running" }, session: { status: "busy", phase } })
        } else yield* handOver(active)
        if (active.cancelState._tag !== "Idle") return yield* Effect.never
        // From here on the harness may have the prompt.
        active.handed = true
        const input = inputOf(active, opened, ensured.success)
        const stream: Stream.Stream<HarnessItem, HarnessError | TurnLost> =
          active.mode === "recover"
            ? opened.driver.recoverTurn(input)
            : active.begun === undefined
              ? opened.driver.runTurn(input)
              : active.begun(input)
        const consumed = Stream.runForEachArray(stream, (items) => take(active, items))
        const exit = yield* Effect.exit(
          options.firstEventTimeoutMs === null ? consumed : Effect.raceFirst(consumed, firstEventTimer(active))
        )
        Deferred.doneUnsafe(active.streamOver, Exit.void)
        if (active.ending) return
        yield* settling.settle(active, endOf(exit))
      })

      const startReoffer = (active: ActiveTurn): Effect.Effect<void> =>
        active.mode === "recover" && active.pendingAsks > 0
          ? Effect.flatMap(Effect.sleep(options.reofferMs), () => Effect.ignore(asks.withdrawUnoffered(active)))
          : Effect.void

      const afterStop = Effect.fnUntraced(function* (
        active: ActiveTurn,
        stop: Stop,
        worker: Fiber.Fiber<unknown, unknown>
      ) {
        switch (stop._tag) {
          case "Cancelled":
          case "Budget":
            worker.interruptUnsafe()
            return yield* settling.settle(active, { _tag: "Quiet" })
          case "StoreDown":
            worker.interruptUnsafe()
            return yield* settling.settle(active, {
              _tag: "Failed",
              code: "store_unavailable",
              message: "The store could not be written"
            })
          case "Lost":
            active.ending = true
            actives.remove(active)
            active.log.close()
            worker.interruptUnsafe()
            yield* Effect.logWarning("A session was taken over; its turn is left", stop.error)
            yield* Effect.ignore(Effect.timeoutOption(natives.close(active.session.id), 5_000))
            return
          case "Left":
            return yield* leave(active, worker)
        }
      })

      /** The runtime closes and the turn stays open in the journal (RT-028). */
      const leave = Effect.fnUntraced(function* (active: ActiveTurn, worker: Fiber.Fiber<unknown, unknown>) {
        const first = !active.ending
        active.ending = true
        yield* Effect.timeoutOption(Fiber.interrupt(worker), 3_000)
        actives.remove(active)
        if (!first) return
        yield* active.log.quiet
        active.log.closeParts()
        // A call that was not started is still to be decided; whoever takes the turn up goes on there (RUN-520).
        for (const [toolCallId, tool] of active.log.fold.openTools)
          if (tool.started) active.log.add(toolEnd(toolCallId, tool, false))
        yield* Effect.ignore(active.log.flush)
        yield* Effect.ignore(store.releaseLease(active.session.id, active.lease.leaseId))
      })

      const writer = (active: ActiveTurn): Effect.Effect<void> =>
        active.log.run.pipe(
          Effect.catch((error) =>
            Effect.sync(() => {
              Deferred.doneUnsafe(
                active.stop,
                Exit.succeed(isLost(error) ? { _tag: "Lost", error } : { _tag: "StoreDown", error })
              )
            })
          )
        )

      const run = (active: ActiveTurn, hasPlace: boolean): Effect.Effect<void> =>
        Effect.gen(function* () {
          active.launched = true
          let placed = hasPlace
          const writing = yield* Effect.forkChild(writer(active))
          const body = Effect.gen(function* () {
            if (!placed) {
              active.queued = true
              yield* places.wait
              placed = true
              active.queued = false
            }
            yield* drive(active)
          })
          // The stream's fiber is not a child: a driver that is slow to clean up holds nobody up (RT-151).
          const worker = forkStream(body)
          const timing =
            active.budget?.wallMs === undefined && active.budget?.activeMs === undefined
              ? undefined
              : yield* Effect.forkChild(budgets.timers(active))
          yield* Effect.forkChild(startReoffer(active))
          const ended = yield* Effect.raceFirst(
            Effect.map(Fiber.await(worker), (exit) => ({ _tag: "Worker", exit }) as const),
            Effect.map(Deferred.await(active.stop), (stop) => ({ _tag: "Stop", stop }) as const)
          )
          Deferred.doneUnsafe(active.streamOver, Exit.void)
          if (ended._tag === "Stop") yield* afterStop(active, ended.stop, worker)
          else if (!active.ending) {
            yield* settling.settle(
              active,
              Exit.isSuccess(ended.exit)
                ? { _tag: "Quiet" }
                : yield* Effect.as(
                    Effect.logError("A driver failed", Exit.isFailure(ended.exit) ? ended.exit.cause : undefined),
                    { _tag: "Defect" } as const
                  )
            )
          }
          yield* Fiber.interrupt(writing)
          if (timing !== undefined) yield* Fiber.interrupt(timing)
          return placed
        }).pipe(
          Effect.catchCause((cause) => Effect.as(Effect.logError("A turn's runner failed", cause), hasPlace)),
          Effect.flatMap((placed) =>
            Effect.sync(() => {
              if (placed) places.release()
              active.log.close()
              actives.remove(active)
              Deferred.doneUnsafe(active.gone, Exit.void)
            })
          )
        )

      return TurnRunner.of({
        run,
        finish: (active, end) =>
          Effect.ensuring(
            settling.settle(active, end),
            Effect.sync(() => {
              active.log.close()
              actives.remove(active)
              Deferred.doneUnsafe(active.gone, Exit.void)
            })
          ),
        places
      })
    })
  )
}
