import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { cli, repository, runProgram, script, tackroom, temporary } from "./Program.ts"

const packageVersion = (
  JSON.parse(fs.readFileSync(path.join(repository, "packages/host/package.json"), "utf8")) as { version: string }
).version

describe("the program tackroom", () => {
  it.live("tells its version, which is the package's", () =>
    Effect.gen(function* () {
      const ended = yield* tackroom(["--version"])
      assert.deepStrictEqual(ended, { code: 0, signal: null, stdout: `${packageVersion}\n`, stderr: "" })
    })
  )

  it.live("help goes to stdout with exit code 0, a usage error to stderr with 2 and nothing on stdout", () =>
    Effect.gen(function* () {
      const help = yield* tackroom(["help", "run"])
      assert.strictEqual(help.code, 0)
      assert.include(help.stdout, "tackroom run [flags] PROMPT")
      assert.strictEqual(help.stderr, "")
      for (const args of [[], ["--nope"], ["harness-stdio"], ["tool-runner", "x"]]) {
        const wrong = yield* tackroom(args)
        assert.deepStrictEqual([wrong.code, wrong.stdout], [2, ""], args.join(" "))
        assert.match(wrong.stderr, /^tackroom: .+\nTry: tackroom --help\n$/)
      }
    })
  )

  it.live("a mistyped name is answered with the one that was meant", () =>
    Effect.gen(function* () {
      const ended = yield* tackroom(["rnu", "x"])
      assert.strictEqual(ended.code, 2)
      assert.include(ended.stderr, 'Did you mean "run"?')
      const companion = yield* tackroom(["conformance"], { env: { PATH: "/nonexistent" } })
      assert.strictEqual(companion.code, 2)
      assert.include(companion.stderr, "is not installed here")
    })
  )

  it.live("a reader of the help who leaves early is no failure", () =>
    Effect.gen(function* () {
      const ended = yield* runProgram("/bin/sh", ["-c", `"${process.execPath}" "${cli}" --help | head -c 1`])
      assert.deepStrictEqual([ended.code, ended.stderr], [0, ""])
    })
  )

  it.live("tool-runner ends at the end of its input and says nothing else", () =>
    Effect.gen(function* () {
      const ended = yield* tackroom(["tool-runner"])
      assert.strictEqual(ended.code, 0)
      assert.strictEqual(ended.stderr, "")
      for (const line of ended.stdout.split("\n").filter((each) => each !== "")) JSON.parse(line)
    })
  )

  it.live("harness-stdio answers initialize and ends at the end of its input", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const request = { jsonrpc: "2.0", id: 1, method: "initialize", params: { protocol_version: 1 } }
      const ended = yield* tackroom(["harness-stdio", JSON.stringify({ state_dir: path.join(directory, "state") })], {
        stdin: `${JSON.stringify(request)}\n`
      })
      assert.strictEqual(ended.code, 0)
      const answer = JSON.parse(ended.stdout) as { result: { host: { version: string } } }
      assert.strictEqual(answer.result.host.version, packageVersion)
    })
  )
})

