/**
 * The clock at which open buffers are written (6.4, D-44): one for all turns of a runtime, so that many streams cost as many
 * commits as one. While commits take long it slows down.
 *
 * @since 0.1.0
 */
import { Effect, Latch } from "effect"
import { slowestPeriodMs } from "./Coalescer.ts"
import type { Minting } from "./Minting.ts"
import type { ResolvedOptions } from "./Options.ts"

/** A buffer with something in it. */
export interface Buffered {
  /** When it is to be written; undefined once it is empty. */
  readonly dueAt: () => number | undefined
  readonly tick: () => void
}

/** The clock of a runtime. */
export interface FlushClock {
  readonly watch: (buffer: Buffered) => void
  readonly forget: (buffer: Buffered) => void
  /** Learns how many milliseconds a commit took. */
  readonly spent: (ms: number) => void
}

/** Makes the clock; it ends with the scope. */
export const makeFlushClock = Effect.fnUntraced(function* (
  options: Pick<ResolvedOptions, "coalesce">,
  minting: Minting["Service"]
) {
  const buffers = new Set<Buffered>()
  const ticking = Latch.makeUnsafe(false)
  let commitMs = 0

  const period = (): number => Math.min(slowestPeriodMs, Math.max(options.coalesce.ms, commitMs * 10))

  yield* Effect.forkScoped(
    Effect.gen(function* () {
      while (true) {
        yield* ticking.await
        yield* Effect.sleep(period())
        const horizon = minting.now() + options.coalesce.ms / 2
        for (const buffer of buffers) {
          const due = buffer.dueAt()
          if (due === undefined) buffers.delete(buffer)
          else if (due <= horizon) buffer.tick()
        }
        if (buffers.size === 0) ticking.closeUnsafe()
      }
    })
  )

  const clock: FlushClock = {
    watch: (buffer) => {
      buffers.add(buffer)
      ticking.openUnsafe()
    },
    forget: (buffer) => {
      buffers.delete(buffer)
    },
    spent: (ms) => {
      commitMs = commitMs * 0.8 + ms * 0.2
    }
  }
  return clock
})
