/**
 * Sends: text pasted into a seat's pane as one block, then Enter (seat contract 9.5). One send a seat at a time, first
 * come first served. A failure before Enter names its step and says whether a draft may stand; nothing is tried again.
 *
 * What stands in a pane without its Enter is stored before it is pasted, so that a killed service knows of it: the next send
 * clears it in a runner's pane, and is refused in any other, where nobody knows the key that clears.
 */
import {
  draftStep,
  launchStates,
  type SeatError,
  SeatNeedsAttention,
  SeatNotReady,
  seatLimits,
  SeatStopped,
  type SendBody,
  SendBusy,
  SendFailed,
  type SendResult,
  TargetNeedsInput,
  TmuxUnavailable
} from "@tackroom/protocol/seat"
import { Effect } from "effect"
import type { ServiceLog } from "./ServiceLog.ts"
import { isRefusal } from "./Callers.ts"
import { read } from "./ActivityMachine.ts"
import * as Minting from "./Minting.ts"
import type { RigStore } from "./RigStore.ts"
import type { OccupantRow, SeatRow } from "./SeatRows.ts"
import { beyondPrompt, count, envelope, evidenceNote, needleOf, pastable } from "./SendText.ts"
import type { Sessions } from "./Sessions.ts"
import type { Tmux, TmuxAnswer } from "./Tmux.ts"
import * as Turnstile from "./Turnstile.ts"

export interface Sends {
  readonly send: (seat: SeatRow, body: SendBody) => Effect.Effect<SendResult, SeatError>
}

const settleMs = 200
const verifyEveryMs = 250
const verifyForMs = 3_000
const verifyLines = 200

