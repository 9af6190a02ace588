/**
 * Everything that happened around a program under test, from all sides, on one time axis.
 *
 * A case adds what its peers see; a check waits on it. Waiting is a look after every addition, so that nothing polls and no
 * event is missed between two waits. Who adds what is not its business.
 */
import { Effect } from "effect"
import { performance } from "node:perf_hooks"
import { broken, type Broken } from "./Check.ts"
import type { Evidence } from "./Evidence.ts"

/** An entry before it has its time; keeps the members of a union apart. */
type Timeless<Seen> = Seen extends unknown ? Omit<Seen, "at"> : never

export interface Timeline<Seen extends Evidence> {
  /** All of it, in order. */
  readonly seen: ReadonlyArray<Seen>
  readonly now: () => number
  /** Adds what was just seen; gives it with its time. */
  readonly add: (entry: Timeless<Seen>) => Seen
  /** Lets every waiting look again: something changed that is no entry of its own. */
  readonly wake: () => void
  /** Waits until `look` finds something; after `ms` the promise is broken: `what` did not come. */
  readonly until: <A>(what: string, look: () => A | undefined, ms: number) => Effect.Effect<A, Broken>
  /** Watches for `ms`; the promise is broken when `look` finds what must not be. */
  readonly never: (what: string, look: () => unknown, ms: number) => Effect.Effect<void, Broken>
}

/** `told` hears of every entry at once. */
export const make = <Seen extends Evidence>(told: (entry: Seen) => void = () => undefined): Timeline<Seen> => {
  const began = performance.now()
  const seen: Array<Seen> = []
  const watchers = new Set<() => void>()
  const now = (): number => performance.now() - began

  const wake = (): void => {
    for (const watcher of Array.from(watchers)) watcher()
  }

  /** The first thing found within `ms`, or undefined. */
  const watch = <A>(look: () => A | undefined, ms: number): Effect.Effect<A | undefined> =>
    Effect.callback<A | undefined>((resume) => {
      const stop = (): void => {
        clearTimeout(timer)
        watchers.delete(watcher)
      }
      const watcher = (): void => {
        const found = look()
        if (found === undefined) return
        stop()
        resume(Effect.succeed(found))
      }
      const timer = setTimeout(() => {
        stop()
        resume(Effect.succeed(look()))
      }, ms)
      watchers.add(watcher)
      watcher()
      return Effect.sync(stop)
    })

  return {
    seen,
    now,
    // The spread of a generic union loses its members; the only thing added is the time.
    add: (entry) => {
      const added = { ...entry, at: now() } as unknown as Seen
      seen.push(added)
      told(added)
      wake()
      return added
    },
    wake,
    until: (what, look, ms) =>
      Effect.flatMap(watch(look, ms), (found) =>
        found === undefined
          ? Effect.fail(broken(`${what}: not seen within ${(ms / 1_000).toFixed(1)} s`))
          : Effect.succeed(found)
      ),
    never: (what, look, ms) =>
      Effect.flatMap(
        watch(() => look() || undefined, ms),
        (found) => (found === undefined ? Effect.void : Effect.fail(broken(what)))
      )
  }
}
