/** How servers of a session start, change, end and are started again (run-protocol 10), over real processes. */
import { createHash } from "node:crypto"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import type { McpServer } from "@tackroom/sdk/adapters"
import { isGroupAlive } from "@tackroom/sdk/process"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { at } from "../runs/Kit.ts"
import { open, ready, server, sessionId } from "./Kit.ts"

const place = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "tackroom-mcp-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

const exists = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe("starting", () => {
  it.effect("a server that never answers holds nobody, fails after 30 s and leaves nothing [RUN-250]", () =>
    Effect.gen(function* () {
      const on = yield* open(server({ silent: true }, { name: "Silent One" }))
      yield* on.status("starting")
      assert.deepStrictEqual(on.names(), [])
      yield* TestClock.adjust("29 seconds")
      assert.deepStrictEqual(
        on.events().map((event) => at(event, "status")),
        ["starting"]
      )
      yield* TestClock.adjust("1 seconds")
      assert.deepInclude(yield* on.status("failed"), { serverName: "Silent One", error: "it did not answer in time" })
      yield* on.servers.close(sessionId)
      assert.deepStrictEqual(yield* on.pids, [])
    })
  )

  it.live("a server that ends at once is told with its last word, without secrets; the others come up", () =>
    Effect.gen(function* () {
      const on = yield* open(
        server({ dies: "no a-secret-value here" }, { name: "short" }),
        { name: "none", transport: "stdio", command: "/nowhere/at/all", args: [], env: {} },
        server({ banner: "Welcome to my server!\n\n" }, { name: "chatty" })
      )
      for (let n = 0; n < 3; n++) yield* on.settled
      const failed = on
        .events()
        .flatMap((event) =>
          event.type === "mcp-server-status" && event.status === "failed" ? [`${event.serverName}: ${event.error}`] : []
        )
      assert.sameMembers(failed, [
        "short: it ended (exit code 4): no [redacted:value] here",
        "none: cannot start /nowhere/at/all: no such program"
      ])
      assert.include(on.names(), "chatty.echo")
    })
  )

  it.live(
    "a server inherits a list of variables and what it is given, and is no child of the tool runner [RUN-085] [AGT-156]",
    () =>
      Effect.gen(function* () {
        const on = yield* ready({}, { env: { TOKEN: "given" } })
        const { output } = (yield* on.call("manners.environment")).output ?? {}
        assert.strictEqual(at(output, "TOKEN"), "given")
        assert.strictEqual(at(output, "LC_TESTS"), "for everyone")
        assert.strictEqual(at(output, "PATH"), process.env["PATH"])
        assert.isUndefined(at(output, "MODEL_KEY"))
        assert.strictEqual(at((yield* on.call("manners.pid")).output, "output", "parent"), process.pid)
      })
  )
})

