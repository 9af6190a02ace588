/**
 * The way of a permission request: submitted to the rig, read until it is settled, answered to the agent exactly once
 * (SEAT-160 to SEAT-173). Requests do not wait on each other.
 *
 * It owns the requests of the turn that runs and knows which of them still want an answer. Who may decide is the rig's
 * business; what an answer means is decided in `Verdict`. A turn's end, a cancel and the agent's death settle at once what
 * is open here and withdraw it at the rig behind that.
 */
import {
  type PermissionSubmit,
  type SeatOption,
  seatLimits,
  seatPaths,
  permissionWithdraw,
  type WithdrawReason
} from "@tackroom/protocol/seat"
import { Effect, FiberSet, type Scope, Semaphore } from "effect"
import type { SeatNames } from "../activity/ActivityQueue.ts"
import type { Released, Reporter } from "../activity/Reporter.ts"
import type { NoAnswer, RigAnswer, RigClient, RigRequest } from "../rig/RigClient.ts"
import type { Keep } from "../terminal/Pane.ts"
import { foreignPiece, foreignText } from "../terminal/PaneText.ts"
import { makeRequestIds, type RequestId } from "./RequestIds.ts"
import { submitBody } from "./SubmitBody.ts"
import { ofRead, ofSilence, ofSubmit, ownPermit, type Verdict } from "./Verdict.ts"

/** What the agent is told. */
export type Outcome =
  | { readonly _tag: "Selected"; readonly optionId: string }
  | { readonly _tag: "Cancelled" }
  /** The agent took its request back. */
  | { readonly _tag: "TakenBack" }

/** A permission request of the agent. */
export interface PermissionRequest {
  /** As the agent sent it; an agent may send anything. */
  readonly id: unknown
  readonly toolCall: PermissionSubmit["toolCall"]
  readonly options: ReadonlyArray<SeatOption>
  /** To be called once. */
  readonly answer: (outcome: Outcome) => void
}

export interface PermissionPath {
  readonly turnStarted: (turnId: string) => void
  readonly ask: (request: PermissionRequest) => void
  /** The agent cancelled its own request. */
  readonly takeBack: (request: PermissionRequest) => void
  /** The turn is cancelled: what waits is answered, what still comes is answered at once. */
  readonly cancelTurn: () => void
  /** The turn is over; completes when its withdraws are through, or after 500 ms. */
  readonly turnEnded: Effect.Effect<void>
  readonly exited: () => void
  /** Completes when no withdraw is on its way. */
  readonly drained: Effect.Effect<void>
}

const submitLimitMs = 10_000
const submitPausesMs = [250, 1_000]
const readLimitMs = 35_000
const readPausesMs = [500, 1_000, 2_000, 4_000]
const withdrawLimitMs = 2_000
const withdrawPausesMs = [250, 1_000]
const stopWaitsMs = 500

/**
 * Requests at the rig at a time; the others wait for their turn. So that an agent that asks a thousand things at once cannot
 * use up the connections, of which a guest listener has 64, and be permitted by that.
 */
const mostAtRig = 16

/** Options that are named in the pane. */
const namedOptions = 16

interface Open {
  readonly request: PermissionRequest
  /** What the rig knows it by. */
  readonly requestId: RequestId
  readonly turnId: string
  readonly title: string
  readonly kind: string | undefined
  askId: string | undefined
  /** Settled at the rig, as far as we were told. */
  settled: boolean
  /** Why it no longer wants an answer; `undefined` while it does. */
  withdrawn: WithdrawReason | "answered" | undefined
}

const textOf = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined)

const optionText = ({ kind, name, optionId }: SeatOption): string =>
  `${foreignPiece(name === "" ? optionId : name)} (${foreignPiece(kind)})`

const optionsText = (options: ReadonlyArray<SeatOption>): string => {
  if (options.length === 0) return "none"
  const more = options.length - namedOptions
  return options.slice(0, namedOptions).map(optionText).join(", ") + (more > 0 ? `, and ${more} more` : "")
}

