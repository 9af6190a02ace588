/**
 * The model behind the program under test: `chat-completions` on loopback. What it says is written in the prompt (`Script`).
 * It plays one round a request: the round's number is that of the assistant messages since the prompt.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Effect, type Scope } from "effect"
import { type KitFailed, kitFailed } from "../Check.ts"
import { isObject, type JsonObject } from "../Json.ts"
import { type Round, sceneOf } from "./Script.ts"
import type { ToolCall, Tools } from "./Tools.ts"

/** Is told of what the program under test asks of its model. */
export interface ModelNotes {
  readonly asked: (prompt: string, round: number) => void
  /** A request ended before its answer was complete. */
  readonly left: () => void
}

export interface Model {
  /** The base URL, as such clients are given it. */
  readonly url: string
}

const textOf = (content: unknown): string => {
  if (typeof content === "string") return content
  if (!Array.isArray(content)) return ""
  return content
    .map((part: unknown) => (isObject(part) && typeof part["text"] === "string" ? part["text"] : ""))
    .join("")
}

interface Asked {
  readonly prompt: string
  readonly round: number
  /** What the last tool gave, for a text that says it again. */
  readonly result: string
  readonly streams: boolean
}

const read = (body: JsonObject): Asked => {
  const given: unknown = body["messages"]
  const messages = Array.isArray(given) ? given.filter(isObject) : []
  const at = messages.findLastIndex((message) => message["role"] === "user")
  const since = messages.slice(at + 1)
  const last = since.findLast((message) => message["role"] === "tool")
  return {
    prompt: textOf(messages[at]?.["content"]),
    round: since.filter((message) => message["role"] === "assistant").length,
    result: textOf(last?.["content"]),
    streams: body["stream"] === true
  }
}

const callOf = (round: Round, tools: Tools): ToolCall | undefined =>
  round.calls === undefined ? undefined : tools[round.calls]

const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }

const answer = (response: ServerResponse, asked: Asked, tools: Tools): void => {
  const { rounds } = sceneOf(asked.prompt)
  const round = rounds[asked.round] ?? { text: "There is nothing more." }
  if (round.refuses === true) {
    response.writeHead(401, { "content-type": "application/json" })
    response.end(JSON.stringify({ error: { message: "the key is not known here", type: "invalid_request_error" } }))
    return
  }
  const said = round.text ?? ""
  const text = asked.result === "" || asked.round === 0 ? said : `${asked.result.slice(0, 200)} ${said}`
  const call = callOf(round, tools)
  const calls =
    call === undefined
      ? []
      : [
          {
            index: 0,
            id: `call_${asked.round}`,
            type: "function",
            function: { name: call.name, arguments: JSON.stringify(call.input) }
          }
        ]
  const finish = calls.length === 0 ? "stop" : "tool_calls"
  const base = { id: "chatcmpl-kit", created: 0, model: "kit" }
  if (!asked.streams) {
    const message = { role: "assistant", content: text, ...(calls.length === 0 ? {} : { tool_calls: calls }) }
    response.writeHead(200, { "content-type": "application/json" })
    response.end(
      JSON.stringify({
        ...base,
        object: "chat.completion",
        choices: [{ index: 0, message, finish_reason: finish }],
        usage
      })
    )
    return
  }
  response.writeHead(200, { "content-type": "text/event-stream" })
  const chunk = (delta: object, reason: string | null = null): void =>
    void response.write(
      `data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`
    )
  for (const piece of text.match(/.{1,16}/gsu) ?? []) chunk({ role: "assistant", content: piece })
  if (round.hangs === true) return
  if (calls.length > 0) chunk({ role: "assistant", tool_calls: calls })
  chunk({}, finish)
  response.write(`data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", choices: [], usage })}\n\n`)
  response.end("data: [DONE]\n\n")
}

const collect = (request: IncomingMessage, use: (body: string) => void): void => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => use(Buffer.concat(chunks).toString("utf8")))
}

/** Starts a model for one case. */
export const make = (tools: Tools, notes: ModelNotes): Effect.Effect<Model, KitFailed, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ readonly port: number; readonly stop: () => void }, KitFailed>((resume) => {
        const server = createServer((request, response) => {
          response.on("error", () => undefined)
          response.on("close", () => {
            if (!response.writableFinished) notes.left()
          })
          collect(request, (body) => {
            let parsed: unknown
            try {
              parsed = JSON.parse(body)
            } catch {
              parsed = undefined
            }
            if (!isObject(parsed)) {
              response.writeHead(400).end()
              return
            }
            const asked = read(parsed)
            notes.asked(asked.prompt, asked.round)
            answer(response, asked, tools)
          })
        })
        server.on("error", (cause) => resume(Effect.fail(kitFailed(`the model cannot listen: ${cause.message}`))))
        server.listen(0, "127.0.0.1", () => {
          const address = server.address()
          const port = typeof address === "object" && address !== null ? address.port : 0
          resume(
            Effect.succeed({
              port,
              stop: () => {
                server.closeAllConnections()
                server.close()
              }
            })
          )
        })
      }),
      ({ stop }) => Effect.sync(stop)
    ),
    ({ port }) => ({ url: `http://127.0.0.1:${port}/v1` })
  )
