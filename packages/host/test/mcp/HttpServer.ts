/** An MCP server over Streamable HTTP on loopback, written without the SDK, so that it can break off where it likes. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http"
import { Effect, type Scope } from "effect"

export interface HttpServer {
  readonly url: string
  /** Headers of the requests, in order, with their methods and paths. */
  readonly seen: ReadonlyArray<{
    readonly method: string
    readonly path: string
    readonly headers: IncomingHttpHeaders
    readonly rpc: string | undefined
  }>
  /** Forgets its sessions, as a server that was started anew. */
  readonly forget: () => void
}

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: { readonly name?: string; readonly protocolVersion?: string }
}

const readBody = (request: IncomingMessage, then: (body: string) => void): void => {
  let body = ""
  request.on("data", (chunk: Buffer) => (body += chunk.toString()))
  request.on("end", () => then(body))
}

const text = (content: string) => ({ content: [{ type: "text", text: content }] })

/** Serves until the scope ends. `redirect` answers every POST with one to another place; `path` is where it serves. */
export const httpServer = (
  options: { readonly redirect?: string; readonly status?: number; readonly tools?: ReadonlyArray<string> } = {}
): Effect.Effect<HttpServer, never, Scope.Scope> => {
  const seen: Array<HttpServer["seen"][number]> = []
  let sessions = 0
  let session: string | undefined

  const json = (response: ServerResponse, id: number | undefined, result: object): void => {
    response.writeHead(200, {
      "content-type": "application/json",
      ...(session === undefined ? {} : { "mcp-session-id": session })
    })
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result }))
  }

  const events = (response: ServerResponse): void =>
    void response.writeHead(200, { "content-type": "text/event-stream" })

  const event = (response: ServerResponse, message: object): void =>
    void response.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`)

  const callTool = (response: ServerResponse, { id, params }: Message): void => {
    switch (params?.name) {
      case "stream":
        events(response)
        event(response, { method: "notifications/message", params: { level: "info", data: "half" } })
        event(response, { id, result: text("streamed") })
        return void response.end()
      case "broken":
        // A stream that ends without the answer.
        events(response)
        event(response, { method: "notifications/message", params: { level: "info", data: "half" } })
        return void response.end()
      case "dropped":
        return void response.destroy()
      case "endless":
        events(response)
        response.write("data: ")
        return void response.write("x".repeat(17 * 1024 * 1024))
      case "refused":
        response.writeHead(400, { "content-type": "text/plain" })
        return void response.end("not like this")
      default:
        return json(response, id, text("plain"))
    }
  }

  const names = options.tools ?? ["plain", "stream", "broken", "dropped", "endless", "refused"]
  const tools = names.map((name) => ({ name, inputSchema: { type: "object" } }))

  const answer = (request: IncomingMessage, response: ServerResponse, message: Message): void => {
    if (message.method === "initialize") {
      session = `session-${++sessions}`
      return json(response, message.id, {
        protocolVersion: message.params?.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: "web", version: "1" }
      })
    }
    if (request.headers["mcp-session-id"] !== session) {
      response.writeHead(404)
      return void response.end("no such session")
    }
    if (message.method === "tools/list") return json(response, message.id, { tools })
    if (message.method === "tools/call") return callTool(response, message)
    response.writeHead(202)
    response.end()
  }

  const server = createServer((request, response) => {
    readBody(request, (body) => {
      const message = (body === "" ? {} : JSON.parse(body)) as Message
      const { headers, method = "", url = "" } = request
      seen.push({ method, path: url, headers, rpc: message.method })
      if (options.redirect !== undefined && url === "/mcp") {
        response.writeHead(options.status ?? 307, { location: options.redirect })
        response.end()
      } else if (method === "POST") answer(request, response, message)
      else {
        response.writeHead(method === "DELETE" ? 200 : 405)
        response.end()
      }
    })
  })

  return Effect.acquireRelease(
    Effect.callback<HttpServer>((resume) => {
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        resume(
          Effect.succeed({
            url: `http://127.0.0.1:${port}/mcp`,
            seen,
            forget: () => {
              session = undefined
            }
          })
        )
      })
    }),
    () =>
      Effect.callback<void>((resume) => {
        server.closeAllConnections()
        server.close(() => resume(Effect.void))
      })
  )
}
