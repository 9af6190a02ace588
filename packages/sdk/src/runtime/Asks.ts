/**
 * What drivers ask (7.4): a request is committed before anyone waits on it, decided by policy or by a person, or withdrawn
 * with its turn. Answers come in through `Interactions`.
 *
 * Implements RT-145, RT-250, RT-256, RT-263, RT-264, D-29.
 *
 * @since 0.1.0
 */
import {
  AnswerInvalid,
  HarnessRejected,
  OptionNotOffered,
  type SessionGone,
  type SessionNotFound,
  type SessionTurnFenceStale
} from "@tackroom/protocol"
import type { Resolution, WithdrawalReason } from "@tackroom/protocol/events"
import { Context, Deferred, Effect, Exit, FiberSet, Layer } from "effect"
import {
  Withdrawn,
  type PermissionAsk,
  type PermissionDecision,
  type QuestionAnswer,
  type QuestionAsk
} from "../harness/Harness.ts"
import type { InteractionRow } from "../store/Rows.ts"
import type { NewEntry, OpFailed, StoreFailure } from "../store/RuntimeStore.ts"
import { Store } from "../store/Store.ts"
import { ActiveTurns, type ActiveTurn, type OpenAsk, type Settled } from "./ActiveTurns.ts"
import { fromAnswer } from "./Answers.ts"
import { Hub } from "./Hub.ts"
import { permissionSubject, requestEvent, resolutionOf, resolvedEvent } from "./InteractionRules.ts"
import { Journal } from "./Journal.ts"
import { Minting, timestamp } from "./Minting.ts"
import { Options, type PolicyDecision } from "./Options.ts"
import { interactionOf, sessionOf } from "./PublicRows.ts"
import { Secrets } from "./Secrets.ts"
import { isLost } from "./StoreTrouble.ts"

/** Pending interactions of one session (3.1). */
export const interactionLimit = 64

export class Asks extends Context.Service<
  Asks,
  {
    readonly permission: (ask: PermissionAsk) => Effect.Effect<PermissionDecision, Withdrawn | HarnessRejected>
    readonly question: (ask: QuestionAsk) => Effect.Effect<QuestionAnswer, Withdrawn | HarnessRejected>
    /** Withdraws what is pending of a turn; drivers that wait are told. */
    readonly withdraw: (active: ActiveTurn, reason: WithdrawalReason) => Effect.Effect<void, StoreFailure>
    /** Withdraws what a recovered turn's driver did not offer again (5.6). */
    readonly withdrawUnoffered: (active: ActiveTurn) => Effect.Effect<void, StoreFailure>
    /** The ask of an interaction whose turn runs here. */
    readonly find: (sessionId: string, id: string) => { readonly active: ActiveTurn; readonly ask: OpenAsk } | undefined
    /** Keeps how an ask ended; synchronous, for the moment of the commit. */
    readonly mark: (ask: OpenAsk, settled: Settled) => void
    /** Tells the driver that waits; false when none does. */
    readonly tell: (ask: OpenAsk) => boolean
  }
