/**
 * Runs one admitted turn: gets the harness's session, hands the prompt over, takes the driver's stream into the journal,
 * and settles the turn with exactly one terminal event. It decides no admission and starts no queue; it tells what may
 * start next.
 *
 * `handedOver` is committed before the driver sees the prompt. When the harness's session is open and a place is free, it
 * is part of the admission's own transaction, because the hand-over is then the very next step; otherwise it is a commit of
 * its own. So the first row of table 5.6 applies to turns that had to wait for something, and a turn that is marked may in
 * rare cases not have reached its driver: it is then treated as handed over, which repeats nothing (RT-171).
 *
 * Implements RT-140 to RT-151, RT-162, RT-171, D-28.
 *
 * @since 0.1.0
 */
import { HarnessTimeout, isHarnessError, type HarnessError } from "@tackroom/protocol"
import {
  isTerminal,
  type EventPayload,
  type HarnessEvent,
  type TerminalEvent,
  type TurnFailureCode,
  type TurnOutcome
} from "@tackroom/protocol/events"
import { Cause, Context, Deferred, Effect, Exit, Fiber, FiberSet, Layer, Stream } from "effect"
import { Barrier, type HarnessItem, type TurnInput, type TurnLost } from "../harness/Harness.ts"
import { outranks } from "../store/Projection.ts"
import type { QueueRow } from "../store/Rows.ts"
import { Store } from "../store/Store.ts"
import { ActiveTurns, type ActiveTurn, type Opened, type Stop } from "./ActiveTurns.ts"
import { Cancelling } from "./Cancelling.ts"
import { Hub } from "./Hub.ts"
import { Interactions } from "./Interactions.ts"
import { backlogLimit, isBusy, isLost, Journal } from "./Journal.ts"
import { Minting, timestamp } from "./Minting.ts"
import { NativeSessions, type OpenFailure } from "./NativeSessions.ts"
import { Options } from "./Options.ts"
import { makePlaces, type Places } from "./Places.ts"
import { queueUpdate } from "./PublicRows.ts"
import { settle, type Ending, type StreamEnd } from "./TurnMachine.ts"

/** Told when a turn is settled; `next` is the first entry of an unheld queue (RT-111). */
export type AfterSettle = (sessionId: string, next: QueueRow | undefined) => void

export class TurnRunner extends Context.Service<
  TurnRunner,
  {
    /** Runs the turn to its end. Never fails: what goes wrong is the turn's outcome, or the turn is lost. */
    readonly run: (active: ActiveTurn, hasPlace: boolean) => Effect.Effect<void>
    /** Settles a turn that no driver works on: recovery, and what dispose could not end. */
    readonly finish: (active: ActiveTurn, end: StreamEnd) => Effect.Effect<void>
    readonly places: Places
    readonly onSettled: (listener: AfterSettle) => void
  }
