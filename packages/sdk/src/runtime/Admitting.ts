/**
 * Admission (5.1): one store transaction whose decision is made by the pure turn machine. A turn that was admitted always
 * gets its runner, whatever becomes of the caller; nothing can come between the two.
 *
 * Implements RT-080 to RT-086, RT-090, RT-131, RT-211.
 *
 * @since 0.1.0
 */
import type { RuntimeError } from "@tackroom/protocol"
import type { PromptPart } from "@tackroom/protocol/events"
import { Context, Effect, FiberMap, Layer } from "effect"
import type { OwnTurn, TurnBudget } from "../harness/Harness.ts"
import type { TurnRow } from "../store/Rows.ts"
import type { AdmissionState, AdmitOutcome, Committed, NewEntry, StoreFailure } from "../store/RuntimeStore.ts"
import { Store } from "../store/Store.ts"
import { ActiveTurn, ActiveTurns } from "./ActiveTurns.ts"
import { admissionOf, type Admission, type CheckedPrompt, type EmbeddedStart, type StartFailure } from "./Admission.ts"
import { makeDecisions, type Finding, type Plan } from "./AdmissionDecisions.ts"
import { fromAnswer } from "./Answers.ts"
import { factsOf, Hub } from "./Hub.ts"
import { Journal } from "./Journal.ts"
import { Leases } from "./Leases.ts"
import { Minting } from "./Minting.ts"
import { NativeSessions } from "./NativeSessions.ts"
import { Options, type Answer } from "./Options.ts"
import type { TurnFold } from "./TurnFold.ts"
import { TurnRunner } from "./TurnRunner.ts"

/** Recovers a session whose turn has no live owner; set by the recovery module. */
export type RecoverSession = (sessionId: string) => Effect.Effect<void, RuntimeError>

/** A turn of recovery's, with what was rebuilt of it. */
export interface TakenUp {
  readonly session: AdmissionState["session"]
  readonly turn: TurnRow
  readonly lease: NonNullable<AdmissionState["lease"]>
  readonly mode: "run" | "recover"
  readonly fold: TurnFold
}

export class Admitting extends Context.Service<
  Admitting,
  {
    /** Admits, recovering the session first where its turn has no live owner. */
    readonly admit: (
      plan: Omit<Plan, "hasPlace">,
      embedded?: EmbeddedStart,
      onAdmitted?: (admission: Admission) => Answer<void>
    ) => Effect.Effect<Committed<AdmitOutcome>, StartFailure>
    /** The `user-message` entry; inline data and large text go into artifacts ahead of it (RT-211). */
    readonly message: (
      sessionId: string,
      messageId: string,
      checked: CheckedPrompt,
      delivery: "start" | "queue" | "steer",
      uncertain?: boolean
    ) => Effect.Effect<NewEntry, StoreFailure>
    /** Makes a turn that recovery took up an active one. */
    readonly takeUp: (taken: TakenUp) => ActiveTurn
    /** Runs an active turn that no fiber runs yet. */
    readonly launch: (active: ActiveTurn) => void
    readonly recover: RecoverSession
    readonly recoverWith: (recover: RecoverSession) => void
    /** Keeps what never changes about a session. */
    readonly remember: (session: AdmissionState["session"]) => void
  }
