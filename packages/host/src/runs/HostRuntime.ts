/**
 * What the host asks of the agent runtime, in one place (D-26, D-30): the runtime's Effect services with the extra rights
 * of the package around it, narrowed to what `Sessions` and `Runs` use. It owns nothing.
 */
import { mintId, type RuntimeError } from "@tackroom/protocol"
import type { EventPayload, HarnessRef, McpEntry, ModelRef } from "@tackroom/protocol/events"
import type { InteractionRow, OpFailed, RuntimeStore, SessionRow, StoreOp, Subscription } from "@tackroom/sdk/effect"
import type { TurnBudget } from "@tackroom/sdk/adapters"
import type { HarnessCapabilities } from "@tackroom/sdk/adapters"
import {
  type ActiveTurn,
  ActiveTurns,
  Config,
  Hub,
  Interactions,
  Recovery,
  Sessions,
  Store,
  Subscriptions,
  Turns,
  type TurnFold
} from "@tackroom/sdk/effect"
import { Clock, Deferred, Effect } from "effect"
import { randomBytes } from "node:crypto"

export interface StartedTurn {
  readonly turnId: string
  readonly duplicate: boolean
  /** The session's head before the turn. */
  readonly startCursor: number
}

export type Resolution =
  | {
      readonly decision: "allow_once" | "allow_always" | "deny" | "reject_always"
      readonly optionId?: string
      readonly note?: string
    }
  | { readonly answers: ReadonlyArray<ReadonlyArray<string>> | null }

/** Who decided, where that is not just a person. */
export interface Author {
  readonly by?: string
  readonly origin?: "person" | "system"
}

/** How a turn can end that no journal tells of. */
export type Broken = "lost" | "store"

export interface MemberPhase {
  readonly turnId: string
  readonly phase: "queued" | "model" | "tool" | "approval" | "question" | "recovering" | "cancelling"
  readonly tool?: string
  /** Milliseconds since the epoch. */
  readonly since: number
}

export interface HostRuntime {
  readonly store: RuntimeStore
  readonly journalId: string
  /** The events of a session behind a cursor, then as they are committed. */
  readonly subscribe: (sessionId: string, after: number) => Subscription
  /** Creates the sessions of one agent/session call in one transaction, with the host's own rows. */
  readonly createSessions: (
    sessions: ReadonlyArray<{
      readonly id: string
      readonly directory: string
      readonly title?: string
      readonly harness: HarnessRef
      /** What a harness other than our own is told of the agent; ours reads the host's row. */
      readonly model?: ModelRef
      readonly instructions?: string
      /** MCP servers of a client, by name. */
      readonly mcp?: Readonly<Record<string, McpEntry>>
      /** Kept on the session's row, where the runtime finds the budget of its turns. */
      readonly budget: TurnBudget
      readonly notices: ReadonlyArray<EventPayload>
    }>,
    ops: ReadonlyArray<StoreOp>
  ) => Effect.Effect<void, Failure>
  readonly startTurn: (
    input: { readonly sessionId: string; readonly messageId: string; readonly text: string },
    ops: (started: { readonly turnId: string; readonly startCursor: number }) => ReadonlyArray<StoreOp>
  ) => Effect.Effect<StartedTurn, Failure>
  /** Returns when the turn is settled; `settled: false` when even the ladder's end did not do it. */
  readonly cancelTurn: (
    sessionId: string
  ) => Effect.Effect<{ readonly cancelled: boolean; readonly settled: boolean }, RuntimeError>
  readonly closeSession: (sessionId: string, ops: ReadonlyArray<StoreOp>) => Effect.Effect<void, Failure>
  /** A person's answer; other pending interactions of the session that `also` names are allowed with it, by grant. */
  readonly respond: (
    interactionId: string,
    resolution: Resolution,
    extra?: { readonly ops: ReadonlyArray<StoreOp>; readonly also: (pending: InteractionRow) => boolean },
    author?: Author
  ) => Effect.Effect<{ readonly alreadyResolved: boolean }, Failure>
  /** Settles what a dead process left of the session and opens the harness's side; answers what the harness can do. */
  readonly open: (sessionId: string) => Effect.Effect<HarnessCapabilities, RuntimeError>
  /** Settles what a dead process left of the session; a turn that is open afterwards has a live owner. */
  readonly recover: (sessionId: string) => Effect.Effect<void, RuntimeError>
  /** Ends the harness's side; the session stays, and a later turn opens it again. */
  readonly release: (sessionId: string) => Effect.Effect<void, Failure>
  /** Deletes the session for good, its rows of the host with it. */
  readonly removeSession: (sessionId: string, ops: ReadonlyArray<StoreOp>) => Effect.Effect<void, Failure>
  /** What the session runs with, and what its harness offers. */
  readonly config: Pick<Config["Service"], "read" | "options" | "update">
  /** Completes when the session's turn of this process is over and its end cannot be committed; never otherwise. */
  readonly broken: (sessionId: string) => Effect.Effect<Broken>
  readonly phase: (sessionId: string) => MemberPhase | undefined
  readonly mintSessionId: Effect.Effect<string>
}

