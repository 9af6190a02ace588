/**
 * What a run is: its state, events and interruptions at one moment (run-protocol 15).
 *
 * It observes only (RUN-411). One read of the host's tables gives run, interactions and head of one snapshot; events and
 * usage are then read up to that head, which nothing later can change (RUN-194). So a terminal status never comes before
 * the events of its run can be read (RUN-413), and a terminal run never changes (RUN-417).
 */
import {
  effectiveMaxEvents,
  InvalidCursor,
  InvalidState,
  limits,
  NotFound,
  type Interruption,
  type RunState,
  type RunWaitParams,
  type Usage
} from "@tackroom/protocol/run"
import type { UsageTotals } from "@tackroom/sdk/effect"
import { Effect } from "effect"
import { checkCursor, pageOf, runEventOf } from "./EventPages.ts"
import { isScripted, type HostRun, type HostSession, type Observed, type PendingRow } from "./HostRows.ts"
import type { HostRuntime } from "./HostRuntime.ts"
import type { ArtifactNote, HostStore } from "./HostStore.ts"
import { interruptionOf, isCut } from "./Interruptions.ts"
import type { Sessions } from "./Sessions.ts"

export interface RunStatesConfig {
  readonly runtime: HostRuntime
  readonly rows: HostStore
  readonly sessions: Sessions
  readonly aliases: (session: HostSession) => (alias: string) => string
  readonly maxEvents: number
}

export interface Observation {
  readonly state: RunState
  /** Something to say before the wait is over (RUN-410, RUN-414). */
  readonly ready: boolean
}

const interruptionBytes = 196_608
const interruptionCount = 64
const outputBytes = 131_072
const previewBytes = 32_768
/** Pending interactions and turns that are remembered: each is looked at again and again. */
const remembered = 256

export const usageOf = (totals: UsageTotals): Usage => ({
  inputTokens: totals.inputTokens,
  outputTokens: totals.outputTokens,
  cachedInputTokens: totals.cachedInputTokens,
  rounds: totals.rounds
})

const noUsage: UsageTotals = { inputTokens: null, outputTokens: null, cachedInputTokens: null, rounds: 0 }

const plus = (a: number | null, b: number | null): number | null => (a === null ? b : b === null ? a : a + b)

const sum = (a: UsageTotals, b: UsageTotals): UsageTotals => ({
  inputTokens: plus(a.inputTokens, b.inputTokens),
  outputTokens: plus(a.outputTokens, b.outputTokens),
  cachedInputTokens: plus(a.cachedInputTokens, b.cachedInputTokens),
  rounds: a.rounds + b.rounds
})

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

/** The oldest ones that fit, and whether some were left out (RUN-418). */
const fitting = (all: ReadonlyArray<Interruption>) => {
  const kept: Array<Interruption> = []
  let bytes = 0
  for (const one of all) {
    bytes += bytesOf(one)
    if (kept.length >= interruptionCount || (kept.length > 0 && bytes > interruptionBytes)) break
    kept.push(one)
  }
  return { kept, more: kept.length < all.length }
}

