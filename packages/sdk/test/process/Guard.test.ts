import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit } from "effect"
import { awaitGroupGone, isGroupAlive, startTime } from "../../src/process/index.ts"
import { makeGuard } from "../../src/process/Guard.ts"

const program = fileURLToPath(new URL("programs/owner.ts", import.meta.url))

interface Owner {
  readonly process: ChildProcess
  readonly pgid: number
  readonly guard: number
  readonly inner: number
  /** Resolves when the program is gone and nobody holds its stdout and stderr. */
  readonly closed: Promise<void>
}

/** Starts a program that owns a group which ignores TERM. */
const startOwner = Effect.acquireRelease(
  Effect.callback<Owner>((resume) => {
    const child = spawn(process.execPath, [program], { stdio: ["ignore", "pipe", "inherit"], detached: true })
    const closed = new Promise<void>((done) => void child.once("close", () => done()))
    child.stdout.once("data", (line: Buffer) =>
      resume(Effect.succeed({ process: child, closed, ...JSON.parse(String(line)) }))
    )
  }),
  (owner) =>
    Effect.sync(() => {
      for (const pgid of [owner.process.pid ?? 0, owner.pgid]) if (isGroupAlive(pgid)) process.kill(-pgid, "SIGKILL")
    })
)

describe("Guard", () => {
  it.live("after SIGKILL of the owner no group survives 5 s, and the guard ends too [HRN-034] [RUN-090]", () =>
    Effect.gen(function* () {
      const owner = yield* startOwner
      assert.isTrue(isGroupAlive(owner.pgid))
      owner.process.kill("SIGKILL")
      // Neither guard nor children hold the owner's own output open.
      yield* Effect.promise(() => owner.closed)
      assert.isTrue(yield* awaitGroupGone(owner.pgid, 5000))
      assert.isUndefined(startTime(owner.inner))
      assert.isTrue(yield* awaitGroupGone(owner.guard, 5000))
    })
  )

  it.live("a signal to the owner's whole group does not reach the guard [HRN-034]", () =>
    Effect.gen(function* () {
      const owner = yield* startOwner
      for (const signal of ["SIGINT", "SIGHUP", "SIGTERM"] as const) process.kill(owner.guard, signal)
      process.kill(-(owner.process.pid ?? 0), "SIGKILL")
      yield* Effect.promise(() => owner.closed)
      assert.isTrue(yield* awaitGroupGone(owner.pgid, 5000))
    })
  )

  const stray = Effect.acquireRelease(
    Effect.callback<{ readonly pid: number; readonly exited: Promise<NodeJS.Signals | null> }>((resume) => {
      const child = spawn("/bin/sh", ["-c", "echo ready; while :; do sleep 1; done"], {
        detached: true,
        stdio: ["ignore", "pipe", "ignore"]
      })
      const exited = new Promise<NodeJS.Signals | null>((done) => void child.once("exit", (_, signal) => done(signal)))
      child.stdout.once("data", () => resume(Effect.succeed({ pid: child.pid ?? 0, exited })))
    }),
    ({ pid }) =>
      Effect.sync(() => {
        if (isGroupAlive(pid)) process.kill(-pid, "SIGKILL")
      })
  )

  it.live("only what is still on the list is ended", () =>
    Effect.gen(function* () {
      const listed = yield* stray
      const removed = yield* stray
      const guard = makeGuard({ path: process.env["PATH"], platform: process.platform })
      for (let index = 0; index < 500; index += 1) {
        guard.add(4_000_000 + index)
        guard.remove(4_000_000 + index)
      }
      guard.add(removed.pid)
      guard.add(listed.pid)
      guard.remove(removed.pid)
      yield* guard.close
      assert.strictEqual(yield* Effect.promise(() => listed.exited), "SIGTERM")
      assert.isTrue(isGroupAlive(removed.pid))
      assert.isFalse(guard.info().running)
    })
  )

  it.live("a guard that is killed is started again and knows every group [HRN-034]", () =>
    Effect.gen(function* () {
      const listed = yield* stray
      const restarted = yield* Deferred.make<void>()
      const guard = makeGuard({
        path: process.env["PATH"],
        platform: process.platform,
        onRestart: () => Deferred.doneUnsafe(restarted, Exit.void)
      })
      guard.add(listed.pid)
      const first = guard.info().pid ?? 0
      process.kill(first, "SIGKILL")
      yield* Deferred.await(restarted)
      assert.notStrictEqual(guard.info().pid, first)
      yield* guard.close
      assert.strictEqual(yield* Effect.promise(() => listed.exited), "SIGTERM")
    })
  )
})
