/**
 * What the harness of a session lets a person choose, and the choice (ACP-081 to ACP-085). It owns nothing: what is in force
 * stands in the session's config, and what is offered the harness says each time.
 */
import type { RuntimeError } from "@tackroom/protocol"
import type { ConfigOption, HarnessRef, SessionConfig, SessionConfigUpdate } from "@tackroom/protocol/events"
import type { HarnessCapabilities } from "@tackroom/sdk/adapters"
import { Effect } from "effect"
import type { HostRuntime } from "./HostRuntime.ts"

/** What a session runs with, and what it could. */
export interface Offer {
  readonly options: ReadonlyArray<ConfigOption>
  readonly config: SessionConfig
}

export interface Offers {
  readonly of: (
    session: { readonly sessionId: string; readonly workspace: string; readonly harness: HarnessRef },
    can: HarnessCapabilities
  ) => Effect.Effect<Offer, RuntimeError>
  readonly set: (sessionId: string, change: SessionConfigUpdate) => Effect.Effect<SessionConfig, RuntimeError>
}

export const make = (runtime: Pick<HostRuntime, "config">): Offers => ({
  of: ({ harness, sessionId, workspace }, can) =>
    Effect.gen(function* () {
      const config = yield* runtime.config.read(sessionId)
      if (!can.configOptions) return { options: [], config }
      const [found] = yield* runtime.config.options(workspace, { harness: `${harness.access}:${harness.id}` })
      if (found === undefined) return { options: [], config }
      return found.ok ? { options: found.options, config } : yield* Effect.fail(found.error)
    }),
  set: (sessionId, change) => runtime.config.update(sessionId, change)
})
