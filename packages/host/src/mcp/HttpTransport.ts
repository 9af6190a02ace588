/**
 * The SDK's Streamable HTTP transport, with one thing added: a request whose answer stream ended without an answer ends
 * the connection, so that whoever waits learns that the answer is lost (RUN-258). By itself the SDK waits on.
 */
import type * as Mcp from "@modelcontextprotocol/client"
import { httpFetch } from "../http/HttpFetch.ts"
import { guardedFetch } from "./GuardedFetch.ts"
import type { Reach } from "./Reach.ts"

export interface HttpServer {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

const requestIdOf = (message: Mcp.JSONRPCMessage): Mcp.RequestId | undefined =>
  "method" in message && "id" in message ? message.id : undefined

/** The request that a cancellation is about: nobody waits for its answer any more. */
const cancelledIdOf = (message: Mcp.JSONRPCMessage): unknown =>
  "method" in message && message.method === "notifications/cancelled" ? message.params?.["requestId"] : undefined

/** Makes the transport, and what ends the server's session, if it keeps one. */
export const httpTransport = (
  sdk: typeof Mcp,
  server: HttpServer,
  mayReach: Reach
): { readonly transport: Mcp.Transport; readonly endSession: () => Promise<void> } => {
  const inner = new sdk.StreamableHTTPClientTransport(new URL(server.url), {
    fetch: guardedFetch(httpFetch, mayReach),
    requestInit: { headers: server.headers }
  })
  const waiting = new Set<unknown>()
  const transport: Mcp.Transport = {
    start: () => inner.start(),
    send: (message, options) => {
      const id = requestIdOf(message)
      if (id !== undefined) waiting.add(id)
      waiting.delete(cancelledIdOf(message))
      const onRequestStreamEnd = (): void => {
        options?.onRequestStreamEnd?.()
        if (id !== undefined && waiting.delete(id)) void inner.close()
      }
      return inner.send(message, {
        ...(options?.headers === undefined ? {} : { headers: options.headers }),
        ...(options?.requestSignal === undefined ? {} : { requestSignal: options.requestSignal }),
        onRequestStreamEnd
      })
    },
    close: () => inner.close(),
    setProtocolVersion: (version) => inner.setProtocolVersion(version)
  }
  inner.onmessage = (message) => {
    if (!("method" in message)) waiting.delete(message.id)
    transport.onmessage?.(message)
  }
  inner.onclose = () => transport.onclose?.()
  inner.onerror = (error) => transport.onerror?.(error)
  return { transport, endSession: () => inner.terminateSession() }
}
