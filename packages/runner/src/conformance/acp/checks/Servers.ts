/** MCP servers that a client gives with a session: programs on stdio, which every agent takes. */
import { Effect, type Scope } from "effect"
import { join } from "node:path"
import { type Broken, skipped, type Stop } from "../../Check.ts"
import { type JsonObject, sameJson } from "../../Json.ts"
import { stretch } from "../../Timing.ts"
import { type AcpCheck, demand, type Open } from "../AcpCheck.ts"
import type { Client } from "../Client.ts"
import * as GivenServer from "../GivenServer.ts"

const page = "session-setup"

/**
 * Seconds that a silent server may hold up an answer, and that a server may outlive its agent. They belong to the promises: no
 * patience of a run makes them longer.
 */
const patience = 10
const farewell = 5

interface Given {
  readonly client: Client
  readonly server: GivenServer.GivenServer
}

const given = (open: Open, manner: GivenServer.Manner): Effect.Effect<Given, Stop, Scope.Scope> =>
  Effect.gen(function* () {
    const client = yield* open()
    const server = yield* GivenServer.make(client, manner)
    yield* client.start
    return { client, server }
  })

/** A session with that server, in which a turn was done: an agent may start a server when it is needed first. */
const worked = (client: Client, entry: JsonObject): Effect.Effect<void, Broken> =>
  Effect.gen(function* () {
    const { sessionId } = yield* client.result("session/new", { cwd: client.work, mcpServers: [entry] }, 30)
    const { answer, stop } = yield* client.turn(String(sessionId), client.configuration.prompts.say("Ahoy."))
    yield* demand(stop === "end_turn", `the answer is ${JSON.stringify(answer.fields).slice(0, 300)}`)
  })

export const serverChecks: ReadonlyArray<AcpCheck> = [
  {
    id: "ACK-220",
    level: "must",
    title: "a session is set up with an MCP server on stdio, and takes prompts",
    page,
    run: (open) => Effect.flatMap(given(open, "kind"), ({ client, server }) => worked(client, server.entry))
  },
  {
    id: "ACK-221",
    level: "should",
    title: "the server is started with its arguments and variables as they are",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const { client, server } = yield* given(open, "kind")
        yield* worked(client, server.entry)
        const started = yield* client.until("the start of the server", server.started)
        yield* demand(sameJson(started, GivenServer.expected), `it was started with ${JSON.stringify(started)}`)
      })
  },
  {
    id: "ACK-222",
    level: "should",
    title: `a server that says nothing holds up the session for ${patience} seconds at most`,
    page,
    run: (open, { timing }) =>
      Effect.gen(function* () {
        const { client, server } = yield* given(open, "silent")
        const id = client.request("session/new", { cwd: client.work, mcpServers: [server.entry] })
        const answered = () => client.answers(id)[0]
        yield* client.timeline.until("the answer", () => answered() ?? client.ended(), stretch(timing, patience))
        yield* demand(answered() !== undefined, "the agent ended")
      })
  },
  {
    id: "ACK-223",
    level: "should",
    title: "a server that is not there does not take the session with it",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const { client, server } = yield* given(open, "kind")
        yield* worked(client, { ...server.entry, command: join(client.folder, "no-such-program") })
      })
  },
  {
    id: "ACK-224",
    level: "should",
    title: `no server is left ${farewell} seconds after the agent has ended`,
    page,
    run: (open, { timing }) =>
      Effect.gen(function* () {
        const { client, server } = yield* given(open, "stubborn")
        yield* worked(client, server.entry)
        yield* Effect.catchTag(client.until("the start of the server", server.started, 5), "Broken", () =>
          Effect.fail(skipped("not_declared"))
        )
        yield* client.stop
        const over = () => server.isOver() || undefined
        yield* client.timeline.until("the end of the server", over, stretch(timing, farewell))
      })
  }
]
