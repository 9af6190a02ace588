import { assert, describe, it } from "@effect/vitest"
import {
  capabilityKeys,
  encodeResult,
  type InitializeResult,
  limits,
  NotFound,
  StartupFailed
} from "@tackroom/protocol/run"
import { Effect, Stream } from "effect"
import {
  attempt,
  connectHost,
  type EmbeddedHost,
  HostExited,
  HostService,
  launchHost,
  makeInProcessTransport,
  PartialFailure,
  runEvents
} from "../../src/client/index.ts"
import { clientCases } from "./clientSuite.ts"
import { launchToy, temporary, toyHostMain } from "./ToyProgram.ts"

const within = async (work: (stateDir: string) => Promise<void>): Promise<void> => {
  const directory = temporary()
  try {
    await work(directory.path)
  } finally {
    directory.remove()
  }
}

const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error
  )

describe("the client over a child process", () => {
  for (const one of clientCases) {
    it(one.name, () =>
      within((stateDir) => one.run({ workspace: stateDir, connect: (options) => launchToy(stateDir, options) }))
    )
  }
})

describe("launching a host", () => {
  it("passes allowed variables and given ones only [RUN-083]", () =>
    within(async (stateDir) => {
      process.env["TACKROOM_TEST_CANARY"] = "must not pass"
      const host = await launchHost({
        command: process.execPath,
        args: ["-e", "process.stderr.write(JSON.stringify(process.env)); process.exit(7)"],
        config: { stateDir },
        env: { GIVEN: "yes" }
      }).then(
        () => assert.fail("it started"),
        (error: unknown) => error
      )
      delete process.env["TACKROOM_TEST_CANARY"]
      assert.instanceOf(host, HostExited)
      const exited = host as HostExited
      assert.strictEqual(exited.exitCode, 7)
      assert.include(exited.stderrTail, "GIVEN")
      assert.notInclude(exited.stderrTail, "CANARY")
    }))

  it("says why a host could not start [RUN-081] [RT-352]", () =>
    within(async (stateDir) => {
      const missing = await failureOf(launchHost({ command: "/no/such/program", config: { stateDir } }))
      assert.strictEqual((missing as { _tag: string })._tag, "LaunchFailed")
      const refused = await failureOf(launchToy(stateDir, { env: { TOY_FAIL: "state_dir_locked" } }))
      assert.instanceOf(refused, StartupFailed)
      assert.strictEqual((refused as StartupFailed).reason, "state_dir_locked")
    }))

  it("refuses a host without a capability that is needed", () =>
    within(async (stateDir) => {
      const refused = await failureOf(launchToy(stateDir, { requires: ["teams"] }))
      assert.strictEqual((refused as { _tag: string })._tag, "Unsupported")
    }))

  it("sends a large configuration through a file", () =>
    within(async (stateDir) => {
      const agents = Array.from({ length: 4 }, (_, index) => ({
        id: `a${index}`,
        instructions: "x".repeat(20_000),
        planning: true
      }))
      // The toy host takes only JSON on its command line, so it cannot start; that it was given a path is what counts.
      const failed = await failureOf(
        launchHost({ command: process.execPath, args: [toyHostMain], config: { stateDir, agents } })
      )
      assert.instanceOf(failed, HostExited)
      assert.include((failed as HostExited).stderrTail, "@/")
    }))
})

describe("members that cannot be reached", () => {
  it("make cancel and close throw PartialFailure with the host's map [RUN-574] [RT-355]", () =>
    within(async (stateDir) => {
      const host = await launchToy(stateDir)
      const session = await host.session({ agent: "stubborn", workspace: stateDir })
      const run = session.run("no")
      await run.started
      for (const attempt of [() => run.cancel(), () => session.cancel(), () => session.close()]) {
        const failure = await failureOf(attempt())
        assert.instanceOf(failure, PartialFailure)
        assert.strictEqual((failure as PartialFailure).errors[session.id]?.kind, "busy")
      }
      await host.close()
    }))
})

describe("the client for Effects", () => {
  it.live("a host lives as long as its scope, and a run is a stream [RT-357]", () =>
    Effect.gen(function* () {
      const directory = yield* Effect.acquireRelease(Effect.sync(temporary), (it) => Effect.sync(it.remove))
      const stateDir = directory.path
      const layer = HostService.layer({ command: process.execPath, args: [toyHostMain], config: { stateDir } })
      const pid = yield* Effect.gen(function* () {
        const host = yield* HostService
        const session = yield* attempt(() => host.session({ agent: "many", workspace: stateDir }))
        const items = yield* Stream.runCollect(runEvents(session.run("20")))
        assert.isAtLeast(items.length, 20)
        const failure = yield* Effect.flip(attempt(() => host.attach("ses_none")))
        assert.instanceOf(failure.cause, NotFound)
        return host.pid ?? 0
      }).pipe(Effect.provide(layer))
      assert.throws(() => process.kill(pid, 0))
    }).pipe(Effect.scoped)
  )
})

