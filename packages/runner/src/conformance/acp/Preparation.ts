/** The command line of this family, made into its checks. */
import { Effect } from "effect"
import { existsSync } from "node:fs"
import { resolve } from "node:path"
import { baseEnvironment } from "../BaseEnvironment.ts"
import { type FamilyRun, type Place, type Prepared, Usage } from "../Family.ts"
import { prompts as scripted } from "../model/Script.ts"
import { toolOf, type Tools } from "../model/Tools.ts"
import { toCheck } from "./AcpCheck.ts"
import { acpChecks } from "./Checks.ts"
import type { Configuration, Prompts } from "./Configuration.ts"

const closing: ReadonlyArray<string> = [
  "What the kit cannot see: whether a cancelled turn's tool really stopped, and what a client shows of all this."
]

/** The prompts for an agent with a model of its own; those that were not given are not declared. */
const ownPrompts = (flags: FamilyRun["flags"]): Prompts => ({
  say: () => flags["prompt-say"] ?? "Answer with the one word: hello. Use no tool.",
  echoes: false,
  long: flags["prompt-long"] ?? "Count from 1 to 2000 in words, one number a line. Use no tool.",
  tool: flags["prompt-tool"],
  failing: flags["prompt-failing"],
  permission: flags["prompt-permission"],
  refused: undefined
})

/** The prompts for an agent whose model the kit plays. */
const kitPrompts = ({ confirm, failing, tool }: Tools): Prompts => ({
  say: scripted.say,
  echoes: true,
  long: scripted.hang,
  tool: tool && scripted.tool,
  failing: failing && scripted.failing,
  permission: confirm && scripted.confirm,
  refused: scripted.refused
})

export const prepare = Effect.fn("Preparation.prepare")(function* (
  run: FamilyRun,
  place: Place
): Effect.fn.Return<Prepared, Usage> {
  const { auth, confirm, env, failing, template, tool } = run.flags
  const path = template === undefined ? undefined : resolve(place.cwd, template)
  if (path !== undefined && !existsSync(path))
    return yield* new Usage({ message: `--template: ${path} does not exist` })
  const tools: Tools = {
    tool: yield* toolOf("tool", tool),
    failing: yield* toolOf("failing", failing),
    ask: undefined,
    confirm: yield* toolOf("confirm", confirm)
  }
  const isForeign = Object.entries(run.flags).some(([flag, value]) => flag.startsWith("prompt-") && value !== undefined)
  if (isForeign && Object.values(tools).some((call) => call !== undefined))
    return yield* new Usage({ message: "name the tools for the kit's model, or prompts for the agent's own, not both" })
  const configuration: Configuration = {
    // Cases run in folders of their own.
    command: run.command.map((word) => (/^\.{1,2}\//u.test(word) ? resolve(place.cwd, word) : word)),
    template: path,
    tools,
    prompts: isForeign ? ownPrompts(run.flags) : kitPrompts(tools),
    auth,
    node: place.node,
    server: place.program("acp/server"),
    timing: run.timing,
    keep: run.keep,
    baseEnv: baseEnvironment(
      place,
      (env ?? "").split(",").filter((name) => name !== "")
    )
  }
  return { checks: acpChecks.map(toCheck(configuration)), closing }
})