>()("@tackroom/sdk/runtime/TurnRunner") {
  static readonly layer = Layer.effect(
    TurnRunner,
    Effect.gen(function* () {
      const store = yield* Store
      const journal = yield* Journal
      const hub = yield* Hub
      const actives = yield* ActiveTurns
      const natives = yield* NativeSessions
      const interactions = yield* Interactions
      const cancelling = yield* Cancelling
      const options = yield* Options
      const minting = yield* Minting
      const streams = yield* FiberSet.make<void, unknown>()
      const forkStream = yield* FiberSet.runtime(streams)()
      const places = makePlaces(options.maxActiveTurns)
      let afterSettle: AfterSettle = () => undefined

      // ------------------------------------------------------------ settling

      const terminalOf = (active: ActiveTurn, ending: Ending): TerminalEvent => {
        const assistantMessageId = active.turn.assistantId
        const sessionId = active.session.id
        switch (ending.status) {
          case "completed": {
            const finalText = ending.finalText ?? active.log.fold.lastText
            return {
              type: "finish",
              sessionId,
              assistantMessageId,
              reason: ending.reason,
              ...(finalText === undefined ? {} : { finalText })
            }
          }
          case "cancelled":
            return { type: "cancelled", sessionId, assistantMessageId, reason: ending.reason }
          case "failed": {
            const own = ending.event?.type === "error" ? ending.event : undefined
            return {
              type: "error",
              error: ending.message.slice(0, 2_000),
              code: ending.code,
              assistantMessageId,
              ...(own?.errorClass === undefined
                ? ending.errorClass === undefined
                  ? {}
                  : { errorClass: ending.errorClass as NonNullable<typeof own>["errorClass"] & string }
                : { errorClass: own.errorClass }),
              ...(own?.account === undefined ? {} : { account: own.account }),
              ...(own?.process === undefined ? {} : { process: own.process })
            }
          }
        }
      }

      const outcomeOf = (active: ActiveTurn, terminal: TerminalEvent): TurnOutcome => {
        const base = {
          turnId: active.turn.id,
          messageId: active.turn.messageId,
          assistantMessageId: active.turn.assistantId,
          completedAt: timestamp(minting.now())
        }
        switch (terminal.type) {
          case "finish":
            return { status: "completed", reason: terminal.reason, ...base }
          case "cancelled":
            return { status: "cancelled", reason: terminal.reason, ...base }
          case "error":
            return {
              status: "failed",
              error: {
                code: terminal.code,
                message: terminal.error,
                ...(terminal.errorClass === undefined ? {} : { errorClass: terminal.errorClass })
              },
              ...base
            }
        }
      }

      /** Commits the end. A store that cannot write is tried until it can; a lost session ends the attempt (STO-048). */
      const commitSettlement = Effect.fnUntraced(function* (
        active: ActiveTurn,
        terminal: TerminalEvent,
        outcome: TurnOutcome
      ) {
        const failed = outcome.status === "failed"
        const holdQueue = failed ? "turn_failed" : outcome.status === "cancelled" ? "turn_cancelled" : undefined
        active.log.add(terminal)
        active.log.add({ type: "session-status", status: failed ? "error" : "idle" }, { outsideTurn: true })
        const settleOps = options.embedder.settleOps
        const once = active.log.exclusive(
          (entries) =>
            store.settle(
              active.session.id,
              active.lease.fence,
              {
                turnId: active.turn.id,
                outcome,
                entries,
                session: { status: failed ? "error" : null, phase: null },
                ...(holdQueue === undefined
                  ? {}
                  : { holdQueue, holdEntries: (queue) => [{ payload: queueUpdate(queue) }] })
              },
              settleOps === undefined
                ? {}
                : {
                    ops: (settled) =>
                      settleOps({
                        session: active.session,
                        turn: active.turn,
                        outcome: settled.outcome,
                        head: settled.head,
                        lastText: terminal.type === "finish" ? terminal.finalText : active.log.fold.lastText
                      })
                  }
            ),
          {
            onCommit: ({ value }) => {
              active.turn = { ...active.turn, state: "settled", outcome: value.outcome }
              active.cancelState = { _tag: "Settled" }
              actives.remove(active)
            }
          }
        )
        let wait = 50
        while (true) {
          const attempt = yield* Effect.result(once)
          if (attempt._tag === "Success") return attempt.success.value
          const error = attempt.failure
          if (isBusy(error) || ("_tag" in error && error._tag === "StoreFull")) {
            yield* Effect.logWarning("A turn could not be settled yet", error)
            const lost = yield* Effect.raceFirst(
              Effect.as(Effect.sleep(wait), false),
              // Another stop, such as that of the store itself, is there already and ends no wait.
              Effect.flatMap(Deferred.await(active.stop), (stop) =>
                stop._tag === "Lost" || stop._tag === "Left" ? Effect.succeed(true) : Effect.never
              )
            )
            if (lost) return yield* Effect.fail(error)
            wait = Math.min(wait * 2, 5_000)
            continue
          }
          return yield* Effect.fail(error)
        }
      })

      /** Once per turn, whoever comes first. Answers when the end is committed, or the session is lost. */
      const settleOnce = (active: ActiveTurn, end: StreamEnd): Effect.Effect<void> =>
        Effect.suspend(() => {
          if (active.ending)
            return Effect.raceFirst(Deferred.await(active.gone), Effect.asVoid(Deferred.await(active.settled)))
          active.ending = true
          return Effect.uninterruptible(
            Effect.gen(function* () {
              active.log.seal()
              const ending = settle(end, undefined, active.cancel)
              yield* active.log.quiet
              const reason = ending.status === "cancelled" ? "cancelled" : "turn_ended"
              yield* interactions
                .withdraw(active, end._tag === "Failed" && end.restart ? "restart" : reason)
                .pipe(
                  Effect.catch((error) =>
                    Effect.logWarning("Interactions of an ended turn could not be withdrawn", error)
                  )
                )
              active.log.closeParts()
              const acknowledged = ending.status === "cancelled" && ending.reason !== "forced"
              for (const [toolCallId, tool] of active.log.fold.openTools)
                active.log.add(toolEnd(toolCallId, tool, acknowledged))
              const terminal = terminalOf(active, ending)
              const settled = yield* commitSettlement(active, terminal, outcomeOf(active, terminal))
              hub.touch(active.session.id, "row")
              // After the publication: whoever waits may be resumed right here.
              Deferred.doneUnsafe(active.settled, Exit.succeed(settled.outcome))
              afterSettle(active.session.id, settled.next)
            }).pipe(
              Effect.catchCause((cause) => {
                actives.remove(active)
                const error = Cause.findErrorOption(cause)
                return error._tag === "Some" && isLost(error.value)
                  ? Effect.logWarning("A turn ended after its session was taken over; nothing was written", error.value)
                  : Effect.logError("A turn could not be settled", cause)
              })
            )
          )
        })

      // ------------------------------------------------------------ the driver's stream

      const tooMany = (active: ActiveTurn): void => {
        const budget = active.budget
        if (budget === undefined) return
        const { fold } = active.log
        if (budget.maxRounds !== undefined && fold.rounds > budget.maxRounds) {
          cancelling.begin(active, {
            _tag: "Budget",
            code: "budget",
            message: `The turn used its ${budget.maxRounds} rounds`
          })
        }
        if (budget.maxOutputTokens !== undefined && fold.outputTokens > budget.maxOutputTokens) {
          cancelling.begin(active, {
            _tag: "Budget",
            code: "budget",
            message: `The turn used its ${budget.maxOutputTokens} output tokens`
          })
        }
      }

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
            const item = items[i]
            if (item === undefined) continue
            if (item instanceof Barrier) {
              const reached = Effect.flatMap(Effect.exit(active.log.flush), (exit) =>
                // A log that cannot be written ends the turn; a driver must not act on an unwritten record.
                Exit.isSuccess(exit) ? Deferred.done(item.committed, Exit.void) : Effect.never
              )
              return Effect.flatMap(reached, () => take(active, items, i + 1))
            }
            if (active.ending) return late(active, items.slice(i))
            if (isTerminal(item)) {
              return Effect.flatMap(settleOnce(active, { _tag: "Terminal", event: item }), () =>
                take(active, items, i + 1)
              )
            }
            const event = normal(active, item)
            if (event === undefined) continue
            active.log.accept(event)
            if (event.type === "response-start" || event.type === "usage") tooMany(active)
            if (active.turn.recoveries > 0 && !(event.type === "harness-notice" && event.code === "turn_resumed")) {
              return Effect.flatMap(firstEvent(active), () => take(active, items, i + 1))
            }
          }
          return active.log.backlog() > backlogLimit ? Effect.ignore(active.log.flush) : Effect.void
        })

      /** Output after the end joins that turn's message and changes no outcome (RT-146). */
      const late = (active: ActiveTurn, items: ReadonlyArray<HarnessItem>): Effect.Effect<void> => {
        const payloads: Array<EventPayload> = []
        for (const item of items) {
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

      const roundFits = (active: ActiveTurn): Effect.Effect<boolean> =>
        Effect.suspend(() => {
          const budget = active.budget
          // A turn that is being ended asks no model any more; its driver is interrupted, and must not blame the budget.
          if (active.cancelState._tag !== "Idle" || active.ending) return Effect.never
          if (budget === undefined) return Effect.succeed(true)
          const { fold } = active.log
          return Effect.succeed(
            (budget.maxRounds === undefined || fold.rounds < budget.maxRounds) &&
              (budget.maxOutputTokens === undefined || fold.outputTokens < budget.maxOutputTokens)
          )
        })

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
        roundFits: roundFits(active)
      })

      /** Clocks of the turn's budget. `activeMs` stands still while people are waited for. */
      const timers = (active: ActiveTurn): Effect.Effect<void> => {
        const budget = active.budget
        const started = active.turn.createdAt
        const spent = (message: string) =>
          Effect.sync(() => cancelling.begin(active, { _tag: "Budget", code: "timeout", message }))
        const wall =
          budget?.wallMs === undefined
            ? Effect.never
            : Effect.flatMap(Effect.sleep(Math.max(0, started + budget.wallMs - minting.now())), () =>
                spent(`The turn took longer than ${budget.wallMs} ms`)
              )
        const activeMs = budget?.activeMs
        // A turn that was taken up waits for what it waited for, and its time while nobody worked on it does not count.
        active.waits(minting.now())
        const { usedMs } = active.log.fold
        const activeFrom = usedMs === undefined ? started : minting.now() - usedMs
        const working: Effect.Effect<void> =
          activeMs === undefined
            ? Effect.never
            : Effect.suspend(() => {
                if (active.waitingSince !== undefined) {
                  return Effect.flatMap(Deferred.await(active.lastWaitChange), () => working)
                }
                const left = activeMs - (minting.now() - activeFrom - active.waitedMs)
                if (left <= 0) return spent(`The turn worked longer than ${activeMs} ms`)
                return Effect.flatMap(
                  Effect.raceFirst(Effect.sleep(left), Deferred.await(active.lastWaitChange)),
                  () => working
                )
              })
        return Effect.raceFirst(wall, working)
      }

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
        if (ensured._tag === "Failure") return yield* settleOnce(active, openFailed(ensured.failure))
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
        yield* settleOnce(active, endOf(exit))
      })

      const startReoffer = (active: ActiveTurn): Effect.Effect<void> =>
        active.mode === "recover" && active.pendingAsks > 0
          ? Effect.flatMap(Effect.sleep(options.reofferMs), () => Effect.ignore(interactions.withdrawUnoffered(active)))
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
            return yield* settleOnce(active, { _tag: "Quiet" })
          case "StoreDown":
            worker.interruptUnsafe()
            return yield* settleOnce(active, {
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
              : yield* Effect.forkChild(timers(active))
          yield* Effect.forkChild(startReoffer(active))
          const ended = yield* Effect.raceFirst(
            Effect.map(Fiber.await(worker), (exit) => ({ _tag: "Worker", exit }) as const),
            Effect.map(Deferred.await(active.stop), (stop) => ({ _tag: "Stop", stop }) as const)
          )
          Deferred.doneUnsafe(active.streamOver, Exit.void)
          if (ended._tag === "Stop") yield* afterStop(active, ended.stop, worker)
          else if (!active.ending) {
            yield* settleOnce(
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
            settleOnce(active, end),
            Effect.sync(() => {
              active.log.close()
              actives.remove(active)
              Deferred.doneUnsafe(active.gone, Exit.void)
            })
          ),
        places,
        onSettled: (listener) => {
          afterSettle = listener
        }
      })
    })
  )
}

