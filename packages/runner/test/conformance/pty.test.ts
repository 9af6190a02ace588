import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { tmpdir } from "node:os"
import { spawnPty } from "../../src/conformance/peer/Pty.ts"
import type { Evidence } from "../../src/conformance/Evidence.ts"
import * as Timeline from "../../src/conformance/Timeline.ts"

const withProgram = (script: string, columns = 80) =>
  Effect.gen(function* () {
    const timeline = Timeline.make<Evidence>()
    const chunks: Array<Uint8Array> = []
    const program = yield* spawnPty({
      command: [process.execPath, "-e", script],
      cwd: tmpdir(),
      env: { PATH: process.env["PATH"] ?? "" },
      columns,
      onOutput: (bytes) => {
        chunks.push(bytes)
        timeline.wake()
      },
      onEnd: () => timeline.wake(),
      onLeftOver: () => undefined
    })
    const output = (): string => Buffer.concat(chunks).toString("utf8")
    return { timeline, program, output }
  })

describe("a program in a pseudo-terminal", () => {
  it.live("that answers while it is still written to keeps nobody waiting [CHK-301]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        // Echoes everything twice, so that both directions of the terminal are full.
        const { output, program, timeline } = yield* withProgram(
          `process.stdin.setRawMode(true); process.stdout.write("ready"); let all = 0
           process.stdin.on("data", (d) => { all += d.length; process.stdout.write(d); process.stdout.write(d)
             if (all === 400000) process.stdout.write("done") })`
        )
        yield* timeline.until("the start", () => output().includes("ready") || undefined, 20_000)
        for (let at = 0; at < 400_000; at += 4_000) program.write(Buffer.alloc(4_000, "x"))
        yield* timeline.until("the end of the echo", () => output().endsWith("done") || undefined, 60_000)
        assert.strictEqual(output().length, "ready".length + 800_000 + "done".length)
      })
    )
  )

  it.live("shows its terminal's state, also after its end, and is hung up when the pane closes", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const raw = yield* withProgram(`process.stdin.setRawMode(true); console.log("raw"); process.stdin.resume()
          process.on("SIGHUP", () => { process.exit(7) })`)
        yield* raw.timeline.until("the start", () => raw.output().includes("raw") || undefined, 20_000)
        assert.deepStrictEqual(raw.program.mode(), { canonical: false, echo: false, signals: false, crToLf: false })
        // A program that was started later does not keep the pane of this one open.
        const other = yield* withProgram(`console.log("up"); setInterval(() => {}, 1000)`)
        yield* other.timeline.until("the other's start", () => other.output().includes("up") || undefined, 20_000)
        raw.program.closePane()
        const hungUp = yield* raw.timeline.until("the end", () => raw.program.ended(), 20_000)
        assert.deepStrictEqual(hungUp, { code: 7, signal: null })
        assert.isUndefined(other.program.ended())

        const cooked = yield* withProgram(`process.exit(3)`)
        const ended = yield* cooked.timeline.until("the end", () => cooked.program.ended(), 20_000)
        assert.deepStrictEqual(ended, { code: 3, signal: null })
        assert.deepStrictEqual(cooked.program.mode(), { canonical: true, echo: true, signals: true, crToLf: true })
      })
    )
  )
})
