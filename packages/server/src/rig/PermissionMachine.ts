/**
 * The life of a permission request (seat contract section 7): who is asked, and what each answer does. Pure.
 *
 * It decides; `Asks` reads what a decision needs, commits what it says in one transaction, and writes the records. Nothing
 * here grants by time, and words never change an outcome.
 */
import {
  type AskState,
  AskSettled,
  DeniedBySeat,
  DuplicateRequest,
  HandoffLimit,
  NoSuchOption,
  NotAllowed,
  OptionsUnsupported,
  OwnSeat,
  permitOption,
  type PermitReason,
  rejectOption,
  RowHeldBySeat,
  type RowOwner,
  type RowState,
  seatLimits,
  type SeatOption,
  type SettledHow,
  UnknownOption,
  WordsNotAnAnswer
} from "@tackroom/protocol/seat"
import { classify } from "./Words.ts"

/** The primary user: whoever holds the operator token. */
export const primary = "primary"

// Submit (7.1)

/** A request of the same generation, conversation and request id that came before. */
export interface EarlierRequest {
  readonly turnId: string
  /** Whether tool call and options are those of the new one. */
  readonly sameContent: boolean
  readonly outcome:
    | { readonly _tag: "Ask"; readonly askId: string; readonly pending: boolean }
    | { readonly _tag: "Permit"; readonly optionId: string; readonly reason: PermitReason }
}

export type Setting =
  | { readonly mode: "default" }
  | { readonly mode: "deny" }
  | { readonly mode: "person"; readonly person: string }

export interface SubmitFacts {
  readonly turnId: string
  readonly options: ReadonlyArray<SeatOption>
  readonly showable: boolean
  /** The latest earlier request, if there is one. */
  readonly earlier: EarlierRequest | undefined
  readonly setting: Setting
  /** Ids of registered people; `undefined` when they cannot be read. */
  readonly people: ReadonlyArray<string> | undefined
  readonly defaultPerson: string | null
  readonly unaskable: "permit" | "refuse"
}

export type AskedBecause = "chosen_for_seat" | "default_person" | "only_person"

export type Submitted =
  | { readonly _tag: "Refused"; readonly error: DuplicateRequest | DeniedBySeat | OptionsUnsupported }
  | { readonly _tag: "SameAsk"; readonly askId: string }
  | { readonly _tag: "SamePermit"; readonly optionId: string; readonly reason: PermitReason }
  | { readonly _tag: "Permit"; readonly option: SeatOption; readonly reason: PermitReason }
  | { readonly _tag: "Ask"; readonly person: string; readonly why: AskedBecause }

const unasked = (facts: SubmitFacts, reason: PermitReason): Submitted => {
  if (facts.unaskable === "refuse") return { _tag: "Refused", error: new DeniedBySeat({}) }
  const option = permitOption(facts.options)
  return option === undefined
    ? { _tag: "Refused", error: new OptionsUnsupported({}) }
    : { _tag: "Permit", option, reason }
}

/** Who is asked about a request, or what it gets without asking (W2 to W12). The generation was checked before (W1). */
export const submit = (facts: SubmitFacts): Submitted => {
  const { earlier, people, setting } = facts
  if (earlier !== undefined) {
    if (earlier.turnId !== facts.turnId) return { _tag: "Refused", error: new DuplicateRequest({}) }
    const { outcome } = earlier
    if (outcome._tag === "Ask" && (outcome.pending || earlier.sameContent)) {
      return { _tag: "SameAsk", askId: outcome.askId }
    }
    if (outcome._tag === "Permit" && earlier.sameContent) {
      return { _tag: "SamePermit", optionId: outcome.optionId, reason: outcome.reason }
    }
  }
  if (setting.mode === "deny") return { _tag: "Refused", error: new DeniedBySeat({}) }
  if (!facts.showable) return unasked(facts, "options_not_showable")
  if (setting.mode === "person") {
    // People that cannot be read tell nothing about the chosen one either.
    if (people === undefined) return unasked(facts, "people_unreadable")
    return people.includes(setting.person)
      ? { _tag: "Ask", person: setting.person, why: "chosen_for_seat" }
      : unasked(facts, "chosen_person_removed")
  }
  if (people === undefined) return unasked(facts, "people_unreadable")
  if (facts.defaultPerson !== null && people.includes(facts.defaultPerson)) {
    return { _tag: "Ask", person: facts.defaultPerson, why: "default_person" }
  }
  const [only] = people
  if (only === undefined) return unasked(facts, "no_registered_person")
  return people.length === 1
    ? { _tag: "Ask", person: only, why: "only_person" }
    : unasked(facts, "several_people_no_default")
}

