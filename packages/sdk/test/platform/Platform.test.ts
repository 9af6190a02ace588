import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { platform as browser } from "../../src/platform/browser.ts"
import { platform as node } from "../../src/platform/node.ts"

const folder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "platform-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)

describe("platform", () => {
  it.effect("Node resolves links, tells directories and names what is wrong with a path", () =>
    Effect.gen(function* () {
      const root = yield* Effect.flatMap(folder, node.realPath)
      yield* Effect.promise(() => symlink(root, join(root, "link")))
      yield* Effect.promise(() => writeFile(join(root, "file"), "x"))
      assert.strictEqual(yield* node.realPath(join(root, "link")), root)
      assert.isTrue(yield* node.isDirectory(join(root, "link")))
      assert.isFalse(yield* node.isDirectory(join(root, "file")))
      assert.isFalse(yield* node.isDirectory(join(root, "none")))
      const error = yield* Effect.flip(node.realPath(join(root, "none")))
      assert.strictEqual(error._tag, "PathUnusable")
      assert.include(error.message, "does not exist")
    })
  )

  it.effect("a file is read whole or refused, exactly at its limit", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const path = join(root, "file")
      yield* Effect.promise(() => writeFile(path, "12345"))
      assert.strictEqual((yield* node.readFile(path, 5)).length, 5)
      const large = yield* Effect.flip(node.readFile(path, 4))
      assert.strictEqual(large._tag === "PathUnusable" ? large.code : "", "EFBIG")
      const directory = yield* Effect.flip(node.readFile(root, 4))
      assert.include(directory.message, "is a directory")
    })
  )

  it.effect("this process is itself and no other", () =>
    Effect.gen(function* () {
      const self = yield* node.self
      assert.strictEqual(self.pid, process.pid)
      assert.isTrue(yield* node.isSameProcess(self))
      assert.isFalse(yield* node.isSameProcess({ ...self, started: `${self.started}0` }))
    })
  )

  it.effect("the browser half answers unsupported_operation and still hashes the same [RT-004]", () =>
    Effect.gen(function* () {
      const errors = [
        yield* Effect.flip(browser.realPath("/")),
        yield* Effect.flip(browser.self),
        yield* Effect.flip(browser.hostname),
        yield* Effect.flip(browser.processes({ instanceId: "x" }))
      ]
      for (const error of errors) assert.strictEqual(error._tag, "UnsupportedOperation")
      for (const text of ["", "abc", "lone \ud800 surrogate", "€"]) {
        assert.strictEqual(yield* browser.sha256(text), yield* node.sha256(text))
      }
      assert.strictEqual(browser.randomBytes(16).length, 16)
    })
  )
})
