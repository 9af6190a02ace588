/** Lines in: how bytes become ops, and what a bad line costs (SRV-030 to 043). */
import { Effect } from "effect"
import type { Driver, Line } from "../Driver.ts"
import { inside } from "../Driver.ts"
import { prompts } from "../../model/Script.ts"
import { demand, type ServeCheck } from "../ServeCheck.ts"

const limit = 1_048_576

const bytesOf = (...parts: ReadonlyArray<string | ReadonlyArray<number>>): Uint8Array =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part, "utf8") : Buffer.from(part))))

/** Errors that no op was named in: those of bad lines. */
const lineErrors = (driver: Driver): ReadonlyArray<Line> =>
  driver.lines().filter((line) => line.type === "error" && line.fields["op_id"] === undefined)

/** Writes bad bytes as a line and demands one error for it, and that the next line is processed. */
const badLine = (driver: Driver, bytes: Uint8Array, reason: string) =>
  Effect.gen(function* () {
    const before = lineErrors(driver).length
    driver.write(bytes)
    driver.write("\n")
    yield* driver.settled
    const errors = lineErrors(driver).slice(before)
    yield* demand(errors.length === 1, `the line got ${errors.length} errors instead of one`)
    const told = inside(errors[0]?.fields["error"], "reason")
    yield* demand(
      !driver.has("error_reason") || told === reason,
      `the reason is ${JSON.stringify(told)} and not ${reason}`
    )
    yield* demand(inside(errors[0]?.fields["error"], "code") === "protocol", "the error's code is not protocol")
  })

/** A submit of exactly so many bytes. */
const submitOf = (runId: string, bytes: number): string => {
  const frame = JSON.stringify({ op: "submit", run_id: runId, prompt: `${prompts.say("Long.")}\n` })
  return `${frame.slice(0, -2)}${"x".repeat(bytes - frame.length)}"}`
}

export const framingChecks: ReadonlyArray<ServeCheck> = [
  {
    id: "SRV-030",
    level: "must",
    title: "lines end at byte 0x0A alone; one CR before it is dropped, U+2028 and a lone CR are data",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.write('{"op":"ping","op_id":"a\u2028b"}\r\n')
        const pong = yield* driver.reply("a\u2028b")
        yield* demand(pong.type === "pong", "U+2028 ended the line")
        driver.write('{"op":\r"ping","op_id":"cr"}\n')
        yield* driver.reply("cr")
      })
  },
  {
    id: "SRV-031",
    level: "must",
    title: "lines of blanks alone are ignored",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.write("\n  \t\r\n\r\n")
        yield* driver.settled
        yield* demand(lineErrors(driver).length === 0, "a blank line got an error")
      })
  },
  {
    id: "SRV-032",
    level: "should",
    title: "a byte order mark at the start is dropped",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.write(bytesOf([0xef, 0xbb, 0xbf], '{"op":"ping","op_id":"bom"}\n'))
        yield* driver.reply("bom")
      })
  },
  {
    id: "SRV-033",
    level: "must",
    title: "a line of exactly 1,048,576 bytes is accepted, whatever else is in the same write",
    capability: "line_limit",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.write(`{"op":"ping","op_id":"before"}\n${submitOf("full", limit)}\n{"op":"ping","op_id":"after"}\n`)
        yield* driver.reply("after")
        yield* driver.result("full")
        yield* demand(lineErrors(driver).length === 0, "the line got an error")
      })
  },
  {
    id: "SRV-034",
    level: "must",
    title: "a line over the limit gets one error at once, and its rest is discarded",
    capability: "line_limit",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.write("x".repeat(3 * limit))
        yield* driver.until("the error before the line's end", () => lineErrors(driver)[0])
        yield* badLine(driver, bytesOf("x".repeat(1_000)), "line_too_long").pipe(
          // The error came already: none may come with the line's end.
          Effect.matchEffect({
            onFailure: () => demand(lineErrors(driver).length === 1, "the line got more than one error"),
            onSuccess: () => demand(false, "the line got a second error at its end")
          })
        )
      })
  },
  {
    id: "SRV-035",
    level: "must",
    title: "bytes that are not UTF-8 get one error, and nothing is guessed",
    capability: "line_limit",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        yield* badLine(driver, bytesOf('{"op":"ping","op_id":"', [0xff, 0xc0], '"}'), "bad_utf8")
      })
  },
  {
    id: "SRV-036",
    level: "must",
    title: "a line that is no JSON gets one error",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        for (const text of ["hello?", '{"op":NaN}', '{"op":"ping"} {"op":"ping"}']) {
          yield* badLine(driver, bytesOf(text), "bad_json")
        }
      })
  },
  {
    id: "SRV-037",
    level: "must",
    title: "64 levels of nesting are taken, more get one error",
    capability: "line_limit",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        const deep = (levels: number, id: string): string =>
          `{"op":"ping","op_id":"${id}","more":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`
        driver.write(`${deep(64, "deep")}\n`)
        yield* driver.reply("deep")
        yield* badLine(driver, bytesOf(deep(65, "deeper")), "too_deep")
        yield* badLine(driver, bytesOf("[".repeat(100_000)), "too_deep")
      })
  },
  {
    id: "SRV-038",
    level: "must",
    title: "JSON that is no object gets one error",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        for (const text of ["[]", "7", "null", '"ping"']) yield* badLine(driver, bytesOf(text), "not_an_object")
      })
  },
  {
    id: "SRV-039",
    level: "must",
    title: "a bad line does not touch the active run",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.submit("one", prompts.hang)
        yield* driver.until("the run to say something", () =>
          driver.runLines("one").find(({ type }) => type === "delta")
        )
        yield* badLine(driver, bytesOf("hello?"), "bad_json")
        yield* driver.never("the run ended", () => driver.runLines("one").find(({ type }) => type === "result"), 0.5)
      })
  },
  {
    id: "SRV-040",
    level: "should",
    title: "the error of a bad line has the line's number and none of its bytes",
    capability: "error_reason",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.write("\n\nmy secret is here\n")
        const error = yield* driver.until("the error", () => lineErrors(driver)[0])
        const text = Buffer.from(error.bytes).toString("utf8")
        yield* demand(!text.includes("secret"), `the error repeats the line: ${text}`)
        yield* demand(inside(error.fields["error"], "detail", "line") === 3, "the error does not name line 3")
      })
  },
  {
    id: "SRV-041",
    level: "must",
    title: "what is left at the end of input without a line end is a line",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.write('{"op":"ping","op_id":"last"}')
        driver.program.endInput()
        yield* driver.reply("last")
      })
  },
  {
    id: "SRV-042",
    level: "must",
    title: "unknown fields of an op are ignored",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        driver.send({ op: "ping", op_id: "more", unknown_field: { deep: [1] } })
        const pong = yield* driver.reply("more")
        yield* demand(pong.type === "pong", "an unknown field was refused")
        yield* demand(pong.fields["unknown_field"] === undefined, "an unknown field was echoed")
      })
  },
  {
    id: "SRV-043",
    level: "should",
    title: "a lone surrogate or U+0000 in an id refuses the op",
    capability: "error_reason",
    run: (open) =>
      Effect.gen(function* () {
        const driver = yield* open()
        yield* driver.ready
        for (const id of ["\\ud800", "a\\u0000b"]) {
          const before = driver.lines().filter(({ type }) => type === "error").length
          driver.write(`{"op":"submit","run_id":"${id}","prompt":"#say no"}\n`)
          yield* driver.settled
          const errors = driver.lines().filter(({ type }) => type === "error")
          yield* demand(errors.length === before + 1, `the id ${id} was taken`)
        }
      })
  }
]
