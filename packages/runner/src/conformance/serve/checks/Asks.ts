/** Asks and answers (SRV-180 to 202). */
import { Effect } from "effect"
import { inside, type Driver } from "../Driver.ts"
import { prompts, question } from "../../model/Script.ts"
import { isObject, type Json } from "../../Json.ts"
import { demand, type ServeCheck } from "../ServeCheck.ts"

/** Begins a run that asks, and waits for its ask. */
const asking = (driver: Driver, runId: string, prompt: string) =>
  Effect.gen(function* () {
    yield* driver.ready
    driver.submit(runId, prompt)
    const line = yield* driver.notify(runId, "ask")
    const data = line.fields["data"]
    return { line, data, id: String(inside(data, "ask_id")) }
  })

const answer = (runId: string, ask: string, ...answers: ReadonlyArray<Json>) => ({
  op: "answer",
  run_id: runId,
  ask_id: ask,
  answers
})

const resolved = (driver: Driver, runId: string) =>
  driver.notified(runId, "ask_resolved").map(({ fields }) => fields["data"])

export const askChecks: ReadonlyArray<ServeCheck> = [
  {
    id: "SRV-180",
    level: "must",
    title: "an ask has an id, a kind and its question; one at a time is open",
    tools: ["ask"],
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        const { data, id } = yield* asking(driver, "one", prompts.ask)
        yield* demand(inside(data, "kind") === "ask", "the kind of the ask is not ask")
        const questions = inside(data, "questions")
        const [first] = Array.isArray(questions) ? questions : []
        yield* demand(inside(first, "question") === question.text, `the question is ${JSON.stringify(first)}`)
        const options = inside(first, "options")
        yield* demand(JSON.stringify(options) === JSON.stringify(question.options), "the options are others")
        yield* driver.never("another ask was open at the same time", () => driver.notified("one", "ask")[1], 0.3)
        driver.send(answer("one", id, question.options[0]))
        const { result } = yield* driver.result("one")
        yield* demand(String(result.fields["answer"]).includes(question.options[0]), "the agent did not get the answer")
      })
  },
  {
    id: "SRV-190",
    level: "must",
    title: "an answer needs values, the active run, and an open ask",
    tools: ["ask"],
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        yield* driver.refusal(answer("one", "x", "Green"))
        const { id } = yield* asking(driver, "one", prompts.ask)
        for (const answers of [[], "Green", [{ a: 1 }]]) {
          yield* driver.refusal({ op: "answer", run_id: "one", ask_id: id, answers })
        }
        yield* driver.refusal(answer("two", id, "Green"))
        driver.send(answer("one", id, question.options[0]))
        yield* driver.result("one")
        yield* driver.refusal(answer("one", id, "Green"))
      })
  },
  {
    id: "SRV-191",
    level: "must",
    title: "after an ask timed out an answer without ask_id is refused",
    tools: ["ask"],
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open({ args: ["--answer-timeout", "1"] })
        yield* driver.ready
        driver.submit("one", prompts.askThenHang)
        yield* driver.notify("one", "ask")
        yield* driver.until("the run to go on", () => driver.runLines("one").find(({ type }) => type === "delta"), 8)
        const error = yield* driver.refusal({ op: "answer", run_id: "one", answers: ["Green"] })
        yield* demand(
          !driver.has("error_reason") || inside(error.fields["error"], "reason") === "ambiguous_answer",
          "the refusal has another reason"
        )
      })
  },
  {
    id: "SRV-192",
    level: "must",
    title: "an answer to another ask is refused, both ids are told, and the ask stays open",
    tools: ["ask"],
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        const { id } = yield* asking(driver, "one", prompts.ask)
        const error = yield* driver.refusal(answer("one", "ask-of-yesterday", "Green"))
        const message = String(error.fields["message"])
        yield* demand(message.includes("ask-of-yesterday") && message.includes(id), `the message is ${message}`)
        driver.send(answer("one", id, question.options[1]))
        const { result } = yield* driver.result("one")
        yield* demand(String(result.fields["answer"]).includes(question.options[1]), "the ask was not open any more")
      })
  },
  {
    id: "SRV-194",
    level: "must",
    title: "an accepted answer settles the ask once",
    tools: ["ask"],
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        const { id } = yield* asking(driver, "one", prompts.ask)
        driver.send({ ...answer("one", id, question.options[0]), op_id: "first" })
        driver.send({ ...answer("one", id, question.options[1]), op_id: "second" })
        const second = yield* driver.reply("second")
        yield* demand(second.type === "error", "the second answer was not refused")
        const { result } = yield* driver.result("one")
        yield* demand(String(result.fields["answer"]).includes(question.options[0]), "the second answer counted")
        yield* demand(resolved(driver, "one").length <= 1, "the ask was resolved twice")
      })
  },
  {
    id: "SRV-195",
    level: "must",
    title: "a confirmation is no, unless the answer is yes",
    capability: "ask_resolved",
    tools: ["confirm"],
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        for (const [index, [value, outcome]] of [
          ["No", "refused"],
          ["perhaps", "refused"],
          [" YES ", "allowed"]
        ].entries()) {
          const runId = `r${index}`
          const { data, id } = yield* asking(driver, runId, prompts.confirm)
          yield* demand(inside(data, "kind") === "confirm", "the kind of the ask is not confirm")
          driver.send(answer(runId, id, value ?? ""))
          yield* driver.result(runId)
          const [told] = resolved(driver, runId)
          yield* demand(inside(told, "outcome") === outcome, `${value} was taken as ${JSON.stringify(told)}`)
        }
      })
  },
  {
    id: "SRV-196",
    level: "must",
    title: "a value that is none of a closed question's options is refused, and the ask stays open",
    capability: "error_reason",
    tools: ["ask"],
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        const { data, id } = yield* asking(driver, "one", prompts.ask)
        const questions = inside(data, "questions")
        const [first] = Array.isArray(questions) ? questions : []
        if (isObject(first) && first["custom"] === false) yield* driver.refusal(answer("one", id, "Blue"))
        driver.send(answer("one", id, ` ${question.options[1]} `))
        const { result } = yield* driver.result("one")
        yield* demand(String(result.fields["answer"]).includes(question.options[1]), "the ask was not open any more")
      })
  },
  {
    id: "SRV-200",
    level: "must",
    title: "every ask is followed by one ask_resolved before the result",
    capability: "ask_resolved",
    tools: ["ask"],
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        const { id } = yield* asking(driver, "one", prompts.ask)
        driver.send({ ...answer("one", id, question.options[0]), op_id: "mine" })
        yield* driver.result("one")
        const told = driver.notified("one", "ask_resolved")
        yield* demand(told.length === 1, `${told.length} times it was said that the ask is over`)
        const data = told[0]?.fields["data"]
        yield* demand(
          inside(data, "ask_id") === id && inside(data, "outcome") === "answered" && inside(data, "by") === "driver",
          `it was told as ${JSON.stringify(data)}`
        )
        yield* demand(!driver.has("op_id_run") || told[0]?.fields["op_id"] === "mine", "it lacks the answer's op_id")
      })
  },
  {
    id: "SRV-201",
    level: "must",
    title: "an ask that times out is never a yes",
    tools: ["confirm"],
    capability: "ask_resolved",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open({ args: ["--answer-timeout", "1"] })
        yield* asking(driver, "one", prompts.confirm)
        yield* driver.result("one")
        const [told] = resolved(driver, "one")
        yield* demand(inside(told, "outcome") === "unanswered", `it ended as ${JSON.stringify(told)}`)
      })
  },
  {
    id: "SRV-202",
    level: "must",
    title: "a cancel while an ask is open ends the run as cancelled",
    tools: ["ask"],
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        const { id } = yield* asking(driver, "one", prompts.ask)
        driver.send({ op: "cancel", run_id: "one" })
        const { result } = yield* driver.result("one", 12)
        yield* demand(result.fields["cancelled"] === true, "the result is not cancelled")
        yield* driver.refusal(answer("one", id, "Green"))
      })
  }
]
