/** New sessions, and that each is its own. */
import { Effect } from "effect"
import { type AcpCheck, demand, ready } from "../AcpCheck.ts"

const page = "session-setup"

export const sessionChecks: ReadonlyArray<AcpCheck> = [
  {
    id: "ACK-070",
    level: "must",
    title: "every session has an id of its own",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        const ids = [sessionId, yield* client.session(), yield* client.session()]
        yield* demand(new Set(ids).size === 3 && !ids.includes(""), `the ids are ${JSON.stringify(ids)}`)
      })
  },
  {
    id: "ACK-071",
    level: "should",
    title: "a working directory that is no absolute path is refused",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const client = yield* open()
        yield* client.start
        yield* client.refusal("session/new", { cwd: "work", mcpServers: [] })
      })
  },
  {
    id: "ACK-072",
    level: "must",
    title: "updates name the session that they are about",
    page,
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        const other = yield* client.session()
        for (const [session, text] of [
          [other, "Second."],
          [sessionId, "First."]
        ] as const) {
          const before = client.updates().length
          yield* client.turn(session, prompts.say(text))
          const said = client
            .updates()
            .slice(before)
            .filter(({ kind }) => kind === "agent_message_chunk")
          yield* demand(
            said.length > 0 && said.every((one) => one.sessionId === session),
            "updates name another session"
          )
        }
      })
  },
  {
    id: "ACK-073",
    level: "must",
    title: "a prompt for a session that does not exist is refused",
    page,
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const client = yield* open()
        yield* client.start
        yield* client.refusal("session/prompt", {
          sessionId: "no-such-session",
          prompt: [{ type: "text", text: prompts.say("Hello.") }]
        })
      })
  },
  {
    id: "ACK-074",
    level: "must",
    title: "a session works while another one does",
    page: "overview",
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        const other = yield* client.session()
        const id = yield* client.working(sessionId)
        const { stop } = yield* client.turn(other, prompts.say("Hello."), 8)
        yield* demand(stop === "end_turn", `the other turn ended with ${stop || "an error"}`)
        yield* demand(client.answers(id).length === 0, "the first turn was over")
      })
  }
]
