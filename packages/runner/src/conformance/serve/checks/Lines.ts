/** Lines out: their form, their numbers, the first one (SRV-010, 060 to 069, 370). */
import { Effect } from "effect"
import { isControl } from "../Driver.ts"
import { prompts, words } from "../../model/Script.ts"
import { demand, type ServeCheck } from "../ServeCheck.ts"
import { shapeProblem } from "../Shapes.ts"

export const lineChecks: ReadonlyArray<ServeCheck> = [
  {
    id: "SRV-010",
    level: "must",
    title: "nothing but the program's own lines goes to stdout",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        yield* driver.run("one", prompts.say("Hello."))
        const stray = driver.raw().find(({ line }) => line === undefined || typeof line["type"] !== "string")
        yield* demand(stray === undefined, `stdout has a line that is none: ${stray?.text.slice(0, 200)}`)
      })
  },
  {
    id: "SRV-370",
    level: "must",
    title: "the first line is ready, once",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        yield* driver.settled
        const [first] = driver.lines()
        yield* demand(first?.type === "ready", `the first line is ${first?.type}`)
        yield* demand(driver.lines().filter(({ type }) => type === "ready").length === 1, "ready came twice")
      })
  },
  {
    id: "SRV-061",
    level: "must",
    title: "every line has protocol 1 and a type",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.send({ op: "hello" })
        driver.send({ op: "nonsense" })
        yield* driver.settled
        yield* driver.run("one", prompts.say("Hello."))
        const wrong = driver
          .lines()
          .find(({ fields }) => fields["protocol"] !== 1 || typeof fields["type"] !== "string")
        yield* demand(wrong === undefined, `a line lacks protocol or type: ${JSON.stringify(wrong?.fields)}`)
      })
  },
  {
    id: "SRV-062",
    level: "should",
    title: "U+2028, U+2029 and U+0085 are written as escapes",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        const text = "one\u2028two\u2029three\u0085four"
        const { lines } = yield* driver.run("one", prompts.say(text))
        const raw = lines.map(({ bytes }) => Buffer.from(bytes).toString("utf8")).join("")
        yield* demand(raw.includes("\\u2028"), "the text did not come back with an escape")
        yield* demand(!/[\u2028\u2029\u0085]/u.test(raw), "a separator was written raw")
      })
  },
  {
    id: "SRV-063",
    level: "should",
    title: "a lone surrogate or U+0000 in a prompt comes back as its escape",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.write('{"op":"submit","run_id":"one","prompt":"#say a\\ud800b\\u0000c"}\n')
        const { lines } = yield* driver.result("one")
        const start = lines.find(({ type }) => type === "start")
        const raw = Buffer.from(start?.bytes ?? [])
          .toString("utf8")
          .toLowerCase()
        yield* demand(raw.includes("a\\ud800b\\u0000c"), `the prompt came back as ${raw.slice(0, 200)}`)
      })
  },
  {
    id: "SRV-064",
    level: "should",
    title: "no line is longer than 1,048,576 bytes",
    capability: "line_limit",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        // As escapes the text is three times as long as its bytes.
        yield* driver.run("one", `${prompts.say("short")}\n${"\u2028".repeat(300_000)}`)
        const long = driver.raw().find(({ bytes }) => bytes.length + 1 > 1_048_576)
        yield* demand(long === undefined, `a line has ${long?.bytes.length} bytes`)
      })
  },
  {
    id: "SRV-065",
    level: "must",
    title: "control lines carry neither seq nor run_id",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.submit("one", prompts.hang)
        driver.send({ op: "hello" })
        driver.send({ op: "nonsense" })
        yield* driver.settled
        const wrong = driver
          .lines()
          .filter(isControl)
          .find(({ fields }) => fields["seq"] !== undefined || fields["run_id"] !== undefined)
        yield* demand(wrong === undefined, `a control line is numbered: ${JSON.stringify(wrong?.fields)}`)
      })
  },
  {
    id: "SRV-066",
    level: "must",
    title: "run lines are numbered 1, 2, 3 … and each run counts anew",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        for (const runId of ["one", "two"]) {
          const { lines } = yield* driver.run(runId, prompts.say(words.done))
          const numbers = lines.map(({ fields }) => fields["seq"])
          yield* demand(
            numbers.every((number, index) => number === index + 1),
            `the lines of run ${runId} are numbered ${numbers.join(", ")}`
          )
          yield* driver.settled
        }
      })
  },
  {
    id: "SRV-069",
    level: "must",
    title: "every line has the fields of its type",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.send({ op: "hello", op_id: "h" })
        driver.send({ op: "nonsense" })
        yield* driver.settled
        yield* driver.run("one", prompts.tool)
        const problems = driver.lines().flatMap(({ fields }) => shapeProblem(fields) ?? [])
        yield* demand(problems.length === 0, problems[0] ?? "")
      })
  }
]