>()("@tackroom/sdk/runtime/Admitting") {
  static readonly layer = Layer.effect(
    Admitting,
    Effect.gen(function* () {
      const store = yield* Store
      const journal = yield* Journal
      const hub = yield* Hub
      const actives = yield* ActiveTurns
      const runner = yield* TurnRunner
      const natives = yield* NativeSessions
      const leases = yield* Leases
      const options = yield* Options
      const minting = yield* Minting
      const fibers = yield* FiberMap.make<string, void>()
      const fork = yield* FiberMap.runtime(fibers)()
      const decision = makeDecisions({ actives, leases, minting, natives })
      let recoverSession: RecoverSession = () => Effect.void

      /** The `user-message` entry; inline data and large text go into artifacts ahead of it (RT-211). */
      const message = Effect.fnUntraced(function* (
        sessionId: string,
        messageId: string,
        checked: CheckedPrompt,
        delivery: "start" | "queue" | "steer",
        uncertain = false
      ) {
        const parts: Array<PromptPart> = []
        const rows: Array<NonNullable<NewEntry["artifactRows"]>[number]> = []
        for (const part of checked.parts) {
          if (part.type !== "file" || part.data === undefined) {
            parts.push(part)
            continue
          }
          const row = yield* journal.putArtifact(sessionId, part.mime, fromBase64(part.data))
          rows.push(row)
          parts.push({
            type: "file",
            mime: row.mime,
            ...(part.filename === undefined ? {} : { filename: part.filename }),
            artifactId: row.id
          })
        }
        const entry = yield* journal.prepare(sessionId, {
          type: "user-message",
          messageId,
          parts,
          ...(checked.prompt.author === undefined ? {} : { author: checked.prompt.author }),
          delivery,
          ...(uncertain ? { uncertain: true } : {})
        })
        return rows.length === 0 ? entry : { ...entry, artifactRows: [...(entry.artifactRows ?? []), ...rows] }
      })

      const register = (
        session: AdmissionState["session"],
        turn: TurnRow,
        lease: NonNullable<AdmissionState["lease"]>,
        budget: TurnBudget | undefined,
        mode: "run" | "recover",
        more: { readonly fold?: TurnFold; readonly begun?: OwnTurn["run"] } = {}
      ): ActiveTurn => {
        const active = new ActiveTurn({
          session,
          turn,
          lease,
          log: journal.open({
            sessionId: session.id,
            turnId: turn.id,
            fence: lease.fence,
            ...(more.fold === undefined ? {} : { fold: more.fold })
          }),
          budget: budget ?? options.embedder.budgets?.(session, turn),
          mode,
          begun: more.begun
        })
        active.opened = natives.opened(session.id)
        actives.add(active)
        return active
      }

      const remember = (session: AdmissionState["session"]): void => {
        hub.learn(factsOf(session))
      }

      /** Admits, and gives a started turn its runner; nothing can come between the two. */
      const admitNow = (
        plan: Omit<Plan, "hasPlace">,
        embedded: EmbeddedStart,
        finding: Finding,
        onAdmitted: ((admission: Admission) => Answer<void>) | undefined
      ): Effect.Effect<Committed<AdmitOutcome>, StartFailure> =>
        Effect.uninterruptible(
          Effect.suspend(() => {
            const hasPlace = runner.places.take()
            let used = false
            return store
              .admit(plan.sessionId, plan.messageId, decision({ ...plan, hasPlace }, finding), {
                ...(embedded.ops === undefined ? {} : { ops: embedded.ops }),
                ...(embedded.others === undefined ? {} : { others: embedded.others })
              })
              .pipe(
                Effect.tap((committed) =>
                  Effect.sync(() => {
                    const outcome = committed.value
                    if (outcome._tag === "Started") {
                      remember(outcome.session)
                      used = true
                      const active = register(
                        outcome.session,
                        outcome.turn,
                        outcome.lease,
                        embedded.budget,
                        "run",
                        plan.begun === undefined ? {} : { begun: plan.begun.run }
                      )
                      hub.publish(committed.events)
                      hub.touch(plan.sessionId, "row")
                      const first =
                        onAdmitted === undefined
                          ? Effect.void
                          : tell(onAdmitted, admissionOf(outcome, outcome.session.directory))
                      fork(outcome.turn.id, Effect.andThen(first, runner.run(active, hasPlace)))
                      return
                    }
                    hub.publish(committed.events)
                    if (outcome._tag === "Queued") hub.touch(plan.sessionId, "row")
                  })
                ),
                Effect.ensuring(
                  Effect.sync(() => {
                    if (hasPlace && !used) runner.places.release()
                  })
                )
              )
          })
        )

      const tell = (onAdmitted: (admission: Admission) => Answer<void>, admission: Admission): Effect.Effect<void> =>
        Effect.catchCause(
          fromAnswer(() => onAdmitted(admission)),
          (cause) => Effect.logWarning("onAdmitted failed", cause)
        )

      const launch = (active: ActiveTurn): void => {
        active.launched = true
        fork(
          active.turn.id,
          Effect.suspend(() => runner.run(active, runner.places.take()))
        )
      }

      const admitRetrying = Effect.fnUntraced(function* (
        plan: Omit<Plan, "hasPlace">,
        embedded: EmbeddedStart,
        onAdmitted?: (admission: Admission) => Answer<void>
      ): Effect.fn.Return<Committed<AdmitOutcome>, StartFailure> {
        yield* leases.register
        for (let attempt = 0; ; attempt++) {
          const finding: Finding = { recover: false, examine: undefined }
          const result = yield* Effect.result(admitNow(plan, embedded, finding, onAdmitted))
          if (result._tag === "Success") return result.success
          if (attempt < 3) {
            if (finding.recover) {
              yield* recoverSession(plan.sessionId)
              continue
            }
            // The owner of a lease that is not expired may be dead (RT-131).
            if (finding.examine !== undefined && (yield* leases.examine(finding.examine))) continue
          }
          return yield* Effect.fail(result.failure)
        }
      })

      return Admitting.of({
        admit: (plan, embedded = {}, onAdmitted) => admitRetrying(plan, embedded, onAdmitted),
        message,
        takeUp: ({ session, turn, lease, mode, fold }) => {
          remember(session)
          return register(session, turn, lease, undefined, mode, { fold })
        },
        launch,
        recover: (sessionId) => Effect.suspend(() => recoverSession(sessionId)),
        recoverWith: (recover) => {
          recoverSession = recover
        },
        remember
      })
    })
  )
}

const fromBase64 = (data: string): Uint8Array => Uint8Array.from(atob(data), (char) => char.charCodeAt(0))
