/**
 * The far end: aimock speaks the three wires of the vendors, and a recorder before it keeps what arrived and can make a
 * connection fall silent. A conversation is planned by a key in the user's message: one entry per request of the turn.
 */
import { LLMock } from "@copilotkit/aimock"
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse
} from "node:http"
import type { AddressInfo } from "node:net"

export type Api = "responses" | "chat-completions" | "anthropic"
export const apis: ReadonlyArray<Api> = ["responses", "chat-completions", "anthropic"]

type Reply = Exclude<Parameters<LLMock["on"]>[1], (...args: ReadonlyArray<never>) => unknown>
/** An answer that comes when the promise does. */
type Later = () => Promise<Reply>
type ReplyOptions = NonNullable<Parameters<LLMock["on"]>[2]>

type Trouble = "silent" | "garbled" | "cut"

/** One answer of the fake: what it says, and how its connection behaves. */
export interface Answer {
  readonly reply: Reply | Later
  readonly options?: ReplyOptions
  /**
   * The connection says its first bytes and then nothing; or what it says is no JSON; or, on the wire of responses, the
   * answer ends as that vendor ends one that was cut, which aimock does not play.
   */
  readonly trouble?: Trouble
  /** The words after which a connection falls silent, instead of after its first bytes. */
  readonly silentAfter?: string
  /** More fields for the usage on the wire; aimock plays the totals alone. */
  readonly details?: { readonly [field: string]: unknown }
}

/** What a request gets: always the same, or one answer per attempt, the last one for all further attempts. */
export type Step = Answer | ReadonlyArray<Answer>

export interface Arrived {
  readonly api: Api
  readonly headers: IncomingHttpHeaders
  readonly body: { readonly [field: string]: unknown }
  readonly text: string
  /** Completes when the caller has let go of the connection. */
  readonly closed: Promise<void>
}

export interface Vendor {
  readonly url: string
  /** Plans the answers to a message that holds `key`. */
  readonly plays: (key: string, steps: ReadonlyArray<Step>) => void
  /** The requests whose conversation holds `key`, in order of arrival. */
  readonly requests: (key: string) => ReadonlyArray<Arrived>
  /** Completes when the connection of a planned answer has fallen silent. */
  readonly silence: (key: string) => Promise<void>
  readonly all: ReadonlyArray<Arrived>
  /** Completes as soon as this many requests hold `key`. */
  readonly arrived: (key: string, count: number) => Promise<void>
  readonly close: () => Promise<void>
}

export const say = (content: string, more: object = {}): Answer => ({ reply: { content, ...more } })

export interface PlannedCall {
  readonly id: string
  readonly name: string
  readonly arguments: object
}

export const calls = (toolCalls: ReadonlyArray<PlannedCall>, more: object = {}): Answer => ({
  reply: {
    toolCalls: toolCalls.map((call) => ({ ...call, arguments: JSON.stringify(call.arguments) })),
    ...more
  }
})

export const fails = (status: number, message: string, more: object = {}, retryAfter?: number): Answer => ({
  reply: { error: { message, ...more }, status, ...(retryAfter === undefined ? {} : { retryAfter }) }
})

const apiOf = (url: string): Api => {
  const [path = ""] = url.split("?")
  return path.endsWith("/responses") ? "responses" : path.endsWith("/messages") ? "anthropic" : "chat-completions"
}

const textOf = (content: unknown): string => (typeof content === "string" ? content : JSON.stringify(content ?? ""))

const withDetails = (text: string, details: NonNullable<Answer["details"]>): string =>
  text.replaceAll('"usage":{', `"usage":{${JSON.stringify(details).slice(1, -1)},`)

const asCut = (text: string): string =>
  text
    .replaceAll("response.completed", "response.incomplete")
    .replaceAll('"status":"incomplete"', '"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}')

const startAimock = async (): Promise<LLMock> => {
  const mock = new LLMock({ port: 0 })
  await mock.start()
  return mock
}

/**
 * `aside` is said to whatever asks outside a planned conversation: a request that offers no tools, as for a title, or whose
 * user says no key. Without it such a request is refused.
 */
