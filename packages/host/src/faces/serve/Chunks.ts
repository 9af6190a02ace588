/** Reads ops off a stream, one chunk at a time: nothing is read ahead of what is being handled (SRV-090). */
import { Effect } from "effect"
import type { Readable } from "node:stream"

/** The next bytes, or undefined at the end of input, whatever ended it. */
export const nextChunk = (input: Readable): Effect.Effect<Uint8Array | undefined> =>
  Effect.callback((resume) => {
    const take = (): boolean => {
      const chunk: unknown = input.read()
      if (chunk instanceof Uint8Array) {
        finish(chunk)
        return true
      }
      if (input.readableEnded || input.destroyed) {
        finish(undefined)
        return true
      }
      return false
    }
    const finish = (chunk: Uint8Array | undefined): void => {
      detach()
      resume(Effect.succeed(chunk))
    }
    const onReadable = (): void => void take()
    const onEnd = (): void => finish(undefined)
    const detach = (): void => {
      input.off("readable", onReadable)
      input.off("end", onEnd)
      input.off("close", onEnd)
      input.off("error", onEnd)
    }
    input.on("readable", onReadable)
    input.on("end", onEnd)
    input.on("close", onEnd)
    input.on("error", onEnd)
    take()
    return Effect.sync(detach)
  })
