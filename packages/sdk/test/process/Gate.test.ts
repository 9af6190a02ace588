import { spawn, spawnSync } from "node:child_process"
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { awaitGroupGone, isGroupAlive, type SpawnSpec } from "../../src/process/index.ts"
import { gated, isGateable } from "../../src/process/Gate.ts"
import { outputOf, owner, sh } from "./support.ts"

const program = fileURLToPath(new URL("programs/killed.ts", import.meta.url))

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "tackroom-gate-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** Every line of a file, which need not be there. */
const linesOf = (path: string): Array<string> =>
  existsSync(path)
    ? readFileSync(path, "utf8")
        .split("\n")
        .filter((line) => line !== "")
    : []

/** Starts the program that starts children, and kills it `afterMs` after it says that it begins; undefined: it is killed. */
const runKilled = (args: ReadonlyArray<string>, afterMs?: number) =>
  Effect.callback<NodeJS.Signals | null>((resume) => {
    const child = spawn(process.execPath, [program, ...args], { stdio: ["ignore", "pipe", "inherit"] })
    child.once("close", (_, signal) => resume(Effect.succeed(signal)))
    child.stdout.once("data", () => {
      if (afterMs !== undefined) setTimeout(() => child.kill("SIGKILL"), afterMs)
    })
  })

/** What the program left, by the pids that its children wrote down and by its records, is gone in time. */
const assertNothingLeft = (pids: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        for (const pid of pids) if (isGroupAlive(pid)) process.kill(-pid, "SIGKILL")
      })
    )
    const gone = yield* Effect.forEach(pids, (pid) => awaitGroupGone(pid, 5000), { concurrency: "unbounded" })
    assert.deepStrictEqual(
      pids.filter((_, index) => gone[index] !== true),
      []
    )
  })

/** A program that ignores every signal it can and writes its pid down, as its first act. */
const stubborn = (act: string) => ["/bin/sh", "-c", `trap '' TERM HUP; echo $$ >> "$0"; ${act}exec sleep 1000`]

