/**
 * Answering interactions: approvals and questions, from whichever face (run-protocol 16).
 *
 * It owns what an answer must look like and what it settles with it: `session` makes a grant and resolves the other
 * pending approvals of the same tool (RUN-446). The first answer wins and is durable before anything is told (RUN-443);
 * the origin of a client's answer is `person`, whatever it says (RUN-444).
 */
import {
  Conflict,
  InvalidParams,
  InvalidState,
  NotFound,
  responseOf,
  type RespondParams,
  type RespondResult
} from "@tackroom/protocol/run"
import type { InteractionRow, PermissionSubject, QuestionSubject } from "@tackroom/sdk/effect"
import { Clock, Effect } from "effect"
import { isNative } from "../harnesses/Harnesses.ts"
import { harnessOf, type HostSession } from "./HostRows.ts"
import type { Author, HostRuntime, Resolution } from "./HostRuntime.ts"
import { op, type HostStore } from "./HostStore.ts"
import { decisionsOf } from "./Interruptions.ts"
import type { Sessions } from "./Sessions.ts"

export interface AnswersConfig {
  readonly runtime: HostRuntime
  readonly rows: HostStore
  readonly sessions: Sessions
  readonly aliases: (session: HostSession) => (alias: string) => string
  /** Takes known secrets out of what a client says, before any of it is kept (RUN-174). */
  readonly redact: <A>(value: A, sessionId: string) => A
}

const invalid = (path: string, expected: string) => new InvalidParams({ path, expected, issues: [{ path, expected }] })

const decisions = { once: "allow_once", session: "allow_always", deny: "deny" } as const

export const make = (config: AnswersConfig) => {
  const { runtime, sessions } = config

  const resolutionOf = (params: RespondParams, row: InteractionRow): Resolution | InvalidParams => {
    if (row.kind === "permission") {
      if (params.decision === undefined) return invalid("decision", "a decision, as this interaction is an approval")
      if (params.decision === "session" && !decisionsOf(row.request as PermissionSubject).includes("session")) {
        return invalid("decision", "once or deny: the tool has changed since the session was made")
      }
      return {
        decision: decisions[params.decision],
        ...(params.reason === undefined ? {} : { note: params.reason })
      }
    }
    if (params.answer === undefined) return invalid("answer", "an answer, as this interaction is a question")
    const [question] = (row.request as QuestionSubject).questions
    const offered = question?.options.map((option) => option.label) ?? []
    if (question?.custom === false && !offered.includes(params.answer)) {
      return invalid("answer", "one of the options, as free text is not allowed")
    }
    return { answers: [[params.answer]] }
  }

  /** What `session` settles besides: the grant, and the other pending approvals of the tool in this session. */
  const grantFor = Effect.fnUntraced(function* (session: HostSession, row: InteractionRow) {
    const { tool } = row.request as PermissionSubject
    const qualifiedName = config.aliases(session)(tool)
    const grant = op("putGrant", {
      sessionId: session.sessionId,
      qualifiedName,
      binding: sessions.bindingOf(session.sessionId, qualifiedName) ?? "",
      interactionId: row.id,
      grantedAt: yield* Clock.currentTimeMillis
    })
    return {
      ops: [grant],
      also: (other: InteractionRow) =>
        other.id !== row.id && other.kind === "permission" && (other.request as PermissionSubject).tool === tool
    }
  })

  const stored = (row: InteractionRow, response: string): RespondResult | Conflict | InvalidState => {
    if (row.resolution !== null) {
      const known = responseOf(row.resolution)
      return known === response
        ? { alreadyResolved: true, response: known }
        : new Conflict({ reason: "response_differs", id: row.id, response: known })
    }
    return new InvalidState({
      reason: "turn_ended",
      interactionId: row.id,
      ...(row.turnId === null ? {} : { turnId: row.turnId })
    })
  }

  const respond = Effect.fnUntraced(function* (given: RespondParams) {
    const params = config.redact(given, given.sessionId)
    const session = yield* sessions.find(params.sessionId)
    const row = yield* runtime.store.interaction(params.interactionId)
    if (row === undefined || row.sessionId !== session.sessionId) {
      return yield* new NotFound({ what: "interaction", id: params.interactionId })
    }
    const response = params.decision ?? params.answer ?? ""
    const resolution = resolutionOf(params, row)
    if (resolution instanceof InvalidParams) return yield* resolution
    if (row.state !== "pending") {
      const known = stored(row, response)
      return known instanceof Conflict || known instanceof InvalidState ? yield* Effect.fail(known) : known
    }
    const grants = "decision" in resolution && resolution.decision === "allow_always" && isNative(harnessOf(session))
    const answered = yield* grants
      ? Effect.flatMap(grantFor(session, row), (extra) => runtime.respond(row.id, resolution, extra))
      : runtime.respond(row.id, resolution)
    return { alreadyResolved: answered.alreadyResolved, response } satisfies RespondResult
  })

  /** An answer sent through the lead's session (session/send): the run's own id, and the member it is for. */
  const respondFor = Effect.fnUntraced(function* (
    params: RespondParams & { readonly targetSessionId: string; readonly submissionId?: string }
  ) {
    const { submissionId, targetSessionId, ...answer } = params
    const session = yield* sessions.find(params.sessionId)
    const target = yield* sessions.find(targetSessionId)
    if (target.leadId !== session.leadId) return yield* new NotFound({ what: "session", id: targetSessionId })
    const row = yield* runtime.store.interaction(params.interactionId)
    const run =
      row?.turnId == null || row.sessionId !== targetSessionId
        ? null
        : yield* config.rows.query("runOfTurn", { sessionId: targetSessionId, turnId: row.turnId })
    if (run !== null && submissionId !== undefined && run.submissionId !== submissionId) {
      return yield* new Conflict({ reason: "request_differs", id: submissionId })
    }
    const result = yield* respond({ ...answer, sessionId: targetSessionId })
    return { submissionId: run?.submissionId ?? submissionId ?? "", interactionId: params.interactionId, ...result }
  })

  /** A decision or answers as the agent's own request has them, whoever gives them (serve-mode 5.3). */
  const settle = Effect.fnUntraced(function* (
    given: { readonly sessionId: string; readonly interactionId: string; readonly resolution: Resolution },
    author: Author
  ) {
    const { interactionId, resolution, sessionId } = config.redact(given, given.sessionId)
    const session = yield* sessions.find(sessionId)
    const row = yield* runtime.store.interaction(interactionId)
    if (row === undefined || row.sessionId !== session.sessionId) {
      return yield* new NotFound({ what: "interaction", id: interactionId })
    }
    const remembers = "decision" in resolution && resolution.decision === "allow_always" && isNative(harnessOf(session))
    const extra = remembers ? yield* grantFor(session, row) : undefined
    return yield* runtime.respond(row.id, resolution, extra, author)
  })

  return { respond, respondFor, settle }
}
