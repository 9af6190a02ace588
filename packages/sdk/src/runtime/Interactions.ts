/**
 * Permissions and questions (7.4): a driver asks, a person or a policy decides, the driver goes on. It owns the order: a
 * request is committed before anyone waits on it, a decision before the harness learns it. Grants are the host's: they come
 * in as rows (`ops`) that commit with the decision.
 *
 * Implements RT-250 to RT-264 and D-29.
 *
 * @since 0.1.0
 */
import {
  AnswerInvalid,
  HarnessRejected,
  InteractionAlreadyResolved,
  InteractionNotFound,
  InteractionWithdrawn,
  OptionNotOffered,
  ScopeMismatch,
  type RuntimeError,
  type SessionGone,
  type SessionNotFound,
  type SessionTurnFenceStale
} from "@tackroom/protocol"
import type {
  Decision,
  EventPayload,
  Interaction,
  Origin,
  PermissionOption,
  Resolution,
  WithdrawalReason
} from "@tackroom/protocol/events"
import { Context, Deferred, Effect, Exit, FiberSet, Layer } from "effect"
import {
  Withdrawn,
  type PermissionAsk,
  type PermissionDecision,
  type QuestionAnswer,
  type QuestionAsk
} from "../harness/Harness.ts"
import type { InteractionRow, PermissionSubject, QuestionSubject } from "../store/Rows.ts"
import type { NewEntry, OpFailed, ResolveOutcome, StoreFailure, StoreOp } from "../store/RuntimeStore.ts"
import { Store } from "../store/Store.ts"
import { ActiveTurns, type ActiveTurn, type OpenAsk, type Settled } from "./ActiveTurns.ts"
import { fromAnswer } from "./Answers.ts"
import { Hub } from "./Hub.ts"
import { isLost, Journal } from "./Journal.ts"
import { Minting, timestamp } from "./Minting.ts"
import { Options, type PolicyDecision } from "./Options.ts"
import { interactionOf, sessionOf } from "./PublicRows.ts"
import { Secrets } from "./Secrets.ts"

/** Pending interactions of one session (3.1). */
export const interactionLimit = 64

/** What a caller answers. */
export type Response =
  | { readonly decision: Decision; readonly optionId?: string; readonly note?: string }
  | { readonly answers: ReadonlyArray<ReadonlyArray<string>> | null }

/** Where the caller believes the interaction to be; checked (RT-255). */
export interface ResponseScope {
  readonly sessionId?: string
  readonly directory?: string
  readonly workspaceId?: string
  readonly by?: string
}

/** What only the embedding package may add to a response. */
export interface EmbeddedResponse extends ResponseScope {
  /** Default `person`. */
  readonly origin?: Origin
  /** Rows that commit with the decision; none when it was decided before. */
  readonly ops?: ReadonlyArray<StoreOp> | ((outcome: ResolveOutcome) => ReadonlyArray<StoreOp>)
  /** Further pending interactions of the same session which this decision settles too (RUN-446). */
  readonly also?: (pending: ReadonlyArray<InteractionRow>) => ReadonlyArray<{
    readonly id: string
    readonly response: Response
    readonly origin: Origin
  }>
}

export interface ResponseResult {
  readonly status: "resolved" | "already_resolved"
  readonly resolution: Resolution
  /** The harness got it. False when it is gone; the decision stays recorded (RT-261). */
  readonly delivered: boolean
  /** Ids of the interactions that `also` settled. */
  readonly also: ReadonlyArray<string>
}

const secretText = "[secret]"

/** The option a decision stands for (RT-253, RT-254); undefined: the harness's plain refusal or allowance. */
export const chooseOption = (
  id: string,
  options: ReadonlyArray<PermissionOption>,
  decision: Decision,
  optionId: string | undefined
): { readonly optionId: string | undefined } | OptionNotOffered => {
  const refuse = () => new OptionNotOffered({ id, options: options.map((option) => option.id) })
  if (optionId !== undefined) {
    return options.some((option) => option.id === optionId) ? { optionId } : refuse()
  }
  const kind = decision === "deny" ? "reject_once" : decision
  const found = options.find((option) => option.kind === kind)
  if (found !== undefined) return { optionId: found.id }
  return decision === "allow_always" || decision === "reject_always" ? refuse() : { optionId: undefined }
}

