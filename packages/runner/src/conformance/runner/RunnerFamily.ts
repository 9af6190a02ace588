/** The family `runner`: any seat runner, in any language, as a black box. */
import type { Family } from "../Family.ts"
import { prepare } from "./Preparation.ts"
import { runnerSelfTest } from "./RunnerSelfTest.ts"

export const runnerFamily: Family = {
  name: "runner",
  summary: "a seat runner: terminal, launch record, activity, input, permissions, resume, shutdown",
  flags: {
    harness: "NAME     the name of the preset the runner is started under (default: fake)",
    preset: "FILE      the runner's preset: it is checked, and what it declares is asked of the runner",
    "agent-name": "NAME  put the case's agent first on PATH under this name"
  },
  help: [
    "The command is run in a pseudo-terminal (once with pipes), beside a rig service and an agent that the kit plays.",
    "{agent} in a word of the command is replaced by the path of the case's agent; without it, --agent-name is needed."
  ],
  prepare,
  selfTest: runnerSelfTest
}
