/** Reads what a run of this family was told, and makes its checks. */
import { Effect } from "effect"
import { existsSync, readFileSync } from "node:fs"
import { basename, resolve } from "node:path"
import { kitFailed } from "../Check.ts"
import { type Family, Usage } from "../Family.ts"
import { available } from "../peer/Pty.ts"
import { runnerChecks } from "./Checks.ts"
import type { Configuration } from "./Configuration.ts"
import { readPreset } from "./Preset.ts"
import { toCheck } from "./RunnerCheck.ts"

const harnessName = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/u

/** What a program needs of the environment to run at all. */
const base = ["PATH", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"]

/** A runner that did nothing at all in so many cases would only let each of the others run out of its time. */
const silentCases = 3

const closing: ReadonlyArray<string> = [
  "What only a person with the real agent in a seat can see:",
  "  - the seat reads ready only after the agent opened its conversation",
  "  - one message of several lines is one prompt",
  "  - the seat reads working, then idle",
  "  - a refused request reads needs input",
  "  - /abort leaves a cancelled turn",
  "  - after a resume the conversation of before is back; one that does not exist is refused, and not replaced"
]

/** Cases run in folders of their own: a word that is the path of a file from here is that file there too. */
const wherever =
  (cwd: string) =>
  (word: string): string =>
    word.includes("/") && existsSync(resolve(cwd, word)) ? resolve(cwd, word) : word

export const prepare: Family["prepare"] = Effect.fn("RunnerFamily.prepare")(function* (run, place) {
  const { "agent-name": agentName, harness = "fake", preset: presetPath } = run.flags
  if (!harnessName.test(harness)) return yield* new Usage({ message: "--harness is the name of a preset" })
  if (agentName !== undefined && !/^[A-Za-z0-9._-]{1,64}$/u.test(agentName)) {
    return yield* new Usage({ message: "--agent-name is the name of a program" })
  }
  if (agentName === undefined && !run.command.some((word) => word.includes("{agent}"))) {
    return yield* new Usage({ message: "put {agent} into the command, or say --agent-name NAME" })
  }
  const preset =
    presetPath === undefined
      ? undefined
      : yield* Effect.try({
          try: () => readPreset(readFileSync(resolve(place.cwd, presetPath), "utf8"), basename(presetPath)),
          catch: () => new Usage({ message: `--preset: ${presetPath} cannot be read` })
        })
  if (process.platform === "win32") {
    return yield* kitFailed("runners are checked on a POSIX system: their panes are those of tmux")
  }
  yield* available
  const configuration: Configuration = {
    command: run.command.map(wherever(place.cwd)),
    agentName,
    harness,
    preset,
    timing: run.timing,
    keep: run.keep,
    agentProgram: place.program("runner/agent"),
    node: place.node,
    baseEnv: Object.fromEntries(
      base.flatMap((name) => {
        const value = place.env[name]
        return value === undefined ? [] : [[name, value]]
      })
    )
  }
  return { checks: runnerChecks.map(toCheck(configuration)), silentCases, closing }
})
