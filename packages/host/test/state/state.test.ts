/** Configuration and state directory (run-protocol 6). */
import { spawn, spawnSync } from "node:child_process"
import { chmodSync, mkdirSync, readFileSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Configuration from "../../src/state/Configuration.ts"
import * as StateDirectory from "../../src/state/StateDirectory.ts"
import { folder, openHost } from "../runs/Kit.ts"

const program = fileURLToPath(new URL("../../src/cli.ts", import.meta.url))
const load = (json: object) => Configuration.load(JSON.stringify(json))
const mode = (file: string) => statSync(file).mode & 0o777

describe("configuration", () => {
  it.live("a bad field fails with its path, and never with its value [RUN-080] [RUN-061]", () =>
    Effect.gen(function* () {
      const bad: ReadonlyArray<readonly [object, string]> = [
        [{}, "state_dir"],
        [{ state_dir: "relative" }, "state_dir"],
        [{ state_dir: 7 }, "state_dir"],
        [{ state_dir: "/x", agents: [{ id: "a", instructions: "", tools: [7] }] }, "agents[0].tools[0]"],
        [{ state_dir: "/x", providers: [{ name: "p", api: "telepathy" }] }, "providers[0].api"],
        [{ state_dir: "/x", providers: [{ name: "p", api: "responses", api_key: "s3cret" }] }, "providers[0].api_key"],
        [{ state_dir: "/x", sandbox: "moat" }, "sandbox"],
        [{ state_dir: "/x", limits: { active_turns: 1_000 } }, "limits.active_turns"]
      ]
      for (const [config, path] of bad) {
        const error = yield* Effect.flip(load(config))
        assert.deepStrictEqual([error.reason, error.path], ["bad_config", path], JSON.stringify(config))
        assert.notInclude(error.message + error.detail, "s3cret")
      }
      assert.strictEqual((yield* Effect.flip(load({ state_dir: "/x", coworkers: [1] }))).reason, "coworkers")
      assert.strictEqual((yield* Effect.flip(Configuration.load("{not json"))).reason, "bad_config")
    })
  )

  it.live("unknown fields are warned of, not refused [RUN-080]", () =>
    Effect.gen(function* () {
      const { config, warnings } = yield* load({ state_dir: "/x", colour: "red", web: { search_engine: "y" } })
      assert.strictEqual(config.stateDir, "/x")
      assert.lengthOf(warnings, 2)
      assert.match(warnings.join("\n"), /colour/)
      assert.match(warnings.join("\n"), /search_engine/)
    })
  )

  it.live("a variable that is named has to be set [RUN-080]", () =>
    Effect.gen(function* () {
      const { stateDir } = yield* folder
      const telemetry = {
        endpoint: "http://127.0.0.1:9/",
        headers: [{ name: "x-key", valueEnv: "TACKROOM_TEST_NOT_SET" }]
      }
      const error = yield* Effect.flip(openHost({ stateDir, telemetry }))
      assert.deepStrictEqual([error.reason, error.path], ["bad_config", "telemetry.headers[0].value_env"])
    })
  )

  it.live("a provider that cannot be is a bad configuration with its path [RUN-080] [RUN-221]", () =>
    Effect.gen(function* () {
      const { stateDir } = yield* folder
      const first = { name: "p", api: "chat-completions", baseUrl: "http://127.0.0.1:9/v1" } as const
      const open = (more: object) => openHost({ stateDir, providers: [first, { ...first, ...more }] })
      const changed = yield* Effect.flip(open({ baseUrl: "http://127.0.0.1:9/v2" }))
      assert.deepStrictEqual([changed.reason, changed.path], ["bad_config", "providers[1]"])
      const { baseUrl: _baseUrl, ...without } = first
      const missing = yield* Effect.flip(openHost({ stateDir, providers: [first, { ...without, name: "q" }] }))
      assert.deepStrictEqual([missing.reason, missing.path], ["bad_config", "providers[1].base_url"])
    })
  )

  it.live("a file is read by its absolute path, if it is a regular one [RUN-080]", () =>
    Effect.gen(function* () {
      const { root } = yield* folder
      const file = join(root, "config.json")
      writeFileSync(file, JSON.stringify({ state_dir: "/x" }))
      assert.strictEqual((yield* Configuration.load(`@${file}`)).config.stateDir, "/x")
      writeFileSync(join(root, "large.json"), " ".repeat(4 * 1_024 * 1_024 + 1))
      for (const bad of ["@config.json", `@${root}`, `@${join(root, "missing")}`, `@${join(root, "large.json")}`]) {
        assert.strictEqual((yield* Effect.flip(Configuration.load(bad))).reason, "bad_config", bad)
      }
    })
  )
})

describe("state directory", () => {
  it.live("it and what a host keeps in it are private, looser modes are tightened [RUN-087]", () =>
    Effect.gen(function* () {
      const { stateDir } = yield* folder
      const before = yield* Effect.orDie(openHost({ stateDir }))
      yield* before.close
      const own = ["host.lock", "host.json", "host.key", "sdk-agents.sqlite", "agent-runtime.db", "tmp"]
      writeFileSync(join(stateDir, "note"), "x")
      for (const name of [...own, "note"]) chmodSync(join(stateDir, name), 0o755)
      chmodSync(stateDir, 0o755)
      const on = yield* Effect.orDie(openHost({ stateDir }))
      assert.strictEqual(mode(stateDir), 0o700)
      for (const name of own) assert.strictEqual(mode(join(stateDir, name)), name === "tmp" ? 0o700 : 0o600, name)
      assert.strictEqual(mode(join(stateDir, "note")), 0o755, "not the host's")
      assert.lengthOf(readFileSync(join(stateDir, "host.key")), 32)
      yield* on.close
    })
  )

  it.live("a directory with other files is used when it is private, and else left as it is [RUN-081, RUN-087]", () =>
    Effect.gen(function* () {
      const { stateDir } = yield* folder
      mkdirSync(join(stateDir, "old"), { recursive: true })
      chmodSync(stateDir, 0o755)
      chmodSync(join(stateDir, "old"), 0o777)
      const error = yield* Effect.flip(openHost({ stateDir }))
      assert.strictEqual(error.reason, "state_dir")
      assert.deepStrictEqual(readdirSync(stateDir), ["old"])
      assert.deepStrictEqual([mode(stateDir), mode(join(stateDir, "old"))], [0o755, 0o777])
      chmodSync(stateDir, 0o700)
      const on = yield* Effect.orDie(openHost({ stateDir }))
      assert.strictEqual(mode(join(stateDir, "old")), 0o777)
      yield* on.close
    })
  )

  it.live("a directory whose tmp is not a host's is refused and left as it is [RUN-081] [RUN-087]", () =>
    Effect.gen(function* () {
      const { stateDir } = yield* folder
      mkdirSync(join(stateDir, "tmp"), { recursive: true })
      writeFileSync(join(stateDir, "tmp", "mine"), "x")
      chmodSync(stateDir, 0o755)
      chmodSync(join(stateDir, "tmp"), 0o755)
      const error = yield* Effect.flip(openHost({ stateDir }))
      assert.strictEqual(error.reason, "state_dir")
      assert.strictEqual(readFileSync(join(stateDir, "tmp", "mine"), "utf8"), "x")
      assert.deepStrictEqual(readdirSync(stateDir), ["tmp"])
      assert.deepStrictEqual([mode(stateDir), mode(join(stateDir, "tmp"))], [0o755, 0o755])
    })
  )

  // Only the check, which reads: opening it would be the damage that it prevents.
  it("the root of a file system is no state directory [RUN-081]", () => {
    assert.match(StateDirectory.objection("/") ?? "", /root of a file system/)
  })

  // In a process of its own, which may be killed where it does not come back.
  it("a directory that the system does not make is refused at once [RUN-081]", () => {
    const directory = "/proc/tackroom-host"
    const run = spawnSync(process.execPath, [program, "harness-stdio", JSON.stringify({ state_dir: directory })], {
      encoding: "utf8",
      input: '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n',
      timeout: 20_000,
      killSignal: "SIGKILL"
    })
    assert.deepStrictEqual([run.signal, run.status === 0], [null, false])
    assert.include(run.stdout + run.stderr, directory)
  })

  it.live("one host at a time; another is refused with the holder's pid and leaves nothing behind [RUN-088]", () =>
    Effect.gen(function* () {
      const { root, stateDir } = yield* folder
      const on = yield* Effect.orDie(openHost({ stateDir }))
      const identity = readFileSync(join(stateDir, "host.json"), "utf8")
      symlinkSync(stateDir, join(root, "other-name"))
      for (const directory of [stateDir, join(root, "other-name")]) {
        const error = yield* Effect.flip(openHost({ stateDir: directory }))
        assert.strictEqual(error.reason, "state_dir_locked")
        assert.include(error.detail, String(process.pid))
      }
      assert.strictEqual(readFileSync(join(stateDir, "host.json"), "utf8"), identity)
      // A command-line face shares it without the lock (D-8).
      const beside = yield* Effect.orDie(openHost({ stateDir }, { lock: false }))
      assert.deepStrictEqual(yield* beside.wire("agent/list"), { agents: [] })
      yield* beside.close
      yield* on.close
      const next = yield* Effect.orDie(openHost({ stateDir }))
      yield* next.close
    })
  )

  it.live("the lock holds between processes and dies with its process [RUN-088]", () =>
    Effect.gen(function* () {
      const { stateDir } = yield* folder
      const child = spawn(process.execPath, [program, "harness-stdio", JSON.stringify({ state_dir: stateDir })], {
        stdio: ["pipe", "pipe", "ignore"]
      })
      yield* Effect.addFinalizer(() => Effect.sync(() => child.kill("SIGKILL")))
      yield* Effect.callback<void>((resume) => {
        child.stdout.once("data", () => resume(Effect.void))
        child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n')
      })
      const error = yield* Effect.flip(openHost({ stateDir }))
      assert.deepStrictEqual(error.reason, "state_dir_locked")
      assert.include(error.detail, String(child.pid))
      yield* Effect.callback<void>((resume) => {
        child.once("exit", () => resume(Effect.void))
        child.kill("SIGKILL")
      })
      const next = yield* Effect.orDie(openHost({ stateDir }))
      yield* next.close
    })
  )

  it.live("a host that could not start leaves nothing locked [RUN-088] [RUN-081]", () =>
    Effect.gen(function* () {
      const { stateDir } = yield* folder
      yield* Effect.flip(openHost({ stateDir, sandbox: "process" }))
      yield* Effect.flip(openHost({ stateDir, runner: "/bin/false" }))
      const next = yield* Effect.orDie(openHost({ stateDir }))
      yield* next.close
    })
  )
})
