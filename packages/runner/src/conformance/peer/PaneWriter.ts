/**
 * Writes to the master side of a pseudo-terminal without ever waiting for it.
 *
 * The binding's own stream spins until everything is written. A program that answers what it reads while more is coming
 * fills the other direction meanwhile, and both sides wait for each other: so writes go to the descriptor, and a full terminal
 * is tried again a little later.
 */
import { write } from "node:fs"

export interface PaneWriter {
  readonly write: (bytes: Uint8Array) => void
  /** Forgets what was not written. */
  readonly close: () => void
}

const againMs = 2

export const makePaneWriter = (fd: number): PaneWriter => {
  const queue: Array<Uint8Array> = []
  let writing = false
  let closed = false

  const next = (): void => {
    const [chunk] = queue
    writing = chunk !== undefined && !closed
    if (chunk === undefined || closed) return
    write(fd, chunk, (error, written) => {
      if (closed) return
      if (error?.code === "EAGAIN") {
        setTimeout(next, againMs)
        return
      }
      // Any other error: nobody has the terminal any more, and nobody reads what is left.
      if (error !== null) queue.length = 0
      else if (written < chunk.length) queue[0] = chunk.subarray(written)
      else queue.shift()
      next()
    })
  }

  return {
    write: (bytes) => {
      if (closed) return
      queue.push(Uint8Array.from(bytes))
      if (!writing) next()
    },
    close: () => {
      closed = true
      queue.length = 0
    }
  }
}