export const startVendor = async (options: { readonly aside?: Answer } = {}): Promise<Vendor> => {
  const mock = await startAimock()
  const all: Array<Arrived> = []
  const silent = new Map<string, { readonly reached: Promise<void>; readonly reach: () => void }>()
  const waiting = new Set<() => void>()
  /** What the next connection of a key is to suffer or to say. */
  const served = new Map<string, Answer>()

  const silence = (key: string) => {
    const known = silent.get(key)
    if (known !== undefined) return known
    const { promise, resolve } = Promise.withResolvers<void>()
    const made = { reached: promise, reach: () => resolve() }
    silent.set(key, made)
    return made
  }

  const forward = (request: IncomingMessage, text: string, response: ServerResponse): void => {
    const { host: _host, ...headers } = request.headers
    const how = { method: request.method ?? "POST", headers }
    const onward = httpRequest(`${mock.url}${request.url ?? ""}`, how, (answer) => {
      const key = [...served.keys()].find((key) => text.includes(key)) ?? ""
      const { details, silentAfter = "", trouble } = served.get(key) ?? {}
      served.delete(key)
      if (trouble === "garbled") {
        answer.resume()
        response.writeHead(200, { "content-type": "text/event-stream" })
        return void response.end('data: {"choices": [{"delta": \n\n')
      }
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.on("data", (chunk: Buffer) => {
        if (response.destroyed) return
        if (details !== undefined) return void response.write(withDetails(chunk.toString("utf8"), details))
        if (trouble === undefined) return void response.write(chunk)
        if (trouble === "cut") return void response.write(asCut(chunk.toString("utf8")))
        if (!chunk.includes(silentAfter)) return void response.write(chunk)
        answer.removeAllListeners("data")
        answer.resume()
        response.write(chunk, () => silence(key).reach())
      })
      answer.on("end", () => {
        if (trouble !== "silent") response.end()
      })
      for (const lost of ["aborted", "error"]) answer.on(lost, () => response.destroy())
    })
    onward.on("error", () => response.destroy())
    response.on("close", () => onward.destroy())
    onward.end(text)
  }

  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString("utf8")
      // Some ask whether anyone is there, or which models there are; only what has a body asks a model.
      if (text === "") return forward(request, text, response)
      all.push({
        api: apiOf(request.url ?? ""),
        headers: request.headers,
        body: JSON.parse(text) as Arrived["body"],
        text,
        closed: new Promise((resolve) => response.on("close", () => resolve()))
      })
      for (const look of waiting) look()
      forward(request, text, response)
    })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve)
  })
  const { port } = server.address() as AddressInfo

  const keys = new Set<string>()
  /** Messages of the user in a row become one on some wires: the last of them counts. */
  const latestKey = (text: string): string | undefined =>
    [...keys].reduce<string | undefined>(
      (latest, key) => (text.lastIndexOf(key) > text.lastIndexOf(latest ?? "\0") ? key : latest),
      undefined
    )

  const { aside } = options
  if (aside !== undefined) {
    mock.on(
      {
        predicate: ({ messages, tools }) => {
          const words = messages.findLast((message) => message.role === "user")?.content
          return (tools ?? []).length === 0 || latestKey(textOf(words)) === undefined
        }
      },
      () => (typeof aside.reply === "function" ? aside.reply() : aside.reply) as never,
      aside.options
    )
  }

  const plays: Vendor["plays"] = (key, steps) => {
    keys.add(key)
    for (const [step, planned] of steps.entries()) {
      const attempts: ReadonlyArray<Answer> = Array.isArray(planned) ? planned : [planned]
      let times = 0
      for (const [attempt, answer] of attempts.entries()) {
        mock.on(
          {
            predicate: ({ messages }) => {
              const last = messages.findLastIndex((message) => message.role === "user")
              if (last === -1 || latestKey(textOf(messages[last]?.content)) !== key) return false
              // One response may come back as several messages of the assistant in a row.
              const since = messages.slice(last).map((message) => message.role)
              const done = since.filter((role, index) => role === "assistant" && since[index - 1] !== role).length
              return done === step && Math.min(times, attempts.length - 1) === attempt
            }
          },
          () => {
            times += 1
            if (answer.trouble !== undefined || answer.details !== undefined) served.set(key, answer)
            return (typeof answer.reply === "function" ? answer.reply() : answer.reply) as never
          },
          answer.options
        )
      }
    }
  }

  const requests: Vendor["requests"] = (key) => all.filter((arrived) => arrived.text.includes(key))

  return {
    url: `http://127.0.0.1:${port}/v1`,
    plays,
    requests,
    arrived: (key, count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (requests(key).length < count) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
    silence: (key) => silence(key).reached,
    all,
    close: async () => {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
      await mock.stop()
    }
  }
}