// Answers (7.2)

/** How an ask ended. */
export interface Settlement {
  readonly state: Exclude<AskState, "pending">
  readonly optionId?: string
  readonly reason?: string
  readonly said?: string
  readonly by: string
  readonly how: SettledHow
  /** What the current row becomes. */
  readonly row: RowState
  /** Set when the service decided by default: how the row was closed, for the record (7.5). */
  readonly byDefault?: "drop" | "approve" | "words" | "done" | "failed"
}

/** An ask as an answer finds it. */
export interface AskFacts {
  readonly askId: string
  readonly seat: string
  readonly state: AskState
  readonly options: ReadonlyArray<SeatOption>
  readonly owner: RowOwner
  readonly handoffs: number
  readonly settled?: {
    readonly settlement: Pick<Settlement, "optionId" | "reason" | "said" | "by" | "how">
    readonly at: string
  }
}

type AnswerError = AskSettled | NoSuchOption | NotAllowed | RowHeldBySeat | UnknownOption | WordsNotAnAnswer

export type Answered =
  | { readonly _tag: "Settle"; readonly settlement: Settlement }
  | { readonly _tag: "Repeated" }
  | { readonly _tag: "Refused"; readonly error: AnswerError }

const settle = (settlement: Settlement): Answered => ({ _tag: "Settle", settlement })
const refuse = (error: AnswerError): Answered => ({ _tag: "Refused", error })

/** A no: the option that rejects, or the plain refusal; never a grant (P4). */
const rejected = (ask: AskFacts, by: string, how: SettledHow, row: RowState): Settlement => {
  const option = rejectOption(ask.options)
  return option === undefined
    ? { state: "refused", reason: "said_no", by, how, row }
    : { state: "answered", optionId: option.optionId, by, how, row }
}

/** An end without a choice: the option that allows, by default; without one it is refused (P5, P6). */
const byDefault = (
  ask: AskFacts,
  by: string,
  how: SettledHow,
  closed: NonNullable<Settlement["byDefault"]>,
  row: RowState,
  said?: string
): Settlement => {
  const option = permitOption(ask.options)
  const words = said === undefined ? {} : { said }
  return option === undefined
    ? { state: "refused", reason: "no_allow_offered", ...words, by, how, row }
    : { state: "permitted", optionId: option.optionId, ...words, by, how, row, byDefault: closed }
}

export type Answer =
  | { readonly option: string }
  | { readonly text: string; readonly acceptDefault: boolean }
  | { readonly verb: "deny" | "approve" | "drop" }

