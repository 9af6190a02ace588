/**
 * What a host does that could not start (RUN-081): it waits at most five seconds for a first request, answers it with
 * `startup_failed`, and is done. The fatal line on stderr and the exit code are the program's.
 */
import type { Readable } from "node:stream"
import { classifyFrame, type StartupFailed, writeError } from "@tackroom/protocol/run"
import type { ProtocolOutput } from "@tackroom/sdk/process"
import { Effect } from "effect"
import { makeFrameReader } from "./FrameReader.ts"

export const firstRequestMs = 5_000

const encoder = new TextEncoder()

/** Completes when the first request was answered, stdin ended, or the time is over. */
export const answerStartupFailure = (
  input: Readable,
  output: ProtocolOutput,
  error: StartupFailed,
  waitMs: number = firstRequestMs
): Effect.Effect<void> =>
  Effect.andThen(
    Effect.callback<void>((resume) => {
      let done = false
      const finish = (): void => {
        if (done) return
        done = true
        clearTimeout(timer)
        input.off("data", onData)
        input.off("end", onEnd)
        input.off("close", finish)
        input.off("error", finish)
        input.pause()
        resume(Effect.void)
      }
      const timer = setTimeout(finish, waitMs)
      const reader = makeFrameReader((received) => {
        if (done || received._tag === "Refused") return
        const frame = classifyFrame(received.value)
        if (frame._tag !== "Request") return
        output.write(encoder.encode(`${writeError(frame.id, error)}\n`))
        finish()
      })
      const onData = (chunk: Uint8Array): void => reader.push(chunk)
      const onEnd = (): void => {
        reader.end()
        finish()
      }
      input.on("data", onData)
      input.on("end", onEnd)
      input.on("close", finish)
      input.on("error", finish)
      return Effect.sync(finish)
    }),
    Effect.ignore(Effect.timeout(output.below(0), 1_000))
  )
