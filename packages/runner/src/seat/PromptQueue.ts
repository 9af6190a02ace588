/** Prompts that wait for their turn, first in first out, bounded by number and by size (SEAT-036, SEAT-037). */
import { seatLimits } from "@tackroom/protocol/seat"
import { utf8Length } from "@tackroom/protocol/text"
import { Effect, Latch } from "effect"

export interface PromptQueue {
  /** False when there is no room; nothing is queued then. */
  readonly offer: (text: string) => boolean
  /** Puts a prompt before all others, whatever the bounds. */
  readonly offerFirst: (text: string) => void
  /** Waits for the next one. */
  readonly take: Effect.Effect<string>
  readonly size: () => number
  /** Everything that waits, which then waits no more. */
  readonly drain: () => ReadonlyArray<string>
}

export const makePromptQueue: Effect.Effect<PromptQueue> = Effect.gen(function* () {
  const filled = yield* Latch.make(false)
  const waiting: Array<{ readonly text: string; readonly bytes: number }> = []
  let bytes = 0

  const take: Effect.Effect<string> = Effect.flatMap(filled.await, () => {
    const next = waiting.shift()
    if (waiting.length === 0) filled.closeUnsafe()
    if (next === undefined) return take
    bytes -= next.bytes
    return Effect.succeed(next.text)
  })

  return {
    offer: (text) => {
      const size = utf8Length(text)
      if (waiting.length >= seatLimits.queuedPrompts || bytes + size > seatLimits.queuedPromptBytes) return false
      waiting.push({ text, bytes: size })
      bytes += size
      filled.openUnsafe()
      return true
    },
    offerFirst: (text) => {
      const size = utf8Length(text)
      waiting.unshift({ text, bytes: size })
      bytes += size
      filled.openUnsafe()
    },
    take,
    size: () => waiting.length,
    drain: () => {
      bytes = 0
      filled.closeUnsafe()
      return waiting.splice(0).map(({ text }) => text)
    }
  }
})
