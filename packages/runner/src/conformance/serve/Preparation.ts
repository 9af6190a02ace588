/** The command line of this family, made into its checks. */
import { Effect } from "effect"
import { existsSync } from "node:fs"
import { resolve } from "node:path"
import { baseEnvironment } from "../BaseEnvironment.ts"
import { type FamilyRun, type Place, type Prepared, Usage } from "../Family.ts"
import { toolOf } from "../model/Tools.ts"
import { serveChecks } from "./Checks.ts"
import type { Configuration } from "./Configuration.ts"
import { toCheck } from "./ServeCheck.ts"

const closing: ReadonlyArray<string> = [
  "What the kit cannot see: whether a cancelled run's tool really stopped, and whether the history of a session is the model's."
]

export const prepare = Effect.fn("Preparation.prepare")(function* (
  run: FamilyRun,
  place: Place
): Effect.fn.Return<Prepared, Usage> {
  const { ask, confirm, failing, template, tool } = run.flags
  const path = template === undefined ? undefined : resolve(place.cwd, template)
  if (path !== undefined && !existsSync(path))
    return yield* new Usage({ message: `--template: ${path} does not exist` })
  const configuration: Configuration = {
    // Cases run in folders of their own.
    command: run.command.map((word) => (/^\.{1,2}\//u.test(word) ? resolve(place.cwd, word) : word)),
    template: path,
    tools: {
      tool: yield* toolOf("tool", tool),
      failing: yield* toolOf("failing", failing),
      ask: yield* toolOf("ask", ask),
      confirm: yield* toolOf("confirm", confirm)
    },
    timing: run.timing,
    keep: run.keep,
    baseEnv: baseEnvironment(place)
  }
  return { checks: serveChecks.map(toCheck(configuration)), closing }
})
