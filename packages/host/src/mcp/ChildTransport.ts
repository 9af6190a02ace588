/**
 * A child's pipes as a transport of the official SDK, for servers over stdio.
 *
 * The SDK's own would start the process itself: without a group of its own, a record or a guard. The messages, their
 * checks and the calls stay the SDK's. Lines are split at byte 0x0A and bounded; a line that is no message is skipped,
 * since servers write banners to stdout, but a server that writes nothing else is no server.
 */
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client"
import { isBlankFrame, type Line, makeLines } from "@tackroom/protocol/text"
import type { Child } from "@tackroom/sdk/process"
import { Deferred, Effect, Exit, Stream } from "effect"

/** Largest line of a server: a screenshot in base64 fits, and reading it holds the event loop for a moment only. */
export const largestLine = 16 * 1024 * 1024

/** Lines in a row that are no message, after which the server is given up. */
const mostBadLines = 100

/** How an effect is run from the SDK's side. */
export type RunPromise = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

export interface ChildTransport {
  readonly transport: Transport
  /** Reads the server's output to its end, and says what ended it; undefined for the end of the pipe. */
  readonly read: Effect.Effect<string | undefined>
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const messageOf = (bytes: Uint8Array): JSONRPCMessage | undefined => {
  try {
    const value: unknown = JSON.parse(utf8.decode(bytes))
    const isMessage = typeof value === "object" && value !== null && Reflect.get(value, "jsonrpc") === "2.0"
    // What is inside is the SDK's to check.
    return isMessage ? (value as JSONRPCMessage) : undefined
  } catch {
    return undefined
  }
}

/** Makes the transport. It ends no process: whoever started the child does. */
export const childTransport = (child: Child, run: RunPromise): ChildTransport => {
  const started = Deferred.makeUnsafe<void>()
  let isClosed = false

  const transport: Transport = {
    start: () => {
      Deferred.doneUnsafe(started, Exit.void)
      return Promise.resolve()
    },
    send: (message) => run(child.stdin.write(`${JSON.stringify(message)}\n`)),
    close: () => {
      if (!isClosed) {
        isClosed = true
        transport.onclose?.()
      }
      return Promise.resolve()
    }
  }

  const lines = makeLines({ limit: largestLine, headBytes: 0, early: true })
  let badInRow = 0

  /** Takes one line; says why nothing more can come of this server. */
  const take = (line: Line): string | undefined => {
    if (line._tag === "Oversize") return `it wrote a line of more than ${largestLine} bytes`
    if (isBlankFrame(line.bytes)) return undefined
    const message = messageOf(line.bytes)
    if (message === undefined) {
      badInRow += 1
      return badInRow >= mostBadLines ? "what it writes to stdout is no MCP" : undefined
    }
    badInRow = 0
    if (!isClosed) transport.onmessage?.(message)
    return undefined
  }

  const read = Effect.gen(function* () {
    yield* Deferred.await(started)
    let broken: string | undefined
    yield* child.stdout.pipe(
      Stream.takeWhile(() => broken === undefined),
      Stream.runForEach((chunk) =>
        Effect.sync(() => {
          for (const line of lines.push(chunk)) broken ??= take(line)
        })
      )
    )
    return broken
  })

  return { transport, read }
}
