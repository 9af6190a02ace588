/**
 * One service behind every face: start, wait, respond, cancel, state of a run of any session (D-26).
 *
 * It composes `RunReceipts`, `RunStates` and `Answers` and adds what concerns a whole session: cancel, close, state,
 * attach, list, events and artifacts. No face has its own way to finish, count or settle. It owns no state.
 */
import {
  effectiveMaxEvents,
  InvalidCursor,
  InvalidParams,
  InvalidState,
  limits,
  NotFound,
  Unsupported,
  type ArtifactReadParams,
  type ArtifactReadResult,
  type AttachResult,
  type CancelResult,
  type CloseResult,
  type EventReadParams,
  type EventReadResult,
  type RunWaitParams,
  type SessionActivity,
  type SessionRow,
  type SessionState
} from "@tackroom/protocol/run"
import { Clock, Effect, Option, Schema } from "effect"
import * as Answers from "./Answers.ts"
import type { Changes } from "./Changes.ts"
import * as Entries from "./Entries.ts"
import { checkCursor, pageOf, wireOf } from "./EventPages.ts"
import { isScripted, type HostSession, type SessionSummary } from "./HostRows.ts"
import type { MemberPhase } from "./HostRuntime.ts"
import { op } from "./HostStore.ts"
import * as RunReceipts from "./RunReceipts.ts"
import * as RunStates from "./RunStates.ts"

export interface RunsConfig extends RunReceipts.ReceiptsConfig {
  readonly changes: Changes
  readonly aliases: (session: HostSession) => (alias: string) => string
  readonly maxEvents: number
}

/** Cancelling answers after this time for turns that are still not settled (RUN-471). */
const cancelPatience = 5_000
/** Runs that session/attach tells of (RUN-356). */
const attachedRuns = 20

const iso = (ms: number): string => new Date(ms).toISOString()

