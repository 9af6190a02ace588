/** Steps of a call that a client carries out: each ends in bounded time, and in the words of the tool runner (ACP-212). */
import { Effect } from "effect"
import { ClientLost, type ClientProblem } from "./ClientSide.ts"
import { Failed, NotRun } from "./Refusal.ts"

/** A step of ours after the dispatch: from then on a refusal is a failure. Raw causes stay inside. */
export const attempt = <A>(step: () => A | Promise<A>): Effect.Effect<A, Failed> =>
  Effect.tryPromise({
    try: async () => step(),
    catch: (cause) => {
      if (cause instanceof Failed) return cause
      return new Failed(cause instanceof NotRun ? cause.message : "the tool failed in an unexpected way")
    }
  })

/** A request to the client, who has so long for its answer. */
export const within = <A, R>(
  patience: `${number} seconds`,
  request: Effect.Effect<A, ClientProblem, R>
): Effect.Effect<A, ClientProblem, R> =>
  Effect.timeoutOrElse(request, {
    duration: patience,
    orElse: () =>
      Effect.fail(new ClientLost({ message: `the client did not answer within ${patience}`, code: "timeout" }))
  })

/** A request whose refusal is the tool's failure, with what was wanted of the client. */
export const orFailed = <A, R>(
  what: string,
  request: Effect.Effect<A, ClientProblem, R>
): Effect.Effect<A, Failed | ClientLost, R> =>
  Effect.catchTag(request, "ClientRefused", ({ message }) => Effect.fail(new Failed(`the client ${what}: ${message}`)))
