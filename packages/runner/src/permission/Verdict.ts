/**
 * What an answer of the rig means for a permission request (rows Q1 to Q9). Pure; the reactions themselves are the
 * contract's, in `@tackroom/protocol/seat`.
 */
import {
  type AskState,
  permissionRead,
  permissionSubmitted,
  permitOption,
  reactionTo,
  refusalCode,
  type SeatOption,
  stateReactions
} from "@tackroom/protocol/seat"
import { Result } from "effect"
import type { NoAnswer, RigAnswer } from "../rig/RigClient.ts"

/** What to do with the request now. */
export type Verdict =
  /** A person is asked; the answer is to be read. */
  | { readonly _tag: "Read"; readonly askId: string }
  | { readonly _tag: "ReadAgain" }
  | {
      readonly _tag: "Deliver"
      readonly option: SeatOption
      /** Who chose: a person, or the rig by its rule. */
      readonly by: "person" | "rig"
      readonly reason: string | undefined
      readonly said: string | undefined
    }
  /** Nobody waits for it any more. */
  | { readonly _tag: "Cancel"; readonly why: string; readonly said: string | undefined }
  | { readonly _tag: "Refuse"; readonly why: string }
  | { readonly _tag: "Permit"; readonly why: string }

const permit = (why: string): Verdict => ({ _tag: "Permit", why })

const ofRefusal = (answer: RigAnswer): Verdict => {
  const code = refusalCode(answer.body)
  const why = code ?? `the rig answered ${answer.status}`
  switch (reactionTo(code)) {
    case "cancel":
      return { _tag: "Cancel", why: `cancelled: ${why}`, said: undefined }
    case "refuse_and_hold":
      return { _tag: "Refuse", why }
    default:
      return permit(why)
  }
}

const unusable = permit("the rig's answer is not usable")

interface Settled {
  readonly state: AskState
  readonly optionId?: string
  readonly reason?: string
  readonly said?: string
}

const ofState = (settled: Settled, options: ReadonlyArray<SeatOption>): Verdict => {
  const { optionId, reason, said, state } = settled
  switch (stateReactions[state]) {
    case "read_again":
      return { _tag: "ReadAgain" }
    case "deliver": {
      const option = options.find((offered) => offered.optionId === optionId)
      return option === undefined
        ? unusable
        : { _tag: "Deliver", option, by: state === "answered" ? "person" : "rig", reason, said }
    }
    case "cancel":
      return { _tag: "Cancel", why: state === "refused" ? `refused: ${reason ?? "no reason"}` : state, said }
  }
}

const accepted = 200

/** Why no answer came, for the pane. */
const noAnswerWords = (reason: NoAnswer["reason"]): string =>
  reason === "no_rig"
    ? "there is no rig to ask"
    : reason === "timeout"
      ? "the rig did not answer"
      : "the rig cannot be reached"

/** The answer to a submit. `isSettled` knows the asks that this process already settled for another request (SEAT-172). */
export const ofSubmit = (
  answer: RigAnswer,
  options: ReadonlyArray<SeatOption>,
  isSettled: (askId: string) => boolean
): Verdict => {
  if (answer.status !== accepted) return ofRefusal(answer)
  const submitted = Result.getOrUndefined(permissionSubmitted.decode(answer.body))
  if (submitted === undefined) return unusable
  if ("state" in submitted) return ofState(submitted, options)
  return isSettled(submitted.askId)
    ? permit("the agent used a settled request id again")
    : { _tag: "Read", askId: submitted.askId }
}

/** The answer to a read. */
export const ofRead = (answer: RigAnswer, options: ReadonlyArray<SeatOption>): Verdict => {
  if (answer.status !== accepted) return ofRefusal(answer)
  const read = Result.getOrUndefined(permissionRead.decode(answer.body))
  return read === undefined ? unusable : ofState(read, options)
}

/** The verdict when no answer came at all (row Q9). */
export const ofSilence = (reason: NoAnswer["reason"]): Verdict => permit(noAnswerWords(reason))

/** What becomes of a request that the rig cannot settle: the agent's own allow option, or a refusal. */
export const ownPermit = (
  options: ReadonlyArray<SeatOption>,
  whenUnanswerable: "permit" | "refuse"
): SeatOption | undefined => (whenUnanswerable === "permit" ? permitOption(options) : undefined)
