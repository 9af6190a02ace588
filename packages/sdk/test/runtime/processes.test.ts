import { spawn } from "node:child_process"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Scope } from "effect"
import { instanceIdOf, isGroupAlive, startTime, type Child } from "../../src/process/index.ts"
import { openRuntime, scene, start, create, outcome, stores } from "./Kit.ts"
import { programmable } from "./Programmable.ts"

describe.each(stores)("processes of harnesses over $name", (kind) => {
  it.effect("a driver's child is recorded while it lives, and gone with the runtime [HRN-032]", () =>
    scene(kind, (root, store) =>
      Effect.gen(function* () {
        const children: Array<Child> = []
        const scope = Scope.makeUnsafe()
        const driver = programmable({
          turn: ({ context, emit, finish }) =>
            Effect.gen(function* () {
              const owner = yield* context.processes
              children.push(
                yield* owner.spawn({ role: "harness", command: "/bin/cat", sessionId: "s" }).pipe(Scope.provide(scope))
              )
              yield* emit(finish())
            }).pipe(Effect.orDie)
        })
        const runtime = yield* openRuntime(store, driver)
        yield* runtime.life.ready
        const session = yield* runtime.run(create(root))
        yield* runtime.run(start(session.id, "m1"))
        yield* runtime.run(outcome(session.id, "m1"))
        const [child] = children
        assert.isDefined(child)
        const rows = yield* store.processes
        assert.deepStrictEqual(
          rows.map((row) => [row.pid, row.role, row.sessionId]),
          [[child.pid, "harness", "s"]]
        )
        yield* runtime.close()
        assert.isFalse(isGroupAlive(child.pgid))
        assert.deepStrictEqual(yield* store.processes, [])
      })
    )
  )

  it.effect("a runtime ends what a dead owner left, and spares a living owner's child [HRN-033]", () =>
    scene(kind, (_, store) =>
      Effect.gen(function* () {
        yield* store.open
        const orphan = spawn("/bin/sleep", ["60"], { detached: true, stdio: "ignore" })
        const working = spawn("/bin/sleep", ["60"], { detached: true, stdio: "ignore" })
        const row = (child: typeof orphan, instanceId: string) => ({
          id: `${instanceId}.${child.pid}`,
          instanceId,
          pid: child.pid ?? 0,
          started: startTime(child.pid ?? 0) ?? "",
          pgid: child.pid ?? 0,
          role: "harness",
          command: "/bin/sleep",
          sessionId: null
        })
        const own = instanceIdOf({ pid: process.pid, started: startTime(process.pid) ?? "" })
        yield* store.addProcess(row(orphan, instanceIdOf({ pid: process.pid, started: "another time" })))
        yield* store.addProcess(row(working, own))
        const runtime = yield* openRuntime(store, programmable())
        yield* runtime.life.ready
        assert.isFalse(isGroupAlive(orphan.pid ?? 0))
        assert.isTrue(isGroupAlive(working.pid ?? 0))
        assert.deepStrictEqual(
          (yield* store.processes).map((left) => left.pid),
          [working.pid]
        )
        working.kill("SIGKILL")
        yield* runtime.close()
      })
    )
  )
})
