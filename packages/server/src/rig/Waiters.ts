/**
 * Who waits for something to change: an ask to be settled, a grant to end, an occupant to register. A wake-up says only
 * "look again", so that a waiter never has to trust what it was told.
 */
import { Effect } from "effect"

export interface Waiters {
  /**
   * Runs `use` while these keys are watched. The effect that it gets completes when one of them was woken since the watch
   * began, so that what is looked at meanwhile cannot be missed.
   */
  readonly watching: <A, E>(
    keys: ReadonlyArray<string>,
    use: (changed: Effect.Effect<void>) => Effect.Effect<A, E>
  ) => Effect.Effect<A, E>
  readonly wake: (key: string) => void
  readonly wakeAll: () => void
}

interface Watch {
  woken: boolean
  resume: (() => void) | undefined
}

export const make = (): Waiters => {
  const watches = new Map<string, Set<Watch>>()
  const wake = (key: string): void => {
    for (const watch of watches.get(key) ?? []) {
      watch.woken = true
      watch.resume?.()
    }
  }
  const begin = (keys: ReadonlyArray<string>): Watch => {
    const watch: Watch = { woken: false, resume: undefined }
    for (const key of keys) {
      const those = watches.get(key) ?? new Set()
      those.add(watch)
      watches.set(key, those)
    }
    return watch
  }
  const end = (keys: ReadonlyArray<string>, watch: Watch): void => {
    for (const key of keys) {
      const those = watches.get(key)
      those?.delete(watch)
      if (those?.size === 0) watches.delete(key)
    }
  }
  const changed = (watch: Watch): Effect.Effect<void> =>
    Effect.callback<void>((resume) => {
      if (watch.woken) {
        resume(Effect.void)
        return
      }
      watch.resume = () => resume(Effect.void)
    })
  return {
    watching: (keys, use) =>
      Effect.acquireUseRelease(
        Effect.sync(() => begin(keys)),
        (watch) => use(changed(watch)),
        (watch) => Effect.sync(() => end(keys, watch))
      ),
    wake,
    wakeAll: () => {
      Array.from(watches.keys()).forEach(wake)
    }
  }
}

/** Keys: an ask, and whatever concerns a seat's occupants and grants. */
export const askKey = (askId: string): string => `ask ${askId}`
export const seatKey = (nodeId: string): string => `seat ${nodeId}`
