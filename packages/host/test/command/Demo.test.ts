import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { repository, runProgram, temporary } from "./Program.ts"

describe("the demonstration", () => {
  it.live("kills its host, goes on, proves it, and leaves nothing behind", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const ended = yield* runProgram(process.execPath, [path.join(repository, "scripts/demo.ts")], {
        env: { TMPDIR: directory }
      })
      assert.deepStrictEqual([ended.code, ended.stderr], [0, ""], ended.stdout)
      assert.include(ended.stdout, "kill -9")
      assert.include(ended.stdout, "the text above is withdrawn")
      assert.match(ended.stdout, /All checks hold/)
      assert.notInclude(ended.stdout, "✗ the")
      const left = fs.readdirSync(directory).filter((name) => name.startsWith("tackroom-demo"))
      assert.deepStrictEqual(left, [])
    })
  )

  it.live("refuses what it does not understand", () =>
    Effect.gen(function* () {
      for (const args of [["--nope"], ["--model", "x"], ["--model", "local/m"], ["--model", "openai/m"]]) {
        const ended = yield* runProgram(process.execPath, [path.join(repository, "scripts/demo.ts"), ...args])
        assert.deepStrictEqual([ended.code, ended.stdout], [2, ""], args.join(" "))
        assert.include(ended.stderr, "Usage: pnpm demo")
      }
    })
  )
})
