/** Why a seat ends, and what the program's exit code says of it (SEAT-252). Pure. */
import type { ChildExit } from "@tackroom/sdk/process"
import type { Opened } from "../agent/Opening.ts"
import { type EndSignal, signalExitCode } from "../terminal/Signals.ts"

/** Exit codes that are no signal's. */
export const exitCodes = {
  /** The agent ended with code 0 between turns, or piped input is done. */
  done: 0,
  agentEnded: 1,
  missing: 3,
  unconfirmed: 4,
  mismatch: 5,
  usage: 64,
  notStarted: 69,
  internal: 70,
  openFailed: 76
} as const

export type Ending =
  | { readonly _tag: "AgentEnded"; readonly exit: ChildExit; readonly betweenTurns: boolean }
  | { readonly _tag: "InputDone" }
  /** A signal, or the terminal hung up. */
  | { readonly _tag: "Closed"; readonly signal: EndSignal }
  /** No conversation was opened, or this program failed. */
  | { readonly _tag: "GivenUp"; readonly code: number }

export const exitCodeOf = (ending: Ending): number => {
  switch (ending._tag) {
    case "AgentEnded":
      return ending.betweenTurns && ending.exit.code === 0 ? exitCodes.done : exitCodes.agentEnded
    case "InputDone":
      return exitCodes.done
    case "Closed":
      return signalExitCode(ending.signal)
    case "GivenUp":
      return ending.code
  }
}

/** An opening that left no conversation to work in. */
export type NotOpened = Exclude<Opened, { readonly _tag: "Opened" }>

/** What such an opening ends the program with, and how it is told. */
export const notOpened: Readonly<Record<NotOpened["_tag"], { readonly code: number; readonly words: string }>> = {
  Failed: { code: exitCodes.openFailed, words: "no conversation was opened" },
  Other: { code: exitCodes.mismatch, words: "the agent opened another conversation" },
  Missing: { code: exitCodes.missing, words: "the conversation does not exist" },
  Unconfirmed: { code: exitCodes.unconfirmed, words: "the conversation is not confirmed" }
}
