/**
 * What a host's run waits for, asked here and answered there. An interruption becomes an ask under the host's own id, so
 * that the same one is never asked twice, also not after a restart of either side; the answer goes back with `run/respond`,
 * which may be repeated with the same content (RUN-441).
 *
 * It decides nothing: a denial, a rejection and an expired ask are told as the run protocol has them.
 */
import type { HarnessError } from "@tackroom/protocol"
import type { EventOf, OptionKind, PermissionOption } from "@tackroom/protocol/events"
import type { Interruption, ParamsOf, RunDecision, RunState } from "@tackroom/protocol/run"
import { Effect, FiberMap, type Scope } from "effect"
import type { HarnessContext, PermissionDecision, TurnInput } from "../Harness.ts"
import type { HostFailed } from "./HostConnection.ts"
import { tagOf } from "./HostConnection.ts"

/** The events that asked, by interaction id. */
export type AskedFor = EventOf<"permission-request"> | EventOf<"question">

export interface HostAsks {
  /** Raises what is pending in a state and was not raised yet. */
  readonly raise: (state: RunState) => Effect.Effect<void>
  /** Keeps the event that asked; its ask is richer than the interruption. */
  readonly asked: (event: AskedFor) => void
  /** The host's journal says that it is over: an ask that still waits here is taken back. */
  readonly over: (interactionId: string) => Effect.Effect<void>
  /** Interactions that were raised: a wait does not return for them again (RUN-414). */
  readonly raised: () => ReadonlyArray<string>
}

type Respond = ParamsOf<"run/respond">

/** What the host is told when nobody answers a question. */
const unanswered = "Unanswered"

const kinds: Readonly<Record<RunDecision, OptionKind>> = {
  once: "allow_once",
  session: "allow_always",
  deny: "reject_once"
}
const labels: Readonly<Record<RunDecision, string>> = {
  once: "Allow once",
  session: "Allow for this session",
  deny: "Deny"
}

/** The options of an approval: what the host takes, under the names it gave them. */
export const optionsOf = (
  decisions: ReadonlyArray<RunDecision>,
  offered: ReadonlyArray<PermissionOption>
): ReadonlyArray<PermissionOption> =>
  decisions.map(
    (decision): PermissionOption =>
      offered.find((option) => option.id === decision) ?? {
        id: decision,
        label: labels[decision],
        kind: kinds[decision]
      }
  )

/** The decision of the run protocol for a decision here. */
export const decisionOf = (decided: PermissionDecision, decisions: ReadonlyArray<RunDecision>): RunDecision => {
  const chosen = decisions.find((decision) => decision === decided.optionId)
  if (chosen !== undefined) return chosen
  if (decided.decision === "allow_once") return "once"
  return decided.decision === "allow_always" ? "session" : "deny"
}

/** The answer of the run protocol: one text. */
export const answerOf = (answers: ReadonlyArray<ReadonlyArray<string>> | null): string => {
  const text = (answers?.[0] ?? []).join(", ")
  return text === "" ? unanswered : text
}

/** Somebody else was first, or the turn is over: there is nothing left to be told. */
const isSettled = (failed: HostFailed): boolean => {
  const { cause } = failed
  const tag = tagOf(cause)
  return (
    tag === "Conflict" ||
    (tag === "InvalidState" &&
      typeof cause === "object" &&
      cause !== null &&
      "reason" in cause &&
      cause.reason === "turn_ended") ||
    (tag === "NotFound" &&
      typeof cause === "object" &&
      cause !== null &&
      "what" in cause &&
      cause.what === "interaction")
  )
}

export interface HostAsksInput {
  readonly turn: TurnInput
  readonly context: HarnessContext
  /** Completes when everything emitted before is committed. */
  readonly durable: Effect.Effect<void>
  /** Sends an answer, over restarts of the host. */
  readonly respond: (params: Respond) => Effect.Effect<unknown, HostFailed>
  /** An answer that the host refuses for good: the turn cannot go on. */
  readonly refused: (failed: HostFailed) => Effect.Effect<void>
}

