/**
 * One turn as a run of a host. Our message id is the submission id (HRN-240), so starting and taking up are the same call:
 * a run that exists is found again, and none is ever made twice. All that is known of the run comes from `run/wait`; each
 * event is told with its place in the host's journals, and the end is the run's own status.
 *
 * A host that goes away is waited for as long as its connection wants to come back; then the turn goes on behind the last
 * event. Otherwise it ends as what it is: a process that exited.
 */
import type { HarnessError } from "@tackroom/protocol"
import type { EventPayload, HarnessEvent } from "@tackroom/protocol/events"
import { isTerminal } from "@tackroom/protocol/events"
import {
  Busy,
  fromWireEvent,
  InvalidState,
  limits,
  type MethodName,
  NotFound,
  type ParamsOf,
  type ResultOf,
  type RunEvent,
  type RunState,
  ShuttingDown
} from "@tackroom/protocol/run"
import { Deferred, Effect, Exit } from "effect"
import { HostExited } from "../../client/ClientErrors.ts"
import { makeFrames } from "../Frames.ts"
import { type HarnessContext, Positioned, type TurnInput } from "../Harness.ts"
import { plainPrompt } from "../PlainPrompt.ts"
import type { TurnOutput } from "../TurnFibers.ts"
import { makeHostArtifacts } from "./HostArtifacts.ts"
import { makeHostAsks } from "./HostAsks.ts"
import { harnessErrorOf, type HostConnection, type HostFailed } from "./HostConnection.ts"
import { eventOf, type HostFrame } from "./HostEvents.ts"
import { endOfRun, failed, type LastWords, refusal } from "./RunEnd.ts"
import { makeToldText } from "./ToldText.ts"

/** A turn that runs, as its cancel and its steers see it. */
export interface RunningRun {
  /** Completes when the host took the run, or will not. */
  readonly admitted: Deferred.Deferred<void>
  /** Completes with the turn's terminal event. */
  readonly over: Deferred.Deferred<HarnessEvent>
  /** The host's turn, once it is admitted. */
  hostTurnId: string | undefined
}

export const makeRunningRun = (): RunningRun => ({
  admitted: Deferred.makeUnsafe(),
  over: Deferred.makeUnsafe(),
  hostTurnId: undefined
})

export interface HostTurnInput {
  readonly turn: TurnInput
  readonly output: TurnOutput
  readonly running: RunningRun
  readonly connection: HostConnection
  readonly context: HarnessContext
}

/** How often a run that was admitted may be unknown before that is the truth. */
const unknownRuns = 3
const shuttingDownMs = 100

type Cursors = Readonly<Record<string, number>>

/** The place of a turn: the last event told, of each member. */
const placeOf = (cursors: Cursors): string => JSON.stringify(cursors)

const cursorsOf = (place: string): Cursors | undefined => {
  try {
    const value: unknown = JSON.parse(place)
    const isCursors =
      typeof value === "object" && value !== null && Object.values(value).every((one) => Number.isSafeInteger(one))
    return isCursors ? (value as Cursors) : undefined
  } catch {
    return undefined
  }
}

const isEnded = (state: RunState): boolean =>
  state.status === "completed" || state.status === "cancelled" || state.status === "failed"

/** A call that is made again when the host was away: only for what may be repeated (RUN-571, RUN-474). */
export const persist = <M extends MethodName>(
  connection: HostConnection,
  method: M,
  params: ParamsOf<M>,
  onExit: (exited: HostExited) => Effect.Effect<void> = () => Effect.void
): Effect.Effect<ResultOf<M>, HostFailed> =>
  connection.call(method, params).pipe(
    Effect.catch((error) => {
      const { cause } = error
      const again = Effect.suspend(() => persist(connection, method, params, onExit))
      if (cause instanceof Busy) return Effect.andThen(Effect.sleep(cause.retryAfterMs), again)
      if (cause instanceof ShuttingDown) return Effect.andThen(Effect.sleep(shuttingDownMs), again)
      const status = connection.status()
      if (!(cause instanceof HostExited) || status === "failed" || status === "closed") return Effect.fail(error)
      return Effect.andThen(onExit(cause), again)
    })
  )

