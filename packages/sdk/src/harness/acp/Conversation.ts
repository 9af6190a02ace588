/**
 * One conversation with an agent: what it said goes to the turn that runs, or between turns; what it asks goes to a person.
 * It opens nothing and decides nothing about processes.
 *
 * Invariants: updates are handed on in the order in which the agent wrote them, and the reader waits for room, so that an
 * agent which talks faster than the journal writes is slowed down. What comes before the conversation has its id is kept
 * until it has (HRN-010). While an agent repeats the past, nothing it says is handed on (HRN-008).
 */
import type * as Acp from "@agentclientprotocol/sdk"
import type { HarnessEvent } from "@tackroom/protocol/events"
import { Deferred, Effect, Exit, Queue } from "effect"
import { type Frames, makeFrames } from "../Frames.ts"
import type { HarnessContext, TurnInput } from "../Harness.ts"
import type { TurnOutput } from "../TurnFibers.ts"
import type { AgentListener } from "./AgentConnection.ts"
import { type Asked, elicitationAnswerOf, questionsOf } from "./Elicitations.ts"
import { type Fields, fieldsOf, textOf } from "./Fields.ts"
import { isGrant, permissionAnswerOf, permissionAskOf } from "./Permissions.ts"
import { type Frame, updateReader, type UpdateState } from "./Updates.ts"

/** Frames that wait for a turn or for the runtime between turns. */
const turnCapacity = 256

/** More than what may be kept before the conversation has its id, so that handing it on never waits. */
const betweenCapacity = 2_048

/** What is kept before the conversation has its id (HRN-010). */
const earlyFrames = 1_000
const earlyBytes = 4 * 1_048_576

type TurnItem =
  | { readonly _tag: "Events"; readonly events: ReadonlyArray<HarnessEvent> }
  /** Completed when everything before it is committed. */
  | { readonly _tag: "Sync"; readonly reached: Deferred.Deferred<void> }
  | { readonly _tag: "End" }

/** A turn on its way through the agent. */
export interface RunningPrompt {
  readonly input: TurnInput
  readonly items: Queue.Queue<TurnItem>
  /** How it ended. */
  readonly outcome: Deferred.Deferred<"cancelled" | "ended">
  sent: boolean
  cancelled: boolean
}

/** A conversation. */
export interface Conversation {
  readonly sessionId: string
  readonly directory: string
  readonly listener: AgentListener
  /** What arrived while no turn ran. */
  readonly between: Queue.Queue<ReadonlyArray<HarnessEvent>>
  readonly state: () => UpdateState
  readonly upstream: () => string | undefined
  /** The conversation has its id; what was kept is handed on. */
  readonly named: (upstreamSessionId: string) => void
  /** The id is of no use any more. */
  readonly unnamed: () => void
  /** While this is true, what the agent says is the past. */
  readonly suppress: (past: boolean) => void
  readonly deliver: (frame: Frame) => Effect.Effect<void>
  readonly running: () => RunningPrompt | undefined
  readonly begin: (input: TurnInput) => Effect.Effect<RunningPrompt>
  /** Nothing more of the turn comes: what does belongs behind it. */
  readonly answered: (running: RunningPrompt) => Effect.Effect<void>
  /** Hands the turn's events over until it is answered. */
  readonly forward: (running: RunningPrompt, output: TurnOutput) => Effect.Effect<void>
  /** The turn is over, however it ended. */
  readonly over: (running: RunningPrompt, outcome: "cancelled" | "ended") => Effect.Effect<void>
}

const cancelledElicitation: Acp.CreateElicitationResponse = { action: "cancel" }

/** An agent asked while nobody's turn runs, or about a conversation that is not ours. */
const unanswered = (what: string): HarnessEvent => ({
  type: "harness-notice",
  code: "ask_outside_turn",
  severity: "warn",
  message: `The agent asked for ${what} while no turn ran; nobody was asked`
})

