/**
 * What a runner does with what came back (seat contract 8.6, 8.5), as data: whatever is not named here has the default.
 *
 * @since 0.1.0
 */
import type { AskState } from "./Permission.ts"
import type { SeatErrorCode } from "./SeatErrors.ts"

/**
 * What a runner does with a permission request.
 *
 * - `deliver`: the agent gets the option that was named
 * - `cancel`: the agent gets cancelled, and nothing is held, because nobody waits
 * - `refuse_and_hold`: the agent gets cancelled, and the seat needs attention until the next prompt
 * - `permit`: the runner's own permit; it may still be the live request, and nobody can be asked
 * - `read_again`: the request stays open
 *
 * @since 0.1.0
 */
export type PermissionReaction = "deliver" | "cancel" | "refuse_and_hold" | "permit" | "read_again"

/** By the state of a submit's or read's answer (rows Q2 to Q4). @since 0.1.0 */
export const stateReactions = {
  pending: "read_again",
  answered: "deliver",
  permitted: "deliver",
  refused: "cancel",
  withdrawn: "cancel",
  stale: "cancel"
} as const satisfies Readonly<Record<AskState, PermissionReaction>>

/** By the code of a refusal, at submit and while reading alike (rows Q5 to Q8). @since 0.1.0 */
export const refusalReactions = {
  denied_by_seat: "refuse_and_hold",
  options_unsupported: "refuse_and_hold",
  stale_generation: "cancel",
  activity_grant_wrong_seat: "cancel",
  activity_grant_stale: "cancel",
  activity_grant_revoked: "permit",
  activity_grant_pending: "permit",
  duplicate_request: "permit"
} as const satisfies Partial<Readonly<Record<SeatErrorCode, PermissionReaction>>>

/** For every other status, code, state or body, and for no answer at all (row Q9). @since 0.1.0 */
export const otherReaction: PermissionReaction = "permit"

/** The reaction to the code of a refusal. @since 0.1.0 */
export const reactionTo = (code: string | undefined): PermissionReaction =>
  code !== undefined && Object.hasOwn(refusalReactions, code)
    ? refusalReactions[code as keyof typeof refusalReactions]
    : otherReaction

/**
 * What a runner does with a refused activity post.
 *
 * - `retry_soon`: every 250 ms for ten seconds
 * - `read_endpoint`: read base and token again where they came from a file
 * - `stop_posting`: no post of this process can count again
 * - `give_up`: this post is lost
 *
 * Without an answer, and at 5xx, a boundary is tried again.
 *
 * @since 0.1.0
 */
export type PostReaction = "retry_soon" | "read_endpoint" | "stop_posting" | "give_up"

/** By the code of the refusal; any other code is `give_up`. @since 0.1.0 */
export const postReactions = {
  activity_grant_pending: "retry_soon",
  activity_hook_unauthorized: "read_endpoint",
  activity_grant_stale: "stop_posting",
  activity_grant_wrong_seat: "stop_posting",
  activity_grant_revoked: "stop_posting"
} as const satisfies Partial<Readonly<Record<SeatErrorCode, PostReaction>>>

/** The reaction to the code of a refused post. @since 0.1.0 */
export const postReactionTo = (code: string | undefined): PostReaction =>
  code !== undefined && Object.hasOwn(postReactions, code)
    ? postReactions[code as keyof typeof postReactions]
    : "give_up"
