/** JSON-RPC 2.0: ids, errors, notifications. */
import { Effect } from "effect"
import { at, type Json, type JsonObject, sameJson } from "../../Json.ts"
import { type AcpCheck, demand, ready } from "../AcpCheck.ts"
import { type Client, noMethod } from "../Client.ts"

const page = "overview"

const codeOf = (error: JsonObject): Json | undefined => error["code"]

/** Demands one answer with a null id and a code, to what was just written. */
const nullAnswer = (client: Client, code: number) =>
  Effect.gen(function* () {
    yield* client.settled
    const found = client.frames().filter(({ fields }) => fields["method"] === undefined && fields["id"] === null)
    yield* demand(
      found.length === 1 && at(found[0]?.fields, "error", "code") === code,
      `the answers are ${JSON.stringify(found.map(({ fields }) => fields)).slice(0, 300)}`
    )
  })

export const messageChecks: ReadonlyArray<AcpCheck> = [
  {
    id: "ACK-050",
    level: "must",
    title: "an answer has the id of its request: numbers, 0, strings of any kind",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const client = yield* open()
        yield* client.start
        const ids: ReadonlyArray<Json> = [0, -7, 9_007_199_254_740_991, "0", "12", "", "7b9c-ü", "a b"]
        for (const id of ids) {
          client.request(noMethod, {}, id)
          yield* client.answer(id)
        }
        yield* client.settled
        for (const id of ids)
          yield* demand(client.answers(id).length === 1, `${JSON.stringify(id)} was answered more than once`)
      })
  },
  {
    id: "ACK-051",
    level: "must",
    title: "an unknown method is refused with -32601",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const client = yield* open()
        yield* client.start
        const code = codeOf(yield* client.refusal("session/conformance_nothing", {}))
        yield* demand(code === -32_601, `the code is ${JSON.stringify(code)}`)
      })
  },
  {
    id: "ACK-052",
    level: "must",
    title: "params that are not those of the method are refused with -32602",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        const wrong: ReadonlyArray<readonly [method: string, params: JsonObject]> = [
          ["session/new", { mcpServers: [] }],
          ["session/new", { cwd: 5, mcpServers: [] }],
          ["session/prompt", { sessionId }],
          ["session/prompt", { sessionId, prompt: "text" }],
          ["session/prompt", { prompt: [{ type: "text", text: "Hello." }] }]
        ]
        for (const [method, params] of wrong) {
          const code = codeOf(yield* client.refusal(method, params))
          yield* demand(code === -32_602, `the code for ${JSON.stringify(params)} is ${JSON.stringify(code)}`)
        }
      })
  },
  {
    id: "ACK-053",
    level: "should",
    title: "a line that is no JSON is answered with -32700 and the id null",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const client = yield* open()
        yield* client.start
        client.write("{nope\n")
        yield* nullAnswer(client, -32_700)
      })
  },
  {
    id: "ACK-054",
    level: "must",
    title: "a notification is never answered",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const client = yield* open()
        yield* client.start
        client.send({ jsonrpc: "2.0", method: "session/conformance_nothing", params: {} })
        client.send({ jsonrpc: "2.0", method: "session/cancel", params: { sessionId: "no-such-session" } })
        client.send({ jsonrpc: "2.0", method: "session/cancel", params: {} })
        const before = client.frames().length
        yield* client.settled
        const answers = client
          .frames()
          .slice(before)
          .filter(({ fields }) => fields["method"] === undefined)
        yield* demand(
          answers.length === 1,
          `there were answers: ${JSON.stringify(answers.map(({ fields }) => fields))}`
        )
      })
  },
  {
    id: "ACK-055",
    level: "must",
    title: "every request gets one answer, with a result or an error and not both",
    page,
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        yield* client.turn(sessionId, prompts.say("Hello."))
        yield* client.settled
        const answers = client.frames().filter(({ fields }) => fields["method"] === undefined)
        for (const { fields } of answers) {
          yield* demand("result" in fields !== "error" in fields, `an answer is ${JSON.stringify(fields)}`)
          const same = answers.filter((other) => sameJson(other.fields["id"], fields["id"]))
          yield* demand(same.length === 1, `${JSON.stringify(fields["id"])} was answered ${same.length} times`)
        }
      })
  },
  {
    id: "ACK-056",
    level: "should",
    title: "JSON that is no message is answered with -32600",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const client = yield* open()
        yield* client.start
        client.write('{"jsonrpc":"2.0"}\n')
        yield* nullAnswer(client, -32_600)
      })
  },
  {
    id: "ACK-057",
    level: "must",
    title: "a response to nothing is passed over",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const client = yield* open()
        yield* client.start
        const before = client.frames().length
        client.send({ jsonrpc: "2.0", id: "never-asked", result: {} })
        client.send({ jsonrpc: "2.0", id: 99_999, error: { code: -32_603, message: "Internal error" } })
        yield* client.settled
        yield* demand(client.frames().length === before + 1, "it was answered")
      })
  },
  {
    id: "ACK-058",
    level: "must",
    title: "requests are answered while a turn is on",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        const id = yield* client.working(sessionId)
        yield* client.settled
        yield* client.session()
        yield* demand(client.answers(id).length === 0, "the turn was over")
      })
  }
]
