/** The kit's own MCP server as a client gives it to an agent: what it was started with, and whether it lives. */
import { Effect, type Scope } from "effect"
import { createServer, type Socket } from "node:net"
import { join } from "node:path"
import { kitFailed, type KitFailed } from "../Check.ts"
import { isObject, type JsonObject } from "../Json.ts"
import type { Client } from "./Client.ts"

/** How it behaves: as it should, without a word, or not ending with its input. */
export type Manner = "kind" | "silent" | "stubborn"

export interface GivenServer {
  /** As it stands in `mcpServers`. */
  readonly entry: JsonObject
  /** What the first one that was started says of itself. */
  readonly started: () => JsonObject | undefined
  /** None of those that were started lives. */
  readonly isOver: () => boolean
}

/** The arguments and the value that it has to be started with. */
export const expected = { args: ["--one", "two words"], value: "$HOME and ${HOME} stay" } as const

const noteOf = (text: string): JsonObject => {
  const note: unknown = JSON.parse(text)
  return isObject(note) ? note : {}
}

/** One for this case; those that an agent left running end with the scope. */
export const make = (client: Client, manner: Manner): Effect.Effect<GivenServer, KitFailed, Scope.Scope> => {
  const { configuration, folder, timeline } = client
  const path = join(folder, "servers")
  const notes: Array<JsonObject> = []
  const living = new Set<Socket>()
  const listening = createServer((socket) => {
    let text = ""
    living.add(socket)
    socket.setEncoding("utf8").on("data", (piece: string) => {
      text += piece
      if (!text.endsWith("\n")) return
      notes.push(noteOf(text))
      timeline.add({ kind: "process", what: "server-started", text: `server: ${text.trim()}` })
    })
    socket.on("error", () => undefined)
    socket.on("close", () => {
      living.delete(socket)
      timeline.add({ kind: "process", what: "server-ended", text: "a server ended" })
    })
  })
  const server: GivenServer = {
    entry: {
      name: "tide-tables",
      command: configuration.node,
      args: [configuration.server, path, manner, ...expected.args],
      env: [{ name: "CONFORMANCE_VALUE", value: expected.value }]
    },
    started: () => notes[0],
    isOver: () => living.size === 0
  }
  return Effect.acquireRelease(
    Effect.callback<GivenServer, KitFailed>((resume) => {
      listening.once("error", (cause) => resume(Effect.fail(kitFailed(`no socket for servers: ${cause.message}`))))
      listening.listen(path, () => resume(Effect.succeed(server)))
    }),
    () =>
      Effect.sync(() => {
        listening.close()
        for (const socket of living) socket.destroy()
      })
  )
}
