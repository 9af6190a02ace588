import { Writable } from "node:stream"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { levelFrom, makeStderrLog, unsentLimitBytes } from "../../src/faces/stdio/StderrLog.ts"

/** A stderr that takes nothing until it is told to. */
const stuck = () => {
  const taken: Array<string> = []
  const waiting: Array<() => void> = []
  let open = false
  const stream = new Writable({
    highWaterMark: 1,
    decodeStrings: false,
    write: (chunk, _encoding, done) => {
      taken.push(String(chunk))
      if (open) done()
      else waiting.push(done)
    }
  })
  const release = (): void => {
    open = true
    for (const done of waiting.splice(0)) done()
  }
  return { stream, taken, release }
}

describe("StderrLog", () => {
  it("writes one JSON object per line, from its level on [RUN-019]", () => {
    const { stream, taken, release } = stuck()
    release()
    const log = makeStderrLog({ stream, now: () => 0, level: levelFrom("WARN") })
    log.log("Info", "not this")
    log.log("Error", "two\nlines \u2028", { ref: "r1" })
    assert.deepStrictEqual(
      taken.map((line) => [line.endsWith("\n"), JSON.parse(line)]),
      [[true, { at: "1970-01-01T00:00:00.000Z", level: "error", message: "two\nlines \u2028", ref: "r1" }]]
    )
  })

  it("drops and counts while stderr is full, and goes on afterwards [RUN-019]", () => {
    const { stream, release } = stuck()
    let told = 0
    const log = makeStderrLog({ stream, now: () => 0, onDrop: () => (told += 1) })
    const line = "x".repeat(1_000)
    for (let count = 0; count < 1_000; count++) log.log("Info", line)
    assert.isAbove(log.dropped(), 600)
    assert.strictEqual(told, log.dropped())
    assert.isBelow(stream.writableLength, unsentLimitBytes + 2_000)
    release()
    const before = log.dropped()
    return new Promise<void>((resolve) => {
      stream.write("", () => {
        log.log("Info", "again")
        assert.strictEqual(log.dropped(), before)
        resolve()
      })
    })
  })

  it.effect("takes what Effect logs, without the messages of causes [RUN-019]", () => {
    const { stream, taken, release } = stuck()
    release()
    const log = makeStderrLog({ stream, now: () => 0 })
    return Effect.gen(function* () {
      yield* Effect.logDebug("not this")
      yield* Effect.logWarning("a failure", new Error("with a secret"))
      yield* Effect.ignore(
        Effect.tapCause(Effect.die(new Error("hunter2")), (cause) => Effect.logError("it died", cause))
      )
    }).pipe(
      Effect.catchCause(() => Effect.void),
      Effect.provide(log.layer),
      Effect.tap(
        Effect.sync(() => {
          assert.strictEqual(taken.length, 2)
          assert.notInclude(taken.join(""), "hunter2")
          assert.notInclude(taken.join(""), "with a secret")
        })
      )
    )
  })

  it("understands levels whatever their case, and takes info for anything else [RUN-019]", () => {
    assert.strictEqual(levelFrom("debug"), "Debug")
    assert.strictEqual(levelFrom("None"), "None")
    assert.strictEqual(levelFrom(undefined), "Info")
    assert.strictEqual(levelFrom("loud"), "Info")
  })
})