describe("another program of the family [D-18]", () => {
  it.live("is found on PATH and gets all arguments, input, output and the exit code", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      script(path.join(directory, "tackroom-hello"), 'echo "$#:$1:$2:$HELLO:$(cat)"; echo err >&2; exit 7')
      const ended = yield* tackroom(["hello", "a b", "--help"], {
        env: { PATH: `${directory}:${process.env["PATH"] ?? ""}`, HELLO: "there" },
        stdin: "input"
      })
      assert.deepStrictEqual(ended, { code: 7, signal: null, stdout: "2:a b:--help:there:input\n", stderr: "err\n" })
    })
  )

  it.live("is looked for beside the program first, also where a link to it lies", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      script(path.join(directory, "bin/tackroom-hello"), "echo beside")
      script(path.join(directory, "path/tackroom-hello"), "echo path")
      fs.symlinkSync(cli, path.join(directory, "bin/tackroom.ts"))
      const env = { PATH: `${directory}/path:${process.env["PATH"] ?? ""}` }
      const linked = yield* runProgram(process.execPath, [path.join(directory, "bin/tackroom.ts"), "hello"], { env })
      assert.strictEqual(linked.stdout, "beside\n")
      const plain = yield* tackroom(["hello"], { env })
      assert.strictEqual(plain.stdout, "path\n")
    })
  )

  it.live("a relative entry of PATH and a file that cannot be executed are passed over", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      script(path.join(directory, "tackroom-hello"), "echo wrong")
      fs.mkdirSync(path.join(directory, "other"))
      fs.writeFileSync(path.join(directory, "other/tackroom-hello"), "#!/bin/sh\necho wrong\n", { mode: 0o644 })
      const ended = yield* tackroom(["hello"], { cwd: directory, env: { PATH: `.:${directory}/other` } })
      assert.deepStrictEqual([ended.code, ended.stdout], [2, ""])
    })
  )

  it.live("ends as the program ended when a signal killed it", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      script(path.join(directory, "tackroom-die"), "kill -TERM $$")
      const ended = yield* tackroom(["die"], { env: { PATH: `${directory}:${process.env["PATH"] ?? ""}` } })
      assert.deepStrictEqual([ended.code, ended.signal], [null, "SIGTERM"])
    })
  )

  it.live("a signal that reaches tackroom alone is passed on", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const program =
        'process.on("SIGTERM", () => { console.log("got it"); process.exit(5) }); console.log("ready"); setInterval(() => {}, 1e6)'
      script(path.join(directory, "tackroom-wait"), `exec "${process.execPath}" -e '${program}'`)
      const ended = yield* tackroom(["wait"], {
        env: { PATH: `${directory}:${process.env["PATH"] ?? ""}` },
        onStdout: (text, child) => {
          if (text === "ready\n") child.kill("SIGTERM")
        }
      })
      assert.deepStrictEqual([ended.code, ended.stdout], [5, "ready\ngot it\n"])
    })
  )
})

describe("bin/tackroom", () => {
  const checkout = Effect.gen(function* () {
    const directory = yield* temporary
    const root = path.join(directory, "root with space")
    fs.mkdirSync(path.join(root, "bin"), { recursive: true })
    fs.copyFileSync(path.join(repository, "bin/tackroom"), path.join(root, "bin/tackroom"))
    fs.chmodSync(path.join(root, "bin/tackroom"), 0o755)
    return { directory, root }
  })
  const node = (root: string) => script(path.join(root, "node_modules/node/bin/node"), 'echo "$@"; cat')
  const program = "packages/host/dist/bin/tackroom.cjs"

  it.live("runs the built program from any directory and through links, with all arguments", () =>
    Effect.gen(function* () {
      const { directory, root } = yield* checkout
      node(root)
      fs.mkdirSync(path.dirname(path.join(root, program)), { recursive: true })
      fs.writeFileSync(path.join(root, program), "")
      fs.symlinkSync("root with space/bin/tackroom", path.join(directory, "one"))
      fs.mkdirSync(path.join(directory, "elsewhere"))
      fs.symlinkSync("../one", path.join(directory, "elsewhere/two"))
      for (const start of ["one", "elsewhere/two", "root with space/bin/tackroom"]) {
        const ended = yield* runProgram(path.join(directory, start), ["run", "a b"], { cwd: "/", stdin: "in" })
        assert.deepStrictEqual(ended, { code: 0, signal: null, stdout: `${root}/${program} run a b\nin`, stderr: "" })
      }
    })
  )

  it.live("builds when nothing is built, keeps stdin for the program and writes nothing of its own to stdout", () =>
    Effect.gen(function* () {
      const { directory, root } = yield* checkout
      script(
        path.join(directory, "path/npx"),
        `echo "building $*"; cat; mkdir -p node_modules/node/bin "$(dirname ${program})"; : > ${program}
printf '#!/bin/sh\\necho ran; cat\\n' > node_modules/node/bin/node; chmod +x node_modules/node/bin/node`
      )
      const ended = yield* runProgram(path.join(root, "bin/tackroom"), [], {
        cwd: "/",
        env: { PATH: `${directory}/path:${process.env["PATH"] ?? ""}` },
        stdin: "for the program"
      })
      assert.deepStrictEqual([ended.code, ended.stdout], [0, "ran\nfor the program"])
      assert.include(ended.stderr, "building -y pnpm@12 run --silent build")
    })
  )

  it.live("a build that fails is its failure", () =>
    Effect.gen(function* () {
      const { directory, root } = yield* checkout
      script(path.join(directory, "path/npx"), "echo broken >&2; exit 9")
      const ended = yield* runProgram(path.join(root, "bin/tackroom"), ["run"], {
        env: { PATH: `${directory}/path:${process.env["PATH"] ?? ""}` }
      })
      assert.deepStrictEqual([ended.code, ended.stdout, ended.stderr], [9, "", "broken\n"])
    })
  )
})
