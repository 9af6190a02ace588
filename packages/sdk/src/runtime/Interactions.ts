/**
 * Answering permissions and questions (7.4), and listing them: a decision is committed before the harness learns it, and
 * the first one wins. Grants are the host's: they come in as rows (`ops`) that commit with the decision.
 *
 * Implements RT-251, RT-252, RT-255, RT-257, RT-258, RT-260, RT-261.
 *
 * @since 0.1.0
 */
import {
  AnswerInvalid,
  InteractionAlreadyResolved,
  InteractionNotFound,
  InteractionWithdrawn,
  OptionNotOffered,
  ScopeMismatch,
  type RuntimeError
} from "@tackroom/protocol"
import type { Interaction, Origin, Resolution } from "@tackroom/protocol/events"
import { Context, Effect, Exit, Layer } from "effect"
import type { InteractionRow } from "../store/Rows.ts"
import type { OpFailed, ResolveOutcome, StoreFailure, StoreOp } from "../store/RuntimeStore.ts"
import { Store } from "../store/Store.ts"
import { Asks, neverOps } from "./Asks.ts"
import { Hub } from "./Hub.ts"
import { resolutionOf, resolvedEvent, sameResolution, secretAnswers, type Response } from "./InteractionRules.ts"
import { Journal } from "./Journal.ts"
import { Minting, timestamp } from "./Minting.ts"
import { interactionOf } from "./PublicRows.ts"
import { Secrets } from "./Secrets.ts"

export type { Response } from "./InteractionRules.ts"

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

export class Interactions extends Context.Service<
  Interactions,
  {
    readonly respond: (
      id: string,
      response: Response,
      options?: EmbeddedResponse
    ) => Effect.Effect<ResponseResult, RuntimeError | OpFailed>
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
      const asks = yield* Asks
      const minting = yield* Minting
      const { known } = yield* Secrets

      const resolved = (row: InteractionRow, response: Response, origin: Origin, by: string | undefined) =>
        resolutionOf(row, response, {
          origin,
          by,
          at: timestamp(minting.now()),
          redact: (text) => known.text(text, row.sessionId)
        })

      const learnSecrets = (row: InteractionRow, response: Response): boolean => {
        const secret = secretAnswers(row, response)
        for (const answer of secret ?? []) known.add("answer", answer, row.sessionId)
        return secret !== undefined
      }

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
        const resolution = resolved(row, response, origin, extra.by)
        if (resolution instanceof OptionNotOffered || resolution instanceof AnswerInvalid) return yield* resolution
        const found = asks.find(row.sessionId, row.id)
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
            asks.mark(found.ask, {
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
        const delivered = found !== undefined && asks.tell(found.ask)
        hub.touch(row.sessionId, "interaction")
        return { status: "resolved", resolution: outcome.row.resolution ?? resolution, delivered } as const
      })

      const alreadySettled = Effect.fnUntraced(function* (row: InteractionRow, response: Response) {
        if (row.state === "withdrawn") {
          return yield* new InteractionWithdrawn({ id: row.id, reason: row.withdrawal?.reason ?? "turn_ended" })
        }
        const given = resolved(row, response, "person", undefined)
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
        respond,
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
