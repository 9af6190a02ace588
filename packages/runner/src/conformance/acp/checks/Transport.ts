/** Bytes: one message a line, and nothing that a line holds ends the conversation. */
import { Effect } from "effect"
import { type AcpCheck, demand, ready } from "../AcpCheck.ts"
import type { Client } from "../Client.ts"
import { noMethod } from "../Client.ts"

const page = "transports"

const bytesOf = (id: number): string => JSON.stringify({ jsonrpc: "2.0", id, method: noMethod, params: {} })

/** What the turn says, where the agent says what it was told to. */
const told = (client: Client, sessionId: string, text: string) =>
  Effect.gen(function* () {
    const { prompts } = client.configuration
    const { answer, stop, updates } = yield* client.turn(sessionId, prompts.say(text))
    yield* demand(stop !== "", `the prompt was refused: ${JSON.stringify(answer.fields["error"])}`)
    const said = client.said(updates)
    yield* demand(!prompts.echoes || said.includes(text), `it said ${JSON.stringify(said.slice(0, 100))}`)
  })

export const transportChecks: ReadonlyArray<AcpCheck> = [
  {
    id: "ACK-030",
    level: "must",
    title: "stdout has messages and nothing else, one a line, in UTF-8",
    page,
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        yield* client.turn(sessionId, prompts.say("Hello."))
        const strange = client.raw().find(({ line }) => line?.["jsonrpc"] !== "2.0")
        yield* demand(strange === undefined, `it wrote ${JSON.stringify(strange?.text.slice(0, 200))}`)
      })
  },
  {
    id: "ACK-031",
    level: "must",
    title: "only a newline ends a message: U+2028, U+2029 and U+0085 are text",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        yield* told(client, sessionId, "one\u2028two\u2029three\u0085four")
      })
  },
  {
    id: "ACK-032",
    level: "must",
    title: "a message may come in pieces, cut inside a character",
    page,
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        const text = "Grüße, 世界 🌍"
        const said = prompts.echoes ? prompts.say(text) : `${prompts.say(text)}\n\n(${text})`
        const params = { sessionId, prompt: [{ type: "text", text: said }] }
        const bytes = Buffer.from(
          `${JSON.stringify({ jsonrpc: "2.0", id: "pieces", method: "session/prompt", params })}\n`
        )
        const cuts = [bytes.indexOf("ü") + 1, bytes.indexOf("世") + 2, bytes.indexOf("🌍") + 1]
        for (const [index, cut] of cuts.entries()) {
          client.write(bytes.subarray(cuts[index - 1] ?? 0, cut))
          yield* Effect.sleep(30)
        }
        client.write(bytes.subarray(cuts.at(-1)))
        const { fields } = yield* client.answer("pieces", 20)
        yield* demand("result" in fields, `it was refused: ${JSON.stringify(fields["error"])}`)
        const answer = client.said(client.updates(sessionId))
        yield* demand(!prompts.echoes || answer.includes(text), `it said ${JSON.stringify(answer)}`)
      })
  },
  {
    id: "ACK-033",
    level: "should",
    title: "blank lines are nothing",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const client = yield* open()
        yield* client.start
        const before = client.frames().length
        client.write("\n\r\n  \n")
        yield* client.settled
        yield* demand(client.frames().length === before + 1, "a blank line was answered")
      })
  },
  {
    id: "ACK-034",
    level: "must",
    title: "a message of 1 MiB is answered, and the next one too",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        const id = client.request("session/prompt", {
          sessionId,
          prompt: [{ type: "text", text: `${client.configuration.prompts.say("Done.")}\n${"x".repeat(1_048_576)}` }]
        })
        yield* client.answer(id, 30)
        yield* client.settled
      })
  },
  {
    id: "ACK-035",
    level: "should",
    title: "a line that is no message does not end the conversation",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        client.write("this is no JSON\n")
        client.write(Buffer.from([0x22, 0xff, 0xfe, 0x22, 0x0a]))
        client.write('{"jsonrpc":"2.0","id":\n17\nnull\n[]\n{}\n')
        yield* client.settled
        yield* told(client, sessionId, "Still here.")
      })
  },
  {
    id: "ACK-036",
    level: "should",
    title: "the agent ends when its input ends",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const { client } = yield* ready(open)
        client.program.endInput()
        yield* client.exited(10)
      })
  },
  {
    id: "ACK-037",
    level: "must",
    title: "messages that come together are all read",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const client = yield* open()
        yield* client.start
        client.write(`${[701, 702, 703, 704].map(bytesOf).join("\n")}\n`)
        for (const id of [701, 702, 703, 704]) yield* client.answer(id)
      })
  }
]
