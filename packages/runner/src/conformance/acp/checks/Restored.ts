/** Sessions that outlive the program: load and resume, of agents that offer them. */
import { Effect, type Scope } from "effect"
import type { Stop } from "../../Check.ts"
import { type AcpCheck, capability, demand, offered, type Open, ready } from "../AcpCheck.ts"
import { chunkKinds, type Client } from "../Client.ts"

const page = "session-setup"

const text = "The harbour is quiet."

interface Restored {
  readonly client: Client
  readonly sessionId: string
  readonly params: { readonly sessionId: string; readonly cwd: string; readonly mcpServers: ReadonlyArray<never> }
}

/** A session with one turn, and the program that was started again. */
const restarted = (open: Open, ...path: ReadonlyArray<string>): Effect.Effect<Restored, Stop, Scope.Scope> =>
  Effect.gen(function* () {
    const first = yield* ready(open)
    yield* offered(capability(first.said, ...path))
    const { sessionId } = first
    yield* first.client.turn(sessionId, first.client.configuration.prompts.say(text))
    yield* first.client.stop
    const client = yield* open(first.client.folder)
    yield* client.start
    return { client, sessionId, params: { sessionId, cwd: client.work, mcpServers: [] } }
  })

/** Refuses to restore what there never was. */
const unknown =
  (method: string, ...path: ReadonlyArray<string>): AcpCheck["run"] =>
  (open) =>
    Effect.gen(function* () {
      const client = yield* open()
      yield* offered(capability(yield* client.start, ...path))
      yield* client.refusal(method, { sessionId: "no-such-session", cwd: client.work, mcpServers: [] })
    })

/** Takes prompts after it was restored. */
const works =
  (method: string, ...path: ReadonlyArray<string>): AcpCheck["run"] =>
  (open, { prompts }) =>
    Effect.gen(function* () {
      const { client, params, sessionId } = yield* restarted(open, ...path)
      yield* client.result(method, params, 30)
      const { answer, stop } = yield* client.turn(sessionId, prompts.say("Welcome back."))
      yield* demand(stop === "end_turn", `the answer is ${JSON.stringify(answer.fields).slice(0, 300)}`)
    })

export const restoredChecks: ReadonlyArray<AcpCheck> = [
  {
    id: "ACK-150",
    level: "must",
    title: "a load, after a restart, tells the whole conversation and then answers, and tells no more",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const { client, params, sessionId } = yield* restarted(open, "loadSession")
        const { fields, index } = yield* client.call("session/load", params, 30)
        yield* demand("result" in fields, `it was refused: ${JSON.stringify(fields["error"])}`)
        const told = client.updates(sessionId).filter((update) => update.index < index)
        const kinds = [...new Set(told.map(({ kind }) => kind).filter((kind) => chunkKinds.has(kind)))]
        yield* demand(
          kinds.indexOf("user_message_chunk") === 0 && kinds.includes("agent_message_chunk"),
          `it told ${kinds.join(", ") || "nothing"}`
        )
        yield* demand(
          !client.configuration.prompts.echoes || client.said(told).includes(text),
          `the agent is said to have said ${JSON.stringify(client.said(told))}`
        )
      })
  },
  {
    id: "ACK-151",
    level: "must",
    title: "nothing of the told conversation comes after the answer to the load",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const { client, params, sessionId } = yield* restarted(open, "loadSession")
        const { index } = yield* client.call("session/load", params, 30)
        yield* client.never(
          "a part of the conversation came after the answer",
          () => client.updates(sessionId).find((update) => update.index > index && chunkKinds.has(update.kind)),
          0.4
        )
      })
  },
  {
    id: "ACK-152",
    level: "must",
    title: "a session that does not exist is not loaded",
    page,
    run: unknown("session/load", "loadSession")
  },
  {
    id: "ACK-153",
    level: "must",
    title: "a loaded session takes prompts",
    page,
    run: works("session/load", "loadSession")
  },
  {
    id: "ACK-160",
    level: "must",
    title: "a resume tells nothing of the conversation",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const { client, params, sessionId } = yield* restarted(open, "sessionCapabilities", "resume")
        yield* client.result("session/resume", params, 30)
        yield* client.settled
        const told = client.updates(sessionId).find(({ kind }) => chunkKinds.has(kind))
        yield* demand(told === undefined, `it told ${JSON.stringify(told?.update)}`)
      })
  },
  {
    id: "ACK-161",
    level: "must",
    title: "a resumed session takes prompts, after a restart",
    page,
    run: works("session/resume", "sessionCapabilities", "resume")
  },
  {
    id: "ACK-162",
    level: "must",
    title: "a session that does not exist is not resumed",
    page,
    run: unknown("session/resume", "sessionCapabilities", "resume")
  }
]