describe.skipIf(process.platform === "win32")("Gate", () => {
  it.live("a child that kills its owner at once is known to guard and records, and ends [HRN-032] [HRN-034]", () =>
    Effect.gen(function* () {
      const state = yield* folder
      const started = join(yield* folder, "started")
      assert.strictEqual(yield* runKilled([state, ...stubborn("kill -9 $PPID; "), started]), "SIGKILL")
      const pids = linesOf(started).map(Number)
      assert.strictEqual(pids.length, 1)
      assert.deepStrictEqual(readdirSync(state).map(Number), pids)
      yield* assertNothingLeft(pids)
    })
  )

  it.live(
    "an owner killed at any moment of a start leaves nothing, and no program without a record [HRN-034] [RUN-090]",
    () =>
      Effect.gen(function* () {
        const ends = yield* Effect.forEach(
          Array.from({ length: 7 }, (_, index) => index * 6),
          (afterMs) =>
            Effect.gen(function* () {
              const state = yield* folder
              const started = join(yield* folder, "started")
              yield* runKilled([state, ...stubborn(""), started], afterMs)
              return { state, started }
            }),
          { concurrency: 2 }
        )
        yield* assertNothingLeft(ends.flatMap(({ state }) => readdirSync(state).map(Number)))
        for (const { state, started } of ends) assert.includeMembers(readdirSync(state), linesOf(started))
      })
  )

  it.live("without the word the program never runs", () =>
    Effect.gen(function* () {
      const mark = join(yield* folder, "mark")
      const { command, args } = gated("touch", [mark])
      const code = yield* Effect.callback<number | null>((resume) => {
        const child = spawn(command, args, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] })
        child.once("close", (code) => resume(Effect.succeed(code)))
        child.stdio[3]?.destroy()
      })
      assert.strictEqual(code, 125)
      assert.isFalse(existsSync(mark))
    })
  )

  const script =
    "const fs=require('node:fs');const fds=fs.readdirSync('/proc/self/fd').map(Number).filter((fd)=>{try{return fs.readlinkSync('/proc/self/fd/'+fd)}catch{return false}});console.log(JSON.stringify({env:process.env,argv:process.argv0,args:process.argv.slice(1),fds}))"

  for (const shell of ["/bin/sh", "/bin/bash"].filter((path) => existsSync(path)))
    it.live(`behind ${shell} a program has its environment, descriptors and arguments and no others [HRN-031]`, () =>
      Effect.gen(function* () {
        const env = { PATH: "/usr/bin:/bin", HOME: "/", EMPTY: "", LINES_: "a\nb", QUOTED: `"$HOME" '\\` }
        const words = ["-e", script, "", "two words", "$HOME", "*"]
        const plain = spawnSync(process.execPath, words, { env, encoding: "utf8" }).stdout
        const behind = gated(process.execPath, words)
        const seen = yield* Effect.callback<string>((resume) => {
          const child = spawn(shell, behind.args, { env, stdio: ["pipe", "pipe", "ignore", "pipe", "pipe"] })
          let output = ""
          child.stdout?.on("data", (chunk: Uint8Array) => (output += String(chunk)))
          child.once("close", () => resume(Effect.succeed(output)))
          const word = child.stdio[3]
          if (word !== null && word !== undefined && "write" in word) word.write("\n")
        })
        assert.deepStrictEqual(JSON.parse(seen), JSON.parse(plain))
      })
    )

  it.live("a child has its own outputs, its input from the first byte, and its exit [HRN-035]", () =>
    Effect.gen(function* () {
      const children = yield* owner()
      const child = yield* children.spawn(sh('read -r x; echo "out $x"; echo "err $x" >&2; exit 127'))
      yield* child.stdin.write("first\n")
      assert.strictEqual(yield* outputOf(child), "out first\n")
      assert.deepStrictEqual(yield* child.exit, { code: 127, signal: null, stderrTail: "err first\n" })
    })
  )

  it.live("what a child said before its end is there for whoever reads it later", () =>
    Effect.gen(function* () {
      const children = yield* owner()
      const child = yield* children.spawn(sh("echo all of it"))
      yield* child.closed
      // Time in which its output could be lost: another child's whole life.
      yield* Effect.flatMap(children.spawn(sh("true")), (other) => other.closed)
      assert.strictEqual(yield* outputOf(child), "all of it\n")
    })
  )

  it.live("a program that cannot be run fails the start as the system says it [HRN-038]", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const at = (name: string, text: string, mode: number): SpawnSpec => {
        writeFileSync(join(path, name), text)
        chmodSync(join(path, name), mode)
        return { role: "mcp", command: join(path, name) }
      }
      const children = yield* owner()
      const codes = yield* Effect.forEach(
        [
          { role: "mcp", command: "no-such-program-anywhere" },
          { role: "mcp", command: path },
          at("plain", "#!/bin/sh\n", 0o644),
          // Found and marked as a program, so only the gate learns that it is none.
          at("orphan", "#!/no/such/interpreter\n", 0o755),
          at("forbidden", `#!${path}/plain\n`, 0o755)
        ],
        (spec) => Effect.map(Effect.flip(children.spawn(spec)), (error) => error.code)
      )
      assert.deepStrictEqual(codes, ["ENOENT", "EACCES", "EACCES", "ENOENT", "EACCES"])
    })
  )

  it("what a shell would change is started without one", () => {
    const query = { command: "/bin/sh", cwd: undefined, environment: { PATH: "/usr/bin:/bin" }, platform: "linux" }
    assert.isTrue(isGateable(query))
    assert.isTrue(isGateable({ ...query, command: "sh" }))
    assert.isTrue(isGateable({ ...query, command: "./sh", cwd: "/bin" }))
    assert.isFalse(isGateable({ ...query, command: "sh", environment: {} }))
    assert.isFalse(isGateable({ ...query, command: "./sh", cwd: "/" }))
    assert.isFalse(isGateable({ ...query, platform: "win32" }))
    for (const name of ["PWD", "SHLVL", "IFS", "BASH_ENV", "TMOUT", "with-dash", "npm_config_//host/:_token"])
      assert.isFalse(isGateable({ ...query, environment: { PATH: "/bin", [name]: "1" } }), name)
  })
})
