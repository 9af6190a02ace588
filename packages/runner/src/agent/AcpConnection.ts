/**
 * The client's side of the Agent Client Protocol, version 1, over the official SDK: requests, notifications, the agent's
 * permission requests. It is loaded after the agent was started, so that loading it delays no start.
 *
 * Lines become messages here and not in the SDK, because one bad line must not end a connection. Updates go straight to the
 * seat: the SDK refuses the kinds that it does not know. Everything else is the SDK's. Messages reach the seat in the order
 * in which the agent wrote them.
 */
import {
  type AnyMessage,
  client,
  methods,
  RequestError,
  type RequestPermissionResponse
} from "@agentclientprotocol/sdk"
import { seatLimits } from "@tackroom/protocol/seat"
import { type BadLine, type Child, jsonLines } from "@tackroom/sdk/process"
import { Data, Deferred, Effect, type Scope, Stream } from "effect"
import type { Outcome, PermissionRequest } from "../permission/PermissionPath.ts"
import { readFrame } from "./LargeFrame.ts"
import { readPermission } from "./Updates.ts"

/** The agent answered with an error. */
export class AgentRefused extends Data.TaggedError("AgentRefused")<{
  readonly code: number
  readonly message: string
}> {}

/** The agent's output ended or its input broke: nothing more will be answered. */
export class AgentGone extends Data.TaggedError("AgentGone")<{}> {}

export interface AcpConnection {
  readonly request: (method: string, params: object) => Effect.Effect<unknown, AgentRefused | AgentGone>
  /** Sends at once, before anything that is sent later. */
  readonly notify: (method: string, params: object) => void
  /** Completes when no message can come or go any more. */
  readonly closed: Effect.Effect<void>
}

export interface AcpListener {
  /** Parameters of a `session/update`. */
  readonly update: (params: unknown) => void
  readonly permission: (request: PermissionRequest, sessionId: string) => void
  /** The agent took a request back; `permission` gave it before. */
  readonly takeBack: (request: PermissionRequest) => void
  /** A message of this method is wholly written to the agent. */
  readonly written: (method: string) => void
  /** A line that is no message. */
  readonly badLine: (line: Pick<BadLine, "bytes" | "sample">) => void
}

/** What the agent may be asked, by the names of the protocol. */
export const agentMethods = methods.agent

type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

/** The SDK answers whatever is no message; for a log line on the agent's output that would be noise. */
const isMessage = (value: unknown): value is AnyMessage =>
  isObject(value) && (typeof value["method"] === "string" || "id" in value)

const sampleBytes = 200

/** How long after the agent's exit its pipe is read for what it wrote before. */
const lastWordsMs = 25

/** Gives the SDK's own tasks their turn, so that what a message caused has happened before the next one. */
const afterTasks = Effect.callback<void>((resume) => {
  const handle = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(handle))
})

const responseOf = (outcome: Exclude<Outcome, { readonly _tag: "TakenBack" }>): RequestPermissionResponse => ({
  outcome: outcome._tag === "Selected" ? { outcome: "selected", optionId: outcome.optionId } : { outcome: "cancelled" }
})

const wasTakenBack = (signal: AbortSignal): boolean => signal.reason instanceof RequestError

const parsePermission = (params: unknown) => {
  const read = readPermission(params)
  if (read === undefined) throw RequestError.invalidParams()
  return read
}

const failureOf = (error: unknown): AgentRefused | AgentGone =>
  error instanceof RequestError ? new AgentRefused({ code: error.code, message: error.message }) : new AgentGone()

/** Connects to a started agent. The scope ends the connection, not the agent. */
export const connect = (child: Child, listener: AcpListener): Effect.Effect<AcpConnection, never, Scope.Scope> =>
  Effect.gen(function* () {
    const ended = yield* Deferred.make<void>()
    let toSdk: ReadableStreamDefaultController<AnyMessage> | undefined
    const readable = new ReadableStream<AnyMessage>({
      start: (controller) => {
        toSdk = controller
      }
    })
    const writable = new WritableStream<AnyMessage>({
      // A broken pipe is the agent's end or near it; what that means is said by its exit.
      write: (message) =>
        Effect.runPromise(
          child.stdin.write(`${JSON.stringify(message)}\n`).pipe(
            Effect.andThen(Effect.sync(() => ("method" in message ? listener.written(message.method) : undefined))),
            Effect.catch(() => Deferred.succeed(ended, undefined))
          )
        ).then(() => undefined)
    })

    const connection = client({ name: "tackroom-seat" })
      .onRequest(
        methods.client.session.requestPermission,
        parsePermission,
        ({ params, requestId, signal }) =>
          new Promise<RequestPermissionResponse>((resolve, reject) => {
            const request: PermissionRequest = {
              id: requestId,
              toolCall: params.toolCall,
              options: params.options,
              answer: (outcome) =>
                outcome._tag === "TakenBack" ? reject(RequestError.requestCancelled()) : resolve(responseOf(outcome))
            }
            signal.addEventListener("abort", () => {
              if (wasTakenBack(signal)) listener.takeBack(request)
            })
            listener.permission(request, params.sessionId)
          })
      )
      .connect({ readable, writable })

    const badValue = (value: unknown): void => {
      const text = JSON.stringify(value) ?? ""
      listener.badLine({ bytes: Buffer.byteLength(text), sample: text.slice(0, sampleBytes) })
    }

    const take = (value: unknown): Effect.Effect<void> => {
      if (!isMessage(value)) return Effect.sync(() => badValue(value))
      if ("method" in value && value.method === methods.client.session.update && !("id" in value)) {
        // One update that the seat stumbles over ends no connection.
        return Effect.catchDefect(
          Effect.sync(() => listener.update(value.params)),
          () => Effect.sync(() => badValue(value))
        )
      }
      toSdk?.enqueue(value)
      return afterTasks
    }

    const read = jsonLines(child.stdout, {
      maxFrameBytes: seatLimits.agentFrameBytes,
      // An agent that prints a banner for ever is its own problem; its messages are still messages.
      maxBadLines: Number.POSITIVE_INFINITY,
      parse: readFrame,
      onBad: (line) => Effect.sync(() => listener.badLine(line))
    }).pipe(Stream.runForEach(take), Effect.ignore)
    // A process that the agent left behind may hold the pipe open for ever.
    const exited = Effect.andThen(child.exit, Effect.sleep(lastWordsMs))
    yield* Effect.forkScoped(Effect.andThen(Effect.raceFirst(read, exited), Deferred.succeed(ended, undefined)))
    yield* Effect.addFinalizer(() => Effect.sync(() => connection.close()))

    const closed = Deferred.await(ended)
    // Whoever waits for an answer is told as soon as none can come.
    yield* Effect.forkScoped(
      Effect.andThen(
        closed,
        Effect.sync(() => connection.close())
      )
    )

    return {
      request: (method, params) =>
        Effect.tryPromise({
          try: () => connection.agent.request<unknown, object>(method, params),
          catch: failureOf
        }),
      // A connection that is closed by now has nobody to tell.
      notify: (method, params) => void connection.agent.notify(method, params).catch(() => undefined),
      closed
    }
  })
