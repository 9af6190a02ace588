/** What the protocol leaves to others: `_meta`, and methods that begin with an underscore. */
import { Effect } from "effect"
import { type AcpCheck, demand, ready } from "../AcpCheck.ts"
import { noMethod } from "../Client.ts"

const page = "extensibility"

export const extensionChecks: ReadonlyArray<AcpCheck> = [
  {
    id: "ACK-210",
    level: "must",
    title: "_meta may stand in every request and in what it holds",
    page,
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const client = yield* open()
        yield* client.start
        const _meta = { "conformance.test/flag": true, requestId: "r-1", nested: { list: [1, null] } }
        const { sessionId } = yield* client.result("session/new", { cwd: client.work, mcpServers: [], _meta }, 30)
        const prompt = [{ type: "text", text: prompts.say("Hello."), _meta }]
        yield* client.result("session/prompt", { sessionId: sessionId ?? null, prompt, _meta }, 20)
      })
  },
  {
    id: "ACK-211",
    level: "must",
    title: "an extension that the agent does not know is refused with -32601",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const client = yield* open()
        yield* client.start
        const { code } = yield* client.refusal(noMethod, { anything: true })
        yield* demand(code === -32_601, `the code is ${JSON.stringify(code)}`)
      })
  },
  {
    id: "ACK-212",
    level: "should",
    title: "a notification of an extension is passed over",
    page,
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        const before = client.frames().length
        client.send({ jsonrpc: "2.0", method: noMethod, params: { sessionId } })
        client.send({ jsonrpc: "2.0", method: "$/conformance", params: {} })
        yield* client.settled
        const answers = client.frames().slice(before)
        yield* demand(answers.filter(({ fields }) => "error" in fields).length <= 1, "it was answered")
        const { stop } = yield* client.turn(sessionId, prompts.say("Hello."))
        yield* demand(stop === "end_turn", `the turn after it ended with ${stop || "an error"}`)
      })
  }
]
