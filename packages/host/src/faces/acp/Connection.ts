/**
 * The pipe to the client as the official SDK's message stream (serve-mode 12.1): frames in are read by `Frames`, frames out
 * are whole and small enough, and a write completes when the reader is not far behind, so that whoever has more to say waits
 * (ACP-117). Updates need nothing of the SDK but its types: they are written here at once, and so before anything that the
 * SDK is asked to send afterwards.
 *
 * Each frame is looked at when it is read, before the SDK sees it: the order of arrival is the order of these calls (ACP-008).
 */
import type { AnyMessage, SessionUpdate, Stream } from "@agentclientprotocol/sdk"
import { wireJson } from "@tackroom/protocol/text"
import type { ProtocolOutput } from "@tackroom/sdk/process"
import { Effect } from "effect"
import type { Readable } from "node:stream"
import { makeFrameReader, refusal } from "./Frames.ts"

/** Bytes of a frame that we write (ACP-006). */
export const writtenFrameBytes = 1_048_576
/** Unsent bytes above which a writer waits. */
const waitingBytes = 262_144

export interface ConnectionOptions {
  readonly input: Readable
  readonly output: ProtocolOutput
  /** A message was read; called in order of arrival. */
  readonly onRead: (message: AnyMessage) => void
  /** A message was handed to the pipe. */
  readonly onWritten: (message: AnyMessage) => void
  /** The client said its last. */
  readonly onEnd: () => void
}

/** The stream, and its end. */
export interface Connection {
  readonly stream: Stream
  /** Writes an update of a session. */
  readonly tell: (sessionId: string, update: SessionUpdate) => void
  /** Completes when the reader is not far behind. */
  readonly room: Effect.Effect<void>
  /** Lets the SDK see the end of the input; what is written afterwards is lost. */
  readonly close: () => void
  /** Reads no more. */
  readonly stop: () => void
}

const encoder = new TextEncoder()

/** A response too large for a frame becomes an error, another message is dropped: neither is half a frame. */
const encode = (message: AnyMessage): Uint8Array | undefined => {
  const bytes = encoder.encode(`${wireJson(message)}\n`)
  if (bytes.length <= writtenFrameBytes) return bytes
  if ("method" in message || !("id" in message)) return undefined
  const error = { code: -32_603, message: "The answer is too large", data: { reason: "internal" } }
  return encoder.encode(`${wireJson({ jsonrpc: "2.0", id: message.id, error })}\n`)
}

export const makeConnection = (options: ConnectionOptions): Connection => {
  const { input, onEnd, onRead, onWritten, output } = options
  let inbound: ReadableStreamDefaultController<AnyMessage> | undefined
  let isClosed = false

  const write = (message: AnyMessage): void => {
    const bytes = encode(message)
    if (bytes === undefined) return
    output.write(bytes)
    onWritten(message)
  }

  const reader = makeFrameReader((read) => {
    if (isClosed) return
    if (read._tag === "Refused") return write(refusal(read))
    onRead(read.message)
    inbound?.enqueue(read.message)
  })

  const take = (chunk: Uint8Array): void => reader.push(chunk)
  const end = (): void => {
    reader.end()
    onEnd()
  }
  input.on("data", take)
  input.once("end", end)
  input.once("error", onEnd)

  const stop = (): void => {
    input.off("data", take)
    input.off("end", end)
    input.pause()
  }

  const room = Effect.suspend(() =>
    output.pending() <= waitingBytes ? Effect.void : Effect.ignore(output.below(waitingBytes))
  )

  return {
    stream: {
      readable: new ReadableStream<AnyMessage>({
        start: (controller) => {
          inbound = controller
        }
      }),
      writable: new WritableStream<AnyMessage>({
        write: (message) => {
          write(message)
          return output.pending() <= waitingBytes ? undefined : Effect.runPromise(room)
        }
      })
    },
    tell: (sessionId, update) => {
      if (!isClosed) write({ jsonrpc: "2.0", method: "session/update", params: { sessionId, update } })
    },
    room,
    close: () => {
      if (isClosed) return
      isClosed = true
      stop()
      inbound?.close()
    },
    stop
  }
}
