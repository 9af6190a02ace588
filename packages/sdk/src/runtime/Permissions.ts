/**
 * Permissions and questions as their own namespaces (4.3), over one set of interactions.
 *
 * @since 0.1.0
 */
import { platform } from "#platform"
import type { RuntimeError } from "@tackroom/protocol"
import type { Decision, Interaction } from "@tackroom/protocol/events"
import { Context, Effect, Layer } from "effect"
import { Interactions, type Response, type ResponseResult, type ResponseScope } from "./Interactions.ts"
import { Sessions } from "./Sessions.ts"

export interface ListInteractions {
  readonly sessionId?: string
  readonly directory?: string
  readonly workspaceId?: string
  readonly includeChildren?: boolean
}

const makeList = (interactions: Interactions["Service"], sessions: Sessions["Service"], kind: Interaction["kind"]) =>
  Effect.fnUntraced(function* (input: ListInteractions): Effect.fn.Return<ReadonlyArray<Interaction>, RuntimeError> {
    const scope = { kind, ...(input.workspaceId === undefined ? {} : { workspaceId: input.workspaceId }) }
    const directory =
      input.directory === undefined
        ? undefined
        : yield* platform.realPath(input.directory).pipe(Effect.catch(() => Effect.succeed(input.directory ?? "")))
    const place = directory === undefined ? {} : { directory }
    if (input.sessionId === undefined) return yield* interactions.list({ ...scope, ...place })
    const row = yield* sessions.row(input.sessionId)
    return yield* interactions.list(
      input.includeChildren === true && row.parentId === null
        ? { ...scope, ...place, rootId: row.id }
        : { ...scope, ...place, sessionId: row.id }
    )
  })

const answer = (
  interactions: Interactions["Service"],
  id: string,
  response: Response,
  scope: ResponseScope | undefined
): Effect.Effect<ResponseResult, RuntimeError> =>
  // A public answer is a person's, whatever it claims (3.4).
  interactions
    .respond(id, response, {
      ...(scope?.sessionId === undefined ? {} : { sessionId: scope.sessionId }),
      ...(scope?.directory === undefined ? {} : { directory: scope.directory }),
      ...(scope?.workspaceId === undefined ? {} : { workspaceId: scope.workspaceId }),
      ...(scope?.by === undefined ? {} : { by: scope.by })
    })
    .pipe(Effect.catchTag("OpFailed", (error) => Effect.die(error)))

export class Permissions extends Context.Service<
  Permissions,
  {
    readonly list: (input: ListInteractions) => Effect.Effect<ReadonlyArray<Interaction>, RuntimeError>
    readonly respond: (
      id: string,
      decision: Decision,
      options?: ResponseScope & { readonly optionId?: string; readonly note?: string }
    ) => Effect.Effect<ResponseResult, RuntimeError>
  }
>()("@tackroom/sdk/runtime/Permissions") {
  static readonly layer = Layer.effect(
    Permissions,
    Effect.gen(function* () {
      const interactions = yield* Interactions
      const sessions = yield* Sessions
      return Permissions.of({
        list: makeList(interactions, sessions, "permission"),
        respond: (id, decision, options) =>
          answer(
            interactions,
            id,
            {
              decision,
              ...(options?.optionId === undefined ? {} : { optionId: options.optionId }),
              ...(options?.note === undefined ? {} : { note: options.note })
            },
            options
          )
      })
    })
  )
}

export class Questions extends Context.Service<
  Questions,
  {
    readonly list: (input: ListInteractions) => Effect.Effect<ReadonlyArray<Interaction>, RuntimeError>
    readonly answer: (
      id: string,
      answers: ReadonlyArray<ReadonlyArray<string>>,
      options?: ResponseScope
    ) => Effect.Effect<ResponseResult, RuntimeError>
    readonly reject: (id: string, options?: ResponseScope) => Effect.Effect<ResponseResult, RuntimeError>
  }
>()("@tackroom/sdk/runtime/Questions") {
  static readonly layer = Layer.effect(
    Questions,
    Effect.gen(function* () {
      const interactions = yield* Interactions
      const sessions = yield* Sessions
      return Questions.of({
        list: makeList(interactions, sessions, "question"),
        answer: (id, answers, options) => answer(interactions, id, { answers }, options),
        reject: (id, options) => answer(interactions, id, { answers: null }, options)
      })
    })
  )
}
