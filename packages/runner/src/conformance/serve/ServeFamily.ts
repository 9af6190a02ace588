/** The family `serve`: any serve-mode program, in any language, as a black box. */
import type { Family } from "../Family.ts"
import { prepare } from "./Preparation.ts"
import { confirmation, question } from "../model/Script.ts"
import { serveSelfTest } from "./ServeSelfTest.ts"

export const serveFamily: Family = {
  name: "serve",
  summary: "a serve-mode program: lines, ops, runs, asks, cancel, budgets, sessions",
  flags: {
    template:
      "FILE    a file whose {model} and {folder} are replaced for each case; {template} in the command is its path",
    tool: "NAME=INPUT  a tool of the agent that asks nobody, as its model calls it",
    failing: "NAME=INPUT  a call that fails",
    ask: `NAME=INPUT   a call that puts the question ${JSON.stringify(question.text)} with the options ${question.options.join(" and ")}`,
    confirm: `NAME=INPUT  a call that wants to be confirmed (${JSON.stringify(confirmation)} or the like)`
  },
  help: [
    "Each case starts the command in a fresh folder, with a model on loopback that the kit plays: chat completions at {model},",
    "also in OPENAI_BASE_URL, with any key. Flags of the contract (--max-rounds, --timeout, --answer-timeout) are put behind it.",
    "Checks that need a tool which was not named, or a capability that ready does not name, are not declared."
  ],
  prepare,
  selfTest: (place) => serveSelfTest(place)
}
