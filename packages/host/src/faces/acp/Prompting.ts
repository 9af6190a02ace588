/**
 * A prompt until its answer: a turn of `Runs`, followed to its committed end (serve-mode 12.4, 12.6). It settles nothing; how
 * the turn ended stands in the journal, for a prompt that is repeated as well.
 */
import type { PromptRequest, PromptResponse } from "@agentclientprotocol/sdk"
import { isTerminal } from "@tackroom/protocol/events"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import type { Host } from "../../Host.ts"
import type { Arrival } from "./Arrivals.ts"
import { type Stopped, stopOf } from "./Ending.ts"
import type { TurnEnd } from "./OpenSession.ts"
import type { OpenSessions } from "./OpenSessions.ts"
import { promptText } from "./PromptContent.ts"
import { busy, internal, invalidParams, Refusal } from "./Refusals.ts"

/** Bounds of a client's own id of a submission (ACP-113). */
const submissionId = /^[^\p{Cc}]{1,200}$/u

/** A submission that was made before. */
class Repeated {
  readonly turnId: string
  readonly after: number
  constructor(turnId: string, after: number) {
    this.turnId = turnId
    this.after = after
  }
}

const ourMeta = ({ _meta }: PromptRequest): Readonly<Record<string, unknown>> => {
  const ours = _meta?.["tackroom"]
  return typeof ours === "object" && ours !== null ? (ours as Readonly<Record<string, unknown>>) : {}
}

const idOf = (params: PromptRequest): string | Refusal => {
  const given = ourMeta(params)["submissionId"]
  if (given === undefined) return `msg_${randomUUID()}`
  return typeof given === "string" && submissionId.test(given)
    ? given
    : invalidParams("invalid", "submissionId has 1 to 200 characters without control characters")
}

const respond = (
  stopped: Stopped | Refusal,
  more: { readonly turnId: string; readonly cursor: number } & Readonly<Record<string, unknown>>
): Effect.Effect<PromptResponse, Refusal> => {
  if (stopped instanceof Refusal) return Effect.fail(stopped)
  const { stop, stopReason } = stopped
  return Effect.succeed({ stopReason, _meta: { tackroom: { ...more, ...(stop === undefined ? {} : { stop }) } } })
}

export const makePrompting = (host: Host, open: OpenSessions) => {
  const { runs } = host

  const cancelTurn = (sessionId: string): void =>
    open.fork(
      Effect.asVoid(runs.cancel({ sessionId })).pipe(
        Effect.catch((error) => Effect.logWarning("A turn could not be cancelled", error._tag))
      )
    )

  const started = (sessionId: string, submission: string, text: string) =>
    Effect.flatMap(runs.start({ sessionId, submissionId: submission, text }), (result) => {
      const { turnId } = result.turn
      return result.duplicate
        ? Effect.fail(new Repeated(turnId, result.cursors[sessionId] ?? 0))
        : Effect.succeed({ turnId })
    })

  /** How a turn ended that was answered before: nothing of it is told again (ACP-113). */
  const recorded = Effect.fnUntraced(function* (sessionId: string, { after, turnId }: Repeated) {
    let cursor = after
    while (true) {
      const page = yield* runs.entries(sessionId, cursor)
      for (const entry of page.entries) {
        cursor = entry.cursor
        if (entry.turnId === turnId && isTerminal(entry.payload)) {
          return yield* respond(stopOf(entry.payload, false), { turnId, cursor, duplicate: true })
        }
      }
      if (page.entries.length === 0 || cursor >= page.head) return yield* Effect.fail(busy())
    }
  })

  return Effect.fnUntraced(function* (params: PromptRequest, arrival: Arrival) {
    const { sessionId } = params
    const { session } = yield* open.active(sessionId)
    const text = promptText(params.prompt)
    if (typeof text !== "string") return yield* Effect.fail(text)
    const submission = idOf(params)
    if (typeof submission !== "string") return yield* Effect.fail(submission)
    if (arrival.cancelled) return { stopReason: "cancelled" } satisfies PromptResponse
    if (session.isWorking) return yield* Effect.fail(busy())
    let turnId = ""
    const start = Effect.tap(started(sessionId, submission, text), (turn) => Effect.sync(() => (turnId = turn.turnId)))
    const end: TurnEnd | Repeated = yield* session
      .run(start, () => {
        arrival.onCancel = () => cancelTurn(sessionId)
        if (arrival.cancelled) cancelTurn(sessionId)
      })
      .pipe(
        Effect.catchIf(
          (error): error is Repeated => error instanceof Repeated,
          (repeated) => Effect.succeed(repeated)
        )
      )
    if (end instanceof Repeated) return yield* recorded(sessionId, end)
    if (end._tag === "Broken") return yield* Effect.fail(internal("store", "The end of the turn could not be kept"))
    const summary = session.projection.takeSummary()
    return yield* respond(stopOf(end.event, arrival.cancelled), { turnId, cursor: end.cursor, ...summary })
  })
}
