/** The family `acp`: any agent of the Agent Client Protocol on stdio, in any language, as a black box. */
import type { Family } from "../Family.ts"
import { acpSelfTest } from "./AcpSelfTest.ts"
import { prepare } from "./Preparation.ts"

export const acpFamily: Family = {
  name: "acp",
  summary: "an agent of the Agent Client Protocol, version 1: messages, sessions, turns, permissions, cancel",
  flags: {
    template:
      "FILE    a file whose {model} and {folder} are replaced for each case; {template} in the command is its path",
    tool: "NAME=INPUT  a tool of the agent that asks nobody, as its model calls it",
    failing: "NAME=INPUT  a call that fails",
    confirm: "NAME=INPUT  a call that needs the user's permission",
    "prompt-say": "TEXT  for an agent with a model of its own: a prompt that it answers with words",
    "prompt-long": "TEXT  a prompt that it works on for long",
    "prompt-tool": "TEXT  a prompt for which it uses a tool",
    "prompt-failing": "TEXT  a prompt for which a tool fails",
    "prompt-permission": "TEXT  a prompt for which it asks for a permission",
    auth: "METHOD     the method to authenticate with, after initialize",
    env: "NAME,…      variables that the agent is given too"
  },
  help: [
    "Each case starts the command in a fresh folder, which is also its HOME, with a model on loopback that the kit plays: chat",
    "completions at {model}, also in OPENAI_BASE_URL, with any key. An agent that cannot be given a model is told what to do with",
    "--prompt-…: then its own model answers. Checks that need a prompt, a tool or a capability which is not there are not declared."
  ],
  prepare,
  selfTest: (place) => acpSelfTest(place)
}
