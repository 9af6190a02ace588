/** The life of a run: start, lines, one result, and the next submit (SRV-130 to 148, 379). */
import { Effect } from "effect"
import { inside, type Line } from "../Driver.ts"
import { prompts, words } from "../../model/Script.ts"
import { isObject } from "../../Json.ts"
import { demand, type ServeCheck } from "../ServeCheck.ts"

const codes = new Set(["budget", "timeout", "nothing", "no_answer", "restore", "cancelled", "protocol", "unknown"])

const errorsOf = (result: Line): ReadonlyArray<string> => {
  const errors = result.fields["errors"]
  return Array.isArray(errors) ? errors.map((error) => (isObject(error) ? String(error["code"]) : "?")) : []
}

const answerOf = (result: Line): string => String(result.fields["answer"])

export const runChecks: ReadonlyArray<ServeCheck> = [
  {
    id: "SRV-130",
    level: "must",
    title: "codes of errors are of the closed set",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        const refused = yield* driver.refusal({ op: "nonsense" })
        yield* demand(
          inside(refused.fields["error"], "code") === "protocol",
          "a refusal has another code than protocol"
        )
        const { result } = yield* driver.run("one", prompts.refused)
        const unknown = errorsOf(result).find((code) => !codes.has(code))
        yield* demand(unknown === undefined, `the result has the code ${unknown}`)
        yield* demand(errorsOf(result).length > 0, "the run failed and its result has no error")
      })
  },
  {
    id: "SRV-131",
    level: "must",
    title: "a failing tool is no error of the run",
    tools: ["failing"],
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        const { result } = yield* driver.run("one", prompts.failing)
        yield* demand(errorsOf(result).length === 0, `the result has errors: ${errorsOf(result).join(", ")}`)
      })
  },
  {
    id: "SRV-140",
    level: "must",
    title: "a submit leads to one start and one result",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        for (const runId of ["one", "two", "three"]) {
          const { result } = yield* driver.run(runId, prompts.say(`I am ${runId}.`))
          yield* demand(answerOf(result).includes(`I am ${runId}.`), `run ${runId} answered ${answerOf(result)}`)
          yield* driver.settled
        }
        for (const type of ["start", "result"]) {
          const count = driver.lines().filter((line) => line.type === type).length
          yield* demand(count === 3, `three submits led to ${count} lines of type ${type}`)
        }
      })
  },
  {
    id: "SRV-141",
    level: "must",
    title: "start is the first line of a run, with the prompt as it was sent",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        const prompt = `${prompts.say("Hello.")}\n  two spaces, "quotes" and ünïcode `
        const { lines } = yield* driver.run("one", prompt)
        yield* demand(lines[0]?.type === "start", `the first line is ${lines[0]?.type}`)
        yield* demand(lines[0]?.fields["prompt"] === prompt, "the prompt came back changed")
      })
  },
  {
    id: "SRV-142",
    level: "must",
    title: "no line of a run follows its result",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        yield* driver.run("one", prompts.say("Hello."))
        yield* driver.pause(100)
        yield* driver.run("two", prompts.say("Hello again."))
        const lines = driver.runLines("one")
        yield* demand(lines.at(-1)?.type === "result", `a line of type ${lines.at(-1)?.type} follows the result`)
        const own = driver.lines().filter(({ fields }) => fields["run_id"] !== undefined)
        const second = own.findIndex(({ fields }) => fields["run_id"] === "two")
        yield* demand(
          own.slice(second).every(({ fields }) => fields["run_id"] === "two"),
          "lines of two runs are mixed"
        )
      })
  },
  {
    id: "SRV-144",
    level: "must",
    title: "a submit sent after the result was read is accepted",
    capability: "submit_after_result",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        for (let number = 1; number <= 5; number++) yield* driver.run(`r${number}`, prompts.say(words.done))
        const refused = driver.lines().find(({ type }) => type === "error")
        yield* demand(refused === undefined, "a submit after a result was refused")
      })
  },
  {
    id: "SRV-145",
    level: "should",
    title: "a failure inside a run is a result, no bare error line",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        const { result } = yield* driver.run("one", prompts.refused)
        yield* demand(errorsOf(result).length > 0, "the result of the failed run has no error")
        yield* demand(!driver.lines().some(({ type }) => type === "error"), "the failure is an error line")
      })
  },
  {
    id: "SRV-146",
    level: "should",
    title: "a run that fails before any text does not answer with the text of the one before",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        yield* driver.run("one", prompts.say("This was before."))
        yield* driver.settled
        const { result } = yield* driver.run("two", prompts.refused)
        yield* demand(answerOf(result) === "", `the failed run answered ${answerOf(result)}`)
      })
  },
  {
    id: "SRV-148",
    level: "must",
    title: "a run that ends without text says no_answer",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        const { result } = yield* driver.run("one", prompts.silent)
        yield* demand(errorsOf(result).includes("no_answer"), `its errors are ${errorsOf(result).join(", ") || "none"}`)
      })
  },
  {
    id: "SRV-379",
    level: "must",
    title: "usage notifies never fall, and the last one is not above the result's",
    tools: ["tool"],
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        const { result } = yield* driver.run("one", prompts.tools(3))
        const told = [...driver.notified("one", "usage").map(({ fields }) => fields["data"]), result.fields["usage"]]
        for (const name of ["input", "output", "rounds"]) {
          const numbers = told.map((usage) => Number(inside(usage, name)))
          yield* demand(
            numbers.every((number, index) => index === 0 || number >= (numbers[index - 1] ?? 0)),
            `${name} goes ${numbers.join(", ")}`
          )
        }
        yield* demand(inside(result.fields["usage"], "rounds") === 4, "four rounds are not told")
      })
  }
]
