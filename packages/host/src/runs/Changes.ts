/**
 * Tells waiting calls that a session moved: one counter per session, counted up by every committed event, and one counted
 * up only by those that a person waits for: a request to decide or answer, and the end of a turn.
 *
 * It owns no state of a run and promises nothing about what changed: a waiter looks again. A look that began before the
 * change sees a counter behind and does not wait.
 */
import { isTerminalType, type Envelope, type EventType } from "@tackroom/protocol/events"
import { Effect } from "effect"

/** One kind of change. */
export interface Signal {
  /** The counter of a session; take it before looking. */
  readonly version: (sessionId: string) => number
  /** Completes when the session's counter is no longer `version`. */
  readonly since: (sessionId: string, version: number) => Effect.Effect<void>
}

export interface Changes {
  /** To be called for every committed event. */
  readonly moved: (envelope: Envelope) => void
  readonly any: Signal
  readonly decisive: Signal
}

const asks: ReadonlySet<EventType> = new Set<EventType>(["permission-request", "question"])

const makeSignal = (): Signal & { readonly count: (sessionId: string) => void } => {
  const versions = new Map<string, number>()
  const waiting = new Map<string, Set<() => void>>()
  const version = (sessionId: string) => versions.get(sessionId) ?? 0
  return {
    count: (sessionId) => {
      versions.set(sessionId, version(sessionId) + 1)
      const waiters = waiting.get(sessionId)
      if (waiters === undefined) return
      waiting.delete(sessionId)
      // Outside the publication: what a waiter runs into is not the publisher's trouble.
      for (const wake of waiters) queueMicrotask(wake)
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

export const make = (): Changes => {
  const any = makeSignal()
  const decisive = makeSignal()
  return {
    moved: ({ payload: { type }, sessionId }) => {
      if (asks.has(type) || isTerminalType(type)) decisive.count(sessionId)
      any.count(sessionId)
    },
    any,
    decisive
  }
}
