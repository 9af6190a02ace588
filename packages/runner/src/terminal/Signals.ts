/**
 * The signals that end a seat. Held from the program's start, so that none of them ends it with the terminal left raw; those
 * that come before somebody listens are told then.
 */
import { constants } from "node:os"

export type EndSignal = "SIGHUP" | "SIGINT" | "SIGTERM"

export interface SeatSignals {
  readonly listen: (listener: (signal: EndSignal) => void) => void
}

const held: ReadonlyArray<EndSignal> = ["SIGHUP", "SIGINT", "SIGTERM"]

/** What a shell reports of a program that a signal ended. */
export const signalExitCode = (signal: EndSignal): number => 128 + constants.signals[signal]

export const takeSignals = (): SeatSignals => {
  const early: Array<EndSignal> = []
  let listener: ((signal: EndSignal) => void) | undefined
  for (const signal of held) {
    process.on(signal, () => {
      if (listener === undefined) early.push(signal)
      else listener(signal)
    })
  }
  return {
    listen: (next) => {
      listener = next
      for (const signal of early.splice(0)) next(signal)
    }
  }
}