export const makePermissionPath = (options: {
  readonly client: RigClient
  readonly names: SeatNames
  readonly nativeRef: () => string
  readonly now: () => string
  readonly reporter: Pick<Reporter, "waiting" | "resumed" | "hold">
  readonly say: (line: string, keep: Keep) => void
  /** A person's words that were no answer. */
  readonly queueWords: (words: string) => void
  readonly whenUnanswerable: "permit" | "refuse"
}): Effect.Effect<PermissionPath, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { client, names, now, reporter } = options
    const run = yield* FiberSet.makeRuntime()
    const withdrawals = yield* FiberSet.make<void>()
    const runWithdrawal = yield* FiberSet.runtime(withdrawals)()
    const atRig = yield* Semaphore.make(mostAtRig)
    const requestIdOf = makeRequestIds()
    const settledAsks = new Set<string>()
    const open = new Set<Open>()
    // Answered here, but open at the rig as far as we know: withdrawn when the turn is over.
    const lingering = new Set<string>()
    let released: Array<Released> = []
    let turnId: string | undefined
    let cancelled = false

    const say = (line: string): void => options.say(`permission > ${line}`, "always")

    /** Asks the rig until it answers, as often as there are pauses; an answer of any kind ends it. */
    const insist = (
      request: RigRequest,
      pauses: ReadonlyArray<number>,
      wanted: () => boolean
    ): Effect.Effect<RigAnswer, NoAnswer> =>
      client.send(request).pipe(
        Effect.catch((noAnswer) => {
          const [pause, ...later] = pauses
          if (pause === undefined || noAnswer.reason === "no_rig" || !wanted()) return Effect.fail(noAnswer)
          return Effect.andThen(Effect.sleep(pause), insist(request, later, wanted))
        })
      )

    const withdraw = (askId: string, reason: WithdrawReason): void => {
      const request: RigRequest = {
        method: "POST",
        path: seatPaths.withdraw(askId),
        body: permissionWithdraw.encode({ reason }),
        limitMs: withdrawLimitMs
      }
      runWithdrawal(Effect.ignore(insist(request, withdrawPausesMs, () => true)))
    }

    /** The last request that waited is answered. */
    const releaseIfNoneWaits = (): void => {
      if (open.size > 0) return
      const told = released
      released = []
      reporter.resumed(told)
    }

    const answer = (entry: Open, outcome: Outcome, left?: Released): void => {
      entry.withdrawn = "answered"
      if (entry.askId !== undefined) {
        settledAsks.add(entry.askId)
        if (!entry.settled) lingering.add(entry.askId)
      }
      open.delete(entry)
      if (left !== undefined) released.push(left)
      entry.request.answer(outcome)
      releaseIfNoneWaits()
    }

    const refuse = (entry: Open, why: string): void => {
      say(`REFUSED: ${entry.title}: ${foreignPiece(why)}. This seat needs attention until its next message.`)
      reporter.hold()
      answer(entry, { _tag: "Cancelled" })
    }

    const deliver = (entry: Open, option: SeatOption, own: boolean): void => {
      const left: Released | undefined =
        entry.askId !== undefined
          ? { _tag: "Asked", askId: entry.askId }
          : own
            ? { _tag: "OwnPermit", toolKind: entry.kind }
            : undefined
      answer(entry, { _tag: "Selected", optionId: option.optionId }, left)
    }

    const permit = (entry: Open, why: string): void => {
      const option = ownPermit(entry.request.options, options.whenUnanswerable)
      if (option === undefined) return refuse(entry, why)
      say(
        `PERMITTED BY THIS RUNNER: ${entry.title}: ${optionText(option)}: ${foreignPiece(why)}. The rig has no record of it.`
      )
      deliver(entry, option, true)
    }

    const hear = (words: string | undefined): void => {
      if (words === undefined) return
      options.say(`said > ${foreignText(words)}`, "while-room")
      options.queueWords(words)
    }

    const conclude = (entry: Open, verdict: Exclude<Verdict, { _tag: "Read" | "ReadAgain" }>): void => {
      switch (verdict._tag) {
        case "Deliver": {
          entry.settled = true
          const { by, option, reason } = verdict
          const because = reason === undefined ? "" : `: ${foreignPiece(reason)}`
          say(
            by === "person"
              ? `answered: ${optionText(option)}`
              : `permitted by the rig: ${optionText(option)}${because}`
          )
          hear(verdict.said)
          return deliver(entry, option, false)
        }
        case "Cancel":
          entry.settled = true
          say(foreignPiece(verdict.why))
          hear(verdict.said)
          return answer(entry, { _tag: "Cancelled" })
        case "Refuse":
          return refuse(entry, verdict.why)
        case "Permit":
          return permit(entry, verdict.why)
      }
    }

    /** A result for a request that wants none any more. */
    const discard = (entry: Open, verdict: Verdict): void => {
      const reason = entry.withdrawn
      if (verdict._tag === "Read" && reason !== undefined && reason !== "answered") {
        settledAsks.add(verdict.askId)
        return withdraw(verdict.askId, reason)
      }
      if (verdict._tag === "Deliver") say(`late answer discarded: ${entry.title}: ${optionText(verdict.option)}`)
    }

    const follow = Effect.fnUntraced(function* (entry: Open) {
      const wanted = (): boolean => entry.withdrawn === undefined
      // It waited for its turn, and its own turn may be over.
      if (!wanted()) return
      const { body, offered } = submitBody({
        names,
        nativeRef: options.nativeRef(),
        turnId: entry.turnId,
        requestId: entry.requestId,
        toolCall: entry.request.toolCall,
        options: entry.request.options,
        occurredAt: now()
      })
      const sent = offered.map((option) => option.sent)
      let verdict: Verdict = yield* insist(
        { method: "POST", path: seatPaths.submit, body, limitMs: submitLimitMs },
        submitPausesMs,
        wanted
      ).pipe(
        Effect.map((got) => ofSubmit(got, sent, (askId) => settledAsks.has(askId))),
        Effect.catch(({ reason }) => Effect.succeed(ofSilence(reason)))
      )
      if (verdict._tag === "Read" && wanted()) {
        const { askId } = verdict
        entry.askId = askId
        say(`waiting in the rig: ${foreignPiece(askId)}`)
        const path = `${seatPaths.read(askId)}?waitSeconds=${seatLimits.waitSeconds}`
        do {
          verdict = yield* insist({ method: "GET", path, limitMs: readLimitMs }, readPausesMs, wanted).pipe(
            Effect.map((got) => ofRead(got, sent)),
            Effect.catch(({ reason }) => Effect.succeed(ofSilence(reason)))
          )
        } while (verdict._tag === "ReadAgain" && wanted())
      }
      if (verdict._tag === "Deliver") {
        const chosen = verdict.option
        verdict = { ...verdict, option: offered.find((option) => option.sent === chosen)?.own ?? chosen }
      }
      if (!wanted()) discard(entry, verdict)
      else if (verdict._tag !== "Read" && verdict._tag !== "ReadAgain") conclude(entry, verdict)
    })

    const settleAll = (reason: WithdrawReason): void => {
      const entries = [...open]
      open.clear()
      for (const askId of lingering) withdraw(askId, reason)
      lingering.clear()
      for (const entry of entries) {
        entry.withdrawn = reason
        if (entry.askId !== undefined) {
          settledAsks.add(entry.askId)
          withdraw(entry.askId, reason)
        }
        entry.request.answer({ _tag: "Cancelled" })
      }
    }

    return {
      turnStarted: (id) => {
        turnId = id
        cancelled = false
        released = []
      },
      ask: (request) => {
        const title = foreignPiece(textOf(request.toolCall["title"]) ?? "(untitled)")
        const kind = textOf(request.toolCall["kind"])
        say(`asked: ${title} (${foreignPiece(kind ?? "other")}); options: ${optionsText(request.options)}`)
        if (turnId === undefined || cancelled) {
          say(`cancelled: ${title}: ${cancelled ? "the turn is being cancelled" : "no turn is running"}`)
          request.answer({ _tag: "Cancelled" })
          return
        }
        const entry: Open = {
          request,
          requestId: requestIdOf(request.id),
          turnId,
          title,
          kind,
          askId: undefined,
          settled: false,
          withdrawn: undefined
        }
        open.add(entry)
        reporter.waiting()
        run(
          // No answer of a rig: what the agent made this program stumble over grants it nothing.
          Effect.catchDefect(atRig.withPermits(1)(follow(entry)), () =>
            Effect.sync(() => {
              if (entry.withdrawn === undefined) refuse(entry, "internal fault")
            })
          )
        )
      },
      takeBack: (request) => {
        const entry = [...open].find((candidate) => candidate.request === request)
        if (entry === undefined) return
        open.delete(entry)
        entry.withdrawn = "turn_cancelled"
        say(`taken back by the agent: ${entry.title}`)
        if (entry.askId !== undefined) {
          settledAsks.add(entry.askId)
          withdraw(entry.askId, "turn_cancelled")
        }
        request.answer({ _tag: "TakenBack" })
        releaseIfNoneWaits()
      },
      cancelTurn: () => {
        cancelled = true
        const waited = open.size > 0
        settleAll("turn_cancelled")
        if (waited) releaseIfNoneWaits()
      },
      turnEnded: Effect.suspend(() => {
        turnId = undefined
        settleAll("turn_ended")
        return FiberSet.awaitEmpty(withdrawals).pipe(
          Effect.timeoutOrElse({ duration: stopWaitsMs, orElse: () => Effect.void })
        )
      }),
      exited: () => {
        turnId = undefined
        settleAll("exited")
      },
      drained: FiberSet.awaitEmpty(withdrawals)
    }
  })
