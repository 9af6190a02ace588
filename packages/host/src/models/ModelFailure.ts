/**
 * Why a model request failed, in the classes the native agent decides on.
 *
 * - `retryable`: the provider answered 408, 429 or 5xx, or said so within the stream (AGT-006).
 * - `disconnect`: no connection, or a stream that broke, was empty or was not what the wire promises (AGT-006).
 * - `credential`: 401, 403, or a key that may not be sent (AGT-008).
 * - `overflow`: the request is larger than the model's context (AGT-193).
 * - `refused`: every other refusal (AGT-006, last sentence).
 *
 * Invariant: `message` is for people, at most 500 characters, one line, and holds no key, no part of one, no stack and
 * no body of an answer.
 */
import { Data } from "effect"

export type FailureKind = "retryable" | "disconnect" | "credential" | "overflow" | "refused"

export class ModelFailure extends Data.TaggedError("ModelFailure")<{
  readonly kind: FailureKind
  /** HTTP status of the answer, null without one. */
  readonly status: number | null
  /** What the provider asked to wait, in ms. */
  readonly retryAfterMs: number | null
  /** For the failed turn: `usage_limit` is said only on the provider's structured word (HRN-016). */
  readonly errorClass: "credential" | "usage_limit" | "model"
  readonly message: string
}> {}

/** The limit of `message`, in UTF-16 units. */
export const messageLimit = 500
