/**
 * The person at the terminal: asks one thing at a time and reads one line as the reply (HDL-030).
 *
 * It owns stdin. Lines that were typed before a question was shown answer nothing: they are dropped, so that nobody
 * approves what they have not seen. At the end of input every question is refused. What is shown and what a reply means
 * is `Ask`; it knows no events.
 */
import { createInterface } from "node:readline"
import type { Readable } from "node:stream"

export interface Terminal {
  /** The reply to a prompt, or undefined at the end of input or when the signal aborts. */
  readonly ask: (prompt: string, signal: AbortSignal) => Promise<string | undefined>
  readonly close: () => void
}

export const openTerminal = (input: Readable, write: (text: string) => void): Terminal => {
  const lines = createInterface({ input, terminal: false })
  let waiting: ((reply: string | undefined) => void) | undefined
  let ended = false
  const settle = (reply: string | undefined): void => {
    const resolve = waiting
    waiting = undefined
    resolve?.(reply)
  }
  lines.on("line", (line) => settle(line))
  lines.on("close", () => {
    ended = true
    settle(undefined)
  })
  return {
    ask: (prompt, signal) =>
      new Promise((resolve) => {
        if (ended || signal.aborted) return resolve(undefined)
        const abort = (): void => settle(undefined)
        signal.addEventListener("abort", abort, { once: true })
        waiting = (reply) => {
          signal.removeEventListener("abort", abort)
          if (reply === undefined) write("\n")
          resolve(reply)
        }
        write(prompt)
      }),
    close: () => {
      lines.close()
      input.pause()
    }
  }
}