const pending = (ask: AskFacts, by: string, answer: Answer): Answered => {
  const seat = "seat" in ask.owner ? ask.owner.seat : undefined
  if ("option" in answer) {
    if (seat !== undefined) return refuse(new RowHeldBySeat({ seat }))
    return ask.options.some(({ optionId }) => optionId === answer.option)
      ? settle({ state: "answered", optionId: answer.option, by, how: "option", row: "chosen" })
      : refuse(new UnknownOption({ option: answer.option }))
  }
  if ("verb" in answer) {
    return answer.verb === "deny"
      ? settle(rejected(ask, by, "no", "denied"))
      : settle(byDefault(ask, by, answer.verb, answer.verb, "done"))
  }
  if (seat !== undefined) return refuse(new RowHeldBySeat({ seat }))
  const said = classify(answer.text, ask.options)
  switch (said._tag) {
    case "Yes": {
      const option = permitOption(ask.options)
      return option === undefined
        ? refuse(new NoSuchOption({ wanted: "allow" }))
        : settle({ state: "answered", optionId: option.optionId, by, how: "yes", row: "chosen" })
    }
    case "No":
      return settle(rejected(ask, by, "no", "denied"))
    case "Choice":
      return settle({ state: "answered", optionId: said.option.optionId, by, how: "option", row: "chosen" })
    case "Words": {
      if (answer.acceptDefault) return settle(byDefault(ask, by, "words", "words", "done", answer.text))
      const option = permitOption(ask.options)
      return refuse(
        new WordsNotAnAnswer(
          option === undefined ? { wouldRefuse: "no_allow_offered" } : { wouldPermit: option.optionId }
        )
      )
    }
  }
}

const settledError = (ask: AskFacts): AskSettled => {
  const { settled } = ask
  return new AskSettled({
    askId: ask.askId,
    state: ask.state,
    ...(settled === undefined
      ? {}
      : {
          ...(settled.settlement.optionId === undefined ? {} : { optionId: settled.settlement.optionId }),
          by: settled.settlement.by,
          at: settled.at
        })
  })
}

/** A settled ask never changes; the same answer by the same person is fine (P13). */
const onceMore = (ask: AskFacts, decide: (ask: AskFacts) => Answered): Answered => {
  const again = decide({ ...ask, state: "pending" })
  const first = ask.settled?.settlement
  const same =
    first !== undefined &&
    again._tag === "Settle" &&
    again.settlement.state === ask.state &&
    again.settlement.by === first.by &&
    again.settlement.how === first.how &&
    again.settlement.optionId === first.optionId &&
    again.settlement.reason === first.reason &&
    again.settlement.said === first.said
  return same ? { _tag: "Repeated" } : refuse(settledError(ask))
}

const decided = (ask: AskFacts, decide: (ask: AskFacts) => Answered): Answered =>
  ask.state === "pending" ? decide(ask) : onceMore(ask, decide)

/** What a person's answer does (P2 to P5). */
export const answer = (ask: AskFacts, by: string, given: Answer): Answered =>
  decided(ask, (facts) => pending(facts, by, given))

/** What closing the current row from outside does (P4 to P7). `by` may be the seat that holds it. */
export const closeRow = (ask: AskFacts, by: string, closure: "done" | "failed" | "denied" | "canceled"): Answered =>
  decided(ask, (facts) => {
    switch (closure) {
      case "denied":
        return settle(rejected(facts, by, "row_denied", "denied"))
      case "canceled":
        return settle({ state: "withdrawn", reason: "row_canceled", by, how: "row_canceled", row: "canceled" })
      default:
        return settle(byDefault(facts, by, `row_${closure}`, closure, closure))
    }
  })

/** Whether an ask may be handed on (P8). */
export const handoff = (ask: AskFacts, to: RowOwner): AskSettled | HandoffLimit | OwnSeat | undefined => {
  if (ask.state !== "pending") return settledError(ask)
  if ("seat" in to && to.seat === ask.seat) return new OwnSeat({ seat: ask.seat })
  return ask.handoffs >= seatLimits.handoffs ? new HandoffLimit({ limit: seatLimits.handoffs }) : undefined
}

/** The ends that no answer makes: the runner's withdrawal, the turn, an exit, a new occupant (P9 to P11). */
export const withdrawn = (how: "withdraw" | "turn" | "exit", reason: string): Settlement => ({
  state: "withdrawn",
  reason,
  by: how === "withdraw" ? "runner" : "service",
  how,
  row: "superseded"
})

/** The seat's grant was taken away: its runner decides for itself, and nobody's answer can reach it. */
export const revoked: Settlement = {
  state: "withdrawn",
  reason: "grant_revoked",
  by: "operator",
  how: "withdraw",
  row: "superseded"
}

export const replaced: Settlement = { state: "stale", by: "service", how: "replaced", row: "superseded" }