describe("tools of a server", () => {
  it.live(
    "at most 128 are given; those whose names do not fit or come twice are left out and told [RUN-253] [AGT-031]",
    () =>
      Effect.gen(function* () {
        const many = Array.from({ length: 130 }, (_, n) => `tool-${n}`)
        const on = yield* ready({ tools: ["has space", "", "fits/too", "fits/too", "é", ...many] })
        assert.strictEqual(on.names().length, 128)
        assert.strictEqual(on.names()[0], "manners.fits/too")
        const notice = on.events().find((event) => event.type === "harness-notice")
        assert.strictEqual(at(notice, "code"), "mcp_tools_left_out")
        assert.deepStrictEqual(at(notice, "details", "tools"), [
          { name: "has space", why: "its name does not fit" },
          { name: "", why: "its name does not fit" },
          { name: "fits/too", why: "its name is listed twice" },
          { name: "é", why: "its name does not fit" },
          ...["tool-127", "tool-128", "tool-129"].map((name) => ({ name, why: "a server may give 128 tools" }))
        ])
      })
  )

  it.live("one that is not written as a tool is left out, and no other with it [RUN-253]", () =>
    Effect.gen(function* () {
      const inputSchema = { type: "object" }
      const raw = [
        { name: "bare" },
        { name: "word", inputSchema: "x" },
        { inputSchema },
        { name: "fine", inputSchema },
        7
      ]
      const on = yield* ready({ tools: ["echo"], raw })
      assert.deepStrictEqual(on.names(), ["manners.echo", "manners.fine"])
      const notice = on.events().find((event) => event.type === "harness-notice")
      const why = "it has no schema of an object for its arguments"
      assert.deepStrictEqual(at(notice, "details"), {
        server: "manners",
        count: 4,
        tools: [
          { name: "bare", why },
          { name: "word", why },
          { name: "", why: "its name does not fit" },
          { name: "", why: "its name does not fit" }
        ]
      })
    })
  )

  it.live(
    "every one is external, however harmless its server calls it, and has an alias of its own [RUN-254] [AGT-032]",
    () =>
      Effect.gen(function* () {
        const on = yield* open(
          server({ tools: ["a.b", "a/b"] }, { name: "My Server" }),
          server({ tools: ["x"] }, { name: "files" }),
          server({ tools: ["x"] }, { name: "my_server" })
        )
        for (let n = 0; n < 3; n++) yield* on.status("ready")
        const tools = on.servers.tools(sessionId)
        assert.deepStrictEqual(
          tools.map(({ qualifiedName }) => qualifiedName),
          ["my_server.a.b", "my_server.a/b", "m_files.x", "my_server_2.x"]
        )
        assert.deepStrictEqual(new Set(tools.map(({ category }) => String(category))), new Set(["external"]))
        const digest = createHash("sha256").update("my_server.a/b").digest("hex").slice(0, 8)
        assert.deepStrictEqual(
          tools.map(({ alias }) => alias),
          ["my_server__a_b", `my_server__a_b_${digest}`, "m_files__x", "my_server_2__x"]
        )
      })
  )

  it.live(
    "one that disappears is not run, one that changed is bound otherwise, a new one is not given [RUN-256] [AGT-121]",
    () =>
      Effect.gen(function* () {
        const on = yield* ready()
        const before = on.servers.bindingOf(sessionId, "manners.echo")
        const sum = on.servers.bindingOf(sessionId, "manners.sum")
        yield* on.call("manners.change")
        // The list is asked for before this call is answered, and told in order.
        yield* on.call("manners.pid")
        yield* on.call("manners.pid")
        assert.notInclude(on.names(), "manners.sum")
        assert.notInclude(on.names(), "manners.extra")
        assert.isTrue(on.servers.bindingChanged(sessionId, "manners.echo"))
        assert.isFalse(on.servers.bindingChanged(sessionId, "manners.pid"))
        // What was decided on before the change is not done after it.
        for (const [tool, boundTo] of [
          ["manners.sum", sum],
          ["manners.echo", before]
        ] as const) {
          const { dispatched, problem } = yield* on.call(tool, {}, { boundTo })
          assert.deepStrictEqual([problem?.outcome, dispatched], ["not_run", false])
        }
        assert.isDefined((yield* on.call("manners.echo", { words: "new" })).output)
      })
  )
})

describe("calls", () => {
  it.effect(
    "a call lost with its server is unknown; the next starts it again, at most 5 times in 60 s [RUN-257] [RUN-258]",
    () =>
      Effect.gen(function* () {
        const on = yield* ready()
        const first = at((yield* on.call("manners.pid")).output, "output", "pid")
        for (let n = 0; n < 6; n++) {
          const { dispatched, problem } = yield* on.call("manners.die")
          assert.deepStrictEqual([problem?.outcome, dispatched], ["unknown", true])
          assert.include(problem?.message, "it ended (exit code 3): it was too much for me")
          assert.include((yield* on.status("failed")).error, "exit code 3")
        }
        const { dispatched, problem } = yield* on.call("manners.pid")
        assert.deepStrictEqual([problem?.outcome, dispatched], ["not_run", false])
        assert.deepStrictEqual(yield* on.pids, [])
        yield* TestClock.adjust("60 seconds")
        const last = at((yield* on.call("manners.pid")).output, "output", "pid")
        assert.isNumber(last)
        assert.notStrictEqual(last, first)
      })
  )

  it.live(
    "a server that ends before it was given a call did not do it: the call failed, and is not unknown [RUN-258]",
    () =>
      Effect.gen(function* () {
        const notes = join(yield* place, "notes")
        const on = yield* ready({ notes })
        const [pid = 0] = yield* on.pids
        const kill = Effect.andThen(
          Effect.sync(() => process.kill(pid, "SIGKILL")),
          on.status("failed")
        )
        const { dispatched, problem } = yield* on.call("manners.echo", {}, { atDispatch: kill })
        assert.deepStrictEqual([problem?.outcome, dispatched], ["failed", true])
        assert.isFalse(existsSync(notes))
      })
  )

  it.live("a cancelled call is told to the server and not waited for [RUN-258]", () =>
    Effect.gen(function* () {
      const notes = join(yield* place, "notes")
      const on = yield* ready({ notes })
      const hanging = yield* Effect.forkChild(on.call("manners.hang"), { startImmediately: true })
      yield* on.call("manners.echo")
      yield* Fiber.interrupt(hanging)
      yield* on.call("manners.echo")
      assert.deepStrictEqual(readFileSync(notes, "utf8").trim().split("\n"), [
        "call hang",
        "call echo",
        "cancelled 2",
        "call echo"
      ])
    })
  )

  it.live("a long line, one byte after another and a flood are read; a line without bounds ends the server", () =>
    Effect.gen(function* () {
      const on = yield* ready()
      assert.strictEqual(String((yield* on.call("manners.large")).output?.output).length, 10 * 1024 * 1024)
      assert.strictEqual((yield* on.call("manners.drip")).output?.output, "Größe ✓")
      assert.strictEqual((yield* on.call("manners.flood")).output?.output, "flooded")
      const { problem } = yield* on.call("manners.huge")
      assert.strictEqual(problem?.outcome, "unknown")
      assert.include(problem?.message, "it wrote a line of more than 16777216 bytes")
      assert.isDefined((yield* on.call("manners.echo")).output)
    })
  )
})

