/**
 * Starting, waiting for and aborting turns (4.2, 5.1). Admission is one store transaction whose decision is made by the pure
 * turn machine; a turn that was admitted always gets its runner, whatever becomes of the caller.
 *
 * Implements RT-080 to RT-091, RT-111, RT-133, RT-163 to RT-168.
 *
 * @since 0.1.0
 */
import {
  assistantMessageIdOf,
  QueueFull,
  RuntimeDisposed,
  ScopeMismatch,
  SessionClosed,
  SessionNotFound,
  SessionReadOnly,
  SessionRecovering,
  SessionTurnInProgress,
  SubmissionConflict,
  SubmissionNotFound,
  type RuntimeError
} from "@tackroom/protocol"
import {
  isTerminalType,
  type PromptInput,
  type PromptPart,
  type TurnOrigin,
  type TurnOutcome
} from "@tackroom/protocol/events"
import { Context, Deferred, Effect, Exit, FiberMap, FiberSet, Layer } from "effect"
import type { TurnBudget } from "../harness/Harness.ts"
import type { QueueRow, ReceiptRow, TurnRow } from "../store/Rows.ts"
import type {
  AdmissionDecision,
  AdmissionState,
  AdmitOutcome,
  Committed,
  NewEntry,
  OpFailed,
  StoreFailure,
  StoreOp,
  WriteOptions
} from "../store/RuntimeStore.ts"
import { numbered } from "../store/QueueRows.ts"
import { Store } from "../store/Store.ts"
import { ActiveTurn, ActiveTurns, type Opened } from "./ActiveTurns.ts"
import { checkAttachments, checkPrompt, titleOf, type CheckedPrompt } from "./Admission.ts"
import { fromAnswer } from "./Answers.ts"
import { Cancelling, refOf } from "./Cancelling.ts"
import { Hub } from "./Hub.ts"
import { Journal } from "./Journal.ts"
import { Leases } from "./Leases.ts"
import { Minting } from "./Minting.ts"
import { NativeSessions } from "./NativeSessions.ts"
import { Options, type Answer } from "./Options.ts"
import { queueUpdate } from "./PublicRows.ts"
import type { TurnFold, TurnPhase } from "./TurnFold.ts"
import { admit, admitWhileRecovering, queueLimit, type AdmissionKind } from "./TurnMachine.ts"
import { TurnRunner } from "./TurnRunner.ts"

/** What a caller submits (4.2). */
export interface StartTurn extends PromptInput {
  readonly sessionId: string
  readonly directory?: string
  readonly onAdmitted?: (admission: Admission) => Answer<void>
}

/** What only the embedding package may add (D-30). */
export interface EmbeddedStart {
  readonly origin?: TurnOrigin
  /** Rows that commit with the admission; called with what it is about to answer. */
  readonly ops?: WriteOptions<AdmitOutcome>["ops"]
  readonly others?: WriteOptions<AdmitOutcome>["others"]
  readonly budget?: TurnBudget
  /** The turn of a child session, or an id with a reserved prefix. */
  readonly own?: boolean
}

/** The answer of a start, given when the admission is committed. */
export interface Admission {
  readonly sessionId: string
  readonly directory: string
  readonly turnId?: string
  readonly userMessageId: string
  readonly assistantMessageId: string
  readonly delivery: "start" | "steer" | "queue"
  readonly duplicate: boolean
  readonly startCursor: number
  readonly steering?: {
    readonly ok: boolean
    readonly status?: "no_active_turn" | "declined" | "unsupported" | "unknown"
  }
}

/** The answer of an abort (4.2). */
export type AbortResult =
  | { readonly ok: true; readonly status: "cancelled" | "already_idle" }
  | { readonly ok: false; readonly status: "not_found" | "recovering" | "failed"; readonly message: string }

type StartFailure = RuntimeError | OpFailed

/** Recovers a session whose turn has no live owner; set by the recovery module. */
export type RecoverSession = (sessionId: string) => Effect.Effect<void, RuntimeError>

