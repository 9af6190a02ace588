/**
 * The way to an MCP server over HTTP: guards where a request goes and how much comes back.
 *
 * Invariants: every address, each one a redirect names included, is one that the server may have; that a redirect leaves
 * neither the origin nor the method is the SDK's care, so the headers given for a server go nowhere else. An answer is
 * bounded: its whole when it is JSON, one event of it when it is a stream.
 */
import type { FetchLike } from "@modelcontextprotocol/client"
import { largestLine } from "./ChildTransport.ts"
import type { Reach } from "./Reach.ts"

const errorBytes = 65_536
const lineFeed = 0x0a
const carriageReturn = 0x0d

/** Fails when the answer is too large: as a whole, or one event of a stream, which an empty line ends. */
const bounded = (limit: number, isStream: boolean) => {
  let seen = 0
  let isLineEmpty = true
  return new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      if (!isStream) seen += chunk.byteLength
      else {
        for (const byte of chunk) {
          seen += 1
          if (byte === lineFeed) {
            if (isLineEmpty) seen = 0
            isLineEmpty = true
          } else if (byte !== carriageReturn) isLineEmpty = false
        }
      }
      if (seen > limit) controller.error(new Error("the server's answer is too large"))
      else controller.enqueue(chunk)
    }
  })
}

/** Makes the fetch that the SDK's transport is given. */
export const guardedFetch =
  (fetch: FetchLike, mayReach: Reach): FetchLike =>
  (url, init) =>
    Promise.resolve(mayReach(new URL(url))).then((may) => {
      if (!may) throw new Error("no MCP server may be at this address")
      return fetch(url, init).then(guarded)
    })

const guarded = (response: Response): Response => {
  const isStream = response.headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") === true
  const body = response.body?.pipeThrough(bounded(response.ok ? largestLine : errorBytes, isStream)) ?? null
  return new Response(body, { status: response.status, statusText: response.statusText, headers: response.headers })
}
