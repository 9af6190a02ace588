/** Cancel, end of input, shutdown, signals, and what is left of the program (SRV-016, 018, 132, 220 to 227). */
import { Effect } from "effect"
import type { Driver } from "../Driver.ts"
import { prompts, words } from "../../model/Script.ts"
import { demand, type ServeCheck } from "../ServeCheck.ts"

/** Begins a run that works until it is stopped. */
const working = (driver: Driver, runId = "one") =>
  Effect.gen(function* () {
    yield* driver.ready
    driver.submit(runId, prompts.hang)
    yield* driver.until("the run to say something", () => driver.runLines(runId).find(({ type }) => type === "delta"))
  })

/** The run ends as cancelled and the program with code 0, the result before its end. */
const drained = (driver: Driver) =>
  Effect.gen(function* () {
    const { result } = yield* driver.result("one", 12)
    yield* demand(result.fields["cancelled"] === true, "the run was not cancelled")
    const ended = yield* driver.exited(8)
    yield* demand(ended.code === 0, `the program ended with ${ended.code ?? `signal ${ended.signal}`}`)
    yield* demand(driver.raw().at(-1)?.line?.["type"] === "result", "the result is not the last line")
  })

export const endingChecks: ReadonlyArray<ServeCheck> = [
  {
    id: "SRV-132",
    level: "must",
    title: "a cancelled run has cancelled: true and no error for it",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* working(driver)
        driver.send({ op: "cancel", run_id: "one" })
        const { result } = yield* driver.result("one", 12)
        yield* demand(JSON.stringify(result.fields["errors"]) === "[]", "the cancelled run has an error")
      })
  },
  {
    id: "SRV-220",
    level: "must",
    title: "a cancel shows as cancelling at once",
    capability: "cancel_ladder",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* working(driver)
        driver.send({ op: "cancel", run_id: "one" })
        yield* driver.notify("one", "cancelling", 2)
        yield* driver.result("one", 12)
      })
  },
  {
    id: "SRV-221",
    level: "must",
    title: "a cancelled run ends as cancelled within 10 s, and the next one works",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* working(driver)
        driver.send({ op: "cancel", run_id: "one" })
        driver.send({ op: "cancel", run_id: "one" })
        const { result } = yield* driver.result("one", 10)
        yield* demand(result.fields["cancelled"] === true, "the result is not cancelled")
        yield* driver.settled
        const { result: next } = yield* driver.run("two", prompts.say(words.done))
        yield* demand(next.fields["cancelled"] === false, "the next run is cancelled too")
        yield* demand(String(next.fields["answer"]).includes(words.done), "the next run does not answer")
      })
  },
  {
    id: "SRV-222",
    level: "must",
    title: "the end of input cancels the active run, and the program ends with 0",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* working(driver)
        driver.program.endInput()
        yield* drained(driver)
      })
  },
  {
    id: "SRV-224",
    level: "must",
    title: "shutdown cancels the active run, reads nothing more, and ends with 0",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* working(driver)
        driver.write('{"op":"shutdown"}\n{"op":"ping","op_id":"late"}\n')
        yield* drained(driver)
        yield* demand(
          !driver.lines().some(({ fields }) => fields["op_id"] === "late"),
          "an op behind the shutdown was served"
        )
      })
  },
  {
    id: "SRV-225",
    level: "must",
    title: "the result of the active run is written before the program ends",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.submit("one", prompts.hang)
        driver.program.endInput()
        yield* driver.exited(15)
        yield* driver.result("one", 0.1)
      })
  },
  {
    id: "SRV-227",
    level: "must",
    title: "without a run the end of input and shutdown end the program with 0",
    run: (open) =>
      Effect.gen(function* () {
        for (const end of ["eof", "shutdown"]) {
          const driver = yield* open()
          yield* driver.ready
          yield* driver.settled
          if (end === "eof") driver.program.endInput()
          else driver.send({ op: "shutdown" })
          const ended = yield* driver.exited(8)
          yield* demand(ended.code === 0, `after ${end} it ended with ${ended.code ?? `signal ${ended.signal}`}`)
        }
      })
  },
  {
    id: "SRV-016",
    level: "must",
    title: "a first signal cancels the active run, and the program ends with 0",
    run: (open) =>
      Effect.gen(function* () {
        for (const signal of ["SIGTERM", "SIGINT"] as const) {
          const driver = yield* open()
          yield* working(driver)
          driver.program.signal(signal)
          yield* drained(driver)
        }
      })
  },
  {
    id: "SRV-018",
    level: "should",
    title: "a driver that is gone ends the program",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* working(driver)
        driver.program.closeOutput()
        driver.send({ op: "ping" })
        driver.send({ op: "ping" })
        yield* driver.exited(15)
      })
  }
]