export class Turns extends Context.Service<
  Turns,
  {
    readonly start: (input: StartTurn, embedded?: EmbeddedStart) => Effect.Effect<Admission, StartFailure>
    readonly abort: (
      sessionId: string,
      options?: {
        readonly directory?: string
        readonly turnId?: string
        readonly reason?: "requested" | "parent" | "goal"
      }
    ) => Effect.Effect<AbortResult, RuntimeError>
    readonly wait: (sessionId: string, messageId: string) => Effect.Effect<TurnOutcome, RuntimeError>
    readonly whenIdle: (sessionId: string) => Effect.Effect<void, RuntimeError>
    /** What the session's turn is doing now; undefined when no turn runs here. */
    readonly phase: (sessionId: string) => TurnPhase | undefined
    /** Starts the first entry of a queue that may start (RT-111, RT-119). */
    readonly startNext: (sessionId: string) => Effect.Effect<void, StartFailure>
    /** Runs a turn that recovery took up. */
    readonly takeUp: (input: {
      readonly session: AdmissionState["session"]
      readonly turn: TurnRow
      readonly lease: NonNullable<AdmissionState["lease"]>
      readonly mode: "run" | "recover"
      readonly fold: TurnFold
    }) => ActiveTurn
    readonly launch: (active: ActiveTurn) => void
    readonly recoverWith: (recover: RecoverSession) => void
    readonly stopAll: (how: "cancel" | "leave") => Effect.Effect<void>
  }