/** Makes the asks of one turn; they end with the scope. */
export const makeHostAsks = (input: HostAsksInput): Effect.Effect<HostAsks, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { context, turn } = input
    const waiting = yield* FiberMap.make<string>()
    const run = yield* FiberMap.runtime(waiting)()
    const raised = new Set<string>()
    const events = new Map<string, AskedFor>()

    const place = (interruption: Interruption) => ({
      sessionId: turn.binding.sessionId,
      turnId: turn.turnId,
      nativeRequestId: interruption.id
    })

    const permission = (interruption: Extract<Interruption, { readonly kind: "approval" }>) => {
      const event = events.get(interruption.id)
      const known = event?.type === "permission-request" ? event : undefined
      return context.ask
        .permission({
          ...place(interruption),
          tool: known?.tool ?? interruption.tool,
          ...(known?.title === undefined ? {} : { title: known.title }),
          arguments: known?.arguments ?? interruption.arguments,
          toolCallId: known?.toolCallId ?? interruption.callId,
          paths: known?.paths ?? [],
          ...(known?.patterns === undefined ? {} : { patterns: known.patterns }),
          category: known?.category ?? interruption.category,
          ...(known?.details === undefined ? {} : { details: known.details }),
          options: optionsOf(interruption.decisions, known?.options ?? [])
        })
        .pipe(
          Effect.map((decided) => ({
            decision: decisionOf(decided, interruption.decisions),
            ...(decided.note === undefined ? {} : { reason: decided.note })
          })),
          Effect.catch((refused) => Effect.succeed(isTold(refused) ? { decision: "deny" as const } : undefined))
        )
    }

    const question = (interruption: Extract<Interruption, { readonly kind: "question" }>) => {
      const event = events.get(interruption.id)
      const [known] = event?.type === "question" ? event.questions : []
      return context.ask
        .question({
          ...place(interruption),
          questions: [
            {
              ...known,
              question: interruption.question,
              options:
                known !== undefined && known.options.length === interruption.options.length
                  ? known.options
                  : interruption.options.map((label) => ({ label })),
              custom: interruption.allowText
            }
          ]
        })
        .pipe(
          Effect.map(({ answers }) => ({ answer: answerOf(answers) })),
          Effect.catch((refused) => Effect.succeed(isTold(refused) ? { answer: unanswered } : undefined))
        )
    }

    const settle = Effect.fnUntraced(function* (interruption: Interruption) {
      const answer = yield* interruption.kind === "approval" ? permission(interruption) : question(interruption)
      events.delete(interruption.id)
      if (answer === undefined) return
      yield* input
        .respond({ sessionId: interruption.sessionId, interactionId: interruption.id, ...answer })
        .pipe(Effect.catch((failed) => (isSettled(failed) ? Effect.void : input.refused(failed))))
    })

    return {
      asked: (event) => {
        if (!raised.has(event.requestId)) events.set(event.requestId, event)
      },
      over: (id) => {
        events.delete(id)
        return FiberMap.remove(waiting, id)
      },
      raised: () => [...raised],
      raise: Effect.fnUntraced(function* (state: RunState) {
        const fresh = state.interruptions.filter(
          // What asked may be on the next page; then there is more to say about it.
          (one) => !raised.has(one.id) && (events.has(one.id) || state.moreEvents !== true)
        )
        if (fresh.length === 0) return
        yield* input.durable
        for (const interruption of fresh) {
          raised.add(interruption.id)
          run(interruption.id, settle(interruption))
        }
      })
    }
  })

/** An ask that ran out of time or could not be put is told as a no (RT-256); one that ended with its turn is not told. */
const isTold = (refused: HarnessError | { readonly _tag: "Withdrawn"; readonly reason: string }): boolean =>
  refused._tag !== "Withdrawn" || refused.reason === "expired"