describe("the client when its host dies", () => {
  it("open requests reject within 100 ms, with how it ended [RUN-573] [RT-352]", () =>
    within(async (stateDir) => {
      const host = await launchToy(stateDir, { restart: false })
      const register = failureOf(
        host.request("mcp/register", { name: "slow9000", transport: { type: "stdio", command: "x" } })
      )
      const from = performance.now()
      process.kill(host.pid!, "SIGKILL")
      const error = await register
      assert.instanceOf(error, HostExited)
      assert.strictEqual((error as HostExited).signal, "SIGKILL")
      assert.isBelow(performance.now() - from, 400)
      assert.strictEqual(host.status, "failed")
      assert.instanceOf(await failureOf(host.request("host/info", {})), HostExited)
      await host.close()
    }))

  it("the host is started again and every event of a run is given once [RT-351] [RT-353] [RUN-573]", () =>
    within(async (stateDir) => {
      const statuses: Array<string> = []
      const host = await launchToy(stateDir, { onStatus: (status) => statuses.push(status) })
      const session = await host.session({ agent: "many", workspace: stateDir })
      const run = session.run("400")
      const ended = run.result
      const cursors: Array<number> = []
      let killed = false
      for await (const item of run) {
        cursors.push(item.cursor)
        if (!killed && cursors.length === 50) {
          killed = true
          process.kill(host.pid!, "SIGKILL")
        }
      }
      assert.deepStrictEqual(
        cursors,
        cursors.map((_, index) => (cursors[0] ?? 0) + index)
      )
      assert.isAtLeast(cursors.length, 400)
      assert.strictEqual((await ended).status, "completed")
      assert.deepStrictEqual(statuses, ["starting", "ready", "restarting", "ready"])
      await host.close()
    }))

  it("a start whose answer was lost is repeated with its id and starts nothing twice [RUN-571] [RT-352]", () =>
    within(async (stateDir) => {
      const host = await launchToy(stateDir)
      const session = await host.session({ agent: "talker", workspace: stateDir })
      const run = session.run("[die before the answer]")
      assert.strictEqual((await run.started)?.duplicate, true)
      assert.strictEqual((await run.result).status, "completed")
      const { events } = await host.request("event/read", { sessionId: session.id })
      assert.strictEqual(events.filter((event) => event.type === "user-message").length, 1)
      await host.close()
    }))

  it("an interaction that was pending is answered by its handler after the restart", () =>
    within(async (stateDir) => {
      const asked: Array<string> = []
      const host: Awaited<ReturnType<typeof launchToy>> = await launchToy(stateDir, {
        onApproval: async (approval) => {
          asked.push(approval.id)
          if (asked.length > 1) return "once"
          process.kill(host.pid!, "SIGKILL")
          return new Promise(() => undefined)
        }
      })
      const session = await host.session({ agent: "asker", workspace: stateDir })
      const run = session.run("ls")
      assert.strictEqual((await run.result).status, "completed")
      assert.strictEqual(asked[0], asked[1])
      await host.close()
    }))

  it("keys in memory are given again, read anew [RUN-573]", () =>
    within(async (stateDir) => {
      let reads = 0
      const host = await launchToy(stateDir)
      await host.provider({ name: "p", api: "responses", key: () => `key-${(reads += 1)}` })
      const ready = new Promise<void>((resolve) => {
        host.onStatus((status) => status === "ready" && resolve())
      })
      process.kill(host.pid!, "SIGKILL")
      await ready
      assert.strictEqual(reads, 2)
      await host.close()
    }))

  it("five tries in a minute, then it has failed and everything waiting rejects [RT-351]", async () => {
    let starts = 0
    let end = (): unknown => undefined
    const host = await connectHost(() => {
      starts += 1
      if (starts > 1) return Promise.reject(new Error("no more hosts"))
      const transport = makeInProcessTransport(dying)
      end = transport.close
      return Promise.resolve(transport)
    })
    const waiting = failureOf(host.request("mcp/list", {}))
    end()
    assert.instanceOf(await waiting, HostExited)
    assert.strictEqual(((await failureOf(host.request("host/info", {}))) as Error).message, "no more hosts")
    assert.strictEqual(starts, 6)
    assert.strictEqual(host.status, "failed")
    await host.close()
  })
})

const opened: InitializeResult = {
  protocolVersion: 1,
  host: { name: "dying", version: "0.0.0" },
  capabilities: {
    ...(Object.fromEntries(capabilityKeys.map((key) => [key, false])) as InitializeResult["capabilities"]),
    agentRuns: true
  },
  limits,
  journalId: "jrn_1",
  eventContract: 1,
  sandbox: { selected: "none", available: ["none"] },
  warnings: []
}

/** A host in this process that answers initialize and nothing else. */
const dying: EmbeddedHost = {
  call: (method) =>
    method === "initialize" ? Promise.resolve(encodeResult(method, opened)) : new Promise(() => undefined),
  notify: () => undefined,
  onNotification: () => () => undefined,
  close: () => Promise.resolve()
}