export const make = (config: RunsConfig) => {
  const { changes, rows, runtime, sessions } = config
  const { store } = runtime
  const states = RunStates.make(config)
  const receipts = RunReceipts.make(config)
  const answers = Answers.make(config)

  /** A look at the run, and the moment of the next one. Without cursors no event is shown, and only few change the answer. */
  const wait = (params: RunWaitParams) => {
    const signal = params.cursors === undefined ? changes.decisive : changes.any
    let seen = signal.version(params.sessionId)
    return {
      current: Effect.suspend(() => {
        seen = signal.version(params.sessionId)
        return Effect.map(states.observe(params), ({ ready, state }) => ({ ready, result: state }))
      }),
      changed: Effect.suspend(() => signal.since(params.sessionId, seen))
    }
  }

  const readEvents = Effect.fnUntraced(function* (params: EventReadParams) {
    const session = yield* sessions.find(params.sessionId)
    const { sessionId } = session
    const { journalId } = runtime
    const head = yield* store.head(sessionId)
    yield* states.checkJournal(params.journalId, sessionId, head)
    const after = checkCursor(params.after ?? 0, { sessionId, head, journalId })
    if (after instanceof InvalidCursor) return yield* after
    const maxEvents = effectiveMaxEvents(params.maxEvents, config.maxEvents)
    const read = yield* store.read(sessionId, after, maxEvents, limits.eventPageBytes)
    const page = pageOf(read.events, after, read.head, maxEvents, wireOf)
    return {
      events: page.items,
      cursor: page.cursor,
      head: read.head,
      moreEvents: page.more,
      journalId
    } satisfies EventReadResult
  })

  const events = (params: EventReadParams) => {
    let seen = changes.any.version(params.sessionId)
    return {
      current: Effect.suspend(() => {
        seen = changes.any.version(params.sessionId)
        return Effect.map(readEvents(params), (result) => ({ ready: result.events.length > 0, result }))
      }),
      changed: Effect.suspend(() => changes.any.since(params.sessionId, seen))
    }
  }

  const cancel = Effect.fnUntraced(function* (params: { readonly sessionId: string; readonly team?: boolean }) {
    const session = yield* sessions.find(params.sessionId)
    const { sessionId } = session
    if (params.team === true) {
      return session.role === "worker"
        ? yield* new InvalidState({ reason: "worker_session", sessionId, leadSessionId: session.leadId })
        : yield* new Unsupported({ feature: "teams" })
    }
    const result = yield* runtime.cancelTurn(sessionId).pipe(
      Effect.timeoutOrElse({
        duration: cancelPatience,
        orElse: () => Effect.succeed({ cancelled: false, settled: false })
      })
    )
    return {
      cancelled: result.cancelled ? [sessionId] : [],
      teamCancelled: false,
      errors: result.settled
        ? {}
        : { [sessionId]: { kind: "busy", message: "the turn has not ended yet; its cancellation goes on" } }
    } satisfies CancelResult
  })

  const close = Effect.fnUntraced(function* (sessionId: string) {
    const session = yield* sessions.find(sessionId)
    if (session.role === "worker") {
      return yield* new InvalidState({ reason: "worker_session", sessionId, leadSessionId: session.leadId })
    }
    if (session.closedAt !== null) return { closed: [sessionId], errors: {} } satisfies CloseResult
    const active = yield* rows.query("activeRun", { sessionId })
    if (active !== null) {
      return {
        closed: [],
        errors: { [sessionId]: { kind: "busy", message: `run ${active.submissionId} is active; cancel it first` } }
      } satisfies CloseResult
    }
    const at = yield* Clock.currentTimeMillis
    yield* runtime.closeSession(sessionId, [op("closeSession", { sessionId, at }), op("removeGrants", { sessionId })])
    sessions.forget(sessionId)
    return { closed: [sessionId], errors: {} } satisfies CloseResult
  })

  const state = Effect.fnUntraced(function* (sessionId: string) {
    const session = yield* sessions.find(sessionId)
    const { active, grants, head, latest, pending, usage } = yield* rows.query("view", { sessionId })
    const run = active ?? latest
    const interactions = active === null ? [] : yield* states.interruptions(session, active.submissionId, pending)
    const phase = runtime.phase(sessionId)
    const aliasOf = new Map((yield* sessions.setup(sessionId)).tools.map((tool) => [tool.qualifiedName, tool.alias]))
    return {
      sessionId,
      agent: session.agentId,
      ...(session.name === null ? {} : { name: session.name }),
      workspace: session.workspace,
      journalId: runtime.journalId,
      state: activityOf(session, active !== null, interactions.length > 0),
      phases: phase === undefined ? [] : [phaseOf(session, phase)],
      interactions,
      canAcceptMessage: active === null && (yield* receipts.accepts(session)),
      turn: run?.turnId == null ? null : { turnId: run.turnId, submissionId: run.submissionId },
      ...(active === null && latest?.status != null
        ? {
            outcome: {
              status: latest.status,
              ...(latest.failure === null ? {} : { failure: latest.failure }),
              finalOutput: (yield* states.output(latest)).finalOutput,
              submissionId: latest.submissionId
            }
          }
        : {}),
      cursors: { [sessionId]: head },
      timers: null,
      capabilities: { steering: false, timers: false },
      grants: grants.map((grant) => ({
        sessionId,
        qualifiedName: grant.qualifiedName,
        tool: aliasOf.get(grant.qualifiedName) ?? grant.qualifiedName,
        grantedAt: iso(grant.grantedAt),
        interactionId: grant.interactionId
      })),
      ...(session.model === null ? {} : { model: session.model }),
      sandbox: session.sandbox,
      usage: RunStates.usageOf(usage),
      scripted: isScripted(session)
    } satisfies SessionState
  })

  const attach = Effect.fnUntraced(function* (params: { readonly sessionId: string; readonly journalId?: string }) {
    const session = yield* sessions.find(params.sessionId)
    const { sessionId } = session
    const current = yield* state(sessionId)
    yield* states.checkJournal(params.journalId, sessionId, current.cursors[sessionId] ?? 0)
    const runs = yield* rows.query("runs", { sessionId, limit: attachedRuns, admittedOnly: false })
    return {
      session: sessions.refOf(session),
      state: current,
      runs: runs.map((run) => ({
        submissionId: run.submissionId,
        status: run.status ?? (current.interactions.length > 0 ? "interrupted" : "running"),
        ...(run.failure === null ? {} : { failure: run.failure }),
        startedAt: iso(run.createdAt),
        ...(run.endedAt === null ? {} : { endedAt: iso(run.endedAt) }),
        startCursors: run.startCursors,
        ...(run.endCursors === null ? {} : { endCursors: run.endCursors })
      })),
      cursors: current.cursors
    } satisfies AttachResult
  })

  const list = Effect.fnUntraced(function* (params: {
    readonly agent?: string
    readonly includeClosed?: boolean
    readonly limit?: number
    readonly after?: string
  }) {
    const limit = params.limit ?? 50
    const after = params.after === undefined ? undefined : yield* decodePosition(params.after)
    const found = yield* rows.query("sessions", {
      ...(params.agent === undefined ? {} : { agentId: params.agent }),
      includeClosed: params.includeClosed ?? false,
      limit: limit + 1,
      ...(after === undefined ? {} : { after })
    })
    const shown: Array<SessionRow> = []
    let bytes = 0
    let last: SessionSummary | undefined
    for (const summary of found.slice(0, limit)) {
      const row = rowOf(summary)
      bytes += Buffer.byteLength(JSON.stringify(row))
      if (shown.length > 0 && bytes > limits.eventPageBytes) break
      shown.push(row)
      last = summary
    }
    return {
      sessions: shown,
      ...(last !== undefined && shown.length < found.length ? { next: encodePosition(last) } : {})
    }
  })

  const rowOf = ({ activeSubmission, activity, latestSubmission, session, waiting }: SessionSummary): SessionRow => {
    const submissionId = activeSubmission ?? latestSubmission
    return {
      session: sessions.refOf(session),
      ...(session.name === null ? {} : { name: session.name }),
      state: activityOf(session, activeSubmission !== null, waiting),
      createdAt: iso(session.createdAt),
      lastActivityAt: iso(activity),
      ...(submissionId === null ? {} : { submissionId })
    }
  }

  const revoke = Effect.fnUntraced(function* (params: { readonly sessionId: string; readonly qualifiedName: string }) {
    const session = yield* sessions.find(params.sessionId)
    const { qualifiedName } = params
    const grant = yield* rows.query("grant", { sessionId: session.sessionId, qualifiedName })
    if (grant === null) return { revoked: false }
    yield* store.appendUnfenced(session.sessionId, [], {
      ops: [op("removeGrant", { sessionId: session.sessionId, qualifiedName })]
    })
    return { revoked: true }
  })

  /** Messages that wait for the session (SRV-294). */
  const queued = (sessionId: string) => Effect.map(store.queue(sessionId), ({ entries }) => entries.length)

  /** The session's newest turn, and the asks that ended with its process. */
  const lastTurn = Effect.fnUntraced(function* (sessionId: string) {
    const [turn] = yield* store.turnsOf(sessionId, 1)
    if (turn === undefined) return undefined
    const withdrawn = yield* store.interactions({ sessionId, turnId: turn.id, state: "withdrawn" })
    return {
      turn,
      lostAsks: withdrawn.filter(({ withdrawal }) => withdrawal?.reason === "restart").map(({ id }) => id)
    }
  })

  /** Deletes a session that nobody works on, with its receipts and grants. */
  const remove = Effect.fnUntraced(function* (sessionId: string) {
    yield* runtime.removeSession(sessionId, [op("removeSession", { sessionId })])
    sessions.forget(sessionId)
  })

  const artifact = Effect.fnUntraced(function* (params: ArtifactReadParams) {
    const session = yield* sessions.find(params.sessionId)
    const row = yield* store.artifact(params.artifactId)
    if (row === undefined || row.sessionId !== session.sessionId) {
      return yield* new NotFound({ what: "artifact", id: params.artifactId })
    }
    if (!row.retained) {
      return yield* new Unsupported({
        feature: "artifact_retention",
        message: `the artifact had ${row.bytes} bytes; above ${limits.artifactBytes} only size and digest are kept`
      })
    }
    const offset = params.offset ?? 0
    const length = Math.max(0, Math.min(params.length ?? 262_144, row.bytes - offset))
    const data = length === 0 ? new Uint8Array() : yield* store.artifactBytes(row.id, offset, length)
    return {
      artifactId: row.id,
      offset,
      length: data.length,
      totalBytes: row.bytes,
      mediaType: row.mime,
      encoding: "base64",
      data: Buffer.from(data).toString("base64"),
      eof: offset + data.length >= row.bytes
    } satisfies ArtifactReadResult
  })

  return {
    start: receipts.start,
    wait,
    events,
    readEvents,
    respond: answers.respond,
    respondFor: answers.respondFor,
    settle: answers.settle,
    open: runtime.open,
    recover: runtime.recover,
    release: runtime.release,
    remove,
    broken: runtime.broken,
    entries: Entries.read(store),
    /** The session's entries behind a cursor, as they come; to be closed. */
    follow: (sessionId: string, after: number) => Entries.feed(store, runtime.subscribe(sessionId, after)),
    /** The counter of a session's committed events, and the wait for its next move. */
    moved: changes.any,
    queued,
    pending: (sessionId: string) => store.interactions({ sessionId, state: "pending" }),
    head: store.head,
    /** A turn of the session is being worked on in this process. */
    isWorking: (sessionId: string) => runtime.phase(sessionId) !== undefined,
    lastTurn,
    cancel,
    close,
    state,
    attach,
    list,
    revoke,
    artifact
  }
}

