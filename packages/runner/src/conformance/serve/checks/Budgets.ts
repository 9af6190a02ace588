/** Budgets: for each submit anew, counted by the program, out of the driver's reach (SRV-260 to 267). */
import { Effect } from "effect"
import { inside, type Line } from "../Driver.ts"
import { prompts, words } from "../../model/Script.ts"
import { isObject } from "../../Json.ts"
import { demand, type ServeCheck } from "../ServeCheck.ts"

const codesOf = (result: Line): ReadonlyArray<string> => {
  const errors = result.fields["errors"]
  return Array.isArray(errors) ? errors.map((error) => (isObject(error) ? String(error["code"]) : "?")) : []
}

export const budgetChecks: ReadonlyArray<ServeCheck> = [
  {
    id: "SRV-260",
    level: "must",
    title: "no op raises a budget, and each submit has it anew",
    tools: ["tool"],
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open({ args: ["--max-rounds", "2"] })
        yield* driver.ready
        for (const runId of ["one", "two"]) {
          const { result } = yield* driver.run(runId, prompts.tools(3), { max_rounds: 50, budget: 50 })
          yield* demand(codesOf(result).includes("budget"), `run ${runId} was not stopped by its budget`)
          yield* driver.settled
        }
        const { result } = yield* driver.run("three", prompts.tools(1))
        yield* demand(codesOf(result).length === 0, "a run of two rounds was stopped")
      })
  },
  {
    id: "SRV-261",
    level: "should",
    title: "a budget in a submit is named in the warnings of its start",
    capability: "error_reason",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        const { lines } = yield* driver.run("one", prompts.say(words.done), { max_rounds: 1 })
        const warnings = lines[0]?.fields["warnings"]
        yield* demand(JSON.stringify(warnings).includes("max_rounds"), `the warnings are ${JSON.stringify(warnings)}`)
      })
  },
  {
    id: "SRV-263",
    level: "must",
    title: "a cap of N rounds allows N, and the next one ends the run with code budget",
    tools: ["tool"],
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open({ args: ["--max-rounds", "2"] })
        yield* driver.ready
        const { result } = yield* driver.run("one", prompts.tools(5))
        yield* demand(codesOf(result).join() === "budget", `its errors are ${codesOf(result).join(", ") || "none"}`)
        yield* demand(inside(result.fields["usage"], "rounds") === 2, "two rounds are not told")
      })
  },
  {
    id: "SRV-265",
    level: "must",
    title: "the time of a run ends it, also while the model says nothing",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open({ args: ["--timeout", "1"] })
        yield* driver.ready
        const { result } = yield* driver.run("one", prompts.hang)
        yield* demand(codesOf(result).join() === "timeout", `its errors are ${codesOf(result).join(", ") || "none"}`)
      })
  },
  {
    id: "SRV-267",
    level: "must",
    title: "a spent budget is a normal result: not cancelled, with its usage, and the next submit works",
    tools: ["tool"],
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open({ args: ["--max-rounds", "1"] })
        yield* driver.ready
        const { result } = yield* driver.run("one", prompts.tools(2))
        yield* demand(result.fields["cancelled"] === false, "the result is cancelled")
        yield* demand(codesOf(result).includes("budget"), "the result does not say budget")
        yield* demand(isObject(result.fields["usage"]), "the usage is not told")
        yield* driver.settled
        const { result: next } = yield* driver.run("two", prompts.say(words.done))
        yield* demand(codesOf(next).length === 0, "the next run failed")
      })
  }
]
