/**
 * What drivers get from the runtime (10.1): asks, artifacts, secrets, notices.
 *
 * @since 0.1.0
 */
import { HarnessRejected, type HarnessError } from "@tackroom/protocol"
import { Effect } from "effect"
import type { HarnessContext } from "../harness/Harness.ts"
import { Store } from "../store/Store.ts"
import { Asks } from "./Asks.ts"
import { Journal } from "./Journal.ts"
import { Leases } from "./Leases.ts"
import { McpServers } from "./McpServers.ts"
import { Notices } from "./Notices.ts"
import { Processes } from "./Processes.ts"
import { Secrets } from "./Secrets.ts"

export const hostLayer = Effect.gen(function* () {
  const asks = yield* Asks
  const store = yield* Store
  const journal = yield* Journal
  const notices = yield* Notices
  const servers = yield* McpServers
  const leases = yield* Leases
  const secrets = yield* Secrets
  const processes = yield* Processes
  const context: HarnessContext = {
    ask: { permission: asks.permission, question: asks.question },
    artifacts: {
      put: (sessionId, mime, bytes) =>
        journal.putArtifact(sessionId, mime, bytes).pipe(
          Effect.map((row) => {
            journal.hold(row)
            return row.id
          }),
          Effect.catch((error): Effect.Effect<never, HarnessError> =>
            Effect.fail(
              new HarnessRejected({
                harness: "runtime",
                operation: "artifacts.put",
                detail: error.message,
                retryable: true
              })
            )
          )
        )
    },
    journal: store,
    secrets: { get: secrets.get },
    processes: processes.owner,
    notice: (sessionId, event) =>
      Effect.andThen(
        notices.tell(sessionId, [event]),
        Effect.sync(() => servers.observe(sessionId, event))
      ),
    get instanceId() {
      return leases.owner
    }
  }
  return context
})