/** Follows the run to its end. Fails only for what is no end of the run. */
export const followRun = (input: HostTurnInput): Effect.Effect<void, HarnessError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { connection, context, output, running, turn } = input
      const hostSessionId = turn.binding.upstreamSessionId
      const ended = { sessionId: turn.binding.sessionId, assistantMessageId: turn.assistantMessageId }
      const artifacts = makeHostArtifacts(connection, context, turn.binding.sessionId)
      const stop = Deferred.makeUnsafe<HarnessEvent>()
      const told = makeToldText(turn, context)

      const end = (event: HarnessEvent): Effect.Effect<void> =>
        Effect.suspend(() => {
          output.close()
          Deferred.doneUnsafe(running.admitted, Exit.void)
          Deferred.doneUnsafe(running.over, Exit.succeed(event))
          return output.emit([event])
        })

      const exited = (cause: HostExited): Effect.Effect<void> =>
        output.emit([
          {
            type: "process-status",
            processId: `${context.instanceId}.host`,
            role: "harness",
            state: "exited",
            ...(cause.exitCode === null ? {} : { code: cause.exitCode }),
            ...(cause.signal === null ? {} : { signal: cause.signal }),
            ...(cause.stderrTail === "" ? {} : { stderrTail: cause.stderrTail })
          }
        ])

      const asks = yield* makeHostAsks({
        turn,
        context,
        durable: output.durable,
        respond: (params) => persist(connection, "run/respond", params),
        refused: (error) =>
          Effect.andThen(
            Effect.ignore(persist(connection, "run/cancel", { sessionId: hostSessionId })),
            Deferred.succeed(
              stop,
              failed(ended, `the host did not take an answer: ${error.message}`, "harness_error", "harness")
            )
          ).pipe(Effect.asVoid)
      })

      const asked = plainPrompt(turn.prompt)
      if ("refused" in asked) {
        return yield* end(failed(ended, `the host takes text alone, not ${asked.refused}`, "not_accepted"))
      }
      const start = persist(
        connection,
        "run/start",
        { sessionId: hostSessionId, submissionId: turn.messageId, text: asked.text },
        exited
      )

      // ------------------------------------------------------------ events

      const last: LastWords = {}
      const frames = makeFrames<undefined, HostFrame>({
        initial: undefined,
        kindOf: (frame) => frame.type,
        translate: (state, frame) => {
          if (frame.payload === undefined) return "unknown"
          const event = eventOf(frame)
          return { state, events: event === undefined ? [] : [event] }
        }
      })

      const note = (payload: EventPayload): Effect.Effect<void> | undefined => {
        switch (payload.type) {
          case "permission-request":
          case "question":
            asks.asked(payload)
            return undefined
          case "permission-resolved":
          case "question-answered":
          case "question-rejected":
          case "interaction-withdrawn":
            return asks.over(payload.requestId)
          case "text-end":
            if (payload.channel === "text") last.text = payload.text
            return undefined
          default:
            if (isTerminal(payload)) last.terminal = payload
            return undefined
        }
      }

      const take = Effect.fnUntraced(function* (one: RunEvent, place: string) {
        const isLead = one.sessionId === hostSessionId
        const record = fromWireEvent(one.event)
        const payload =
          record === undefined ? undefined : yield* artifacts.whole(one.sessionId, record.payload, record.artifacts)
        if (payload !== undefined && (isLead || isInteraction(payload))) {
          const noted = note(payload)
          if (noted !== undefined) yield* noted
        }
        const events = frames.accept({ type: one.event.type, isLead, payload })
        const own = events.map((event) => new Positioned({ event: told.rest(event), peerCursor: place }))
        if (own.length > 0) yield* output.emit(own)
      })

      // ------------------------------------------------------------ following

      const broken = (error: HostFailed): Effect.Effect<void, HarnessError> => {
        const refused = refusal(ended, error)
        return refused === undefined ? Effect.fail(harnessErrorOf("runTurn", error)) : end(refused)
      }

      const first = yield* Effect.result(start)
      if (first._tag === "Failure") return yield* broken(first.failure)
      running.hostTurnId = first.success.turn.turnId
      Deferred.doneUnsafe(running.admitted, Exit.void)
      const place = turn.peerCursor === undefined ? undefined : cursorsOf(turn.peerCursor)
      if (place !== undefined) yield* told.load
      let cursors: Cursors = { ...first.success.cursors, ...place }
      let unknown = 0

      while (true) {
        const known = asks.raised()
        const waited: Effect.Effect<RunState | HarnessEvent, HostFailed> = Effect.raceFirst(
          persist(
            connection,
            "run/wait",
            {
              sessionId: hostSessionId,
              submissionId: turn.messageId,
              waitMs: limits.waitMsMax,
              cursors,
              ...(turn.binding.ownerKey === undefined ? {} : { journalId: turn.binding.ownerKey }),
              ...(known.length === 0 ? {} : { knownInteractions: known.slice(-knownInteractions) })
            },
            exited
          ),
          Deferred.await(stop)
        )
        const observed = yield* Effect.result(waited)
        if (observed._tag === "Failure") {
          if (!isUnfinished(observed.failure.cause) || unknown === unknownRuns) return yield* broken(observed.failure)
          // A start that was reserved and cut short by a crash is finished by the same start.
          unknown += 1
          const again = yield* Effect.result(start)
          if (again._tag === "Failure") return yield* broken(again.failure)
          continue
        }
        if ("type" in observed.success) return yield* end(observed.success)
        const state = observed.success
        unknown = 0
        const seen: Record<string, number> = { ...cursors }
        for (const one of state.events ?? []) {
          seen[one.sessionId] = one.event.seq
          yield* take(one, placeOf(seen))
        }
        cursors = { ...seen, ...state.cursors }
        if (isEnded(state) && state.moreEvents !== true) return yield* end(endOfRun(ended, state, last))
        yield* asks.raise(state)
      }
    })
  )

/** As many ids as one wait may name. */
const knownInteractions = 256

const isInteraction = (payload: EventPayload): boolean =>
  payload.type === "permission-request" ||
  payload.type === "question" ||
  payload.type === "permission-resolved" ||
  payload.type === "question-answered" ||
  payload.type === "question-rejected" ||
  payload.type === "interaction-withdrawn"

const isUnfinished = (cause: unknown): boolean =>
  (cause instanceof InvalidState && cause.reason === "not_admitted") ||
  (cause instanceof NotFound && cause.what === "run")
