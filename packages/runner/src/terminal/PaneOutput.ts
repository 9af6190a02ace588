/**
 * Standard output as a sink that never blocks the program. Node writes to a terminal synchronously, so a pane that nobody
 * reads would stop everything; opened as a socket the same terminal is written when it takes bytes.
 */
import * as fs from "node:fs"
import { Socket } from "node:net"
import { isatty, ReadStream } from "node:tty"
import type { PaneSink } from "./Pane.ts"

const socketOf = (descriptor: number): Socket | undefined => {
  if (isatty(descriptor)) return new ReadStream(descriptor)
  const kind = fs.fstatSync(descriptor)
  return kind.isFIFO() || kind.isSocket() ? new Socket({ fd: descriptor, readable: false, writable: true }) : undefined
}

/** The sink of a descriptor. After an error everything counts as written: there is no pane any more. */
export const paneOutput = (descriptor: number): PaneSink => {
  const socket = socketOf(descriptor)
  if (socket === undefined) {
    return (text, written) => {
      fs.write(descriptor, text, () => written())
    }
  }
  socket.on("error", () => undefined)
  // The pane keeps nobody alive: the seat decides when the program ends.
  socket.unref()
  return (text, written) => {
    socket.write(text, () => written())
  }
}
