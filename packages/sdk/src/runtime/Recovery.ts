/**
 * What becomes of turns that a dead process left (5.6). Classification is one pass at the opening; what is to be continued
 * may start later (`startRecovered`), because a host resumes turns only after it answered initialize. A session is
 * recovered alone: none waits for another's harness (RT-173).
 *
 * Implements RT-022, RT-088, RT-119, RT-131, RT-162, RT-170 to RT-175, RUN-523.
 *
 * @since 0.1.0
 */
import { SessionRecovering, type HarnessError, type RuntimeError } from "@tackroom/protocol"
import type { EventPayload } from "@tackroom/protocol/events"
import { Context, Deferred, Effect, Exit, FiberSet, Layer } from "effect"
import { HarnessRegistry } from "./HarnessRegistry.ts"
import type { LeaseRow, SessionRow, TurnRow } from "../store/Rows.ts"
import { Store } from "../store/Store.ts"
import { ActiveTurns, type ActiveTurn } from "./ActiveTurns.ts"
import { Admitting } from "./Admitting.ts"
import { withDeadline } from "./Deadlines.ts"
import { Leases } from "./Leases.ts"
import { harnessOf } from "./NativeSessions.ts"
import { Options } from "./Options.ts"
import { Steering } from "./Steering.ts"
import { TurnFold } from "./TurnFold.ts"
import { classify, type RecoveryKind } from "./TurnMachine.ts"
import { TurnRunner } from "./TurnRunner.ts"
import { Turns } from "./Turns.ts"

export class Recovery extends Context.Service<
  Recovery,
  {
    /** Classifies what this runtime may take; with `recover: opened`, nothing. Idempotent (RT-174). */
    readonly pass: Effect.Effect<void, RuntimeError>
    /** Recovers one session now, if its turn has no live owner. */
    readonly session: (sessionId: string) => Effect.Effect<void, RuntimeError>
    /** Lets the classified turns go on. Every turn, or that of one session. */
    readonly start: (sessionId?: string) => Effect.Effect<void>
    /** Sessions whose turn was taken up and waits for `start`. */
    readonly waiting: () => ReadonlyArray<string>
  }
