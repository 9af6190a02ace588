/**
 * What a run is: its state, events and interruptions at one moment (run-protocol 15).
 *
 * It observes only (RUN-411). A terminal run is read from its receipt and never changes (RUN-417); a live one from the
 * session's row, its pending interactions and its journal, read receipt first and events last, so that a terminal status
 * never comes before the events of its run can be read (RUN-413).
 */
import {
  effectiveMaxEvents,
  InvalidCursor,
  InvalidState,
  limits,
  NotFound,
  type Interruption,
  type RunEvent,
  type RunState,
  type RunWaitParams,
  type Usage
} from "@tackroom/protocol/run"
import type { UsageTotals } from "@tackroom/sdk/effect"
import { Effect } from "effect"
import { checkCursor, pageOf, runEventOf } from "./EventPages.ts"
import type { HostRun, HostSession } from "./HostRows.ts"
import type { HostRuntime } from "./HostRuntime.ts"
import type { HostStore } from "./HostStore.ts"
import { interruptionOf } from "./Interruptions.ts"
import type { Sessions } from "./Sessions.ts"

export interface RunStatesConfig {
  readonly runtime: HostRuntime
  readonly rows: HostStore
  readonly sessions: Sessions
  readonly aliases: (session: HostSession) => (alias: string) => string
  readonly argumentsArtifact: (sessionId: string, callId: string) => string | undefined
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

export const usageOf = (totals: UsageTotals): Usage => ({
  inputTokens: totals.inputTokens,
  outputTokens: totals.outputTokens,
  cachedInputTokens: totals.cachedInputTokens,
  rounds: totals.rounds
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

  const find = Effect.fnUntraced(function* (session: HostSession, submissionId: string | undefined) {
    const { sessionId } = session
    if (session.role === "worker") {
      return yield* new InvalidState({ reason: "worker_session", sessionId, leadSessionId: session.leadId })
    }
    if (submissionId === undefined) {
      const active = yield* rows.query("activeRun", { sessionId })
      if (active !== null) return active
      const [latest] = yield* rows.query("runs", { sessionId, limit: 1, admittedOnly: true })
      if (latest === undefined) return yield* new NotFound({ what: "run" })
      return latest
    }
    const run = yield* rows.query("run", { sessionId, submissionId })
    if (run === null) return yield* new NotFound({ what: "run", id: submissionId })
    return run
  })

  /** Pending interactions of a session, oldest first. */
  const interruptions = Effect.fnUntraced(function* (session: HostSession, submissionId: string) {
    const pending = yield* store.interactions({ sessionId: session.sessionId, state: "pending" })
    const qualifiedName = config.aliases(session)
    return pending.flatMap((row) => {
      const shown = interruptionOf(row, {
        agentId: session.agentId,
        submissionId,
        qualifiedName,
        bindingChanged: (name) => sessions.bindingChanged(session, name),
        argumentsArtifact: (callId) => config.argumentsArtifact(session.sessionId, callId)
      })
      return shown === undefined ? [] : [shown]
    })
  })

  /** A long output is shown as a preview, with the artifact that its event names. */
  const output = Effect.fnUntraced(function* (run: HostRun) {
    const text = run.output
    if (text === null || bytesOf(text) <= outputBytes) return { finalOutput: text }
    const preview = `${text.slice(0, 32_768).replace(/[\uD800-\uDBFF]$/, "")}…`
    let after = run.startCursors[run.sessionId] ?? 0
    const end = run.endCursors?.[run.sessionId] ?? after
    let artifact: { readonly artifactId: string; readonly bytes: number } | undefined
    while (after < end) {
      const page = yield* store.read(run.sessionId, after, 500)
      if (page.events.length === 0) break
      for (const event of page.events) {
        const found = event.type === "text-end" ? event.artifacts?.find(({ path }) => path === "/text") : undefined
        if (found !== undefined && event.seq <= end) artifact = { artifactId: found.artifactId, bytes: found.bytes }
        after = event.seq
      }
    }
    return { finalOutput: preview, ...(artifact === undefined ? {} : { finalOutputArtifact: artifact }) }
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

  const events = Effect.fnUntraced(function* (session: HostSession, run: HostRun, params: RunWaitParams) {
    const { sessionId } = session
    const cursors = params.cursors ?? {}
    const head = yield* store.head(sessionId)
    const foreign = Object.keys(cursors).find((id) => id !== sessionId)
    if (foreign !== undefined) {
      return yield* new InvalidCursor({
        reason: "foreign_session",
        sessionId: foreign,
        head,
        journalId: runtime.journalId
      })
    }
    const given = cursors[sessionId]
    const after =
      given === undefined
        ? (run.startCursors[sessionId] ?? 0)
        : checkCursor(given, { sessionId, head, journalId: runtime.journalId })
    if (after instanceof InvalidCursor) return yield* after
    const maxEvents = effectiveMaxEvents(params.maxEvents, config.maxEvents)
    const read = yield* store.read(sessionId, after, maxEvents, limits.eventPageBytes)
    const boundary = run.endCursors?.[sessionId] ?? read.head
    return { ...pageOf(read.events, after, boundary, maxEvents, runEventOf(session.agentId)), head: read.head }
  })

  /** One observation of a run. */
  const observe = Effect.fnUntraced(function* (params: RunWaitParams) {
    const session = yield* sessions.find(params.sessionId)
    const { sessionId } = session
    const run = yield* find(session, params.submissionId)
    yield* checkJournal(params.journalId, sessionId, params.journalId === undefined ? 0 : yield* store.head(sessionId))
    const ended = run.endedAt !== null
    const pending = ended ? [] : yield* interruptions(session, run.submissionId)
    const { kept, more } = fitting(pending)
    const usage = yield* store.usage(sessionId, run.turnId ?? "")
    const page = params.cursors === undefined ? undefined : yield* events(session, run, params)
    const head = page?.head ?? (yield* store.head(sessionId))
    const status: RunState["status"] = run.status ?? (pending.length > 0 ? "interrupted" : "running")
    const known = new Set(params.knownInteractions)
    const news = pending.some((one) => !known.has(one.id))
    const state: RunState = {
      status,
      ...(run.failure === null ? {} : { failure: run.failure }),
      ...(ended ? yield* output(run) : { finalOutput: null }),
      interruptions: kept,
      submissionId: run.submissionId,
      cursor: head,
      ...(page === undefined
        ? {}
        : { events: page.items, cursors: { [sessionId]: page.cursor }, moreEvents: page.more }),
      ...(run.error === null ? {} : { error: errorOf(run.error) }),
      usage: usageOf(usage),
      journalId: runtime.journalId,
      ...(session.definition.scenario === undefined ? {} : { scripted: true }),
      ...(more ? { moreInterruptions: true } : {})
    }
    const ready = ended || news || (page?.items.length ?? 0) > 0
    return { state, ready } satisfies Observation
  })

  return { observe, find, interruptions, checkJournal }
}

const errorOf = (error: NonNullable<HostRun["error"]>): NonNullable<RunState["error"]> =>
  "data" in error
    ? { message: error.message, kind: error.data.kind }
    : { message: error.message, ...(error.kind === undefined ? {} : { kind: error.kind }) }

export type RunStates = ReturnType<typeof make>
export type { RunEvent }
