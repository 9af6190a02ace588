/**
 * What a failed write means for whoever wrote.
 *
 * @since 0.1.0
 */

/** Whether a store may be able to write this in a while; a closed one is not. */
export const isBusy = (error: unknown): boolean =>
  typeof error === "object" &&
  error !== null &&
  "_tag" in error &&
  (error._tag === "StoreBusy" || error._tag === "StoreUnavailable") &&
  (!("retryable" in error) || error.retryable !== false)

/** Whether a failure says that this runtime no longer owns the session. */
export const isLost = (error: unknown): boolean =>
  typeof error === "object" &&
  error !== null &&
  "_tag" in error &&
  (error._tag === "SessionTurnFenceStale" || error._tag === "SessionNotFound" || error._tag === "SessionGone")
