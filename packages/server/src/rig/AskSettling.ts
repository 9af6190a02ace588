/**
 * The end of an ask: the conditional update, its row, the record of a permit that nobody chose, and who is told. One place,
 * so that an ask ends once whoever ends it.
 */
import { type PermitRecord, type PermitReason, permitTag, type SeatOption, seatLimits } from "@tackroom/protocol/seat"
import { headCodePoints, headBytes } from "@tackroom/protocol/text"
import type { AskRow } from "./AskRows.ts"
import * as Minting from "./Minting.ts"
import type { Settlement } from "./PermissionMachine.ts"
import { iso } from "./RigClock.ts"
import type { Tx } from "./RigStore.ts"
import { recorded } from "./ShownOptions.ts"
import { titleOf, type ToolCall } from "./ToolCallText.ts"
import { askKey, type Waiters } from "./Waiters.ts"

const reasons: Readonly<Record<PermitReason, string>> = {
  options_not_showable: "its options cannot be shown to a person",
  chosen_person_removed: "the person chosen for the seat is no longer registered",
  people_unreadable: "the registered people could not be read",
  no_registered_person: "no person is registered",
  several_people_no_default: "several people are registered and none is the default"
}

const closings: Readonly<Record<NonNullable<Settlement["byDefault"]>, string>> = {
  drop: "dropped it",
  approve: "approved it without choosing an option",
  words: "answered in words that were no choice",
  done: "closed it as done",
  failed: "closed it as failed"
}

interface PermitFacts {
  readonly seat: string
  readonly toolCall: ToolCall
  readonly option: SeatOption
  readonly conversation: string
  readonly requestId: string
  readonly turnId: string
  readonly askId: string | null
  readonly why:
    | PermitReason
    | { readonly by: string; readonly how: NonNullable<Settlement["byDefault"]>; readonly rowId: string }
}

const textOf = (value: unknown, bytes: number): string | null =>
  typeof value === "string" ? headBytes(value, bytes) : null

/** Writes the one record of a permit that the service decided by default (7.5). It wakes no one. */
export const recordPermit = (tx: Tx, facts: PermitFacts): void =>
  tx.attempt("the record of a permit", () => {
    const id = Minting.seatId("streamItem", tx.wall)
    const title = headCodePoints(titleOf(facts.toolCall), 500)
    const option = recorded(facts.option)
    const remembered = option.kind === "allow_always"
    const { why } = facts
    const because =
      typeof why === "string" ? `Nobody was asked, because ${reasons[why]}.` : `${why.by} ${closings[why.how]}.`
    const data: PermitRecord = {
      toolCall: {
        toolCallId: textOf(facts.toolCall["toolCallId"], seatLimits.nameBytes),
        title,
        kind: textOf(facts.toolCall["kind"], seatLimits.nameBytes)
      },
      why: typeof why === "string" ? why : "closed_without_choice",
      closed:
        typeof why === "string" || facts.askId === null
          ? null
          : { askId: facts.askId, rowId: why.rowId, by: why.by, how: why.how, at: iso(tx.wall) },
      option: { ...option, rememberedByHarness: remembered },
      conversation: facts.conversation,
      requestId: facts.requestId,
      turnId: facts.turnId,
      askId: facts.askId
    }
    const body = headCodePoints(
      `Permitted by default: ${title}. ${because} The agent got "${option.name}" (${option.kind})${
        remembered ? ", which its harness remembers and allows from now on" : ", which its harness does not remember"
      }. Conversation ${facts.conversation === "" ? "unknown" : facts.conversation}, ${
        facts.askId === null ? `request ${facts.requestId}` : `ask ${facts.askId}`
      }.`,
      seatLimits.textCharacters
    )
    tx.logs.addItem({ id, at: tx.wall, source: facts.seat, tags: [permitTag], body, data })
    tx.tell("stream.item", id)
  })

/** Ends a pending ask; false when it had ended before. */
export const settleAsk = (
  tx: Tx,
  waiters: Waiters,
  ask: AskRow,
  settlement: Settlement,
  note: string | null = null
): boolean => {
  if (!tx.asks.settle(ask.askId, settlement, tx.wall)) return false
  tx.asks.closeRow(ask.rowId, settlement.row, tx.wall, settlement.by, settlement.said ?? note)
  const option = ask.options.find(({ optionId }) => optionId === settlement.optionId)
  if (settlement.byDefault !== undefined && option !== undefined) {
    recordPermit(tx, {
      seat: tx.seats.seat(ask.nodeId)?.session ?? "",
      toolCall: ask.toolCall,
      option,
      conversation: ask.nativeRef,
      requestId: ask.requestId,
      turnId: ask.turnId,
      askId: ask.askId,
      why: { by: settlement.by, how: settlement.byDefault, rowId: ask.rowId }
    })
  }
  tx.tell("ask.settled", ask.askId)
  tx.after(() => waiters.wake(askKey(ask.askId)))
  return true
}