/** The end of a call that its driver left open, with what a summary needs (AGT-035). */
const toolEnd = (
  toolCallId: string,
  tool: { readonly name: string; readonly started: boolean },
  acknowledged: boolean
): EventPayload =>
  acknowledged
    ? {
        type: "tool-error",
        toolCallId,
        error: "The turn was cancelled",
        code: "cancelled",
        metadata: { tool: tool.name, outcome: tool.started ? "failed" : "not_run" }
      }
    : {
        type: "tool-status",
        toolCallId,
        status: "uncertain",
        metadata: { tool: tool.name, outcome: "unknown", reason: "the turn stopped while it ran" }
      }

/** The failure code of a turn for an error of its driver (3.2). */
const codeOf = (error: HarnessError): TurnFailureCode => {
  switch (error._tag) {
    case "HarnessTimeout":
      return "harness_timeout"
    case "HarnessProcessExited":
      return "harness_process_exited"
    case "HarnessProtocol":
      return "harness_protocol"
    default:
      return "harness_error"
  }
}

const classOf = (error: HarnessError): string => (error._tag === "HarnessAuthRequired" ? "credential" : "harness")

const openFailed = (error: OpenFailure): StreamEnd => {
  if (isHarnessError(error)) {
    return { _tag: "Failed", code: codeOf(error), message: error.message, errorClass: classOf(error) }
  }
  switch (error._tag) {
    case "SessionMissing":
      return { _tag: "Failed", code: "session_missing", message: error.message, errorClass: "session" }
    case "HarnessContextLost":
      return { _tag: "Failed", code: "harness_context_lost", message: error.message, errorClass: "session" }
    case "ResumeUnconfirmed":
      return { _tag: "Failed", code: "harness_error", message: error.message, errorClass: "session" }
    default:
      return { _tag: "Failed", code: "store_unavailable", message: error.message }
  }
}

/** What the end of a stream without a terminal event means. */
const endOf = (exit: Exit.Exit<void, HarnessError | TurnLost>): StreamEnd => {
  if (Exit.isSuccess(exit)) return { _tag: "Quiet" }
  const error = Exit.findErrorOption(exit)
  if (error._tag === "None") return { _tag: "Defect" }
  const failure = error.value
  return failure._tag === "TurnLost"
    ? { _tag: "Failed", code: "turn_interrupted", message: failure.message }
    : { _tag: "Failed", code: codeOf(failure), message: failure.message, errorClass: classOf(failure) }
}
