/** Exit codes of the program that are no signal's (SEAT-252). */
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