const least = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined ? other : other === undefined ? one : Math.min(one, other)

/** Both budgets at once: of each limit the tighter one. */
export const tighter = (one: TurnBudget | undefined, other: TurnBudget | undefined): TurnBudget => {
  const limits = {
    maxRounds: least(one?.maxRounds, other?.maxRounds),
    maxOutputTokens: least(one?.maxOutputTokens, other?.maxOutputTokens),
    activeMs: least(one?.activeMs, other?.activeMs),
    wallMs: least(one?.wallMs, other?.wallMs)
  }
  return Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit !== undefined))
}

/** The budget that a session was made with (AGT-200, D-28). */
export const budgetOf = (session: Pick<SessionRow, "harnessPayload">): TurnBudget | undefined => {
  const { harnessPayload: payload } = session
  return typeof payload === "object" && payload !== null && "budget" in payload
    ? (payload.budget as TurnBudget)
    : undefined
}

/** How long a store may take to keep the end of a turn after all (SRV-305). */
const settlePatience = "8 seconds"

/** A turn whose end no journal keeps: its session was lost, or its store takes no commit. */
const brokenEnd = (active: ActiveTurn): Effect.Effect<Broken> => {
  const unsettled = (broken: Broken): Effect.Effect<Broken> =>
    Effect.suspend(() => (Deferred.isDoneUnsafe(active.settled) ? Effect.never : Effect.succeed(broken)))
  const stopped = Effect.flatMap(Deferred.await(active.stop), (stop): Effect.Effect<Broken> => {
    switch (stop._tag) {
      case "Lost":
        return unsettled("lost")
      case "StoreDown":
        return Effect.flatMap(Effect.timeoutOption(Deferred.await(active.settled), settlePatience), () =>
          unsettled("store")
        )
      default:
        return Effect.never
    }
  })
  const unsettleable = Effect.flatMap(Deferred.await(active.settling), () =>
    Effect.flatMap(Effect.timeoutOption(Deferred.await(active.settled), settlePatience), () => unsettled("store"))
  )
  const gone = Effect.flatMap(Deferred.await(active.gone), () => unsettled("store"))
  return Effect.raceAllFirst([stopped, unsettleable, gone])
}

/** The tool that runs, else the one that is about to. */
const runningTool = (open: TurnFold["openTools"]): string | undefined => {
  let first: string | undefined
  for (const { name, started } of open.values()) {
    if (started) return name
    first ??= name
  }
  return first
}

/** What a call of the runtime with rows of the host may fail with. */
export type Failure = RuntimeError | OpFailed

