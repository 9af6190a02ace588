/** The list of sessions, and what takes a session away: close and delete. Of agents that offer them. */
import { Effect } from "effect"
import { mkdirSync } from "node:fs"
import { isAbsolute, join } from "node:path"
import { at, isList, type Json, type JsonObject } from "../../Json.ts"
import { type AcpCheck, capability, demand, offered, ready } from "../AcpCheck.ts"
import type { Client } from "../Client.ts"

/** Most pages that are read of a list. */
const pages = 20

const sessionsOf = (listed: JsonObject): ReadonlyArray<Json> => {
  const { sessions } = listed
  return isList(sessions) ? sessions : []
}

/** All pages of the list. */
const listed = (client: Client, params: JsonObject) =>
  Effect.gen(function* () {
    const found: Array<Json> = []
    let more: JsonObject = {}
    for (let page = 0; page < pages; page++) {
      const list = yield* client.result("session/list", { ...params, ...more })
      yield* demand(isList(list["sessions"]), `the list is ${JSON.stringify(list).slice(0, 200)}`)
      found.push(...sessionsOf(list))
      if (typeof list["nextCursor"] !== "string") return found
      more = { cursor: list["nextCursor"] }
    }
    return found
  })

const has = (sessions: ReadonlyArray<Json>, sessionId: string): boolean =>
  sessions.some((one) => at(one, "sessionId") === sessionId)

export const listChecks: ReadonlyArray<AcpCheck> = [
  {
    id: "ACK-170",
    level: "must",
    title: "a session that was worked in is listed, with the absolute path of its directory",
    page: "session-list",
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, said, sessionId } = yield* ready(open)
        yield* offered(capability(said, "sessionCapabilities", "list"))
        yield* client.turn(sessionId, prompts.say("Hello."))
        const sessions = yield* listed(client, {})
        yield* demand(has(sessions, sessionId), `the list is ${JSON.stringify(sessions).slice(0, 300)}`)
        const relative = sessions.find((one) => !isAbsolute(String(at(one, "cwd"))))
        yield* demand(relative === undefined, `an entry is ${JSON.stringify(relative)}`)
      })
  },
  {
    id: "ACK-171",
    level: "must",
    title: "a list for a directory has the sessions of that directory alone",
    page: "session-list",
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, said, sessionId } = yield* ready(open)
        yield* offered(capability(said, "sessionCapabilities", "list"))
        const elsewhere = join(client.folder, "elsewhere")
        mkdirSync(elsewhere)
        const other = yield* client.session(elsewhere)
        for (const id of [sessionId, other]) yield* client.turn(id, prompts.say("Hello."))
        const sessions = yield* listed(client, { cwd: elsewhere })
        yield* demand(has(sessions, other) && !has(sessions, sessionId), `the list is ${JSON.stringify(sessions)}`)
      })
  },
  {
    id: "ACK-172",
    level: "should",
    title: "a cursor that is none is refused",
    page: "session-list",
    run: (open) =>
      Effect.gen(function* () {
        const client = yield* open()
        yield* offered(capability(yield* client.start, "sessionCapabilities", "list"))
        yield* client.refusal("session/list", { cursor: "!no cursor!" })
      })
  },
  {
    id: "ACK-173",
    level: "must",
    title: "a directory without sessions has an empty list",
    page: "session-list",
    run: (open) =>
      Effect.gen(function* () {
        const client = yield* open()
        yield* offered(capability(yield* client.start, "sessionCapabilities", "list"))
        const empty = join(client.folder, "empty")
        mkdirSync(empty)
        const sessions = yield* listed(client, { cwd: empty })
        yield* demand(sessions.length === 0, `the list is ${JSON.stringify(sessions)}`)
      })
  },
  {
    id: "ACK-180",
    level: "must",
    title: "a close cancels the turn that is on, and is answered",
    page: "session-setup",
    run: (open) =>
      Effect.gen(function* () {
        const { client, said, sessionId } = yield* ready(open)
        yield* offered(capability(said, "sessionCapabilities", "close"))
        const id = yield* client.working(sessionId)
        yield* client.result("session/close", { sessionId }, 20)
        const { answer, stop } = yield* client.turnOf(id)
        yield* demand(stop === "cancelled", `the turn was answered with ${JSON.stringify(answer.fields)}`)
      })
  },
  {
    id: "ACK-181",
    level: "should",
    title: "a closed session takes no prompts",
    page: "session-setup",
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, said, sessionId } = yield* ready(open)
        yield* offered(capability(said, "sessionCapabilities", "close"))
        yield* client.result("session/close", { sessionId }, 20)
        const prompt = [{ type: "text", text: prompts.say("Hello.") }]
        yield* client.refusal("session/prompt", { sessionId, prompt })
      })
  },
  {
    id: "ACK-185",
    level: "must",
    title: "a deleted session is not listed any more",
    page: "session-delete",
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, said, sessionId } = yield* ready(open)
        yield* offered(
          capability(said, "sessionCapabilities", "delete") && capability(said, "sessionCapabilities", "list")
        )
        yield* client.turn(sessionId, prompts.say("Hello."))
        yield* client.result("session/delete", { sessionId }, 20)
        yield* demand(!has(yield* listed(client, {}), sessionId), "it is listed")
      })
  }
]
