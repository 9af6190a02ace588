/**
 * Starting a run: the receipt of a submission and its admission in one transaction (run-protocol 14).
 *
 * It owns the order of the checks and what a repeat answers. Without a team a run is its turn (D-26): the receipt is
 * written with the admission and ended with the settlement, so `reserved` is never stored (RUN-382). What is refused after
 * the checks is kept as `not_accepted` under its id, for good (RUN-386).
 */
import {
  Conflict,
  fromErrorObject,
  InvalidState,
  isRunError,
  toErrorObject,
  type CredentialsMissing,
  type NotFound,
  type RunError,
  type RunStartResult,
  type StartParams
} from "@tackroom/protocol/run"
import { Clock, Effect } from "effect"
import { createHash } from "node:crypto"
import type { Providers } from "../catalog/Providers.ts"
import { isNative } from "../harnesses/Harnesses.ts"
import { harnessOf, type HostRun, type HostSession } from "./HostRows.ts"
import type { HostRuntime } from "./HostRuntime.ts"
import { op, type HostStore } from "./HostStore.ts"
import type { Sessions } from "./Sessions.ts"

export interface ReceiptsConfig {
  readonly runtime: HostRuntime
  readonly rows: HostStore
  readonly sessions: Sessions
  readonly providers: Providers
  /** Takes known secrets out of what a client says, before any of it is kept (RUN-174). */
  readonly redact: <A>(value: A, sessionId: string) => A
}

export const digestOf = (text: string): string => createHash("sha256").update(text).digest("hex")

const started = (run: HostRun, duplicate: boolean): RunStartResult => ({
  submissionId: run.submissionId,
  turn: { turnId: run.turnId ?? "", sessionId: run.sessionId },
  duplicate,
  cursors: run.startCursors
})

const runActive = ({ sessionId, submissionId }: HostRun) =>
  new InvalidState({ reason: "run_active", sessionId, submissionId })

/** A worker's session takes no run; nor does a closed one (RUN-380). */
export const mayRun = (session: HostSession): Effect.Effect<void, InvalidState> => {
  if (session.role === "worker") {
    return Effect.fail(
      new InvalidState({ reason: "worker_session", sessionId: session.sessionId, leadSessionId: session.leadId })
    )
  }
  return session.closedAt === null
    ? Effect.void
    : Effect.fail(new InvalidState({ reason: "session_closed", sessionId: session.sessionId }))
}

export const make = (config: ReceiptsConfig) => {
  const { providers, rows, runtime, sessions } = config

  /** What the stored receipt answers to the same id, or undefined when there is none. */
  const repeat = Effect.fnUntraced(function* (params: StartParams, digest: string) {
    const run = yield* rows.query("run", { sessionId: params.sessionId, submissionId: params.submissionId })
    if (run === null) return undefined
    if (run.textDigest !== digest) {
      return yield* new Conflict({ reason: "submission_text_differs", id: params.submissionId })
    }
    if (run.state === "not_accepted" && run.error !== null && "data" in run.error) {
      return yield* Effect.fail(fromErrorObject(run.error) as RunError)
    }
    return started(run, true)
  })

  /** The model must be usable now; else the submission is refused for good. */
  const checkModel = (session: HostSession): Effect.Effect<void, NotFound | CredentialsMissing> =>
    session.model === null || !isNative(harnessOf(session))
      ? Effect.void
      : Effect.asVoid(providers.resolve(session.model.connection))

  const refuse = Effect.fnUntraced(function* (
    params: StartParams,
    digest: string,
    error: NotFound | CredentialsMissing,
    head: number
  ) {
    const marked = withReceipt(error)
    const now = yield* Clock.currentTimeMillis
    const run: HostRun = {
      sessionId: params.sessionId,
      submissionId: params.submissionId,
      state: "not_accepted",
      textDigest: digest,
      turnId: null,
      startCursors: { [params.sessionId]: head },
      endCursors: { [params.sessionId]: head },
      status: "failed",
      failure: "not_accepted",
      output: null,
      error: toErrorObject(marked) as HostRun["error"],
      createdAt: now,
      endedAt: now
    }
    yield* runtime.store.appendUnfenced(params.sessionId, [], { ops: [op("putRun", run)] })
    return yield* marked
  })

  /** Another start was admitted since this one looked: the same one, or one that makes this one wait (RUN-384). */
  const lostTheRace = Effect.fnUntraced(function* (params: StartParams, digest: string) {
    const known = yield* repeat(params, digest)
    if (known !== undefined) return known
    const active = yield* rows.query("activeRun", { sessionId: params.sessionId })
    return yield* active === null
      ? new InvalidState({ reason: "run_active", sessionId: params.sessionId })
      : runActive(active)
  })

  const start = Effect.fnUntraced(function* (params: StartParams) {
    const session = yield* sessions.find(params.sessionId)
    // Another process that shares the store may have closed it since it was remembered.
    yield* mayRun((yield* rows.query("session", { sessionId: session.sessionId })) ?? session)
    const digest = digestOf(params.text)
    const known = yield* repeat(params, digest)
    if (known !== undefined) return known
    const active = yield* rows.query("activeRun", { sessionId: params.sessionId })
    if (active !== null) return yield* runActive(active)
    const refusal = yield* Effect.flip(checkModel(session)).pipe(Effect.orElseSucceed(() => undefined))
    if (refusal !== undefined) {
      return yield* refuse(params, digest, refusal, yield* runtime.store.head(params.sessionId))
    }
    const now = yield* Clock.currentTimeMillis
    const turn = yield* runtime
      .startTurn(
        {
          sessionId: params.sessionId,
          messageId: params.submissionId,
          text: config.redact(params.text, params.sessionId)
        },
        ({ startCursor, turnId }) => [
          op("putRun", {
            sessionId: params.sessionId,
            submissionId: params.submissionId,
            state: "admitted",
            textDigest: digest,
            turnId,
            startCursors: { [params.sessionId]: startCursor },
            endCursors: null,
            status: null,
            failure: null,
            output: null,
            error: null,
            createdAt: now,
            endedAt: null
          })
        ]
      )
      .pipe(Effect.catchTag(["SessionTurnInProgress", "SessionRecovering"], () => lostTheRace(params, digest)))
    if ("submissionId" in turn) return turn
    return {
      submissionId: params.submissionId,
      turn: { turnId: turn.turnId, sessionId: params.sessionId },
      duplicate: turn.duplicate,
      cursors: { [params.sessionId]: turn.startCursor }
    } satisfies RunStartResult
  })

  /** Whether a start would be admitted as far as the session itself goes. */
  const accepts = (session: HostSession): Effect.Effect<boolean> =>
    Effect.isSuccess(Effect.andThen(mayRun(session), checkModel(session)))

  return { start, accepts }
}

/** The same error, saying that the receipt keeps it. */
const withReceipt = <E extends NotFound | CredentialsMissing>(error: E): E => {
  const object = toErrorObject(error)
  const marked = fromErrorObject({ ...object, data: { ...object.data, receipt: "not_accepted" } })
  return (isRunError(marked) ? marked : error) as E
}