/** Whether answers fit their questions (RT-259). */
export const answersProblem = (
  subject: QuestionSubject,
  answers: ReadonlyArray<ReadonlyArray<string>>
): string | undefined => {
  if (answers.length !== subject.questions.length) return "one list of answers per question"
  for (const [i, question] of subject.questions.entries()) {
    const given = answers[i] ?? []
    if (question.multiple !== true && given.length > 1) return `question ${i + 1} takes one answer`
    if (question.custom === false) {
      const outside = given.find((answer) => !question.options.some((option) => option.label === answer))
      if (outside !== undefined) return `question ${i + 1} takes one of its options`
    }
  }
  return undefined
}

const sameResolution = (stored: Resolution, given: Resolution): boolean => {
  if ("decision" in stored) {
    return (
      "decision" in given &&
      stored.decision === given.decision &&
      (given.optionId === undefined || stored.optionId === given.optionId)
    )
  }
  return "answers" in given && JSON.stringify(stored.answers) === JSON.stringify(given.answers)
}

const isPermission = (row: InteractionRow): row is InteractionRow & { readonly request: PermissionSubject } =>
  row.kind === "permission"

const requestEvent = (row: InteractionRow): EventPayload => {
  if (isPermission(row)) return { type: "permission-request", requestId: row.id, ...row.request }
  return { type: "question", requestId: row.id, ...(row.request as QuestionSubject) }
}

const resolvedEvent = (row: InteractionRow, resolution: Resolution): EventPayload => {
  const by = resolution.by === undefined ? {} : { by: resolution.by }
  if ("decision" in resolution) {
    const subject = row.request as PermissionSubject
    return {
      type: "permission-resolved",
      requestId: row.id,
      tool: subject.tool,
      ...(subject.toolCallId === undefined ? {} : { toolCallId: subject.toolCallId }),
      decision: resolution.decision,
      ...(resolution.optionId === undefined ? {} : { optionId: resolution.optionId }),
      ...(resolution.note === undefined ? {} : { note: resolution.note }),
      ...by,
      origin: resolution.origin
    }
  }
  return resolution.answers === null
    ? { type: "question-rejected", requestId: row.id, ...by, origin: resolution.origin }
    : { type: "question-answered", requestId: row.id, answers: resolution.answers, ...by, origin: resolution.origin }
}

export class Interactions extends Context.Service<
  Interactions,
  {
    readonly askPermission: (ask: PermissionAsk) => Effect.Effect<PermissionDecision, Withdrawn | HarnessRejected>
    readonly askQuestion: (ask: QuestionAsk) => Effect.Effect<QuestionAnswer, Withdrawn | HarnessRejected>
    readonly respond: (
      id: string,
      response: Response,
      options?: EmbeddedResponse
    ) => Effect.Effect<ResponseResult, RuntimeError | OpFailed>
    /** Withdraws what is pending of a turn; drivers that wait are told. */
    readonly withdraw: (active: ActiveTurn, reason: WithdrawalReason) => Effect.Effect<void, StoreFailure>
    /** Withdraws what a recovered turn's driver did not offer again (5.6). */
    readonly withdrawUnoffered: (active: ActiveTurn) => Effect.Effect<void, StoreFailure>
    readonly list: (filter: {
      readonly sessionId?: string
      readonly rootId?: string
      readonly kind?: "permission" | "question"
      readonly directory?: string
      readonly workspaceId?: string
    }) => Effect.Effect<ReadonlyArray<Interaction>, RuntimeError>
    readonly row: (id: string) => Effect.Effect<InteractionRow | undefined, StoreFailure>
  }
