import { execFileSync, spawn } from "node:child_process"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope, Stream } from "effect"
import {
  awaitGroupGone,
  isGroupAlive,
  makeProcessOwner,
  ProcessOwner,
  type ProcessRecord,
  startTime
} from "../../src/process/index.ts"
import { childrenOf, firstOutput, outputOf, owner, sh } from "./support.ts"

const pgidOf = (pid: number): number =>
  Number(execFileSync("ps", ["-o", "pgid=", "-p", String(pid)], { encoding: "utf8" }).trim())

/** Ignores TERM together with a background process of its group, and says so. */
const stubborn = "trap '' TERM; sh -c 'trap \"\" TERM; echo ready; while :; do sleep 1; done' & wait"

describe("ProcessOwner", () => {
  it.live("a child leads its own group and session [HRN-030] [RUN-090]", () =>
    Effect.gen(function* () {
      const children = yield* owner()
      const child = yield* children.spawn(sh("read x"))
      assert.strictEqual(pgidOf(child.pid), child.pid)
      assert.notStrictEqual(pgidOf(child.pid), pgidOf(process.pid))
    })
  )

  it.live(
    "the child is recorded before the caller gets it, and the record goes after its group [HRN-032] [RUN-090]",
    () =>
      Effect.gen(function* () {
        const log: Array<string> = []
        let record: ProcessRecord | undefined
        const children = yield* owner({
          records: {
            add: (row) =>
              Effect.sync(() => {
                record = row
                log.push(`add ${startTime(row.pid) === row.started}`)
              }),
            remove: (id) => Effect.sync(() => void log.push(`remove ${id} ${isGroupAlive(record?.pgid ?? 0)}`))
          }
        })
        const child = yield* children.spawn(sh("read x; exit 3", { sessionId: "ses_1" }))
        log.push("spawned")
        yield* child.stdin.end
        const exit = yield* child.closed
        assert.strictEqual(exit.code, 3)
        assert.deepStrictEqual(log, ["add true", "spawned", `remove ${child.id} false`])
        assert.deepStrictEqual(record, {
          id: child.id,
          instanceId: "test",
          pid: child.pid,
          started: child.started,
          pgid: child.pid,
          role: "harness",
          command: "/bin/sh",
          sessionId: "ses_1"
        })
      })
  )

  it.live("a child that cannot be recorded is ended and never handed out [HRN-032]", () =>
    Effect.gen(function* () {
      let pid = 0
      const children = yield* owner({
        records: {
          add: (row) =>
            Effect.suspend(() => {
              pid = row.pid
              return Effect.fail("disk full")
            }),
          remove: () => Effect.void
        }
      })
      const error = yield* Effect.flip(children.spawn(sh("sleep 1000")))
      assert.strictEqual(error.code, "record_failed")
      assert.isFalse(isGroupAlive(pid))
    })
  )

  it.live("a program that does not exist or a missing directory fails the start with its code [HRN-038]", () =>
    Effect.gen(function* () {
      const children = yield* owner()
      const missing = yield* Effect.flip(children.spawn({ role: "harness", command: "/no/such/program" }))
      assert.strictEqual(missing.code, "ENOENT")
      assert.include(missing.message, "no such program")
      const cwd = yield* Effect.flip(children.spawn(sh("true", { cwd: "/no/such/folder" })))
      assert.include(cwd.message, "working directory")
      assert.deepStrictEqual(
        (yield* children.list).filter((row) => row.role !== "guard"),
        []
      )
    })
  )

  it.live("many failing starts at once fail one by one and end nothing else", () =>
    Effect.gen(function* () {
      const children = yield* owner()
      const codes = yield* Effect.forEach(
        Array.from({ length: 50 }),
        () =>
          Effect.map(
            Effect.flip(children.spawn({ role: "probe", command: "/no/such/program" })),
            (error) => error.code
          ),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual([...new Set(codes)], ["ENOENT"])
    })
  )

  it.live("a child sees the allowed environment only [HRN-031]", () =>
    Effect.gen(function* () {
      const children = yield* owner({ environment: { PATH: process.env["PATH"], SECRET_TOKEN: "s3cret", KEY: "k" } })
      const child = yield* children.spawn({ role: "harness", command: "env", env: { names: ["KEY"] }, stdin: "ignore" })
      const names = (yield* outputOf(child))
        .trim()
        .split("\n")
        .map((line) => line.split("=")[0])
      assert.includeMembers(names, ["PATH", "KEY"])
      assert.notInclude(names, "SECRET_TOKEN")
    })
  )

  it.live("an exit is known with code, signal and stderr tail, though a grandchild holds the pipes [HRN-035]", () =>
    Effect.gen(function* () {
      const children = yield* owner()
      const child = yield* children.spawn(sh("sleep 1000 & read x; echo oops >&2; exit 7"))
      yield* child.stdin.write("go\n")
      const before = performance.now()
      const exit = yield* child.exit
      assert.deepStrictEqual(exit, { code: 7, signal: null, stderrTail: "oops\n" })
      assert.isBelow(performance.now() - before, 400)
      yield* child.closed
      assert.isFalse(isGroupAlive(child.pgid))
    })
  )

  it.live("a signal that ended the child is reported as the signal [HRN-035]", () =>
    Effect.gen(function* () {
      const children = yield* owner()
      const child = yield* children.spawn(sh("kill -9 $$"))
      const exit = yield* child.exit
      assert.strictEqual(exit.code, null)
      assert.strictEqual(exit.signal, "SIGKILL")
    })
  )

  it.live("ending a child ends what it left in its group, launcher wrappers included [HRN-030]", () =>
    Effect.gen(function* () {
      const children = yield* owner({ graces: { stdinMs: 50, termMs: 200 } })
      const child = yield* children.spawn(sh(stubborn))
      assert.strictEqual(yield* firstOutput(child), "ready")
      const exit = yield* child.shutdown
      assert.strictEqual(exit.signal, "SIGKILL")
      assert.isFalse(isGroupAlive(child.pgid))
    })
  )

  it.live("the ladder ends stdin first: a child that stops at its end is not signalled [HRN-039]", () =>
    Effect.gen(function* () {
      const children = yield* owner()
      const child = yield* children.spawn(sh("trap 'exit 99' TERM; cat; exit 5"))
      const exit = yield* child.shutdown
      assert.strictEqual(exit.code, 5)
    })
  )

  it.live("after the grace the ladder sends TERM [HRN-039]", () =>
    Effect.gen(function* () {
      const children = yield* owner({ graces: { stdinMs: 30 } })
      const child = yield* children.spawn(sh("trap 'exit 42' TERM; echo ready; while :; do sleep 0.05; done"))
      yield* firstOutput(child)
      assert.strictEqual((yield* child.shutdown).code, 42)
    })
  )

  it.live("a write to a dead child's stdin fails that write alone [HRN-037]", () =>
    Effect.gen(function* () {
      const children = yield* owner({ graces: { stdinMs: 50 } })
      const gone = yield* children.spawn(sh("exit 0"))
      const living = yield* children.spawn(sh("cat"))
      yield* gone.exit
      const error = yield* Effect.flip(Effect.forever(gone.stdin.write(new Uint8Array(1_048_576))))
      assert.strictEqual(error._tag, "StdinClosed")
      const closer = yield* children.spawn(sh("exec 0<&-; echo closed; sleep 1000"))
      yield* firstOutput(closer)
      const epipe = yield* Effect.flip(Effect.forever(closer.stdin.write(new Uint8Array(65_536))))
      assert.strictEqual(epipe._tag, "StdinClosed")
      yield* living.stdin.write("still here\n")
      assert.strictEqual(yield* firstOutput(living), "still here")
    })
  )

  it.live("a child killed in the middle of a write fails the waiting write [HRN-037]", () =>
    Effect.gen(function* () {
      const children = yield* owner()
      const child = yield* children.spawn(sh("echo ready; sleep 1000"))
      yield* firstOutput(child)
      const write = yield* Effect.forkChild(Effect.flip(child.stdin.write(new Uint8Array(4_194_304))))
      yield* child.signal("SIGKILL")
      assert.strictEqual((yield* Fiber.join(write))._tag, "StdinClosed")
    })
  )

  it.live("closing the scope ends the child; its owner goes on [HRN-041]", () =>
    Effect.gen(function* () {
      const children = yield* owner()
      const scope = yield* Scope.make()
      const child = yield* Scope.provide(children.spawn(sh("cat")), scope)
      yield* Scope.close(scope, Exit.void)
      assert.isFalse(isGroupAlive(child.pgid))
      const next = yield* children.spawn(sh("echo on"))
      assert.strictEqual(yield* firstOutput(next), "on")
    })
  )

  it.live("a start racing with dispose leaves no child [HRN-041]", () =>
    Effect.gen(function* () {
      const adding = yield* Deferred.make<number>()
      const go = yield* Deferred.make<void>()
      const children = makeProcessOwner({
        instanceId: "race",
        environment: process.env,
        graces: { stdinMs: 50, termMs: 100 },
        records: {
          add: (row) => Effect.andThen(Deferred.succeed(adding, row.pid), Deferred.await(go)),
          remove: () => Effect.void
        }
      })
      const start = yield* Effect.forkChild(Effect.flip(Effect.scoped(children.spawn(sh("sleep 1000")))))
      const pid = yield* Deferred.await(adding)
      const dispose = yield* Effect.forkChild(children.dispose)
      yield* awaitGroupGone(pid, 10_000)
      yield* Deferred.succeed(go, undefined)
      assert.strictEqual((yield* Fiber.join(start)).code, "owner_closed")
      yield* Fiber.join(dispose)
      assert.isFalse(isGroupAlive(pid))
      const late = yield* Effect.flip(Effect.scoped(children.spawn(sh("sleep 1000"))))
      assert.strictEqual(late.code, "owner_closed")
      assert.deepStrictEqual(
        (yield* children.list).filter((row) => row.state === "running"),
        []
      )
    })
  )

  it.live("dispose ends all children at once and its guard [HRN-042]", () =>
    Effect.gen(function* () {
      const before = childrenOf(process.pid)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const children = yield* ProcessOwner.make({
            instanceId: "many",
            environment: process.env,
            graces: { stdinMs: 50, termMs: 300 }
          })
          const scope = yield* Scope.make()
          for (let index = 0; index < 5; index += 1) {
            const child = yield* Scope.provide(children.spawn(sh(stubborn)), scope)
            yield* firstOutput(child)
          }
          assert.strictEqual(childrenOf(process.pid).length, before.length + 6)
        })
      )
      assert.deepStrictEqual(childrenOf(process.pid), before)
    })
  )

  it.live("100 open and close cycles leave the process count as before [HRN-042]", () =>
    Effect.gen(function* () {
      const children = yield* owner()
      yield* Effect.scoped(children.spawn(sh("true")))
      const before = childrenOf(process.pid)
      for (let cycle = 0; cycle < 100; cycle += 1) {
        yield* Effect.scoped(
          Effect.gen(function* () {
            const child = yield* children.spawn({ role: "harness", command: "cat" })
            yield* child.stdin.write(`${cycle}\n`)
            assert.strictEqual(yield* firstOutput(child), String(cycle))
          })
        )
      }
      assert.deepStrictEqual(childrenOf(process.pid), before)
    })
  )

  it.live("the list shows living children, the guard, and how the last ones ended", () =>
    Effect.gen(function* () {
      const children = yield* owner()
      const living = yield* children.spawn(sh("cat"))
      const ended = yield* children.spawn(sh("exit 4", { role: "probe" }))
      yield* ended.closed
      const rows = yield* children.list
      assert.deepStrictEqual(
        rows.map((row) => [row.role, row.state, row.exit?.code]),
        [
          ["harness", "running", undefined],
          ["guard", "running", undefined],
          ["probe", "exited", 4]
        ]
      )
      assert.strictEqual(rows[0]?.pid, living.pid)
    })
  )

  it.live("a slow reader slows the child instead of filling memory", () =>
    Effect.gen(function* () {
      const children = yield* owner()
      const child = yield* children.spawn(sh("exec head -c 20000000 /dev/zero"))
      const read = yield* Stream.runFold(
        child.stdout,
        () => 0,
        (total, chunk) => total + chunk.length
      )
      assert.strictEqual(read, 20_000_000)
    })
  )

  it.live("a process that left the group cannot keep the output stream open", () =>
    Effect.gen(function* () {
      const children = yield* owner()
      const script =
        "const stray=require('node:child_process').spawn('sleep',['1000'],{detached:true,stdio:'inherit'});stray.unref();console.log(stray.pid,require('node:fs').readFileSync(0,'utf8'))"
      const child = yield* children.spawn({ role: "tool", command: process.execPath, args: ["-e", script] })
      yield* child.stdin.write("all of it")
      yield* child.stdin.end
      const [stray = "", ...rest] = (yield* outputOf(child)).trim().split(" ")
      yield* Effect.addFinalizer(() => Effect.sync(() => process.kill(-Number(stray), "SIGKILL")))
      assert.strictEqual(rest.join(" "), "all of it")
      assert.isTrue(isGroupAlive(Number(stray)))
    })
  )
})

