/** Directories, children and files for the tests of the SQLite store. */
import { Effect, type Scope } from "effect"
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import type { RuntimeStore } from "../../src/store/RuntimeStore.ts"
import { createSqliteRuntimeStore, type SqliteStoreOptions } from "../../src/store/sqlite/index.ts"

export const fileIn = (root: string): string => join(root, "agent-runtime.db")

export const temporaryRoot: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "tackroom-sqlite-"))),
  (root) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
)

export const storeAt = (
  root: string,
  options: Partial<SqliteStoreOptions> = {}
): Effect.Effect<RuntimeStore, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => createSqliteRuntimeStore({ root, ...options })),
    (store) => store.close
  )

/** A child that runs a program of `children/`, its lines, and its end. */
export interface Child {
  readonly process: ChildProcessWithoutNullStreams
  /** The next line the child wrote; undefined when it has ended. */
  readonly line: Effect.Effect<string | undefined>
  readonly send: (line: string) => void
  readonly exit: Effect.Effect<number | null>
  readonly stderr: () => string
}

export const startChild = (name: string, ...args: ReadonlyArray<string>): Effect.Effect<Child, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync((): Child => {
      const script = fileURLToPath(new URL(`children/${name}.ts`, import.meta.url))
      const child = spawn(process.execPath, [script, ...args], { stdio: ["pipe", "pipe", "pipe"] })
      let stderr = ""
      child.stderr.on("data", (chunk: Buffer) => {
        stderr += chunk.toString()
      })
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
      const ended = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code)))
      return {
        process: child,
        line: Effect.promise(async () => (await lines.next()).value as string | undefined),
        send: (line) => child.stdin.write(`${line}\n`),
        exit: Effect.promise(() => ended),
        stderr: () => stderr
      }
    }),
    (child) =>
      Effect.andThen(
        Effect.sync(() => child.process.kill("SIGKILL")),
        child.exit
      )
  )

/** Where each frame of a WAL begins, and whether it ends a commit. */
export const walFrames = (path: string): ReadonlyArray<{ readonly offset: number; readonly isCommit: boolean }> => {
  const wal = readFileSync(path)
  if (wal.length < 32) return []
  const size = 24 + wal.readUInt32BE(8)
  const salt = wal.subarray(16, 24)
  const frames = []
  for (let offset = 32; offset + size <= wal.length; offset += size) {
    if (!wal.subarray(offset + 8, offset + 16).equals(salt)) break
    frames.push({ offset, isCommit: wal.readUInt32BE(offset + 4) > 0 })
  }
  return frames
}
