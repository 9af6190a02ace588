/**
 * Owns the bytes that leave: whole frames, never interleaved, in the order given, joined to one write per turn of the
 * event loop (RUN-016). It counts what the reader has not taken yet; who may produce more is `RequestLanes`' decision.
 *
 * After the reader is gone frames are dropped (RUN-526). It knows no methods: a frame that is too large is its caller's
 * to replace.
 */
import type { ProtocolOutput } from "@tackroom/sdk/process"
import { Effect } from "effect"

export interface FrameWriter {
  /** Queues one frame (JSON text without line feeds) for this turn's write. */
  readonly send: (frame: string) => void
  /** Bytes queued or not yet taken by the reader. */
  readonly pending: () => number
  /** Writes now what is queued. */
  readonly flush: () => void
}

export interface FrameWriterOptions {
  readonly output: ProtocolOutput
  /** When a write leaves this many bytes pending, `onPending` is called as soon as fewer are. */
  readonly lowBytes: number
  /** Called after each write, and when the pending bytes have gone below `lowBytes`. */
  readonly onPending: (bytes: number) => void
}

/** Queued bytes that are written without waiting for the end of the turn. */
const eagerBytes = 262_144

export const makeFrameWriter = (options: FrameWriterOptions): FrameWriter => {
  const { output, lowBytes, onPending } = options
  let queued: Array<string> = []
  let queuedLength = 0
  let scheduled = false
  let watching = false

  const watch = (): void => {
    if (watching) return
    watching = true
    const fiber = Effect.runFork(Effect.ignore(output.below(lowBytes - 1)))
    fiber.addObserver(() => {
      watching = false
      onPending(pending())
    })
  }

  // Until they are encoded, queued frames count with the length of their text.
  const pending = (): number => output.pending() + queuedLength

  const flush = (): void => {
    scheduled = false
    if (queued.length === 0) return
    const text = queued.length === 1 ? `${queued[0]}\n` : `${queued.join("\n")}\n`
    queued = []
    queuedLength = 0
    const unsent = output.write(Buffer.from(text))
    // Not only above the mark where production stops: it may have stopped for frames that were still queued, which in
    // the meantime fit in. Whoever stopped waits for this call alone.
    if (unsent >= lowBytes) watch()
    onPending(pending())
  }

  return {
    send: (frame) => {
      if (output.isClosed()) return
      queued.push(frame)
      queuedLength += frame.length + 1
      if (queuedLength > eagerBytes) return flush()
      if (scheduled) return
      scheduled = true
      setImmediate(flush)
    },
    pending,
    flush
  }
}
