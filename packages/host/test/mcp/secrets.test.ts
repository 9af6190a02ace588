/** A server that says the value it was given, in every way in which a server can (RUN-174, ACP-218). */
import { assert, describe, it } from "@effect/vitest"
import type { McpEntry } from "@tackroom/protocol/events"
import type { McpRegisterParams } from "@tackroom/protocol/run"
import type { Secret } from "@tackroom/protocol/text"
import { Effect } from "effect"
import { agent, call, failure, journal, ofType, run, say, stage, type Stage } from "../runs/Kit.ts"
import { server } from "./Kit.ts"
import type { ServerManner } from "./fixtures/server.ts"

/** It stands otherwise in JSON than alone. */
const value = '-----BEGIN "KEY"-----\nAbCdEf\\0123456789\n-----END "KEY"-----'
/** A part of it, however it is written. */
const parts = ["AbCdEf", Buffer.from("AbCdEf").toString("base64")]

const tools = ["tell", "tell-kept", "tell-refused", "tell-error", "tell-large", "tell-last"]

const stdio = (manner: ServerManner, env: Readonly<Record<string, string>>) => {
  const { args, command } = server(manner) as Extract<ReturnType<typeof server>, { readonly transport: "stdio" }>
  return { type: "stdio" as const, command, args: [...args], env: { ...env } }
}

const scenario = [
  ...tools.map((tool) => [call(`manners.${tool}`, {})]),
  // Not what the schema has, so our own text tells what it has.
  [call("manners.chosen", { a: 1 })],
  [say("Done.")]
]

const assertSilent = (where: string, text: string) => {
  for (const part of parts) {
    const at = text.indexOf(part)
    assert.isTrue(at < 0, `${where}: ${text.slice(Math.max(0, at - 200), at + 40)}`)
  }
}

/** Runs every way of telling, and looks through the answers, the journal and what is kept. */
const runSilently = Effect.fnUntraced(function* (on: Stage, name: string) {
  const state = yield* run(on)
  const events = yield* journal(on)
  assert.strictEqual(state.status, "completed")
  assert.strictEqual(ofType(events, "tool-output").length, 3)
  assert.isAtLeast(ofType(events, "tool-error").length, 3)
  const shown = JSON.stringify([state, events])
  assertSilent("the wire", shown)
  assert.deepStrictEqual([...new Set(shown.match(/\[redacted:[^\]]*\]/g))], [`[redacted:${name}]`])
  yield* on.close
  assertSilent("the state directory", on.folder.kept())
  assert.include(on.folder.kept(), `a resource [redacted:${name}]`)
})

describe("values of servers", () => {
  it.live("of a session are told and kept nowhere [RUN-174] [ACP-218]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario, agent: { approvals: { mode: "never" } } })
      const params = { agent: "helper", workspace: on.folder.workspace }
      const open = (name: string) =>
        Effect.gen(function* () {
          const mcp: Readonly<Record<string, McpEntry>> = { [name]: stdio({ tells: true }, { TOKEN: value }) }
          const { session } = yield* Effect.orDie(on.host.sessions.create(params, { mcp }))
          yield* on.host.clientServers.settled(session.sessionId)
          return session.sessionId
        })
      const sessionId = yield* open("manners")
      // Another session's server has the same value, and its name is that session's business.
      yield* open("other")
      yield* runSilently({ ...on, sessionId }, "manners.TOKEN")
    })
  )

  it.live("of a registration are told and kept nowhere [RUN-174]", () =>
    Effect.gen(function* () {
      const on = yield* stage({ scenario })
      const register = (name: string, manner: ServerManner): McpRegisterParams => ({
        name,
        transport: stdio(manner, { TOKEN: value })
      })
      const { server: made } = yield* on.api["mcp/register"](register("manners", { tells: true }))
      assert.deepStrictEqual(
        made.tools.map(({ name }) => name),
        [...tools, "chosen"]
      )
      // It is not kept, so nothing is called after it.
      assertSilent(
        "an error",
        JSON.stringify(yield* failure(on.api["mcp/register"](register("dead", { dies: value }))))
      )
      yield* on.api["agent/register"]({
        agent: agent({
          id: "teller",
          tools: made.tools.map(({ qualifiedName }) => qualifiedName),
          approvals: { mode: "never" }
        })
      })
      const { session } = yield* on.api["agent/session"]({ agent: "teller", workspace: on.folder.workspace })
      yield* runSilently({ ...on, sessionId: session.sessionId }, "mcp/manners/TOKEN")
    })
  )

  it.live("of a registration that was not kept are forgotten [RUN-174]", () =>
    Effect.gen(function* () {
      const known: Array<readonly [string, string]> = []
      const on = yield* stage({
        open: { onSecret: ({ name }: Secret, news) => known.push([name, news]) }
      })
      yield* failure(on.api["mcp/register"]({ name: "dead", transport: stdio({ dies: "no" }, { TOKEN: value }) }))
      assert.deepStrictEqual(known, [
        ["mcp/dead/TOKEN", "known"],
        ["mcp/dead/TOKEN", "forgotten"]
      ])
    })
  )
})
