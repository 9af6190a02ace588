/** What the agent writes has the shapes of the published schema. */
import { Effect } from "effect"
import type { Broken } from "../../Check.ts"
import { at, type Json } from "../../Json.ts"
import { type AcpCheck, demand, ready } from "../AcpCheck.ts"
import { type Client, noMethod } from "../Client.ts"
import { paramsName, resultName, shapeProblem, strangeField } from "../Schema.ts"

const page = "schema"

const valid = (name: string | undefined, value: Json | undefined): Effect.Effect<void, Broken> => {
  const problem = name === undefined ? "the method is none of the protocol" : shapeProblem(name, value)
  return demand(problem === undefined, problem ?? "")
}

/** Everything the agent sent of its own: requests and notifications of the protocol. */
const sent = (client: Client) =>
  client.frames().flatMap(({ fields }) => {
    const { method, params } = fields
    return typeof method === "string" && !/^(?:_|\$\/)/u.test(method) ? [{ method, params }] : []
  })

export const shapeChecks: ReadonlyArray<AcpCheck> = [
  {
    id: "ACK-020",
    level: "must",
    title: "the answer to initialize has the published shape",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const client = yield* open()
        yield* valid(resultName("initialize"), yield* client.start)
      })
  },
  {
    id: "ACK-021",
    level: "must",
    title: "the answer to session/new has the published shape",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const client = yield* open()
        yield* client.start
        yield* valid(resultName("session/new"), yield* client.setUp())
      })
  },
  {
    id: "ACK-022",
    level: "must",
    title: "the updates of a turn and its answer have the published shapes",
    page,
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        for (const text of [prompts.say("Hello."), prompts.tool]) {
          if (text === undefined) continue
          const { answer } = yield* client.turn(sessionId, text)
          yield* valid(resultName("session/prompt"), answer.fields["result"])
        }
        for (const { method, params } of sent(client)) yield* valid(paramsName(method), params)
      })
  },
  {
    id: "ACK-023",
    level: "must",
    title: "a request for a permission has the published shape",
    page,
    prompts: ["permission"],
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        yield* client.turn(sessionId, prompts.permission ?? "")
        for (const { fields } of [yield* client.asked])
          yield* valid(paramsName("session/request_permission"), fields["params"])
      })
  },
  {
    id: "ACK-024",
    level: "must",
    title: "an error has a whole number as its code, and a message",
    page: "overview",
    run: (open) =>
      Effect.gen(function* () {
        const client = yield* open()
        yield* client.start
        yield* valid("Error", yield* client.refusal(noMethod, {}))
        yield* valid("Error", yield* client.refusal("session/prompt", { sessionId: "no-such-session", prompt: [] }))
      })
  },
  {
    id: "ACK-025",
    level: "must",
    title: "no type of the protocol has a field of the agent's own, but in _meta",
    page: "extensibility",
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const client = yield* open()
        const said = yield* client.start
        const session = yield* client.setUp()
        const { answer } = yield* client.turn(String(at(session, "sessionId")), prompts.tool ?? prompts.say("Hello."))
        const values: ReadonlyArray<readonly [name: string | undefined, value: Json | undefined]> = [
          [resultName("initialize"), said],
          [resultName("session/new"), session],
          [resultName("session/prompt"), answer.fields["result"]],
          ...sent(client).map(({ method, params }) => [paramsName(method), params] as const)
        ]
        for (const [name, value] of values) {
          const found = name === undefined ? undefined : strangeField(name, value)
          yield* demand(found === undefined, `the protocol does not know ${found}`)
        }
      })
  }
]