describe("stopping", () => {
  it.live("servers that are replaced again and again leave nothing behind [RUN-259]", () =>
    Effect.gen(function* () {
      const on = yield* ready()
      const all = new Set(yield* on.pids)
      for (let n = 0; n < 12; n++) {
        yield* on.servers.open({ sessionId, directory: process.cwd(), tell: on.tell }, [server()])
        yield* on.status("ready")
        for (const pid of yield* on.pids) all.add(pid)
      }
      assert.strictEqual(all.size, 13)
      yield* on.servers.close(sessionId)
      assert.deepStrictEqual(
        [...all].filter((pid) => isGroupAlive(pid)),
        []
      )
    })
  )

  it.live("a program that is no server is given up, and its broken pipe hurts nobody", () =>
    Effect.gen(function* () {
      const program = (name: string, command: string, ...args: ReadonlyArray<string>): McpServer => ({
        name,
        transport: "stdio",
        command,
        args,
        env: {}
      })
      const on = yield* open(
        program("false", "/bin/false"),
        program("cat", "/bin/cat"),
        program("yes", "/usr/bin/yes"),
        program("closed", "/bin/sh", "-c", "exec 1>&-; cat > /dev/null")
      )
      for (let n = 0; n < 4; n++) yield* on.settled
      const errors = on
        .events()
        .flatMap((event) =>
          event.type === "mcp-server-status" && event.status === "failed" ? [[event.serverName, event.error]] : []
        )
      assert.deepStrictEqual(Object.fromEntries(errors), {
        false: "it ended (exit code 1)",
        // It hears its own question, which it does not answer.
        cat: "Method not found",
        yes: "what it writes to stdout is no MCP",
        closed: "it closed its output"
      })
    })
  )

  it.live(
    "a server is asked by the end of its input, then by SIGTERM, then killed, and its whole group with it [RUN-259]",
    () =>
      Effect.gen(function* () {
        const folder = yield* place
        const notes = join(folder, "notes")
        const grandchild = join(folder, "grandchild")
        const on = yield* ready({ stubborn: true, notes, grandchild })
        const [pid = 0] = yield* on.pids
        assert.isTrue(isGroupAlive(pid))
        yield* on.servers.close(sessionId)
        assert.isFalse(isGroupAlive(pid))
        assert.isFalse(exists(Number(readFileSync(grandchild, "utf8").split(" ")[1])))
        assert.deepStrictEqual(readFileSync(notes, "utf8").trim().split("\n"), ["end of input", "SIGTERM"])
        assert.deepStrictEqual(on.names(), [])
      })
  )

  it.live("servers of another opening take the place of those before, which end", () =>
    Effect.gen(function* () {
      const on = yield* ready()
      const [pid = 0] = yield* on.pids
      yield* on.servers.open({ sessionId, directory: process.cwd(), tell: on.tell }, [server({}, { name: "other" })])
      assert.deepStrictEqual(on.names(), [])
      yield* on.status("ready")
      assert.include(on.names(), "other.echo")
      assert.notInclude(on.names(), "manners.echo")
      yield* on.servers.close(sessionId)
      assert.isFalse(isGroupAlive(pid))
    })
  )
})