/** The runtime's services as the host uses them. */
export const make = Effect.gen(function* () {
  const store = yield* Store
  const sessions = yield* Sessions
  const turns = yield* Turns
  const interactions = yield* Interactions
  const actives = yield* ActiveTurns
  const hub = yield* Hub
  const recovery = yield* Recovery
  const config = yield* Config
  const subscriptions = yield* Subscriptions
  const phases = new Map<string, MemberPhase>()

  const look = (sessionId: string, at: number): MemberPhase | undefined => {
    const active = actives.get(sessionId)
    if (active === undefined) {
      phases.delete(sessionId)
      return undefined
    }
    const phase = active.phase()
    const tool = phase === "tool" ? runningTool(active.log.fold.openTools) : undefined
    const known = phases.get(sessionId)
    if (known?.turnId === active.turn.id && known.phase === phase && known.tool === tool) return known
    const next = { turnId: active.turn.id, phase, ...(tool === undefined ? {} : { tool }), since: at }
    phases.set(sessionId, next)
    return next
  }
  // The phase follows the committed events, so that `since` is the time of the one that began it.
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      hub.subscribe("*", ({ at, payload, sessionId }) => {
        if (!("delta" in payload)) look(sessionId, Date.parse(at))
      })
    ),
    (detach) => Effect.sync(detach)
  )
  const clock = yield* Clock.Clock
  const { journalId } = yield* store.info
  const runtime: HostRuntime = {
    store,
    journalId,
    subscribe: (sessionId, after) => subscriptions.open({ sessionId, after, hostInternal: true }),
    createSessions: (made, ops) =>
      Effect.asVoid(
        sessions.createMany(
          made.map(({ budget, directory, harness, id, instructions, mcp, model, notices, title }) => ({
            id,
            directory,
            harness,
            harnessPayload: { budget },
            entries: notices,
            ...(title === undefined ? {} : { title }),
            ...(mcp === undefined ? {} : { mcp }),
            ...(model === undefined ? {} : { model }),
            ...(instructions === undefined ? {} : { instructions })
          })),
          { ops }
        )
      ),
    startTurn: (input, ops) =>
      Effect.map(
        turns.start(
          { sessionId: input.sessionId, messageId: input.messageId, text: input.text },
          {
            ops: (outcome) =>
              outcome._tag === "Started" ? ops({ turnId: outcome.turn.id, startCursor: outcome.receipt.startSeq }) : []
          }
        ),
        (admission) => ({
          turnId: admission.turnId ?? "",
          duplicate: admission.duplicate,
          startCursor: admission.startCursor
        })
      ),
    cancelTurn: (sessionId) =>
      Effect.map(turns.abort(sessionId), (result) => ({
        cancelled: result.ok && result.status === "cancelled",
        settled: result.ok
      })),
    recover: (sessionId) => recovery.session(sessionId),
    release: (sessionId) => Effect.asVoid(sessions.close(sessionId)),
    removeSession: (sessionId, ops) => sessions.remove(sessionId, { ops }),
    config,
    closeSession: (sessionId, ops) => Effect.asVoid(sessions.close(sessionId, { ops, record: true })),
    open: (sessionId) => Effect.andThen(recovery.session(sessionId), sessions.connect(sessionId)),
    broken: (sessionId) =>
      Effect.suspend(() => {
        const active = actives.get(sessionId)
        return active === undefined ? Effect.never : brokenEnd(active)
      }),
    respond: (interactionId, resolution, extra, author = {}) =>
      Effect.map(
        interactions.respond(
          interactionId,
          resolution,
          extra === undefined
            ? author
            : {
                ...author,
                ops: extra.ops,
                also: (pending) =>
                  pending
                    .filter(extra.also)
                    .map(({ id }) => ({ id, response: { decision: "allow_once" }, origin: "grant" }) as const)
              }
        ),
        ({ status }) => ({ alreadyResolved: status === "already_resolved" })
      ),
    phase: (sessionId) => look(sessionId, clock.currentTimeMillisUnsafe()),
    mintSessionId: Effect.map(Clock.currentTimeMillis, (now) => mintId("session", now, randomBytes(10)))
  }
  return runtime
})
