/** Requests to a client over the official SDK, in this process: what it answers, and what it does not (ACP-210 to ACP-213). */
import { assert, describe, it } from "@effect/vitest"
import * as acp from "@agentclientprotocol/sdk"
import { Deferred, Effect, Exit, Fiber, FiberSet } from "effect"
import { TestClock } from "effect/testing"
import { clientOf } from "../../src/faces/acp/Client.ts"
import { clientRequests } from "../../src/faces/acp/ClientRequests.ts"
import { ClientTerminals } from "../../src/faces/acp/ClientTerminals.ts"
import type { TerminalCommand } from "../../src/tools/ClientSide.ts"

const everything = { fs: { readTextFile: true, writeTextFile: true }, terminal: true }

const command: TerminalCommand = { command: "/bin/sh", args: [], cwd: "/real/work", env: {}, outputByteLimit: 1 }

/** A session's requests, and the client that answers them as `offer` says. */
const stage = Effect.fnUntraced(function* (offer: (app: acp.ClientApp, note: (what: string) => void) => void) {
  const fork = yield* FiberSet.makeRuntime<never>()
  const told: Array<string> = []
  const heard = yield* Deferred.make<void>()
  const note = (what: string): void => {
    told.push(what)
    if (what.startsWith("release")) Deferred.doneUnsafe(heard, Exit.void)
  }
  const client = acp.client({ name: "client" }).onRequest("terminal/release", ({ params }) => {
    note(`release ${params.terminalId}`)
    return {}
  })
  offer(client, note)
  const connection = yield* Effect.acquireRelease(
    Effect.sync(() => acp.agent({ name: "agent" }).connect(client)),
    (connection) => Effect.sync(() => connection.close())
  )
  const terminals = new ClientTerminals()
  const gone = yield* Deferred.make<void>()
  const side = clientRequests({
    sessionId: "ses_1",
    workspace: "/real/work",
    cwd: "/work/",
    client: () => clientOf(everything),
    peer: () => ({ asked: connection.client }),
    terminals,
    gone,
    fork: (work) => void fork(work)
  })()
  const { openTerminal, readText, writeText } = side
  assert.isDefined(readText)
  assert.isDefined(writeText)
  assert.isDefined(openTerminal)
  return {
    readText: readText as NonNullable<typeof readText>,
    writeText: writeText as NonNullable<typeof writeText>,
    openTerminal: openTerminal as NonNullable<typeof openTerminal>,
    terminals,
    told,
    released: Deferred.await(heard),
    leave: Deferred.succeed(gone, undefined)
  }
})

const never = <A>(): Promise<A> => new Promise<A>(() => undefined)

