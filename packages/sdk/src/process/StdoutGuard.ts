/**
 * Reserves stdout for protocol frames (D-16, RUN-017). From `reserveStdout()` on, `console.*` and every stray write to
 * `process.stdout` go to stderr; frames go out through the returned writer only. Call it as the first thing a program does.
 *
 * stderr never blocks and never grows: above 1 MiB unsent, stray text is dropped and counted (RUN-019). What a native
 * addon or a child with an inherited descriptor writes to descriptor 1 cannot be caught; `ProcessOwner` lets no child inherit it.
 */
import type { Writable } from "node:stream"
import { Data, Deferred, Effect, Exit } from "effect"

/** stdout is gone: the reader closed it. Every later write fails with it. */
export class OutputClosed extends Data.TaggedError("OutputClosed")<{ readonly code: string }> {}

/** Where frames are written, with the numbers that a face needs for backpressure (RUN-016, RUN-018). */
export interface ProtocolOutput {
  /**
   * Hands bytes to the pipe, whole and in order; returns the bytes not yet taken by the reader, these included. It never
   * waits: a writer that must bound memory looks at the number (RUN-018) or waits on `below`.
   */
  readonly write: (bytes: Uint8Array) => number
  /** Bytes handed over and not yet taken by the system. */
  readonly pending: () => number
  /** Waits until at most `bytes` are pending; `below(0)` is a flush, needed before the process exits. */
  readonly below: (bytes: number) => Effect.Effect<void, OutputClosed>
  /** Completes when the reader is gone. */
  readonly closed: Effect.Effect<OutputClosed>
  /** True once the reader is gone; writes are then ignored. */
  readonly isClosed: () => boolean
  /** Stray writes sent to stderr, and those dropped because stderr was full. */
  readonly strays: () => { readonly redirected: number; readonly dropped: number }
}

/** Unsent bytes on stderr above which stray text is dropped. */
export const strayLimitBytes = 1_048_576

const codeOf = (error: Error): string => ("code" in error && typeof error.code === "string" ? error.code : "EPIPE")

interface Waiter {
  readonly bytes: number
  readonly resume: (effect: Effect.Effect<void, OutputClosed>) => void
}

/** The frame writer over any writable; `reserveStdout` makes one over descriptor 1. Exported for tests and other pipes. */
export const makeProtocolOutput = (
  stream: Writable,
  write: (bytes: Uint8Array, done: (error?: Error | null) => void) => void = (bytes, done) =>
    void stream.write(bytes, done),
  strays: () => { redirected: number; dropped: number } = () => ({ redirected: 0, dropped: 0 })
): ProtocolOutput => {
  const closed = Deferred.makeUnsafe<OutputClosed>()
  const waiters = new Set<Waiter>()
  let pending = 0
  let failure: OutputClosed | undefined

  const close = (code: string): void => {
    if (failure !== undefined) return
    failure = new OutputClosed({ code })
    Deferred.doneUnsafe(closed, Exit.succeed(failure))
    for (const waiter of waiters) waiter.resume(Effect.fail(failure))
    waiters.clear()
  }
  stream.on("error", (error: Error) => close(codeOf(error)))
  stream.on("close", () => close("closed"))

  return {
    write: (bytes) => {
      if (failure !== undefined) return pending
      pending += bytes.length
      write(bytes, (error) => {
        pending -= bytes.length
        if (error !== undefined && error !== null) close(codeOf(error))
        for (const waiter of waiters) {
          if (pending > waiter.bytes) continue
          waiters.delete(waiter)
          waiter.resume(failure === undefined ? Effect.void : Effect.fail(failure))
        }
      })
      return pending
    },
    pending: () => pending,
    below: (bytes) =>
      Effect.callback<void, OutputClosed>((resume) => {
        if (failure !== undefined) return resume(Effect.fail(failure))
        if (pending <= bytes) return resume(Effect.void)
        const waiter: Waiter = { bytes, resume }
        waiters.add(waiter)
        return Effect.sync(() => void waiters.delete(waiter))
      }),
    closed: Deferred.await(closed),
    isClosed: () => failure !== undefined,
    strays: () => ({ ...strays() })
  }
}

let reserved: ProtocolOutput | undefined

/** Reserves stdout of this process. A second call returns the same writer. */
export const reserveStdout = (): ProtocolOutput => {
  if (reserved !== undefined) return reserved
  const { stdout, stderr } = process
  const frame = stdout.write.bind(stdout)
  const counts = { redirected: 0, dropped: 0 }
  // A closed stderr must not end the program.
  stderr.on("error", () => undefined)

  const stray = (chunk: unknown, encoding?: unknown, done?: unknown): boolean => {
    const callback = typeof encoding === "function" ? encoding : done
    const answer = (): void => {
      if (typeof callback === "function") callback()
    }
    counts.redirected += 1
    if (stderr.writableLength > strayLimitBytes) {
      counts.dropped += 1
      queueMicrotask(answer)
      return true
    }
    const bytes = chunk instanceof Uint8Array ? chunk : Buffer.from(String(chunk), encodingOf(encoding))
    stderr.write(bytes, answer)
    return true
  }
  const end = (...args: ReadonlyArray<unknown>): typeof stdout => {
    if (args[0] !== undefined && typeof args[0] !== "function") stray(args[0], args[1])
    const callback = args.find((arg) => typeof arg === "function")
    if (typeof callback === "function") queueMicrotask(() => callback())
    return stdout
  }
  Object.defineProperty(stdout, "write", { value: stray, configurable: true, writable: true })
  Object.defineProperty(stdout, "end", { value: end, configurable: true, writable: true })
  // What one turn of the program writes is one call of the system.
  let isCorked = false
  const write = (bytes: Uint8Array, done: (error?: Error | null) => void): void => {
    if (!isCorked) {
      isCorked = true
      stdout.cork()
      process.nextTick(() => {
        isCorked = false
        stdout.uncork()
      })
    }
    frame(bytes, done)
  }
  reserved = makeProtocolOutput(stdout, write, () => counts)
  return reserved
}

const encodingOf = (encoding: unknown): BufferEncoding =>
  typeof encoding === "string" && Buffer.isEncoding(encoding) ? encoding : "utf8"
