/**
 * Tells waiting calls that a session moved: one counter per session, counted up by every committed event.
 *
 * It owns no state of a run and promises nothing about what changed: a waiter looks again. A look that began before the
 * change sees a counter behind and does not wait.
 */
import type { Envelope } from "@tackroom/protocol/events"
import { Effect } from "effect"

export interface Changes {
  /** To be called for every committed event. */
  readonly moved: (envelope: Envelope) => void
  /** The counter of a session; take it before looking. */
  readonly version: (sessionId: string) => number
  /** Completes when the session's counter is no longer `version`. */
  readonly since: (sessionId: string, version: number) => Effect.Effect<void>
}

export const make = (): Changes => {
  const versions = new Map<string, number>()
  const waiting = new Map<string, Set<() => void>>()
  const version = (sessionId: string) => versions.get(sessionId) ?? 0
  return {
    moved: ({ sessionId }) => {
      versions.set(sessionId, version(sessionId) + 1)
      const waiters = waiting.get(sessionId)
      if (waiters === undefined) return
      waiting.delete(sessionId)
      for (const wake of waiters) wake()
    },
    version,
    since: (sessionId, seen) =>
      Effect.callback<void>((resume) => {
        if (version(sessionId) !== seen) {
          resume(Effect.void)
          return
        }
        const wake = () => resume(Effect.void)
        const waiters = waiting.get(sessionId) ?? new Set()
        waiters.add(wake)
        waiting.set(sessionId, waiters)
        return Effect.sync(() => {
          waiters.delete(wake)
          if (waiters.size === 0 && waiting.get(sessionId) === waiters) waiting.delete(sessionId)
        })
      })
  }
}