describe("requests to the client", () => {
  it.effect("what it answers is looked at before it is believed [ACP-212]", () =>
    Effect.gen(function* () {
      const malformed = {} as never
      const on = yield* stage((app) =>
        app.onRequest("fs/read_text_file", () => malformed).onRequest("terminal/create", () => malformed)
      )
      const problems = [
        yield* Effect.flip(on.readText("/real/work/a")),
        yield* Effect.flip(Effect.scoped(on.openTerminal(command)))
      ]
      for (const problem of problems) {
        assert.deepInclude(problem, { _tag: "ClientRefused", message: "its answer was malformed" })
      }
      const long = "t".repeat(201)
      const named = yield* stage((app) => app.onRequest("terminal/create", () => ({ terminalId: long })))
      yield* Effect.flip(Effect.scoped(named.openTerminal(command)))
      yield* named.released
      assert.deepStrictEqual(named.told, [`release ${long}`])
    })
  )

  it.effect("an exit that is none is no end, and what a write came to is then unknown [ACP-212]", () =>
    Effect.gen(function* () {
      const exits: Array<unknown> = [{ exitCode: "zero" }, { signal: 9 }, "done", null]
      const writes: Array<unknown> = ["written", 1, null, {}]
      const on = yield* stage((app) =>
        app
          .onRequest("terminal/create", () => ({ terminalId: "t1" }))
          .onRequest("terminal/wait_for_exit", () => exits.shift() as never)
          .onRequest("fs/write_text_file", () => writes.shift() as never)
      )
      const exit = Effect.scoped(Effect.flatMap(on.openTerminal(command), (terminal) => terminal.exit))
      while (exits.length > 0) {
        assert.deepInclude(yield* Effect.flip(exit), { _tag: "ClientRefused", message: "its answer was malformed" })
      }
      const write = on.writeText("/real/work/a", "x")
      for (let n = 0; n < 2; n++) {
        assert.deepInclude(yield* Effect.flip(write), {
          _tag: "ClientLost",
          message: "the client's answer was malformed"
        })
      }
      yield* write
      yield* write
    })
  )

  it.effect("its words are given, cut, and no more of it [ACP-212]", () =>
    Effect.gen(function* () {
      const on = yield* stage((app) =>
        app.onRequest("fs/read_text_file", ({ params }) => {
          throw new acp.RequestError(-32_000, params.path === "/work/long" ? "é".repeat(600) : "Locked", {
            key: "value"
          })
        })
      )
      const message = (file: string) => Effect.map(Effect.flip(on.readText(file)), (problem) => problem.message)
      assert.strictEqual(yield* message("/real/work/a"), "Locked")
      assert.strictEqual(yield* message("/real/work/long"), "é".repeat(500))
    })
  )

  it.effect("what does not fit into a frame is refused before it is sent [ACP-006, ACP-212]", () =>
    Effect.gen(function* () {
      const on = yield* stage((app, note) =>
        app.onRequest("fs/write_text_file", ({ params }) => {
          note(`${params.path} ${params.content.length}`)
          return {}
        })
      )
      const problem = yield* Effect.flip(on.writeText("/real/work/a", "\u0001".repeat(200_000)))
      assert.deepInclude(problem, { _tag: "ClientRefused", message: "it does not fit into one message of 1 MiB" })
      yield* on.writeText("/real/work/a", "x".repeat(1_000_000))
      assert.deepStrictEqual(on.told, ["/work/a 1000000"])
    })
  )

  it.effect("a client that is gone answers nothing, and is asked no more [ACP-212]", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const on = yield* stage((app) =>
        app.onRequest("fs/write_text_file", () => {
          Deferred.doneUnsafe(asked, Exit.void)
          return never()
        })
      )
      const writing = yield* Effect.forkChild(Effect.flip(on.writeText("/real/work/a", "x")))
      yield* Deferred.await(asked)
      yield* on.leave
      assert.deepInclude(yield* Fiber.join(writing), { _tag: "ClientLost", code: "failed" })
      assert.deepInclude(yield* Effect.flip(on.readText("/real/work/a")), { _tag: "ClientLost" })
    })
  )

  it.effect("a terminal is released when it was told of, or after a moment; a late one at once [ACP-213]", () =>
    Effect.gen(function* () {
      const open = () => stage((app) => app.onRequest("terminal/create", () => ({ terminalId: "t1" })))
      const shown = yield* open()
      yield* Effect.scoped(shown.openTerminal(command))
      assert.deepStrictEqual([shown.told, shown.terminals.has("t1")], [[], true])
      shown.terminals.told("t1")
      yield* shown.released
      const untold = yield* open()
      yield* Effect.scoped(untold.openTerminal(command))
      yield* TestClock.adjust("5 seconds")
      yield* untold.released
      assert.deepStrictEqual([untold.told, untold.terminals.has("t1")], [["release t1"], false])
      let answer: (id: string) => void = () => undefined
      const asked = yield* Deferred.make<void>()
      const late = yield* stage((app) =>
        app.onRequest("terminal/create", async () => ({
          terminalId: await new Promise<string>((resolve) => {
            answer = resolve
            Deferred.doneUnsafe(asked, Exit.void)
          })
        }))
      )
      const opening = yield* Effect.forkChild(Effect.scoped(late.openTerminal(command)))
      yield* Deferred.await(asked)
      yield* Fiber.interrupt(opening)
      answer("t2")
      yield* late.released
      assert.deepStrictEqual([late.told, late.terminals.has("t2")], [["release t2"], false])
    })
  )

  it.effect("a kill is not waited for when the client is deaf to it [ACP-213, ACP-181]", () =>
    Effect.gen(function* () {
      const killing = yield* Deferred.make<void>()
      const on = yield* stage((app) =>
        app
          .onRequest("terminal/create", () => ({ terminalId: "t1" }))
          .onRequest("terminal/kill", () => {
            Deferred.doneUnsafe(killing, Exit.void)
            return never()
          })
      )
      const killed = yield* Effect.forkChild(
        Effect.scoped(Effect.flatMap(on.openTerminal(command), (terminal) => terminal.kill))
      )
      yield* Deferred.await(killing)
      yield* TestClock.adjust("1500 millis")
      yield* Fiber.join(killed)
    })
  )
})
