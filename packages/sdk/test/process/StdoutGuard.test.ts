import { spawn } from "node:child_process"
import { PassThrough, Writable } from "node:stream"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { makeProtocolOutput } from "../../src/process/index.ts"

const program = fileURLToPath(new URL("programs/frames.ts", import.meta.url))

const run = (bulk: number, read: boolean) =>
  Effect.callback<{ readonly stdout: string; readonly stderr: string; readonly code: number | null }>((resume) => {
    const child = spawn(process.execPath, [program, String(bulk)], { stdio: ["ignore", "pipe", "pipe"] })
    const out: Array<Buffer> = []
    const err: Array<Buffer> = []
    if (read) child.stdout.on("data", (chunk: Buffer) => out.push(chunk))
    else child.stdout.destroy()
    child.stderr.on("data", (chunk: Buffer) => err.push(chunk))
    child.once("close", (code) =>
      resume(Effect.succeed({ stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString(), code }))
    )
    return Effect.sync(() => void child.kill("SIGKILL"))
  })

describe("StdoutGuard", () => {
  it.live("stdout carries frames only; every stray write goes to stderr [RUN-017]", () =>
    Effect.gen(function* () {
      const { stdout, stderr, code } = yield* run(0, true)
      assert.strictEqual(stdout, '{"frame":1}\n{"frame":2}\n')
      for (const word of ["log", "info", "table", "write", "bytes", "console service", "default logger", "end"]) {
        assert.include(stderr, word)
      }
      assert.strictEqual(code, 0)
    })
  )

  it.live("unsent bytes are counted and a flush waits for them [RUN-018]", () =>
    Effect.gen(function* () {
      const { stdout, stderr } = yield* run(8_388_608, true)
      assert.strictEqual(stdout.length, 8_388_608 + 24)
      const pending = Number(/pending (\d+) then 0/.exec(stderr)?.[1])
      assert.isAbove(pending, 8_000_000)
    })
  )

  it.live("a reader that is gone closes the output; the program decides what to do", () =>
    Effect.gen(function* () {
      const { code } = yield* run(8_388_608, false)
      assert.strictEqual(code, 9)
    })
  )

  it.live("waiting below a mark ends as soon as enough was taken [RUN-018]", () =>
    Effect.gen(function* () {
      const taken: Array<() => void> = []
      const slow = new Writable({ highWaterMark: 1, write: (_chunk, _encoding, done) => void taken.push(done) })
      const output = makeProtocolOutput(slow)
      for (let index = 0; index < 4; index += 1) output.write(new Uint8Array(100))
      assert.strictEqual(output.pending(), 400)
      const half = yield* Effect.forkChild(output.below(200), { startImmediately: true })
      taken.shift()?.()
      yield* Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
      assert.strictEqual(output.pending(), 300)
      taken.shift()?.()
      yield* Fiber.join(half)
      assert.strictEqual(output.pending(), 200)
    })
  )

  it.live("a failed pipe fails every waiter", () =>
    Effect.gen(function* () {
      const pipe = new PassThrough({ highWaterMark: 1 })
      const output = makeProtocolOutput(pipe)
      output.write(new Uint8Array(100_000))
      output.write(new Uint8Array(100_000))
      const waiting = yield* Effect.forkChild(Effect.flip(output.below(0)), { startImmediately: true })
      pipe.destroy(Object.assign(new Error("gone"), { code: "EPIPE" }))
      assert.strictEqual((yield* Fiber.join(waiting)).code, "EPIPE")
      assert.isTrue(output.isClosed())
      assert.strictEqual((yield* output.closed).code, "EPIPE")
    })
  )
})
