/**
 * When recovered turns go on (RUN-124, RUN-521): each as soon as its model can be asked and the servers of its tools are
 * registered, all of them at the latest 60 s after `initialize`. A key that is kept in memory, and the values of an MCP
 * server, come back only after the client has given them again.
 *
 * It owns the waiting and decides nothing about a turn: what is still missing then fails in the ordinary way.
 */
import type { Recovery } from "@tackroom/sdk/effect"
import { Effect, Latch } from "effect"

export interface ResumptionConfig {
  readonly recovery: Pick<(typeof Recovery)["Service"], "start" | "waiting">
  /** The session's turn has what it needs now. */
  readonly ready: (sessionId: string) => Effect.Effect<boolean>
  /** Calls back after every change that may make a session ready. */
  readonly onChange: (listener: () => void) => void
}

/** After this time nothing is waited for any more. */
export const patienceMs = 60_000

/** Lets recovered turns go on; to be run once, after `initialize` was answered. */
export const resume = ({ onChange, ready, recovery }: ResumptionConfig): Effect.Effect<void> =>
  Effect.suspend(() => {
    const changed = Latch.makeUnsafe(false)
    onChange(() => changed.openUnsafe())
    const startReady: Effect.Effect<void> = Effect.gen(function* () {
      while (true) {
        changed.closeUnsafe()
        for (const sessionId of recovery.waiting()) {
          if (yield* ready(sessionId)) yield* recovery.start(sessionId)
        }
        if (recovery.waiting().length === 0) return
        yield* changed.await
      }
    })
    return Effect.andThen(Effect.timeoutOption(startReady, patienceMs), recovery.start())
  })