>()("@tackroom/sdk/runtime/Turns") {
  static readonly layer = Layer.effect(
    Turns,
    Effect.gen(function* () {
      const store = yield* Store
      const journal = yield* Journal
      const hub = yield* Hub
      const actives = yield* ActiveTurns
      const runner = yield* TurnRunner
      const natives = yield* NativeSessions
      const leases = yield* Leases
      const cancelling = yield* Cancelling
      const options = yield* Options
      const minting = yield* Minting
      const fibers = yield* FiberMap.make<string, void>()
      const fork = yield* FiberMap.runtime(fibers)()
      const queueStarts = yield* FiberSet.make<void>()
      const forkQueueStart = yield* FiberSet.runtime(queueStarts)()
      let recoverSession: RecoverSession = () => Effect.void
      let stopping = false

      // ------------------------------------------------------------ the admission transaction

      interface Plan {
        readonly sessionId: string
        readonly checked: CheckedPrompt
        readonly messageId: string
        readonly origin: TurnOrigin
        readonly entry: NewEntry
        readonly fromQueue: boolean
        readonly fallback: boolean
        readonly own: boolean
        readonly hasPlace: boolean
      }

      /** What the decision found out beside its answer. */
      interface Finding {
        recover: boolean
        examine: string | undefined
      }

      const decision =
        (plan: Plan, finding: Finding) =>
        (state: AdmissionState): AdmissionDecision => {
          const active = actives.get(plan.sessionId)
          const here = active !== undefined && active.turn.id === state.openTurn?.id
          const live = here || leases.isLive(state.lease, state.now)
          const ownButGone = !here && state.lease?.owner === leases.owner
          const view = {
            receipt:
              state.receipt === undefined ? undefined : { digest: state.receipt.digest, state: state.receipt.state },
            archived: state.session.archivedAt !== null,
            closed: false,
            openTurn: state.openTurn === undefined ? undefined : { live: live && !ownButGone, here },
            queueLength: state.queue.length,
            queueHeld: state.session.queueHeld !== null,
            child: state.session.parentId !== null
          }
          const request = {
            digest: plan.checked.digest,
            delivery: plan.checked.prompt.delivery,
            fromQueue: plan.fromQueue,
            mayStartChild: plan.own,
            fallback: plan.fallback
          }
          const kind: AdmissionKind =
            active?.recovering === true ? admitWhileRecovering(view, request) : admit(view, request)
          const { sessionId, messageId } = plan
          const assistantId = assistantMessageIdOf(messageId)
          const refuse = (error: RuntimeError): AdmissionDecision => ({ _tag: "Refused", error })
          switch (kind._tag) {
            case "Duplicate":
              return state.receipt === undefined
                ? refuse(new SubmissionNotFound({ messageId }))
                : { _tag: "Duplicate", receipt: state.receipt }
            case "Conflict":
              return refuse(
                new SubmissionConflict({
                  messageId,
                  ...(state.receipt === undefined ? {} : { digest: state.receipt.digest })
                })
              )
            case "Closed":
              return refuse(new SessionClosed({ sessionId }))
            case "ReadOnly":
              return refuse(new SessionReadOnly({ sessionId }))
            case "Recovering":
              return refuse(new SessionRecovering({ sessionId }))
            case "RecoverFirst":
              finding.recover = true
              return refuse(new SessionRecovering({ sessionId }))
            case "QueueFull":
              return refuse(new QueueFull({ limit: queueLimit }))
            case "Busy": {
              if (!here && state.lease !== undefined && state.lease.owner !== leases.owner)
                finding.examine = state.lease.owner
              return refuse(
                new SessionTurnInProgress({
                  sessionId,
                  ...(state.openTurn === undefined ? {} : { turnId: state.openTurn.id }),
                  ...(state.session.phase === null ? {} : { phase: state.session.phase })
                })
              )
            }
            case "Queue": {
              const { prompt, parts, digest } = plan.checked
              return {
                _tag: "Queued",
                row: {
                  sessionId,
                  messageId,
                  prompt,
                  parts,
                  author: prompt.author ?? null,
                  delivery: prompt.delivery ?? "queue",
                  digest,
                  createdAt: state.now
                },
                receipt: { sessionId, messageId, digest, state: "queued", turnId: null, endSeq: null, outcome: null },
                entries: (entries, revision) => [
                  { payload: queueUpdate({ entries, revision, held: state.session.queueHeld }) }
                ]
              }
            }
            case "Steer": {
              const turn = state.openTurn
              if (turn === undefined) return refuse(new SessionTurnInProgress({ sessionId }))
              return {
                _tag: "Steering",
                turn,
                receipt: {
                  sessionId,
                  messageId,
                  digest: plan.checked.digest,
                  state: "steering",
                  turnId: turn.id,
                  endSeq: null,
                  outcome: null
                }
              }
            }
            case "Start":
              return started(plan, state, assistantId)
          }
        }

      const started = (plan: Plan, state: AdmissionState, assistantId: string): AdmissionDecision => {
        const { sessionId, messageId, checked } = plan
        const turnId = minting.id("turn")
        // The hand-over is the next step: it is marked in this very transaction (see TurnRunner).
        const handedOver = plan.hasPlace && natives.opened(sessionId) !== undefined
        const phase = handedOver ? "running" : "starting"
        const title = state.session.title === null ? titleOf(checked.parts) : undefined
        const rest = plan.fromQueue ? state.queue.filter((row) => row.messageId !== messageId) : state.queue
        const entries: Array<NewEntry> = [
          { ...plan.entry, turnId },
          { payload: { type: "session-status", status: "busy", phase }, turnId },
          { payload: { type: "turn-start", messageId, assistantMessageId: assistantId, origin: plan.origin }, turnId }
        ]
        if (title !== undefined)
          entries.push({ payload: { type: "session-title", title, titleSource: "prompt" }, turnId })
        if (plan.fromQueue) {
          entries.push({
            payload: queueUpdate({
              entries: numbered(rest),
              revision: state.session.queueRevision + 1,
              held: state.session.queueHeld
            })
          })
        }
        return {
          _tag: "Started",
          turn: {
            id: turnId,
            sessionId,
            messageId,
            assistantId,
            origin: plan.origin,
            state: handedOver ? "running" : "starting",
            handedOver,
            outcome: null,
            endSeq: null,
            prompt: checked.prompt,
            recoveries: 0,
            cancelRequested: false,
            createdAt: state.now,
            endedAt: null
          },
          receipt: {
            sessionId,
            messageId,
            digest: checked.digest,
            state: "admitted",
            turnId,
            endSeq: null,
            outcome: null
          },
          lease: leases.request(),
          entries,
          session: { status: "busy", phase, updatedAt: state.now },
          ...(plan.fromQueue ? { dequeue: messageId } : {})
        }
      }

      /** The `user-message` entry; inline data and large text go into artifacts ahead of it (RT-211). */
      const messageEntry = Effect.fnUntraced(function* (
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
          const row = yield* store.putArtifact(sessionId, part.mime, fromBase64(part.data))
          rows.push(row)
          parts.push({
            type: "file",
            mime: part.mime,
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
        fold?: TurnFold
      ): ActiveTurn => {
        const active = new ActiveTurn({
          session,
          turn,
          lease,
          log: journal.open({
            sessionId: session.id,
            turnId: turn.id,
            fence: lease.fence,
            ...(fold === undefined ? {} : { fold })
          }),
          budget: budget ?? options.embedder.budgets?.(session, turn),
          mode
        })
        active.opened = natives.opened(session.id)
        actives.add(active)
        return active
      }

      const remember = (session: AdmissionState["session"]): void => {
        hub.learn({
          sessionId: session.id,
          workspaceId: session.workspaceId,
          directory: session.directory,
          parentId: session.parentId,
          rootId: session.rootId
        })
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
                      const active = register(outcome.session, outcome.turn, outcome.lease, embedded.budget, "run")
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

      const receiptAdmission = (receipt: ReceiptRow, directory: string, duplicate: boolean): Admission => ({
        sessionId: receipt.sessionId,
        directory,
        ...(receipt.turnId === null ? {} : { turnId: receipt.turnId }),
        userMessageId: receipt.messageId,
        assistantMessageId: assistantMessageIdOf(receipt.messageId),
        delivery:
          receipt.state === "queued" || receipt.state === "removed"
            ? "queue"
            : receipt.state === "steering" || receipt.state === "steered" || receipt.state === "uncertain"
              ? "steer"
              : "start",
        duplicate,
        startCursor: receipt.startSeq,
        ...(receipt.state === "steered" ? { steering: { ok: true } } : {}),
        ...(receipt.state === "uncertain" ? { steering: { ok: false, status: "unknown" as const } } : {})
      })

      const admissionOf = (outcome: AdmitOutcome, directory: string): Admission =>
        receiptAdmission(outcome.receipt, directory, outcome._tag === "Duplicate")

      // ------------------------------------------------------------ start

      const directoryOf = (sessionId: string): Effect.Effect<string, StoreFailure | RuntimeError> =>
        Effect.suspend(() => {
          const facts = hub.facts(sessionId)
          if (facts !== undefined) return Effect.succeed(facts.directory)
          return Effect.flatMap(store.getSession(sessionId), (row) => {
            if (row === undefined) return Effect.fail(new SessionNotFound({ sessionId }))
            remember(row)
            return Effect.succeed(row.directory)
          })
        })

      const admitRetrying = Effect.fnUntraced(function* (
        plan: Omit<Plan, "hasPlace">,
        embedded: EmbeddedStart,
        onAdmitted?: (admission: Admission) => Answer<void>
      ): Effect.fn.Return<Committed<AdmitOutcome>, StartFailure> {
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
        const entry = yield* messageEntry(sessionId, messageId, checked, "start")
        const committed = yield* admitRetrying(
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
          return yield* Effect.uninterruptible(lostSteer(outcome.receipt, checked, directory))
        }
        if (outcome._tag !== "Steering") return admissionOf(outcome, directory)
        const key = steerKey(sessionId, messageId)
        steers.add(key)
        return yield* Effect.uninterruptible(steer(outcome, checked, directory, own)).pipe(
          Effect.ensuring(Effect.sync(() => steers.delete(key)))
        )
      })

      const steers = new Set<string>()
      const steerKey = (sessionId: string, messageId: string): string => `${sessionId}\u0000${messageId}`

      /** A steer whose answer went down with its process becomes uncertain when it is asked for again (RT-088). */
      const lostSteer = Effect.fnUntraced(function* (
        receipt: ReceiptRow,
        checked: CheckedPrompt,
        directory: string
      ): Effect.fn.Return<Admission, StartFailure> {
        const { sessionId, messageId, turnId } = receipt
        if (steers.has(steerKey(sessionId, messageId))) return receiptAdmission(receipt, directory, true)
        const entry = yield* messageEntry(sessionId, messageId, checked, "steer", true)
        const committed = yield* journal.write(
          store.updateReceipt(sessionId, messageId, "uncertain", [
            { ...entry, ...(turnId === null ? {} : { afterTurn: turnId }) }
          ])
        )
        return receiptAdmission(committed.value, directory, true)
      })

      const checkFiles = Effect.fnUntraced(function* (sessionId: string, checked: CheckedPrompt) {
        const row = yield* store.getSession(sessionId)
        if (row === undefined) return yield* new SessionNotFound({ sessionId })
        const driver = yield* natives.driver(row)
        const capabilities = yield* driver.capabilities({ directory: row.directory, sessionId })
        yield* checkAttachments(checked.parts, capabilities)
      })

      // ------------------------------------------------------------ steer

      const handToTurn = (active: ActiveTurn, opened: Opened, prompt: PromptInput) =>
        Effect.gen(function* () {
          const answer = yield* Effect.exit(
            Effect.raceFirst(
              Effect.timeoutOption(opened.driver.steer(refOf(active, opened), prompt), options.steerTimeoutMs),
              // The process died, or the turn ended, before it answered.
              Effect.as(Deferred.await(active.gone), { _tag: "None" } as const)
            )
          )
          if (Exit.isSuccess(answer)) return answer.value._tag === "Some" ? answer.value.value : "unknown"
          const error = Exit.findErrorOption(answer)
          return error._tag === "Some" && error.value._tag === "UnsupportedOperation" ? "unsupported" : "unknown"
        })

      /** RT-087, RT-088, and the three steer rows of table 5.1. */
      const steer = Effect.fnUntraced(function* (
        outcome: Extract<AdmitOutcome, { readonly _tag: "Steering" }>,
        checked: CheckedPrompt,
        directory: string,
        own: boolean
      ): Effect.fn.Return<Admission, StartFailure> {
        const { receipt, turn } = outcome
        const { sessionId, messageId } = receipt
        const active = actives.get(sessionId)
        const opened = active?.opened
        const status =
          active === undefined || active.turn.id !== turn.id || opened === undefined
            ? "no_active_turn"
            : yield* handToTurn(active, opened, checked.prompt)
        const base = { ...receiptAdmission(receipt, directory, false), delivery: "steer" as const, turnId: turn.id }
        if (status === "taken" || status === "unknown") {
          const unknown = status === "unknown"
          const entry = yield* messageEntry(sessionId, messageId, checked, "steer", unknown)
          const placed = { ...entry, turnId: turn.id }
          const settledTurn = active === undefined || active.ending
          if (active !== undefined && !settledTurn) yield* Effect.ignore(active.log.flush)
          yield* journal.write(
            store.updateReceipt(sessionId, messageId, unknown ? "uncertain" : "steered", [
              actives.get(sessionId) === active && active !== undefined && !active.ending
                ? placed
                : { ...entry, afterTurn: turn.id }
            ])
          )
          return {
            ...base,
            assistantMessageId: turn.assistantId,
            steering: unknown ? { ok: false, status: "unknown" } : { ok: true }
          }
        }
        const entry = yield* messageEntry(sessionId, messageId, checked, "start")
        const fallback = yield* admitRetrying(
          { sessionId, checked, messageId, origin: "user", entry, fromQueue: false, fallback: true, own },
          {}
        )
        const admission = admissionOf(fallback.value, directory)
        return { ...admission, duplicate: false, steering: { ok: false, status } }
      })

      // ------------------------------------------------------------ the queue's next

      const startEntry = Effect.fnUntraced(function* (row: QueueRow): Effect.fn.Return<void, StartFailure> {
        const checked: CheckedPrompt = { prompt: row.prompt, parts: row.parts, digest: row.digest, hasFiles: false }
        const entry = yield* messageEntry(row.sessionId, row.messageId, checked, "queue")
        yield* admitRetrying(
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

      runner.onSettled((sessionId, next) => {
        if (next === undefined || stopping) return
        forkQueueStart(
          startNext(sessionId).pipe(
            Effect.catch((error) => Effect.logWarning("A queued message could not start", error))
          )
        )
      })

      // ------------------------------------------------------------ abort, wait

      const launch = (active: ActiveTurn): void => {
        active.launched = true
        fork(
          active.turn.id,
          Effect.suspend(() => runner.run(active, runner.places.take()))
        )
      }

      const settledStatus = (outcome: TurnOutcome): AbortResult => {
        if (outcome.status === "cancelled") return { ok: true, status: "cancelled" }
        if (outcome.status === "failed" && outcome.error.code === "cancel_unacknowledged") {
          return { ok: false, status: "failed", message: outcome.error.message }
        }
        return { ok: true, status: "already_idle" }
      }

      const abortHere = (active: ActiveTurn, reason: "requested" | "parent" | "goal"): Effect.Effect<AbortResult> =>
        Effect.gen(function* () {
          cancelling.begin(active, { _tag: "Asked", reason })
          if (!active.launched) launch(active)
          const bound = options.cancelGraceMs + options.killGraceMs + 3_000
          const ended = yield* Effect.timeoutOption(
            Effect.raceFirst(
              Effect.map(Deferred.await(active.settled), settledStatus),
              Effect.as(Deferred.await(active.gone), undefined)
            ),
            bound
          )
          if (ended._tag === "Some" && ended.value !== undefined) return ended.value
          if (Deferred.isDoneUnsafe(active.settled)) return settledStatus(yield* Deferred.await(active.settled))
          return { ok: false, status: "failed", message: "The turn did not end in time" }
        })

      const abort = Effect.fnUntraced(function* (
        sessionId: string,
        how: {
          readonly directory?: string
          readonly turnId?: string
          readonly reason?: "requested" | "parent" | "goal"
        } = {}
      ): Effect.fn.Return<AbortResult, RuntimeError> {
        const active = actives.get(sessionId)
        if (active !== undefined) {
          if (how.directory !== undefined && active.session.directory !== how.directory) {
            return yield* new ScopeMismatch({ sessionId })
          }
          if (how.turnId !== undefined && active.turn.id !== how.turnId) return { ok: true, status: "already_idle" }
          return yield* abortHere(active, how.reason ?? "requested")
        }
        const row = yield* store.getSession(sessionId)
        if (row === undefined) return { ok: false, status: "not_found", message: `There is no session ${sessionId}` }
        if (how.directory !== undefined && row.directory !== how.directory)
          return yield* new ScopeMismatch({ sessionId })
        const [open] = yield* store.openTurns({ sessionId })
        if (open === undefined || (how.turnId !== undefined && open.id !== how.turnId)) {
          return { ok: true, status: "already_idle" }
        }
        // Left over from a crash: taken over, then cancelled (RT-168).
        yield* recoverSession(sessionId)
        const taken = actives.get(sessionId)
        if (taken !== undefined) return yield* abortHere(taken, how.reason ?? "requested")
        const after = yield* store.openTurns({ sessionId })
        return after.length === 0
          ? { ok: true, status: "cancelled" }
          : { ok: false, status: "failed", message: "Another process works on this session" }
      })

      const wait = Effect.fnUntraced(function* (
        sessionId: string,
        messageId: string
      ): Effect.fn.Return<TurnOutcome, RuntimeError> {
        const active = actives.get(sessionId)
        if (active !== undefined && active.turn.messageId === messageId && !active.ending) {
          // Lost here: the outcome is another owner's to write, and the receipt tells it.
          const outcome = yield* Effect.raceFirst(
            Deferred.await(active.settled),
            Effect.as(Deferred.await(active.gone), undefined)
          )
          if (outcome !== undefined) return outcome
        }
        // Waits on the session's events, which other processes' commits reach too.
        let changed = Deferred.makeUnsafe<void>()
        const stop = hub.subscribe([sessionId], (envelope) => {
          const type = envelope.payload.type
          if (isTerminalType(type) || type === "queue-update" || type === "session-closed") {
            queueMicrotask(() => Deferred.doneUnsafe(changed, Exit.void))
          }
        })
        return yield* Effect.gen(function* () {
          while (true) {
            changed = Deferred.makeUnsafe<void>()
            const receipt = yield* store.receipt(sessionId, messageId)
            if (receipt === undefined) {
              const row = yield* store.getSession(sessionId)
              return yield* Effect.fail(
                row === undefined ? new SessionNotFound({ sessionId }) : new SubmissionNotFound({ messageId })
              )
            }
            const outcome = yield* outcomeOfReceipt(receipt)
            if (outcome !== undefined) return outcome
            if (receipt.state === "removed") return yield* new SubmissionNotFound({ messageId })
            yield* Deferred.await(changed)
          }
        }).pipe(Effect.ensuring(Effect.sync(stop)))
      })

      /** A steered message ends with the turn that took it. */
      const outcomeOfReceipt = (receipt: ReceiptRow): Effect.Effect<TurnOutcome | undefined, StoreFailure> =>
        receipt.outcome !== null
          ? Effect.succeed(receipt.outcome)
          : receipt.turnId !== null && (receipt.state === "steered" || receipt.state === "uncertain")
            ? Effect.map(store.turn(receipt.turnId), (turn) => turn?.outcome ?? undefined)
            : Effect.succeed(undefined)

      const whenIdle = Effect.fnUntraced(function* (sessionId: string): Effect.fn.Return<void, RuntimeError> {
        let changed = Deferred.makeUnsafe<void>()
        const stop = hub.subscribe([sessionId], (envelope) => {
          if (isTerminalType(envelope.payload.type)) queueMicrotask(() => Deferred.doneUnsafe(changed, Exit.void))
        })
        yield* Effect.gen(function* () {
          while (true) {
            changed = Deferred.makeUnsafe<void>()
            const active = actives.get(sessionId)
            if (active !== undefined) {
              yield* Effect.raceFirst(Effect.asVoid(Deferred.await(active.settled)), Deferred.await(active.gone))
              continue
            }
            const row = yield* store.getSession(sessionId)
            if (row === undefined) return yield* new SessionNotFound({ sessionId })
            const open = yield* store.openTurns({ sessionId })
            if (open.length === 0) return
            yield* Deferred.await(changed)
          }
        }).pipe(Effect.ensuring(Effect.sync(stop)))
      })

      // ------------------------------------------------------------ the end of the runtime

      const stopAll = (how: "cancel" | "leave"): Effect.Effect<void> =>
        Effect.gen(function* () {
          stopping = true
          const running = [...actives.all()]
          for (const active of running) {
            if (!active.launched) launch(active)
            if (how === "cancel") cancelling.begin(active, { _tag: "Asked", reason: "shutdown" })
            else Deferred.doneUnsafe(active.stop, Exit.succeed({ _tag: "Left" }))
          }
          const bound = how === "cancel" ? 17_000 : 4_500
          yield* Effect.timeoutOption(
            Effect.forEach(running, (active) => Deferred.await(active.gone), {
              concurrency: "unbounded",
              discard: true
            }),
            bound
          )
          if (how === "leave") return
          // What could not be ended in time is said to be interrupted, never cancelled (RT-024).
          yield* Effect.timeoutOption(
            Effect.forEach(
              [...actives.all()].filter((active) => !active.ending),
              (active) => {
                active.cancel = { _tag: "None" }
                return runner.finish(active, {
                  _tag: "Failed",
                  code: "turn_interrupted",
                  message: "The runtime was closed before the harness ended the turn"
                })
              },
              { concurrency: "unbounded", discard: true }
            ),
            2_000
          )
        })

      return Turns.of({
        start,
        abort,
        wait,
        whenIdle,
        phase: (sessionId) => actives.get(sessionId)?.phase(),
        startNext,
        takeUp: ({ session, turn, lease, mode, fold }) => {
          remember(session)
          return register(session, turn, lease, undefined, mode, fold)
        },
        launch,
        recoverWith: (recover) => {
          recoverSession = recover
        },
        stopAll
      })
    })
  )
}

const fromBase64 = (data: string): Uint8Array => Uint8Array.from(atob(data), (char) => char.charCodeAt(0))

/** Rows of the embedder that go with an admission. */
export type AdmissionOps = ReadonlyArray<StoreOp>