/** A tool's result as one of the wires carries it. */
export interface Told {
  readonly id: string
  readonly text: string
  readonly failed: boolean | undefined
}

type Fields = { readonly [field: string]: unknown }
const list = (value: unknown): ReadonlyArray<Fields> => (Array.isArray(value) ? (value as ReadonlyArray<Fields>) : [])

const plain = (content: unknown): string =>
  typeof content === "string"
    ? content
    : list(content)
        .map((part) => String(part["text"] ?? ""))
        .join("")

/** This wire has no field for a failure; the client library writes one as an object with the words of the error. */
const ofResponses = (id: string, output: string): Told => {
  if (!output.startsWith('{"error":')) return { id, text: output, failed: false }
  const { error } = JSON.parse(output) as { readonly error: string }
  return { id, text: error, failed: true }
}

/** The results a request tells its model, read strictly in the form of its wire. */
export const told = ({ api, body }: Arrived): ReadonlyArray<Told> => {
  switch (api) {
    case "responses":
      return list(body["input"])
        .filter((item) => item["type"] === "function_call_output")
        .map((item) => ofResponses(String(item["call_id"]), plain(item["output"])))
    case "chat-completions":
      return list(body["messages"])
        .filter((message) => message["role"] === "tool")
        .map((message) => ({ id: String(message["tool_call_id"]), text: plain(message["content"]), failed: undefined }))
    case "anthropic":
      return list(body["messages"])
        .filter((message) => message["role"] === "user")
        .flatMap((message) => list(message["content"]))
        .filter((part) => part["type"] === "tool_result")
        .map((part) => ({
          id: String(part["tool_use_id"]),
          text: plain(part["content"]),
          failed: part["is_error"] === true
        }))
  }
}

/** The ids of the calls which a request repeats to its model. */
export const called = ({ api, body }: Arrived): ReadonlyArray<string> => {
  switch (api) {
    case "responses":
      return list(body["input"])
        .filter((item) => item["type"] === "function_call")
        .map((item) => String(item["call_id"]))
    case "chat-completions":
      return list(body["messages"])
        .flatMap((message) => list(message["tool_calls"]))
        .map((call) => String(call["id"]))
    case "anthropic":
      return list(body["messages"])
        .flatMap((message) => list(message["content"]))
        .filter((part) => part["type"] === "tool_use")
        .map((part) => String(part["id"]))
  }
}

/** The key a request came with. */
export const keyOf = ({ api, headers }: Arrived): string | undefined => {
  const value = api === "anthropic" ? headers["x-api-key"] : headers["authorization"]
  return typeof value === "string" ? value.replace(/^Bearer /, "") : undefined
}

/** The arguments of the calls which a request repeats to its model, as its wire carries them, read as JSON. */
export const inputs = ({ api, body }: Arrived): ReadonlyArray<unknown> => {
  switch (api) {
    case "responses":
      return list(body["input"])
        .filter((item) => item["type"] === "function_call")
        .map((item) => JSON.parse(String(item["arguments"])))
    case "chat-completions":
      return list(body["messages"])
        .flatMap((message) => list(message["tool_calls"]))
        .map((call) => JSON.parse(String((call["function"] as Fields)["arguments"])))
    case "anthropic":
      return list(body["messages"])
        .flatMap((message) => list(message["content"]))
        .filter((part) => part["type"] === "tool_use")
        .map((part) => part["input"])
  }
}

/** The conversation of a request in its wire's form, without the marks of a cache. */
export const conversation = ({ api, body }: Arrived): ReadonlyArray<unknown> =>
  list(api === "responses" ? body["input"] : body["messages"]).map((message) =>
    JSON.parse(JSON.stringify(message, (field, value: unknown) => (field === "cache_control" ? undefined : value)))
  )
