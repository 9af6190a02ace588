import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it, onTestFinished } from "vitest"
import { program } from "../support/SeatUnderTest.ts"

const starts = 20
/** What the rule allows, and four times that on a machine which does other things beside. */
const ruleMs = 250

describe("a start", () => {
  it("reaches the agent within a quarter of a second, 19 of 20 times [SEAT-003]", async ({ annotate }) => {
    const folder = mkdtempSync(join(tmpdir(), "seat-start-"))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const times: Array<number> = []
    for (let i = 0; i <= starts; i++) {
      const file = join(folder, String(i))
      const before = performance.timeOrigin + performance.now()
      const child = spawn(
        process.execPath,
        [program, "--harness", "otter", "--", "/bin/sh", "-c", `date +%s%N > ${file}`],
        { stdio: ["pipe", "ignore", "ignore"], env: { PATH: process.env["PATH"], HOME: folder } }
      )
      await new Promise((resolve) => child.once("exit", resolve))
      times.push(Number(readFileSync(file, "utf8")) / 1e6 - before)
    }
    // The first one warms the cache of files.
    const sorted = times.slice(1).toSorted((a, b) => a - b)
    const [median, late] = [sorted[starts / 2] ?? 0, sorted[starts - 2] ?? 0]
    await annotate(`start of the agent: median ${median.toFixed(0)} ms, 95th percentile ${late.toFixed(0)} ms`)
    assert.isBelow(late, 4 * ruleMs)
  })
})