>()("@tackroom/sdk/runtime/Interactions") {
  static readonly layer = Layer.effect(
    Interactions,
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
        return resolutionOf(row, decision, decision.origin, decision.by)
      })

      const resolutionOf = (
        row: InteractionRow,
        response: Response,
        origin: Origin,
        by: string | undefined
      ): Resolution | OptionNotOffered | AnswerInvalid => {
        const rest = { ...(by === undefined ? {} : { by }), origin, at: timestamp(minting.now()) }
        if ("decision" in response) {
          if (!isPermission(row)) return new AnswerInvalid({ id: row.id, reason: "it is a question" })
          const choice = chooseOption(row.id, row.request.options, response.decision, response.optionId)
          if (choice instanceof OptionNotOffered) return choice
          return {
            decision: response.decision,
            ...(choice.optionId === undefined ? {} : { optionId: choice.optionId }),
            ...(response.note === undefined ? {} : { note: known.text(response.note) }),
            ...rest
          }
        }
        if (isPermission(row)) return new AnswerInvalid({ id: row.id, reason: "it is a permission" })
        const subject = row.request as QuestionSubject
        if (response.answers === null) return { answers: null, ...rest }
        const problem = answersProblem(subject, response.answers)
        if (problem !== undefined) return new AnswerInvalid({ id: row.id, reason: problem })
        const answers = response.answers.map((given, i) =>
          subject.questions[i]?.secret === true ? given.map(() => secretText) : given
        )
        return { answers, ...rest }
      }

      const learnSecrets = (row: InteractionRow, response: Response): boolean => {
        if (!("answers" in response) || response.answers === null || isPermission(row)) return false
        let any = false
        for (const [i, question] of (row.request as QuestionSubject).questions.entries()) {
          if (question.secret !== true) continue
          any = true
          for (const answer of response.answers[i] ?? []) known.add("answer", answer)
        }
        return any
      }

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
          request: known.value(request),
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
        ask: { readonly sessionId: string; readonly turnId: string; readonly nativeRequestId: string },
        kind: InteractionRow["kind"],
        request: InteractionRow["request"]
      ) {
        const active = actives.get(ask.sessionId)
        if (active === undefined || active.turn.id !== ask.turnId || active.ending) {
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
          })
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

      // ------------------------------------------------------------ answering

      const inScope = (row: InteractionRow, scope: ResponseScope): Effect.Effect<boolean, StoreFailure> =>
        Effect.suspend(() => {
          if (scope.sessionId !== undefined && scope.sessionId !== row.sessionId) return Effect.succeed(false)
          if (scope.directory === undefined && scope.workspaceId === undefined) return Effect.succeed(true)
          return Effect.map(
            store.getSession(row.sessionId).pipe(Effect.catchTag("SessionGone", () => Effect.succeed(undefined))),
            (session) =>
              session !== undefined &&
              (scope.directory === undefined || scope.directory === session.directory) &&
              (scope.workspaceId === undefined || scope.workspaceId === session.workspaceId)
          )
        })

      const respondOne = Effect.fnUntraced(function* (
        row: InteractionRow,
        response: Response,
        origin: Origin,
        extra: Pick<EmbeddedResponse, "by" | "ops">
      ) {
        const resolution = resolutionOf(row, response, origin, extra.by)
        if (resolution instanceof OptionNotOffered || resolution instanceof AnswerInvalid) return yield* resolution
        const found = findAsk(row.sessionId, row.id)
        const secret = learnSecrets(row, response)
        if (secret && row.state === "pending" && found?.ask.waiting !== true) {
          // A secret answer is stored nowhere: without a harness that takes it now, it is lost (RT-260).
          yield* journal.write(store.withdrawInteractions([row.id], "process_lost")).pipe(Effect.catchTags(neverOps))
          return yield* new InteractionWithdrawn({ id: row.id, reason: "process_lost" })
        }
        const last = found !== undefined && found.active.pendingAsks <= 1
        const committed = yield* journal.write(
          store.resolveInteraction(
            row.id,
            resolution,
            (stored) => [
              {
                payload: resolvedEvent(stored, resolution),
                ...(stored.turnId === null ? {} : { turnId: stored.turnId })
              }
            ],
            {
              ...(extra.ops === undefined ? {} : { ops: extra.ops }),
              ...(last && found.active.cancelState._tag === "Idle" ? { session: { phase: "running" } } : {})
            }
          ),
          ({ events, value }) => {
            if (found === undefined || value._tag !== "Resolved") return
            for (const event of events) {
              if (event.sessionId === row.sessionId) found.active.log.fold.accept(event.payload)
            }
            markAsk(found.ask, {
              _tag: "Resolved",
              row: value.row,
              ...("answers" in response && response.answers !== null ? { answers: response.answers } : {})
            })
            found.active.waits(minting.now())
          }
        )
        const outcome = committed.value
        if (outcome._tag === "Already") {
          const stored = outcome.row.resolution
          if (stored === null || !sameResolution(stored, resolution)) {
            return yield* new InteractionAlreadyResolved({ id: row.id, resolution: stored ?? resolution })
          }
          return { status: "already_resolved", resolution: stored, delivered: outcome.row.delivered } as const
        }
        const delivered = found !== undefined && tellAsk(found.ask)
        hub.touch(row.sessionId, "interaction")
        return { status: "resolved", resolution: outcome.row.resolution ?? resolution, delivered } as const
      })

      const alreadySettled = Effect.fnUntraced(function* (row: InteractionRow, response: Response) {
        if (row.state === "withdrawn") {
          return yield* new InteractionWithdrawn({ id: row.id, reason: row.withdrawal?.reason ?? "turn_ended" })
        }
        const given = resolutionOf(row, response, "person", undefined)
        if (given instanceof OptionNotOffered || given instanceof AnswerInvalid) return yield* given
        const stored = row.resolution
        if (stored === null) return yield* new AnswerInvalid({ id: row.id })
        if (!sameResolution(stored, given)) {
          return yield* new InteractionAlreadyResolved({ id: row.id, resolution: stored })
        }
        const result: ResponseResult = {
          status: "already_resolved",
          resolution: stored,
          delivered: row.delivered,
          also: []
        }
        return result
      })

      const respond = (
        id: string,
        response: Response,
        extra: EmbeddedResponse = {}
      ): Effect.Effect<ResponseResult, RuntimeError | OpFailed> =>
        Effect.uninterruptible(
          Effect.gen(function* () {
            const row = yield* store.interaction(id)
            if (row === undefined) return yield* new InteractionNotFound({ id })
            if (!(yield* inScope(row, extra))) return yield* new ScopeMismatch({ sessionId: row.sessionId })
            if (row.state !== "pending") return yield* alreadySettled(row, response)
            const result = yield* respondOne(row, response, extra.origin ?? "person", extra)
            const also: Array<string> = []
            if (extra.also !== undefined && result.status === "resolved") {
              const pending = yield* store.interactions({ sessionId: row.sessionId, state: "pending" })
              for (const other of extra.also(pending)) {
                const target = pending.find((candidate) => candidate.id === other.id)
                if (target === undefined) continue
                const settled = yield* Effect.exit(respondOne(target, other.response, other.origin, {}))
                if (Exit.isSuccess(settled)) also.push(other.id)
              }
            }
            return { ...result, also }
          })
        )

      return Interactions.of({
        askPermission: (ask) =>
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
        askQuestion: (ask) =>
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
        respond,
        withdraw: (active, reason) => Effect.suspend(() => withdrawAsks(active, [...active.asks.values()], reason)),
        withdrawUnoffered: (active) =>
          Effect.suspend(() =>
            withdrawAsks(
              active,
              [...active.asks.values()].filter((ask) => !ask.waiting),
              "process_lost"
            )
          ),
        list: (filter) =>
          Effect.gen(function* () {
            const rows = yield* store.interactions({
              state: "pending",
              ...(filter.sessionId === undefined ? {} : { sessionId: filter.sessionId }),
              ...(filter.rootId === undefined ? {} : { rootId: filter.rootId })
            })
            const out: Array<Interaction> = []
            const seen = new Map<string, boolean>()
            for (const row of rows) {
              if (filter.kind !== undefined && row.kind !== filter.kind) continue
              if (filter.directory !== undefined || filter.workspaceId !== undefined) {
                let fits = seen.get(row.sessionId)
                if (fits === undefined) {
                  fits = yield* inScope(row, {
                    ...(filter.directory === undefined ? {} : { directory: filter.directory }),
                    ...(filter.workspaceId === undefined ? {} : { workspaceId: filter.workspaceId })
                  })
                  seen.set(row.sessionId, fits)
                }
                if (!fits) continue
              }
              out.push(interactionOf(row))
            }
            return out
          }),
        row: (id) => store.interaction(id)
      })
    })
  )
}

type AskFailure = Withdrawn | OpFailed | SessionNotFound | SessionGone | SessionTurnFenceStale | StoreFailure

/** Calls that pass no ops and no other sessions cannot fail for them. */
const neverOps = {
  OpFailed: (error: unknown) => Effect.die(error),
  SessionNotFound: (error: unknown) => Effect.die(error),
  SessionGone: (error: unknown) => Effect.die(error),
  SessionTurnFenceStale: (error: unknown) => Effect.die(error)
}

const permissionSubject = (ask: PermissionAsk): PermissionSubject => ({
  tool: ask.tool,
  ...(ask.title === undefined ? {} : { title: ask.title }),
  ...(ask.arguments === undefined ? {} : { arguments: ask.arguments }),
  ...(ask.toolCallId === undefined ? {} : { toolCallId: ask.toolCallId }),
  paths: ask.paths ?? [],
  ...(ask.patterns === undefined ? {} : { patterns: ask.patterns }),
  ...(ask.category === undefined ? {} : { category: ask.category }),
  ...(ask.details === undefined ? {} : { details: ask.details }),
  options: ask.options
})