export type Runs = ReturnType<typeof make>

const activityOf = (session: HostSession, active: boolean, waiting: boolean): SessionActivity => {
  if (session.closedAt !== null) return "closed"
  if (!active) return "idle"
  return waiting ? "waiting" : "running"
}

const phaseOf = (session: HostSession, phase: MemberPhase): SessionState["phases"][number] => ({
  sessionId: session.sessionId,
  agent: session.agentId,
  turnId: phase.turnId,
  phase: phase.phase,
  ...(phase.tool === undefined ? {} : { tool: phase.tool }),
  since: iso(phase.since)
})

const encodePosition = ({ activity, session }: SessionSummary): string =>
  Buffer.from(JSON.stringify([activity, session.sessionId])).toString("base64url")

const decodePair = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Tuple([Schema.Finite, Schema.String])))

/** The position that an answer gave as `next`. */
const decodePosition = (text: string) => {
  const json = Buffer.from(text, "base64url").toString("utf8")
  const position = Option.getOrUndefined(decodePair(json))
  const expected = "a position that an earlier answer gave as next"
  return position === undefined
    ? Effect.fail(new InvalidParams({ path: "after", expected, issues: [{ path: "after", expected }] }))
    : Effect.succeed({ activity: position[0], sessionId: position[1] })
}