export const make = (config: RunStatesConfig) => {
  const { rows, runtime, sessions } = config
  const { store } = runtime
  /** A pending interaction never changes. */
  const shownById = new Map<string, Interruption>()
  const usageByTurn = new Map<string, { readonly upTo: number; readonly totals: UsageTotals }>()

  const remember = <A>(map: Map<string, A>, key: string, value: A): A => {
    if (map.size >= remembered) map.clear()
    map.set(key, value)
    return value
  }

  const wholeArguments = Effect.fnUntraced(function* (row: PendingRow) {
    if (row.turnId === null || !isCut(row)) return undefined
    const { nativeId: callId, sessionId, turnId } = row
    return (yield* rows.query("argumentsArtifact", { sessionId, turnId, callId })) ?? undefined
  })

  /** Usage of the run up to a cursor: what came since the last look is added (D-24). */
  const usage = Effect.fnUntraced(function* (run: HostRun, head: number) {
    const { sessionId, turnId } = run
    if (turnId === null) return noUsage
    const upTo = run.endCursors?.[sessionId] ?? head
    const known = usageByTurn.get(turnId)
    if (known !== undefined && known.upTo >= upTo) return known.totals
    const after = known?.upTo ?? 0
    const more = yield* rows.query("turnUsage", { sessionId, turnId, after, upTo })
    const totals = known === undefined ? more : sum(known.totals, more)
    remember(usageByTurn, turnId, { upTo, totals })
    return totals
  })

  /** Pending interactions as they are shown, oldest first. */
  const interruptions = Effect.fnUntraced(function* (
    session: HostSession,
    submissionId: string,
    pending: ReadonlyArray<PendingRow>
  ) {
    const qualifiedName = config.aliases(session)
    const shown: Array<Interruption> = []
    for (const row of pending) {
      const known = shownById.get(row.id)
      if (known !== undefined) {
        shown.push(known)
        continue
      }
      const argumentsArtifact = yield* wholeArguments(row)
      const one = interruptionOf(row, { agentId: session.agentId, submissionId, qualifiedName, argumentsArtifact })
      if (one !== undefined) shown.push(remember(shownById, one.id, one))
    }
    return shown
  })

  /** A long output is shown as a preview, with the artifact that its event names. */
  const output = Effect.fnUntraced(function* (run: HostRun) {
    const text = run.output
    if (text === null || bytesOf(text) <= outputBytes) return { finalOutput: text }
    const preview = `${text.slice(0, previewBytes).replace(/[\uD800-\uDBFF]$/, "")}…`
    const { sessionId } = run
    const after = run.startCursors[sessionId] ?? 0
    const upTo = run.endCursors?.[sessionId] ?? after
    const artifact: ArtifactNote | null = yield* rows.query("textArtifact", { sessionId, after, upTo })
    return { finalOutput: preview, ...(artifact === null ? {} : { finalOutputArtifact: artifact }) }
  })

  const checkJournal = (given: string | undefined, sessionId: string, head: number) =>
    given === undefined || given === runtime.journalId
      ? Effect.void
      : Effect.fail(
          new InvalidCursor({
            reason: "journal_replaced",
            head,
            heads: { [sessionId]: head },
            journalId: runtime.journalId
          })
        )

  const events = Effect.fnUntraced(function* (
    session: HostSession,
    run: HostRun,
    head: number,
    cursors: NonNullable<RunWaitParams["cursors"]>,
    maxEvents: number
  ) {
    const { sessionId } = session
    const { journalId } = runtime
    const foreign = Object.keys(cursors).find((id) => id !== sessionId)
    if (foreign !== undefined) {
      return yield* new InvalidCursor({ reason: "foreign_session", sessionId: foreign, head, journalId })
    }
    const given = cursors[sessionId]
    const after =
      given === undefined ? (run.startCursors[sessionId] ?? 0) : checkCursor(given, { sessionId, head, journalId })
    if (after instanceof InvalidCursor) return yield* after
    const boundary = run.endCursors?.[sessionId] ?? head
    const read = after < boundary ? yield* store.read(sessionId, after, maxEvents, limits.eventPageBytes) : undefined
    return pageOf(read?.events ?? [], after, boundary, maxEvents, runEventOf(session.agentId))
  })

  const lead = (session: HostSession): Effect.Effect<HostSession, InvalidState> =>
    session.role === "lead"
      ? Effect.succeed(session)
      : Effect.fail(
          new InvalidState({
            reason: "worker_session",
            sessionId: session.sessionId,
            leadSessionId: session.leadId
          })
        )

  /** One observation of a run. */
  const observe = Effect.fnUntraced(function* (params: RunWaitParams) {
    const session = yield* Effect.flatMap(sessions.find(params.sessionId), lead)
    const { sessionId } = session
    const { submissionId } = params
    const seen: Observed = yield* rows.query("observe", {
      sessionId,
      ...(submissionId === undefined ? {} : { submissionId })
    })
    const { head, run } = seen
    if (run === null) {
      return yield* new NotFound({ what: "run", ...(submissionId === undefined ? {} : { id: submissionId }) })
    }
    yield* checkJournal(params.journalId, sessionId, head)
    const ended = run.endedAt !== null
    const pending = yield* interruptions(session, run.submissionId, seen.pending)
    const { kept, more } = fitting(pending)
    const page =
      params.cursors === undefined
        ? undefined
        : yield* events(session, run, head, params.cursors, effectiveMaxEvents(params.maxEvents, config.maxEvents))
    const known = new Set(params.knownInteractions)
    const news = pending.some((one) => !known.has(one.id))
    const state: RunState = {
      status: run.status ?? (pending.length > 0 ? "interrupted" : "running"),
      ...(run.failure === null ? {} : { failure: run.failure }),
      ...(ended ? yield* output(run) : { finalOutput: null }),
      interruptions: kept,
      submissionId: run.submissionId,
      cursor: head,
      ...(page === undefined
        ? {}
        : { events: page.items, cursors: { [sessionId]: page.cursor }, moreEvents: page.more }),
      ...(run.error === null ? {} : { error: errorOf(run.error) }),
      usage: usageOf(yield* usage(run, head)),
      journalId: runtime.journalId,
      ...(isScripted(session) ? { scripted: true } : {}),
      ...(more ? { moreInterruptions: true } : {})
    }
    const ready = ended || news || (page?.items.length ?? 0) > 0
    return { state, ready } satisfies Observation
  })

  return { observe, interruptions, checkJournal, output }
}

const errorOf = (error: NonNullable<HostRun["error"]>): NonNullable<RunState["error"]> =>
  "data" in error
    ? { message: error.message, kind: error.data.kind }
    : { message: error.message, ...(error.kind === undefined ? {} : { kind: error.kind }) }