/** Makes a conversation. */
export const makeConversation = (
  context: HarnessContext,
  place: { readonly sessionId: string; readonly directory: string }
): Effect.Effect<Conversation> =>
  Effect.gen(function* () {
    const frames: Frames<UpdateState, Frame> = makeFrames(updateReader)
    const between = yield* Queue.bounded<ReadonlyArray<HarnessEvent>>(betweenCapacity)
    let early: Array<Fields> = []
    let earlySize = 0
    let upstream: string | undefined
    let isPast = false
    let running: RunningPrompt | undefined
    const strangers = new Set<string>()

    const hand = (events: ReadonlyArray<HarnessEvent>): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (events.length === 0) return Effect.void
        return running === undefined
          ? Effect.asVoid(Queue.offer(between, events))
          : Effect.asVoid(Queue.offer(running.items, { _tag: "Events", events }))
      })

    const deliver = (frame: Frame): Effect.Effect<void> => Effect.suspend(() => hand(frames.accept(frame)))

    /** An image or a sound is kept before it is told of. */
    const media = (update: Fields): Effect.Effect<void> | undefined => {
      const content = fieldsOf(update["content"])
      const data = textOf(content?.["data"])
      const mimeType = textOf(content?.["mimeType"])
      if ((content?.["type"] !== "image" && content?.["type"] !== "audio") || data === undefined) return undefined
      if (mimeType === undefined || update["sessionUpdate"] === "user_message_chunk") return Effect.void
      const thinking = update["sessionUpdate"] === "agent_thought_chunk"
      return context.artifacts.put(place.sessionId, mimeType, Buffer.from(data, "base64")).pipe(
        Effect.flatMap((artifactId) => deliver({ _tag: "Media", thinking, mimeType, artifactId })),
        Effect.catch((error) =>
          hand([{ type: "diagnostic", diagnostic: { code: "media_not_kept", message: error.message } }])
        )
      )
    }

    const keepEarly = (params: Fields): void => {
      earlySize += JSON.stringify(params).length
      early.push(params)
      while (early.length > earlyFrames || earlySize > earlyBytes) {
        const dropped = early.shift()
        if (dropped === undefined) return
        earlySize -= JSON.stringify(dropped).length
      }
    }

    const update = (params: Fields): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (isPast) return Effect.void
        if (upstream === undefined) {
          keepEarly(params)
          return Effect.void
        }
        const sessionId = textOf(params["sessionId"])
        if (sessionId !== upstream) {
          if (sessionId === undefined || strangers.has(sessionId) || strangers.size >= 64) return Effect.void
          strangers.add(sessionId)
          return hand([
            {
              type: "diagnostic",
              diagnostic: {
                code: "foreign_session",
                message: "The agent reports on a conversation that is not this one"
              }
            }
          ])
        }
        const body = fieldsOf(params["update"])
        if (body === undefined) return deliver({ _tag: "Update", update: {} })
        return media(body) ?? deliver({ _tag: "Update", update: body })
      })

    /** Everything said so far is in the journal. */
    const committed = (turn: RunningPrompt): Effect.Effect<void> => {
      const reached = Deferred.makeUnsafe<void>()
      return Effect.andThen(
        Queue.offer(turn.items, { _tag: "Sync", reached }),
        Effect.raceFirst(Deferred.await(reached), Effect.asVoid(Deferred.await(turn.outcome)))
      )
    }

    const permission = Effect.fnUntraced(function* (request: Acp.RequestPermissionRequest, requestId: string) {
      const turn = running
      if (turn === undefined || request.sessionId !== upstream) {
        yield* hand([unanswered("a permission")])
        return permissionAnswerOf(request.options, undefined)
      }
      const { content: _, status: __, ...call } = request.toolCall
      yield* deliver({ _tag: "Update", update: { ...call, sessionUpdate: "tool_call_update" } })
      // The call is in the journal before anyone is asked about it.
      yield* committed(turn)
      const ask = permissionAskOf(request, {
        sessionId: place.sessionId,
        turnId: turn.input.turnId,
        requestId,
        tool: frames.state().calls.get(call.toolCallId)?.name
      })
      const decision = yield* context.ask.permission(ask).pipe(Effect.catch(() => Effect.succeed(undefined)))
      if (decision !== undefined && !isGrant(decision.decision)) {
        yield* deliver({ _tag: "Refused", toolCallId: call.toolCallId })
      }
      return permissionAnswerOf(request.options, decision)
    })

    const question = Effect.fnUntraced(function* (
      asked: Asked,
      turn: RunningPrompt,
      request: { readonly requestId: string; readonly toolCallId: string | undefined }
    ) {
      yield* committed(turn)
      const answer = yield* context.ask
        .question({
          sessionId: place.sessionId,
          turnId: turn.input.turnId,
          nativeRequestId: request.requestId,
          questions: asked.questions,
          ...(request.toolCallId === undefined ? {} : { toolCallId: request.toolCallId })
        })
        .pipe(Effect.catch(() => Effect.succeed(undefined)))
      return elicitationAnswerOf(asked, answer === undefined ? undefined : answer.answers)
    })

    const elicitation = Effect.fnUntraced(function* (request: Acp.CreateElicitationRequest, requestId: string) {
      const turn = running
      const asked = questionsOf(request)
      const fields = fieldsOf(request)
      if (turn === undefined || textOf(fields?.["sessionId"]) !== upstream) {
        yield* hand([unanswered("an answer")])
        return cancelledElicitation
      }
      if (asked === undefined) {
        yield* hand([
          {
            type: "harness-notice",
            code: "question_unsupported",
            severity: "warn",
            message: "The agent asked a question in a form that cannot be shown"
          }
        ])
        return cancelledElicitation
      }
      return yield* question(asked, turn, { requestId, toolCallId: textOf(fields?.["toolCallId"]) })
    })

    const forward = (turn: RunningPrompt, output: TurnOutput): Effect.Effect<void> =>
      Effect.gen(function* () {
        while (true) {
          const items = yield* Queue.takeAll(turn.items)
          // What came together goes on together.
          const events: Array<HarnessEvent> = []
          for (const item of items) {
            if (item._tag === "Events") {
              events.push(...item.events)
              continue
            }
            if (events.length > 0) yield* output.emit(events.splice(0))
            if (item._tag === "End") return
            yield* output.durable
            Deferred.doneUnsafe(item.reached, Exit.void)
          }
          if (events.length > 0) yield* output.emit(events)
        }
      })

    return {
      ...place,
      listener: {
        update,
        permission: (request, requestId, run) => run(permission(request, requestId)),
        elicitation: (request, requestId, run) => run(elicitation(request, requestId))
      },
      between,
      state: frames.state,
      upstream: () => upstream,
      named: (id) => {
        upstream = id
        const kept = early
        early = []
        earlySize = 0
        for (const params of kept) {
          const body = fieldsOf(params["update"])
          const isOurs = textOf(params["sessionId"]) === id && body !== undefined
          const events = isOurs ? frames.accept({ _tag: "Update", update: body }) : []
          if (events.length > 0) Queue.offerUnsafe(between, events)
        }
      },
      unnamed: () => {
        upstream = undefined
      },
      suppress: (past) => {
        isPast = past
      },
      deliver,
      running: () => running,
      begin: (input) =>
        Effect.gen(function* () {
          const turn: RunningPrompt = {
            input,
            items: yield* Queue.bounded<TurnItem>(turnCapacity),
            outcome: Deferred.makeUnsafe<"cancelled" | "ended">(),
            sent: false,
            cancelled: false
          }
          running = turn
          frames.accept({ _tag: "Turn", messageId: input.assistantMessageId })
          return turn
        }),
      answered: (turn) =>
        Effect.suspend(() => {
          if (running === turn) running = undefined
          return Effect.asVoid(Queue.offer(turn.items, { _tag: "End" }))
        }),
      forward,
      over: (turn, outcome) =>
        Effect.sync(() => {
          if (running === turn) running = undefined
          Deferred.doneUnsafe(turn.outcome, Exit.succeed(outcome))
          // A reader that waits for room in it goes on.
          Queue.shutdownUnsafe(turn.items)
        })
    }
  })
