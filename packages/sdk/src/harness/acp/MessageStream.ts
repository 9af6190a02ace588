/**
 * A child's pipes as the message stream of the official SDK. The messages, their checks and the calls are the SDK's; the
 * lines are ours, because its own line stream ends the conversation at the first bad line.
 *
 * Two things are settled here, in the order in which the agent wrote them, before the SDK sees a message: a
 * `session/update` goes straight to its session, so that no answer overtakes it and no kind of update that the SDK does not
 * know is lost; and whoever waits for the answer to a request is told at the answer's place among the updates.
 */
import type * as Acp from "@agentclientprotocol/sdk"
import { Effect, Stream } from "effect"
import { type Child, defaultMaxBadLines, jsonLines, NotAPeer } from "../../process/index.ts"
import { type Fields, fieldsOf, textOf } from "./Fields.ts"

/** What the stream tells its owner. */
export interface MessageListener {
  /** The next line is read when this returns: a session that is behind slows its agent down. */
  readonly update: (params: Fields) => Effect.Effect<void>
}

/** The stream and its reader. */
export interface MessageStream {
  readonly stream: Acp.Stream
  /** Reads to the end of the agent's output; fails when it speaks something else (HRN-044). */
  readonly read: Effect.Effect<void, NotAPeer>
  /** Runs `answered` at the place of the answer to the next request of that method. */
  readonly awaitAnswer: (method: string, answered: Effect.Effect<void>) => void
  /** Lines that were no message. */
  readonly skipped: () => number
}

/** How an effect is run from the SDK's side. */
export type RunPromise = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

const encoder = new TextEncoder()

const idOf = (message: Fields): string | number | undefined => {
  const id = message["id"]
  return typeof id === "string" || typeof id === "number" ? id : undefined
}

/** Makes the stream over a child. */
export const makeMessageStream = (
  child: Child,
  options: { readonly run: RunPromise; readonly listener: MessageListener; readonly maxFrameBytes: number | undefined }
): MessageStream => {
  const waiting: Array<{ readonly method: string; readonly answered: Effect.Effect<void> }> = []
  const answers = new Map<string | number, Effect.Effect<void>>()
  let skipped = 0
  let badInRow = 0
  let inbound: ReadableStreamDefaultController<Acp.AnyMessage> | undefined
  let isOver = false

  const readable = new ReadableStream<Acp.AnyMessage>({
    start: (controller) => {
      inbound = controller
    },
    cancel: () => {
      isOver = true
    }
  })

  const writable = new WritableStream<Acp.AnyMessage>({
    write: (message) => {
      const fields = fieldsOf(message)
      const method = textOf(fields?.["method"])
      const id = fields === undefined ? undefined : idOf(fields)
      if (method !== undefined && id !== undefined) {
        const at = waiting.findIndex((entry) => entry.method === method)
        const [entry] = at < 0 ? [] : waiting.splice(at, 1)
        if (entry !== undefined) answers.set(id, entry.answered)
      }
      return options.run(child.stdin.write(encoder.encode(`${JSON.stringify(message)}\n`)))
    }
  })

  const forward = (message: Fields): void => {
    // The SDK checks the shape; an answer to nobody, or a message that is none, is its to refuse.
    if (!isOver) inbound?.enqueue(message as unknown as Acp.AnyMessage)
  }

  const accept = (value: unknown): Effect.Effect<void, NotAPeer> =>
    Effect.suspend(() => {
      const message = fieldsOf(value)
      if (message === undefined || message["jsonrpc"] !== "2.0") {
        skipped += 1
        badInRow += 1
        const sample = { reason: "not_json", bytes: 0, sample: "" } as const
        return badInRow >= defaultMaxBadLines
          ? Effect.fail(new NotAPeer({ badLines: badInRow, last: sample }))
          : Effect.void
      }
      badInRow = 0
      const method = textOf(message["method"])
      if (method === "session/update" && !("id" in message)) {
        const params = fieldsOf(message["params"])
        return params === undefined ? Effect.void : options.listener.update(params)
      }
      if (method === undefined) {
        const id = idOf(message)
        const answered = id === undefined ? undefined : answers.get(id)
        if (id !== undefined && answered !== undefined) {
          answers.delete(id)
          return Effect.andThen(
            answered,
            Effect.sync(() => forward(message))
          )
        }
      }
      forward(message)
      return Effect.void
    })

  return {
    stream: { readable, writable },
    read: jsonLines(child.stdout, {
      ...(options.maxFrameBytes === undefined ? {} : { maxFrameBytes: options.maxFrameBytes }),
      onBad: () =>
        Effect.sync(() => {
          skipped += 1
        })
    }).pipe(
      Stream.runForEach(accept),
      Effect.ensuring(
        Effect.sync(() => {
          if (!isOver) inbound?.close()
          isOver = true
        })
      )
    ),
    awaitAnswer: (method, answered) => void waiting.push({ method, answered }),
    skipped: () => skipped
  }
}
