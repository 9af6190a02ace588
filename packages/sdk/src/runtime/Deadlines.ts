/**
 * The time a harness has for a call (10.1).
 *
 * @since 0.1.0
 */
import { HarnessTimeout } from "@tackroom/protocol"
import { Effect } from "effect"

/** Fails with `harness_timeout` when a harness does not answer in time. */
export const withDeadline = <A, E>(
  call: Effect.Effect<A, E>,
  limit: { readonly ms: number; readonly harness: string; readonly operation: string }
): Effect.Effect<A, E | HarnessTimeout> =>
  Effect.timeoutOrElse(call, {
    duration: limit.ms,
    orElse: () => Effect.fail(new HarnessTimeout({ harness: limit.harness, operation: limit.operation }))
  })
