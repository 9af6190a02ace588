/** What a runner's preset must declare (seat contract 3). */
import { Effect } from "effect"
import { broken, skipped } from "../../Check.ts"
import { isList } from "../../Json.ts"
import type { RunnerCheck } from "../RunnerCheck.ts"

export const presets: ReadonlyArray<RunnerCheck> = [
  {
    id: "CHK-001",
    level: "must",
    title: "the preset is valid and declares runner and launch_result",
    rules: [],
    run: (_open, { preset }) =>
      Effect.gen(function* () {
        if (preset === undefined) return yield* skipped("not_declared")
        const missing = ["runner", "launch_result"].filter((field) => preset.declared[field] !== true)
        const problems = [...preset.problems, ...missing.map((field) => `${field} is not declared`)]
        if (problems.length > 0) return yield* broken(`the preset: ${problems.join("; ")}`)
      })
  },
  {
    id: "CHK-005",
    level: "should",
    title: "the preset states its limits",
    rules: [],
    run: (_open, { preset }) =>
      Effect.gen(function* () {
        if (preset === undefined) return yield* skipped("not_declared")
        const { limits } = preset.declared
        if (!isList(limits) || limits.length === 0) return yield* broken("the preset has no limits")
      })
  }
]
