/**
 * The far end for tests of live models: aimock where it can play the part, a bare server on loopback where a fault is
 * needed that it cannot make.
 */
import { createServer } from "node:http"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { LLMock } from "@copilotkit/aimock"
import { assert } from "@effect/vitest"
import { Effect, Redacted, Stream } from "effect"
import type { LiveApi } from "../../src/models/Endpoint.ts"
import type { ModelPart, ModelRequest } from "../../src/models/ModelRequest.ts"
import { Models } from "../../src/models/Models.ts"
import type { LiveConnection } from "../../src/models/Models.ts"

export const apis: ReadonlyArray<LiveApi> = ["responses", "chat-completions", "anthropic"]

export const canary = "canary-4f0a9b7c2d-never-shown"

export const modelOf: { readonly [api in LiveApi]: string } = {
  responses: "gpt-5-mini",
  "chat-completions": "local-model",
  anthropic: "claude-sonnet-4-5"
}

export const connectionTo = (api: LiveApi, url: string, apiKey: string | null = canary): LiveConnection => ({
  name: "under-test",
  api,
  baseUrl: `${url}/v1`,
  apiKey: apiKey === null ? null : Redacted.make(apiKey)
})

export const mock = Effect.acquireRelease(
  Effect.promise(async () => {
    const server = new LLMock({ port: 0 })
    await server.start()
    return server
  }),
  (server) => Effect.promise(() => server.stop())
)

export interface Bare {
  readonly url: string
  readonly requests: Array<{
    readonly url: string
    readonly headers: IncomingMessage["headers"]
    readonly body: unknown
  }>
}

/** A server that answers every request with `answer`. */
export const bare = (answer: (response: ServerResponse, request: IncomingMessage) => void) =>
  Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<Bare & { readonly close: () => Promise<void> }>((resolve) => {
          const requests: Bare["requests"] = []
          const server = createServer((request, response) => {
            let text = ""
            request.setEncoding("utf8")
            request.on("data", (chunk: string) => {
              text += chunk
            })
            request.on("end", () => {
              requests.push({
                url: request.url ?? "",
                headers: request.headers,
                body: text === "" ? undefined : JSON.parse(text)
              })
              answer(response, request)
            })
          })
          server.listen(0, "127.0.0.1", () => {
            const { port } = server.address() as AddressInfo
            resolve({
              url: `http://127.0.0.1:${port}`,
              requests,
              close: () =>
                new Promise((closed) => {
                  server.closeAllConnections()
                  server.close(() => closed())
                })
            })
          })
        })
    ),
    (server) => Effect.promise(() => server.close())
  )

/** Server-sent events of `events`, objects as JSON and strings as they are. */
export const sse = (events: ReadonlyArray<unknown>): string =>
  events
    .map((event) => {
      const type =
        typeof event === "object" && event !== null && "type" in event ? `event: ${String(event.type)}\n` : ""
      return `${type}data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`
    })
    .join("")

export const stream = (response: ServerResponse, events: ReadonlyArray<unknown>): void => {
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.end(sse(events))
}

export const ask = (text: string, more: Partial<ModelRequest> = {}): ModelRequest => ({
  instructions: "You are a test.",
  messages: [{ role: "user", text }],
  tools: [],
  ...more
})

/** All parts of one answer. */
export const answer = (request: ModelRequest, connection: LiveConnection, model = modelOf[connection.api]) =>
  Effect.gen(function* () {
    const models = yield* Models
    return yield* Stream.runCollect(models.stream(request, { connection, model, attempt: 1 }))
  }).pipe(Effect.provide(Models.layer))

/** The failure of a request; none ever holds the key or a stack. */
export const failure = (request: ModelRequest, connection: LiveConnection) =>
  Effect.tap(Effect.flip(answer(request, connection)), (failed) =>
    Effect.sync(() => {
      const shown = `${failed.message} ${JSON.stringify(failed)}`
      assert.notInclude(shown, canary.slice(0, 12))
      assert.notMatch(shown, /\n|\sat \S+:\d+/)
      assert.isAtMost(failed.message.length, 500)
    })
  )

export const textOf = (parts: ReadonlyArray<ModelPart>, type: "text" | "thinking" = "text"): string =>
  parts.map((part) => (part.type === type ? part.delta : "")).join("")

export const callsOf = (parts: ReadonlyArray<ModelPart>) => parts.filter((part) => part.type === "call")
export const finishOf = (parts: ReadonlyArray<ModelPart>) => parts.find((part) => part.type === "finish")
export const usageOf = (parts: ReadonlyArray<ModelPart>) => parts.find((part) => part.type === "usage")?.tokens