>()("@tackroom/sdk/runtime/Recovery") {
  static readonly layer = Layer.effect(
    Recovery,
    Effect.gen(function* () {
      const store = yield* Store
      const actives = yield* ActiveTurns
      const leases = yield* Leases
      const registry = yield* HarnessRegistry
      const runner = yield* TurnRunner
      const turns = yield* Turns
      const admitting = yield* Admitting
      const steering = yield* Steering
      const options = yield* Options
      const flights = new Map<string, Deferred.Deferred<void, RuntimeError>>()
      const waiting = new Map<string, { readonly active: ActiveTurn; readonly kind: RecoveryKind }>()
      const background = yield* FiberSet.make<void>()
      const fork = yield* FiberSet.runtime(background)()
      let started = options.autoStart

      /** The turn's fold, by paging its events once (D-24). */
      const refold = Effect.fnUntraced(function* (turn: TurnRow) {
        const fold = new TurnFold()
        let after = turn.startSeq
        let used = 0
        let last: number | undefined
        while (true) {
          const page = yield* store.read(turn.sessionId, after, 500, 4 * 1024 * 1024)
          for (const event of page.events) {
            // Neither waiting for a person nor the time between two processes is work (AGT-200).
            const taken = event.payload.type === "session-status" && event.payload.status === "recovering"
            if (last !== undefined && fold.pending.size === 0 && !taken) used += Math.max(0, event.at - last)
            last = event.at
            if (event.turnId === turn.id) fold.accept(event.payload, true)
            after = event.seq
          }
          if (page.events.length === 0 || after >= page.head) {
            fold.usedMs = used
            return fold
          }
          yield* Effect.yieldNow
        }
      })

      const turnRecoveryOf = (row: SessionRow): Effect.Effect<"none" | "reattach" | "resume", HarnessError> =>
        Effect.flatMap(registry.driver(harnessOf(row)), (driver) =>
          Effect.map(
            driver.capabilities({ directory: row.directory, sessionId: row.id }),
            (capabilities) => capabilities.turnRecovery
          )
        ).pipe((call) =>
          withDeadline(call, { ms: options.probeTimeoutMs, harness: row.harnessId, operation: "capabilities" })
        )

      const acquire = Effect.fnUntraced(function* (sessionId: string) {
        yield* leases.register
        const held = yield* store.lease(sessionId)
        if (held !== undefined && held.owner !== leases.owner) yield* leases.examine(held.owner)
        return yield* store.acquireLease(
          sessionId,
          leases.request(),
          (lease) => lease.owner === leases.owner || !leases.isLive(lease, Number.MIN_SAFE_INTEGER)
        )
      })

      const takeUp = Effect.fnUntraced(function* (row: SessionRow, turn: TurnRow, lease: LeaseRow) {
        const fold = yield* refold(turn)
        const recovery = turn.handedOver
          ? yield* turnRecoveryOf(row).pipe(
              Effect.catch((error) =>
                Effect.as(
                  Effect.logWarning("A harness could not be asked whether it recovers turns", error),
                  "none" as const
                )
              )
            )
          : "none"
        const kind = classify({
          handedOver: turn.handedOver,
          cancelRequested: turn.cancelRequested,
          recoveries: turn.recoveries,
          turnRecovery: recovery,
          policy: options.recover,
          own: turn.origin === "harness" || turn.origin === "goal"
        })
        const active = admitting.takeUp({
          session: row,
          turn: { ...turn, fence: lease.fence },
          lease,
          mode: kind === "continue" ? "recover" : "run",
          fold
        })
        const stored = yield* store.interactions({ sessionId: turn.sessionId, turnId: turn.id })
        for (const ask of stored) {
          const settled = Deferred.makeUnsafe<never>()
          active.asks.set(ask.nativeId, { row: ask, settled: settled as never, waiting: false })
          if (ask.state === "resolved")
            Deferred.doneUnsafe(settled as never, Exit.succeed({ _tag: "Resolved", row: ask }))
          if (ask.state === "withdrawn") {
            Deferred.doneUnsafe(
              settled as never,
              Exit.succeed({ _tag: "Withdrawn", reason: ask.withdrawal?.reason ?? "turn_ended" })
            )
          }
        }
        yield* act(active, kind, stored.length)
      })

      const act = Effect.fnUntraced(function* (active: ActiveTurn, kind: RecoveryKind, asked: number) {
        switch (kind) {
          case "cancel":
            active.cancel = { _tag: "Forced" }
            return yield* runner.finish(active, { _tag: "Quiet" })
          case "interrupt": {
            if (asked > 0) yield* undelivered(active)
            return yield* runner.finish(active, {
              _tag: "Failed",
              code: "turn_interrupted",
              message: "The process that worked on this turn ended before the turn did",
              restart: true
            })
          }
          case "run":
          case "continue": {
            active.recovering = true
            active.turn = { ...active.turn, recoveries: active.turn.recoveries + 1, state: "recovering" }
            if (kind === "continue") {
              active.log.add({ type: "session-status", status: "recovering" }, { outsideTurn: false })
            }
            yield* active.log.patch({
              turn: { recoveries: active.turn.recoveries, state: "recovering" },
              ...(kind === "continue" ? { session: { status: "recovering", phase: null } } : {})
            })
            const mayGo = started && (options.embedder.mayContinue?.(active.session, active.turn) ?? true)
            if (mayGo) launch(active)
            else waiting.set(active.session.id, { active, kind })
          }
        }
      })

      const launch = (active: ActiveTurn): void => {
        if (active.mode === "run") active.recovering = false
        admitting.launch(active)
      }

      /** A decision that its turn can no longer take is dropped, visibly (5.6). */
      const undelivered = Effect.fnUntraced(function* (active: ActiveTurn) {
        for (const ask of active.asks.values()) {
          if (ask.row.state !== "resolved" || ask.row.delivered) continue
          const notice: EventPayload = {
            type: "harness-notice",
            code: "interaction_undelivered",
            message: "A decision could not be delivered: its turn did not survive the restart",
            severity: "warn",
            details: { requestId: ask.row.id }
          }
          active.log.add(notice)
        }
        yield* active.log.flush
      })

      const recoverSession = Effect.fnUntraced(function* (sessionId: string): Effect.fn.Return<void, RuntimeError> {
        if (actives.get(sessionId) !== undefined) return
        yield* steering.settleLost({ sessionId })
        const [turn] = yield* store.openTurns({ sessionId })
        if (turn === undefined) return
        const lease = yield* acquire(sessionId)
        if (lease === undefined) return yield* new SessionRecovering({ sessionId })
        // Read again under the lease: the former owner may have settled it meanwhile.
        const [still] = yield* store.openTurns({ sessionId })
        const row = yield* store.getSession(sessionId)
        if (still === undefined || row === undefined) {
          yield* leases.release(lease)
          return
        }
        yield* takeUp(row, still, lease)
      })

      const single = (sessionId: string): Effect.Effect<void, RuntimeError> =>
        Effect.suspend(() => {
          const flight = flights.get(sessionId)
          if (flight !== undefined) return Deferred.await(flight)
          const deferred = Deferred.makeUnsafe<void, RuntimeError>()
          flights.set(sessionId, deferred)
          return Effect.uninterruptible(
            Effect.flatMap(Effect.exit(recoverSession(sessionId)), (exit) => {
              flights.delete(sessionId)
              Deferred.doneUnsafe(deferred, exit)
              return exit
            })
          )
        })

      /** Queues of idle sessions that a restart left waiting (RT-119). */
      const startQueues = Effect.suspend(() =>
        options.recover === "opened"
          ? Effect.void
          : Effect.flatMap(store.waitingQueues({ owner: options.owner }), (ids) =>
              Effect.forEach(
                ids,
                (id) => (actives.get(id) === undefined ? Effect.ignore(turns.startNext(id)) : Effect.void),
                {
                  discard: true
                }
              )
            )
      ).pipe(Effect.catchCause((cause) => Effect.logWarning("Waiting queues could not be started", cause)))

      const pass = Effect.gen(function* () {
        if (options.recover === "opened") return
        yield* steering.settleLost({ owner: options.owner })
        const open = yield* store.openTurns({ owner: options.owner })
        yield* Effect.forEach(
          open,
          (turn) =>
            single(turn.sessionId).pipe(
              Effect.catch((error) =>
                error._tag === "SessionRecovering"
                  ? Effect.void
                  : Effect.logWarning("A session could not be recovered", error)
              )
            ),
          // None waits for another's harness (RT-173).
          { concurrency: "unbounded", discard: true }
        )
        if (started) fork(startQueues)
      })

      admitting.recoverWith(single)

      return Recovery.of({
        pass,
        session: single,
        start: (sessionId) =>
          Effect.sync(() => {
            if (sessionId === undefined && !started) {
              started = true
              fork(startQueues)
            }
            for (const [id, { active }] of waiting) {
              if (sessionId !== undefined && id !== sessionId) continue
              waiting.delete(id)
              if (actives.get(id) === active && !active.ending) launch(active)
            }
          }),
        waiting: () => [...waiting.keys()]
      })
    })
  )
}
