/** The command line of this family, made into its checks. */
import { Effect } from "effect"
import { existsSync } from "node:fs"
import { resolve } from "node:path"
import { type FamilyRun, type Place, type Prepared, Usage } from "../Family.ts"
import { serveChecks } from "./Checks.ts"
import type { Configuration, ToolCall } from "./Configuration.ts"
import { isObject } from "./Seen.ts"
import { toCheck } from "./ServeCheck.ts"

/** What a program needs of the environment to run at all. */
const base = ["PATH", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"]

const toolOf = (flag: string, text: string | undefined): Effect.Effect<ToolCall | undefined, Usage> =>
  Effect.suspend(() => {
    if (text === undefined) return Effect.succeed(undefined)
    const at = text.indexOf("=")
    try {
      const input: unknown = JSON.parse(at < 0 ? "{}" : text.slice(at + 1))
      const name = at < 0 ? text : text.slice(0, at)
      if (name !== "" && isObject(input)) return Effect.succeed({ name, input })
    } catch {
      // Told below: the text is no JSON.
    }
    return Effect.fail(new Usage({ message: `--${flag} is NAME or NAME=INPUT, with the input as a JSON object` }))
  })

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
    baseEnv: Object.fromEntries(
      base.flatMap((name) => {
        const value = place.env[name]
        return value === undefined ? [] : [[name, value]]
      })
    )
  }
  return { checks: serveChecks.map(toCheck(configuration)), closing }
})
