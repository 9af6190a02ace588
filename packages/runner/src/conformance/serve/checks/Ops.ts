/** Ops: their order, their ids, what is refused, and the versions (SRV-090 to 103, 120 to 123). */
import { Effect } from "effect"
import { inside } from "../Driver.ts"
import { prompts } from "../../model/Script.ts"
import { demand, type ServeCheck } from "../ServeCheck.ts"

const contract = [
  "submit",
  "answer",
  "cancel",
  "ping",
  "shutdown",
  "ask_id",
  "usage_notify",
  "error_codes",
  "per_run_budget",
  "signal_drain",
  "hello",
  "op_id"
]

export const opChecks: ReadonlyArray<ServeCheck> = [
  {
    id: "SRV-090",
    level: "must",
    title: "replies come in the order of the ops",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        const ids = Array.from({ length: 60 }, (_, index) => `o${index}`)
        driver.write(
          ids
            .map((id, index) => JSON.stringify({ op: ["ping", "hello", "nonsense"][index % 3], op_id: id }))
            .map((line) => `${line}\n`)
            .join("")
        )
        yield* driver.reply(ids.at(-1) ?? "")
        const told = driver.lines().flatMap(({ fields }) => (fields["op_id"] === undefined ? [] : [fields["op_id"]]))
        yield* demand(told.join() === ids.join(), `the replies came as ${told.join(" ")}`)
      })
  },
  {
    id: "SRV-092",
    level: "must",
    title: "ops are served while a run works",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.submit("one", prompts.hang)
        yield* driver.until("the run to say something", () =>
          driver.runLines("one").find(({ type }) => type === "delta")
        )
        yield* driver.settled
      })
  },
  {
    id: "SRV-093",
    level: "must",
    title: "an op without a name, or with another, is refused, and the name is told",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        yield* driver.refusal({})
        yield* driver.refusal({ op: 7 })
        const error = yield* driver.refusal({ op: "dance" })
        yield* demand(String(error.fields["message"]).includes("dance"), "the error does not name the op")
      })
  },
  {
    id: "SRV-094",
    level: "should",
    title: "an op_id that is none refuses its op",
    capability: "error_reason",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.send({ op: "ping", op_id: ["a"] })
        driver.send({ op: "ping", op_id: "x".repeat(257) })
        yield* driver.settled
        const [pongs, errors] = ["pong", "error"].map(
          (type) => driver.lines().filter((line) => line.type === type).length
        )
        yield* demand(pongs === 1 && errors === 2, `${pongs} pongs and ${errors} errors came`)
      })
  },
  {
    id: "SRV-095",
    level: "must",
    title: "the op_id of a submit is on every line of its run",
    capability: "op_id_run",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        const { lines } = yield* driver.run("one", prompts.say("Hello."), { op_id: 7 })
        const wrong = lines.find(({ fields }) => fields["op_id"] !== "7")
        yield* demand(wrong === undefined, `a line of the run lacks the op_id: ${JSON.stringify(wrong?.fields)}`)
      })
  },
  {
    id: "SRV-097",
    level: "must",
    title: "the op_id of a cancel is on the result as cancel_op_id",
    capability: "op_id_run",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.submit("one", prompts.hang)
        yield* driver.until("the run to say something", () =>
          driver.runLines("one").find(({ type }) => type === "delta")
        )
        driver.send({ op: "cancel", run_id: "one", op_id: "stop" })
        const { result } = yield* driver.result("one", 12)
        yield* demand(result.fields["cancel_op_id"] === "stop", "the result does not name the cancel")
      })
  },
  {
    id: "SRV-098",
    level: "must",
    title: "an op_id is on the reply or the error of its op; without one the field is absent",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        for (const op of ["ping", "hello", "nonsense"]) {
          driver.send({ op, op_id: `with-${op}` })
          yield* driver.reply(`with-${op}`)
          driver.send({ op })
          driver.send({ op, op_id: null })
        }
        yield* driver.settled
        const wrong = driver.lines().find(({ fields }) => fields["op_id"] === null)
        yield* demand(wrong === undefined, "an absent op_id came back as null")
        const bare = driver.lines().filter(({ fields, type }) => type !== "ready" && fields["op_id"] === undefined)
        yield* demand(bare.length === 6, `${bare.length} of 6 replies are without an op_id`)
      })
  },
  {
    id: "SRV-099",
    level: "must",
    title: "an op_id comes back as text: 7 as 7, true as true",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.send({ op: "ping", op_id: 7 })
        yield* driver.reply("7")
        driver.send({ op: "ping", op_id: true })
        yield* driver.reply("true")
      })
  },
  {
    id: "SRV-100",
    level: "must",
    title: "a submit needs a run_id and a prompt that is not blank",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        for (const op of [
          { op: "submit", prompt: "#say no" },
          { op: "submit", run_id: "", prompt: "#say no" },
          { op: "submit", run_id: "one" },
          { op: "submit", run_id: "one", prompt: "  \n" }
        ]) {
          yield* driver.refusal(op)
        }
        yield* demand(
          driver.lines().every(({ fields }) => fields["run_id"] === undefined),
          "something of a refused submit was done"
        )
      })
  },
  {
    id: "SRV-101",
    level: "must",
    title: "a submit while a run is active is refused, and the run goes on",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.submit("one", prompts.hang)
        yield* driver.until("the run to say something", () =>
          driver.runLines("one").find(({ type }) => type === "delta")
        )
        const error = yield* driver.refusal({ op: "submit", run_id: "two", prompt: "#say no" })
        yield* demand(
          !driver.has("error_reason") || inside(error.fields["error"], "detail", "active_run_id") === "one",
          "the error does not name the active run"
        )
        yield* driver.never(
          "the run ended, or the other began",
          () => driver.runLines("one").find(({ type }) => type === "result") ?? driver.runLines("two").find(() => true),
          0.5
        )
      })
  },
  {
    id: "SRV-102",
    level: "must",
    title: "a run_id that was accepted is refused when it is used again",
    capability: "unique_run_id",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        yield* driver.refusal({ op: "submit", run_id: "one", prompt: " " })
        yield* driver.run("one", prompts.say("Hello."))
        yield* driver.refusal({ op: "submit", run_id: "one", prompt: "#say again" })
      })
  },
  {
    id: "SRV-103",
    level: "must",
    title: "a cancel of anything but the active run is refused, and names what was asked for",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        const unknown = yield* driver.refusal({ op: "cancel", run_id: "nobody" })
        yield* demand(String(unknown.fields["message"]).includes("nobody"), "the message does not name the id")
        const missing = yield* driver.refusal({ op: "cancel" })
        yield* demand(String(missing.fields["message"]).includes("(missing)"), "the message does not say (missing)")
      })
  },
  {
    id: "SRV-120",
    level: "must",
    title: "hello may be said again, also in a run",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.submit("one", prompts.hang)
        for (const id of ["h1", "h2"]) {
          driver.send({ op: "hello", op_id: id })
          const line = yield* driver.reply(id)
          yield* demand(
            line.type === "hello" && line.fields["protocol_version"] === 1,
            "hello was not answered with version 1"
          )
        }
      })
  },
  {
    id: "SRV-121",
    level: "must",
    title: "a list with 1 in it, or without a usable version, is answered with hello",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        const forms = [[2, 1], ["1"], [], [null, "x", 1.5], [1]]
        for (const [index, versions] of forms.entries()) {
          driver.send({ op: "hello", op_id: `v${index}`, protocol_versions: versions })
          const line = yield* driver.reply(`v${index}`)
          yield* demand(line.type === "hello", `${JSON.stringify(versions)} was refused`)
        }
      })
  },
  {
    id: "SRV-122",
    level: "must",
    title: "a list of other versions is refused, and the connection stays usable",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        yield* driver.refusal({ op: "hello", protocol_versions: [2, 3] })
        yield* driver.settled
      })
  },
  {
    id: "SRV-123",
    level: "must",
    title: "capabilities start with the names of the contract, and are the same in ready and hello",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        const ready = yield* driver.ready
        const names = ready.fields["capabilities"]
        const list = Array.isArray(names) ? names.map(String) : []
        yield* demand(
          list.slice(0, contract.length).join() === contract.join(),
          `the first names are ${list.join(" ")}`
        )
        yield* demand(new Set(list).size === list.length, "a name stands twice")
        driver.send({ op: "hello", op_id: "h" })
        const hello = yield* driver.reply("h")
        yield* demand(JSON.stringify(hello.fields["capabilities"]) === JSON.stringify(names), "hello has another list")
      })
  }
]
