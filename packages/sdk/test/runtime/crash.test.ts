import { spawn } from "node:child_process"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { scripted } from "../../src/harness/index.ts"
import { createSqliteRuntimeStore } from "../../src/store/sqlite/index.ts"
import { AgentRuntime } from "../../src/effect.ts"
import { directory, journal, outcome, programmable } from "./Kit.ts"

const program = fileURLToPath(new URL("./programs/CrashChild.ts", import.meta.url))

interface Seen {
  readonly cursor: number
  readonly type: string
}

/** Runs the program and kills it, without mercy, when it has shown so many events. */
const killAfter = (root: string, place: string, harness: string, count: number): Effect.Effect<ReadonlyArray<Seen>> =>
  Effect.callback<ReadonlyArray<Seen>>((resume) => {
    const child = spawn(process.execPath, [program, root, place, harness], { stdio: ["ignore", "pipe", "inherit"] })
    const seen: Array<Seen> = []
    let rest = ""
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (chunk: string) => {
      rest += chunk
      for (let at = rest.indexOf("\n"); at >= 0; at = rest.indexOf("\n")) {
        seen.push(JSON.parse(rest.slice(0, at)) as Seen)
        rest = rest.slice(at + 1)
        if (seen.length === count) child.kill("SIGKILL")
      }
    })
    child.on("close", () => resume(Effect.succeed(seen)))
    return Effect.sync(() => child.kill("SIGKILL"))
  })

const ends = new Set(["finish", "cancelled", "error"])

/** Kills at an event, opens again, and looks at what the journal holds. */
const crash = (harness: string, count: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const place = yield* directory
      const root = join(place, "state")
      const seen = yield* killAfter(root, place, harness, count)
      assert.isTrue(seen.length >= count, `the program showed ${seen.length} events`)
      const store = createSqliteRuntimeStore({ root })
      yield* Effect.addFinalizer(() => store.close)
      const before = yield* Effect.orDie(store.openTurns({ sessionId: "crash" }))
      const handedOver = before[0]?.handedOver
      const driver = programmable({ capabilities: { turnRecovery: "none" } })
      const layer = AgentRuntime.layer({ store, harnesses: [driver.factory, scripted({ speed: 0 })] })
      return yield* Effect.gen(function* () {
        const life = yield* AgentRuntime
        yield* life.ready
        const ended = yield* outcome("crash", "m")
        const events = yield* journal("crash")
        // What was shown is there, and the numbers have no gap.
        assert.deepStrictEqual(
          events.map((event) => event.cursor),
          events.map((_, i) => i + 1)
        )
        for (const { cursor, type } of seen) assert.strictEqual(events[cursor - 1]?.payload.type, type)
        const messages = events.filter(
          (event) => event.payload.type === "user-message" && event.payload.messageId === "m"
        )
        assert.strictEqual(messages.length, 1)
        const turn = events.filter((event) => event.turnId === ended.turnId)
        assert.strictEqual(turn.filter((event) => ends.has(event.payload.type)).length, 1)
        assert.isTrue(ends.has(turn.at(-1)?.payload.type ?? ""))
        const open = new Set<string>()
        for (const { payload } of turn) {
          if (payload.type === "tool-start") open.add(payload.toolCallId)
          if (payload.type === "tool-output" || payload.type === "tool-error") open.delete(payload.toolCallId)
          if (payload.type === "tool-status" && payload.status === "uncertain") open.delete(payload.toolCallId)
        }
        assert.deepStrictEqual([...open], [])
        const queue = yield* Effect.orDie(store.queue("crash"))
        return { ended, events, queue, handedOver, driver }
      }).pipe(Effect.provide(layer))
    })
  )

describe("a process that is killed", () => {
  for (const count of [4, 6, 9, 13, 17, 24]) {
    it.live(
      `after event ${count} of a turn that cannot be continued leaves one end, uncertain tools and a held queue [RT-170, RT-172, RT-180, RT-205]`,
      () =>
        Effect.gen(function* () {
          const { driver, ended, handedOver, queue } = yield* crash("test", count)
          if (handedOver === undefined) return
          assert.isTrue(ended.status === "failed" && ended.error.code === "turn_interrupted")
          assert.deepStrictEqual(driver.prompts, [])
          if (queue.entries.length > 0) assert.strictEqual(queue.held, "turn_failed")
        }),
      30_000
    )
  }

  for (const count of [4, 8, 12]) {
    it.live(
      `after event ${count} of a scripted turn is continued to its end, no call is played twice [RT-170, RT-172, RT-180]`,
      () =>
        Effect.gen(function* () {
          const { ended, events } = yield* crash("scripted", count)
          assert.strictEqual(ended.status, "completed")
          const starts = events.flatMap((event) =>
            event.turnId === ended.turnId && event.payload.type === "tool-status" && event.payload.status === "running"
              ? [event.payload.toolCallId]
              : []
          )
          assert.strictEqual(new Set(starts).size, starts.length)
        }),
      30_000
    )
  }
})