export const make = (store: RigStore, tmux: Tmux, sessions: Sessions): Sends => {
  const turnstiles = new Map<string, Turnstile.Turnstile>()
  const turnstileOf = (nodeId: string): Turnstile.Turnstile => {
    const known = turnstiles.get(nodeId) ?? Turnstile.make()
    turnstiles.set(nodeId, known)
    return known
  }

  /** T2: whether the seat takes a send now, and what the sender should know. */
  const taken = (
    seat: SeatRow,
    force: boolean
  ): { readonly occupant: OccupantRow; readonly advisory?: string } | SeatError => {
    const { session } = seat
    const occupant = store.seats.live(seat.nodeId)
    const { sends } = launchStates[seat.launch.state]
    if (sends === "seat_not_ready") return new SeatNotReady({ seat: session })
    if (sends === "seat_needs_attention" && !force) {
      return new SeatNeedsAttention({ seat: session, state: seat.launch.state })
    }
    if (sends === "seat_stopped" || occupant === undefined) return new SeatStopped({ seat: session })
    const { value } = read(store.live.get(seat.nodeId).activity, true, store.clock.steady())
    if (value === "needs_input" && !force) return new TargetNeedsInput({ seat: session })
    if (value === "working")
      return { occupant, advisory: "The seat is working; a runner takes this as its next prompt." }
    return value === "unknown" ? { occupant, advisory: "It is unknown whether the seat is working." } : { occupant }
  }

  const failure = (seat: SeatRow, step: string, mayStandAsDraft: boolean) =>
    new SendFailed({ seat: seat.session, step, mayStandAsDraft })

  const must = (
    seat: SeatRow,
    step: string,
    draft: boolean,
    command: Effect.Effect<TmuxAnswer>
  ): Effect.Effect<string, SeatError> =>
    Effect.flatMap(command, (answer): Effect.Effect<string, SeatError> =>
      answer._tag === "Done" ? Effect.succeed(answer.stdout) : Effect.fail(failure(seat, step, draft))
    )

  /** T4: the pane is there and this occupant's, and takes keys as typed. */
  const paneReady = (seat: SeatRow, occupant: OccupantRow): Effect.Effect<void, SeatError> =>
    Effect.gen(function* () {
      const probe = yield* tmux.probe(seat.session)
      if (probe._tag === "Unavailable") return yield* new TmuxUnavailable({})
      if (probe._tag === "Absent" || probe.dead) return yield* new SeatStopped({ seat: seat.session })
      if (probe.nodeId !== seat.nodeId || probe.generation !== occupant.generation) {
        return yield* failure(seat, "pane", false)
      }
      if (probe.inMode) yield* must(seat, "copy_mode", false, tmux.leaveMode(seat.session))
    })

  const occurrences = (seat: SeatRow, needle: string) =>
    Effect.map(tmux.capture(seat.session, verifyLines), (answer) =>
      answer._tag === "Done" ? count(answer.stdout, needle) : undefined
    )

  const appeared = (seat: SeatRow, needle: string, before: number): Effect.Effect<boolean> =>
    Effect.gen(function* () {
      const until = store.clock.steady() + verifyForMs
      while (store.clock.steady() < until) {
        yield* Effect.sleep(verifyEveryMs)
        const now = yield* occurrences(seat, needle)
        if (now !== undefined && now > before) return true
      }
      return false
    })

  /** Takes away what an earlier send left in the pane; says whether there was something. */
  const clearDraft = (
    seat: SeatRow,
    { declaration, generation }: OccupantRow,
    force: boolean
  ): Effect.Effect<boolean, SeatError> =>
    Effect.gen(function* () {
      if (store.logs.draft(generation) === undefined) return false
      if (!declaration.runner && !force) return yield* failure(seat, draftStep, true)
      if (declaration.runner) yield* must(seat, "clear_draft", true, tmux.clearDraft(seat.session))
      yield* store.write((tx) => {
        tx.logs.clearDrafts(generation)
        tx.tell("seat.attention", seat.nodeId)
      })
      return declaration.runner
    })

  const paste = (
    sendId: string,
    seat: SeatRow,
    occupant: OccupantRow,
    text: string,
    { force, verify }: { readonly force: boolean; readonly verify: boolean }
  ) =>
    Effect.gen(function* () {
      yield* paneReady(seat, occupant)
      const cleared = yield* clearDraft(seat, occupant, force)
      const needle = needleOf(text)
      const before = verify ? ((yield* occurrences(seat, needle)) ?? 0) : 0
      const buffer = `tackroom-${Minting.uuid()}`
      yield* must(seat, "load_buffer", false, tmux.loadBuffer(buffer, text))
      sessions.ownInput(seat.nodeId)
      yield* store.write((tx) => tx.logs.pastedSend(sendId, occupant.generation))
      const pasted = yield* tmux.pasteBuffer(buffer, seat.session)
      if (pasted._tag !== "Done") {
        yield* tmux.dropBuffer(buffer)
        if (pasted._tag !== "Unavailable") yield* store.write((tx) => tx.logs.unpastedSend(sendId))
        return yield* failure(seat, "paste_buffer", pasted._tag === "Unavailable")
      }
      yield* Effect.sleep(settleMs)
      yield* must(seat, "enter", true, tmux.enter(seat.session))
      yield* store.write((tx) => tx.logs.sentSend(sendId))
      if (!verify) return { cleared, outcome: "sent" as const }
      const seen = yield* appeared(seat, needle, before)
      return { cleared, outcome: seen ? ("delivered" as const) : ("unconfirmed" as const) }
    })

  const send: Sends["send"] = (seat, body) =>
    Effect.gen(function* () {
      const checked = pastable(body.text)
      if (typeof checked !== "string") return yield* checked
      const from = body.from ?? "operator"
      const force = body.force ?? false
      const first = taken(seat, force)
      if (isRefusal(first)) return yield* first
      const text = body.raw === true ? checked : envelope(from, seat.session, checked)
      const tooLarge = beyondPrompt(text)
      if (tooLarge !== undefined) return yield* tooLarge
      const sendId = yield* store.write((tx) => {
        const id = Minting.seatId("send", tx.wall)
        // Before anything is typed: a forced send leaves its reason whatever becomes of it.
        tx.logs.addSend({
          id,
          nodeId: seat.nodeId,
          generation: first.occupant.generation,
          at: tx.wall,
          sender: from,
          bytes: Buffer.byteLength(text),
          forced: force ? (body.reason ?? "") : null
        })
        return id
      })
      const noted = (outcome: string) => Effect.orDie(store.write((tx) => tx.logs.endSend(sendId, outcome)))
      const inTurn = Effect.suspend(() => {
        // The seat may have changed while others were sent.
        const again = taken(store.seats.seat(seat.nodeId) ?? seat, force)
        return isRefusal(again)
          ? Effect.fail(again)
          : paste(sendId, seat, again.occupant, text, { force, verify: body.verify ?? false })
      })
      const { cleared, outcome } = yield* turnstileOf(seat.nodeId)
        .pass(inTurn, { waitMs: seatLimits.sendLockMs, late: () => new SendBusy({ seat: seat.session }) })
        .pipe(Effect.tapError((error) => noted(error.code)))
      if (outcome !== "sent") yield* noted(outcome)
      const advisory = [
        ...(cleared ? ["The draft of a send that was cut off was cleared first."] : []),
        ...(first.advisory === undefined ? [] : [first.advisory])
      ].join(" ")
      return {
        sendId,
        outcome,
        evidence: evidenceNote,
        ...(advisory === "" ? {} : { advisory })
      } satisfies SendResult
    })

  return { send }
}

/** What became of sends that a killed service left half-made: it is unknown, or nothing was typed. */
export const settleCutSends = (store: RigStore, log: ServiceLog): Effect.Effect<void, SeatError> =>
  Effect.map(
    store.write((tx) => {
      const cut = tx.logs.startedSends()
      for (const { draft, id, nodeId } of cut) {
        tx.logs.endSend(id, draft ? "unknown" : "not_sent")
        if (draft) tx.tell("seat.attention", nodeId)
      }
      return cut.map((one) => ({ ...one, seat: tx.seats.seat(one.nodeId)?.session ?? one.nodeId }))
    }),
    (cut) => {
      for (const { draft, id, seat } of cut) {
        log.write(
          "warn",
          draft ? "a send was cut off; its text may stand as a draft" : "a send was cut off before it was typed",
          { seat, send: id }
        )
      }
    }
  )
