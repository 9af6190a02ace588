import { spawn } from "node:child_process"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { isSameProcess, parseLinuxStat, startTime } from "../../src/process/index.ts"
import { darwinStart } from "../../src/process/StartTime.ts"

describe("StartTime", () => {
  it("this process has a start time that does not change", () => {
    const started = startTime(process.pid)
    assert.isString(started)
    assert.strictEqual(startTime(process.pid), started)
    assert.isTrue(isSameProcess({ pid: process.pid, started: started ?? "" }))
  })

  it("a pid with another start time is a stranger [HRN-033]", () => {
    assert.isFalse(isSameProcess({ pid: process.pid, started: "linux:boot:1" }))
    assert.isFalse(isSameProcess({ pid: process.pid, started: "" }))
  })

  it.live("a process that ended has none [HRN-033]", () =>
    Effect.gen(function* () {
      const child = spawn("/bin/sh", ["-c", "exit 0"], { stdio: "ignore" })
      yield* Effect.callback<void>((resume) => void child.once("exit", () => resume(Effect.void)))
      assert.isUndefined(startTime(child.pid ?? 0))
    })
  )

  it("no pid, no start time", () => {
    for (const pid of [0, -1, 1.5, Number.NaN]) assert.isUndefined(startTime(pid))
  })

  it("a command with spaces and parentheses does not shift the fields", () => {
    const tail = Array.from({ length: 40 }, (_, index) => String(index + 4)).join(" ")
    assert.deepStrictEqual(parseLinuxStat(`12 (a) b (c) S 1 ${tail}`)?.state, "S")
    assert.isUndefined(parseLinuxStat("garbage"))
  })

  it("the answer of ps names the start and hides zombies", () => {
    assert.strictEqual(darwinStart("Mon Nov 30 10:01:02 2026     S+\n"), "darwin:Mon Nov 30 10:01:02 2026")
    assert.isUndefined(darwinStart("Mon Nov 30 10:01:02 2026     Z"))
  })
})