>()("@tackroom/sdk/runtime/Asks") {
  static readonly layer = Layer.effect(
    Asks,
    Effect.gen(function* () {
      const store = yield* Store
      const journal = yield* Journal
      const hub = yield* Hub
      const actives = yield* ActiveTurns
      const options = yield* Options
      const minting = yield* Minting
      const { known } = yield* Secrets
      const background = yield* FiberSet.make<void>()
      const runBackground = yield* FiberSet.runtime(background)()

      const markDelivered = (id: string): void => {
        runBackground(
          store
            .markDelivered(id)
            .pipe(Effect.catch((error) => Effect.logWarning("A delivered answer could not be marked", error)))
        )
      }

      /** What is known of an ask changes with the commit; its driver is told after the publication, which it may run into. */
      const markAsk = (ask: OpenAsk, settled: Settled): void => {
        if (settled._tag === "Resolved") ask.row = settled.row
        else ask.row = { ...ask.row, state: "withdrawn" }
        ask.outcome = settled
      }

      const tellAsk = (ask: OpenAsk): boolean =>
        ask.outcome !== undefined && Deferred.doneUnsafe(ask.settled, Exit.succeed(ask.outcome)) && ask.waiting

      const findAsk = (sessionId: string, id: string): { active: ActiveTurn; ask: OpenAsk } | undefined => {
        const active = actives.get(sessionId)
        if (active === undefined) return undefined
        for (const ask of active.asks.values()) if (ask.row.id === id) return { active, ask }
        return undefined
      }

      // ------------------------------------------------------------ asking

      const decideByPolicy = Effect.fnUntraced(function* (active: ActiveTurn, row: InteractionRow) {
        const decide = options.decide
        if (decide === undefined) return undefined
        const decision: PolicyDecision | undefined = yield* fromAnswer(() =>
          decide(interactionOf(row), sessionOf(active.session))
        )
        if (decision === undefined) return undefined
        return resolutionOf(row, decision, {
          origin: decision.origin,
          by: decision.by,
          at: timestamp(minting.now()),
          redact: (text) => known.text(text, row.sessionId)
        })
      })

      const openAsk = Effect.fnUntraced(function* (
        active: ActiveTurn,
        kind: InteractionRow["kind"],
        nativeId: string,
        request: InteractionRow["request"]
      ) {
        const existing = active.asks.get(nativeId)
        if (existing !== undefined) return existing
        if (active.pendingAsks >= interactionLimit) {
          return yield* new HarnessRejected({
            harness: active.session.harnessId,
            operation: "ask",
            detail: "too_many_interactions"
          })
        }
        const row: InteractionRow = {
          id: minting.id("interaction"),
          sessionId: active.session.id,
          rootId: active.session.rootId,
          turnId: active.turn.id,
          kind,
          nativeId,
          state: "pending",
          request: known.value(request, active.session.id),
          resolution: null,
          withdrawal: null,
          delivered: false,
          createdAt: minting.now(),
          settledAt: null
        }
        const ask: OpenAsk = { row, settled: Deferred.makeUnsafe(), waiting: true }
        // Two asks with one id are one ask, also while the first is still being decided or stored.
        active.asks.set(nativeId, ask)
        yield* Effect.onError(storeAsk(active, ask), () =>
          Effect.sync(() => {
            active.asks.delete(nativeId)
            markAsk(ask, { _tag: "Withdrawn", reason: "turn_ended" })
            tellAsk(ask)
          })
        )
        return ask
      })

      const storeAsk = Effect.fnUntraced(function* (active: ActiveTurn, ask: OpenAsk) {
        const row = ask.row
        const decided = yield* decideByPolicy(active, row).pipe(
          Effect.catchDefect((defect) =>
            Effect.as(Effect.logWarning("The decision by policy failed; a person is asked", defect), undefined)
          )
        )
        const resolution =
          decided === undefined || decided instanceof OptionNotOffered || decided instanceof AnswerInvalid
            ? undefined
            : decided
        if (active.ending || active.cancelState._tag !== "Idle") return yield* new Withdrawn({ reason: "cancelled" })
        yield* Effect.uninterruptible(commitAsk(active, ask, resolution))
      })

      const commitAsk = Effect.fnUntraced(function* (
        active: ActiveTurn,
        ask: OpenAsk,
        resolution: Resolution | undefined
      ) {
        const row = ask.row
        const place = { turnId: active.turn.id }
        const entries: Array<NewEntry> = [yield* journal.prepare(row.sessionId, requestEvent(row), place)]
        if (resolution !== undefined) {
          entries.push(yield* journal.prepare(row.sessionId, resolvedEvent(row, resolution), place))
        }
        const stored: InteractionRow =
          resolution === undefined ? row : { ...row, state: "resolved", resolution, settledAt: minting.now() }
        yield* active.log.exclusive<InteractionRow, AskFailure>(
          (before) =>
            store.openInteraction(
              stored,
              active.lease.fence,
              [...before, ...entries],
              resolution === undefined ? { session: { phase: "waiting" } } : {}
            ),
          {
            // The turn may have ended, or a cancel begun, while this write waited for its place.
            guard: Effect.suspend(() =>
              active.ending || active.cancelState._tag !== "Idle"
                ? Effect.fail(new Withdrawn({ reason: "cancelled" }))
                : Effect.void
            ),
            onCommit: ({ value }) => {
              ask.row = value
              for (const entry of entries) active.log.fold.accept(entry.payload)
              active.waits(minting.now())
              if (value.state !== "pending") markAsk(ask, settledOf(value))
            }
          }
        )
        tellAsk(ask)
        hub.touch(row.sessionId, "interaction")
      })

      const settledOf = (row: InteractionRow): Settled =>
        row.state === "withdrawn"
          ? { _tag: "Withdrawn", reason: row.withdrawal?.reason ?? "turn_ended" }
          : { _tag: "Resolved", row }

      const expire = Effect.fnUntraced(function* (active: ActiveTurn, ask: OpenAsk, reason: WithdrawalReason) {
        if (ask.row.state !== "pending") return
        yield* withdrawAsks(active, [ask], reason)
      })

      const awaitAsk = (active: ActiveTurn, ask: OpenAsk): Effect.Effect<Settled> =>
        Effect.suspend(() => {
          ask.waiting = true
          const wait =
            options.interactionTimeoutMs === null
              ? Deferred.await(ask.settled)
              : Deferred.await(ask.settled).pipe(
                  Effect.timeoutOrElse({
                    duration: options.interactionTimeoutMs,
                    orElse: () =>
                      Effect.flatMap(Effect.ignore(expire(active, ask, "expired")), () => Deferred.await(ask.settled))
                  })
                )
          return wait.pipe(
            Effect.onInterrupt(() =>
              // The harness took its request back; a turn that ends settles its asks itself.
              active.ending || active.cancelState._tag !== "Idle"
                ? Effect.void
                : Effect.ignore(expire(active, ask, "replaced"))
            )
          )
        })

      const askFor = Effect.fnUntraced(function* (
        ask: Pick<PermissionAsk, "sessionId" | "turnId" | "nativeRequestId" | "raised">,
        kind: InteractionRow["kind"],
        request: InteractionRow["request"]
      ) {
        const active = actives.get(ask.sessionId)
        if (active === undefined || active.turn.id !== ask.turnId || active.ending) {
          if (ask.raised !== undefined) Deferred.doneUnsafe(ask.raised, Exit.void)
          return yield* new Withdrawn({ reason: "turn_ended" })
        }
        const open = yield* openAsk(active, kind, ask.nativeRequestId, request).pipe(
          Effect.catch((error) => {
            if (error._tag === "Withdrawn" || error._tag === "HarnessRejected") return Effect.fail(error)
            active.asks.delete(ask.nativeRequestId)
            if (!isLost(error)) {
              return Effect.flatMap(Effect.logError("An interaction could not be stored", error), () =>
                Effect.fail(
                  new HarnessRejected({
                    harness: active.session.harnessId,
                    operation: "ask",
                    detail: "the request could not be stored"
                  })
                )
              )
            }
            Deferred.doneUnsafe(active.stop, Exit.succeed({ _tag: "Lost", error }))
            return Effect.fail(new Withdrawn({ reason: "process_lost" }))
          }),
          Effect.ensuring(
            Effect.sync(() => {
              if (ask.raised !== undefined) Deferred.doneUnsafe(ask.raised, Exit.void)
            })
          )
        )
        const settled = yield* awaitAsk(active, open)
        if (settled._tag === "Withdrawn") return yield* new Withdrawn({ reason: settled.reason })
        if (!settled.row.delivered) markDelivered(settled.row.id)
        return settled
      })

      // ------------------------------------------------------------ withdrawing

      const withdrawAsks = (
        active: ActiveTurn,
        asks: ReadonlyArray<OpenAsk>,
        reason: WithdrawalReason
      ): Effect.Effect<void, StoreFailure> =>
        Effect.uninterruptible(
          Effect.gen(function* () {
            const pending = asks.filter((ask) => ask.row.state === "pending")
            if (pending.length === 0) return
            const onlyThese = active.pendingAsks === pending.length && active.cancelState._tag === "Idle"
            yield* journal
              .write(
                store.withdrawInteractions(
                  pending.map((ask) => ask.row.id),
                  reason,
                  onlyThese ? { session: { phase: "running" } } : {}
                ),
                ({ events, value }) => {
                  for (const event of events) active.log.fold.accept(event.payload)
                  const withdrawn = new Map(value.map((row) => [row.id, row]))
                  for (const ask of pending) {
                    const row = withdrawn.get(ask.row.id)
                    // One that a person decided in the same moment is not withdrawn; its decision is being delivered.
                    if (row === undefined || row.state === "withdrawn") markAsk(ask, { _tag: "Withdrawn", reason })
                  }
                  active.waits(minting.now())
                }
              )
              .pipe(Effect.catchTags(neverOps))
            for (const ask of pending) tellAsk(ask)
            hub.touch(active.session.id, "interaction")
          })
        )

      return Asks.of({
        permission: (ask) =>
          Effect.map(askFor(ask, "permission", permissionSubject(ask)), (settled): PermissionDecision => {
            const resolution = settled.row.resolution
            if (resolution === null || !("decision" in resolution)) {
              return { interactionId: settled.row.id, decision: "deny", origin: "system" }
            }
            return {
              interactionId: settled.row.id,
              decision: resolution.decision,
              ...(resolution.optionId === undefined ? {} : { optionId: resolution.optionId }),
              ...(resolution.note === undefined ? {} : { note: resolution.note }),
              origin: resolution.origin
            }
          }),
        question: (ask) =>
          Effect.map(
            askFor(ask, "question", {
              questions: ask.questions,
              ...(ask.toolCallId === undefined ? {} : { toolCallId: ask.toolCallId })
            }),
            (settled): QuestionAnswer => {
              const resolution = settled.row.resolution
              const stored = resolution !== null && "answers" in resolution ? resolution.answers : null
              return {
                interactionId: settled.row.id,
                answers: stored === null ? null : (settled.answers ?? stored)
              }
            }
          ),
        withdraw: (active, reason) => Effect.suspend(() => withdrawAsks(active, [...active.asks.values()], reason)),
        withdrawUnoffered: (active) =>
          Effect.suspend(() =>
            withdrawAsks(
              active,
              [...active.asks.values()].filter((ask) => !ask.waiting),
              "process_lost"
            )
          ),
        find: findAsk,
        mark: markAsk,
        tell: tellAsk
      })
    })
  )
}

type AskFailure = Withdrawn | OpFailed | SessionNotFound | SessionGone | SessionTurnFenceStale | StoreFailure

/** Calls that pass no ops and no other sessions cannot fail for them. */
export const neverOps = {
  OpFailed: (error: unknown) => Effect.die(error),
  SessionNotFound: (error: unknown) => Effect.die(error),
  SessionGone: (error: unknown) => Effect.die(error),
  SessionTurnFenceStale: (error: unknown) => Effect.die(error)
}