describe("reap", () => {
  const orphan = (script: string) =>
    Effect.acquireRelease(
      Effect.callback<{ readonly pid: number; readonly exited: Promise<void> }>((resume) => {
        const child = spawn("/bin/sh", ["-c", script], { detached: true, stdio: ["ignore", "pipe", "ignore"] })
        const exited = new Promise<void>((done) => void child.once("exit", () => done()))
        child.stdout.once("data", () => resume(Effect.succeed({ pid: child.pid ?? 0, exited })))
      }),
      ({ pid }) =>
        Effect.sync(() => {
          if (isGroupAlive(pid)) process.kill(-pid, "SIGKILL")
        })
    )

  const recordOf = (pid: number, started: string): ProcessRecord => ({
    id: `old.${pid}`,
    instanceId: "dead",
    pid,
    started,
    pgid: pid,
    role: "harness",
    command: "sh",
    sessionId: null
  })

  it.live("ends a recorded group whose pid and start time match, also one that ignores TERM [HRN-033]", () =>
    Effect.gen(function* () {
      const left = yield* orphan(stubborn)
      const children = yield* owner({ graces: { termMs: 200 } })
      const record = recordOf(left.pid, startTime(left.pid) ?? "")
      const result = yield* children.reap([record])
      assert.deepStrictEqual(result, { ended: [record], stale: [] })
      assert.isFalse(isGroupAlive(left.pid))
      yield* Effect.promise(() => left.exited)
    })
  )

  it.live("a group that is no child of ours is ended with the owner, unless it was taken off the list [RUN-090]", () =>
    Effect.gen(function* () {
      const ours = yield* orphan("echo ready; sleep 1000")
      const released = yield* orphan("echo ready; sleep 1000")
      yield* Effect.scoped(
        Effect.gen(function* () {
          const children = yield* owner()
          yield* children.groups.add(ours.pid)
          yield* children.groups.add(released.pid)
          yield* children.groups.remove(released.pid)
        })
      )
      yield* Effect.promise(() => ours.exited)
      assert.isTrue(isGroupAlive(released.pid))
    })
  )

  it.live("leaves a reused pid alone [HRN-033]", () =>
    Effect.gen(function* () {
      const stranger = yield* orphan("echo ready; sleep 1000")
      const children = yield* owner()
      const result = yield* children.reap([recordOf(stranger.pid, "linux:boot:1"), recordOf(stranger.pid, "")])
      assert.strictEqual(result.ended.length, 0)
      assert.strictEqual(result.stale.length, 2)
      assert.isTrue(isGroupAlive(stranger.pid))
    })
  )
})
