/**
 * Asks a model and streams what it says: one service for live providers and for the scripted one.
 *
 * One request is one attempt. Owned elsewhere: trying again and falling back (the native agent, with `Retry.ts`), the
 * catalog that a connection comes from, the journal. Interrupting the stream ends the request.
 *
 * Failure is always a `ModelFailure`; a stream that does not fail ends with `usage` and `finish`.
 */
import { Clock, Context, Effect, Layer, Redacted, Stream } from "effect"
import { httpFetch } from "../http/HttpFetch.ts"
import * as Assemble from "./Assemble.ts"
import { disconnected, failureOf, refused } from "./Classify.ts"
import type { FailureContext } from "./Classify.ts"
import { endpointOf } from "./Endpoint.ts"
import type { LiveApi } from "./Endpoint.ts"
import * as GuardedFetch from "./GuardedFetch.ts"
import type { ModelFailure } from "./ModelFailure.ts"
import type { ModelPart, ModelRequest } from "./ModelRequest.ts"
import { promptOf, toolsOf } from "./Prompt.ts"
import * as ScriptModel from "./ScriptModel.ts"
import type { ScriptConnection, ScriptPosition } from "./ScriptModel.ts"
import { anthropic } from "./families/Anthropic.ts"
import { chatCompletions } from "./families/ChatCompletions.ts"
import { library, type Family } from "./families/Family.ts"
import { responses } from "./families/Responses.ts"
import { contextWindow } from "./Windows.ts"

/** A provider as the catalog resolves it for one request: the key is the current one (RUN-224). */
export interface LiveConnection {
  readonly name: string
  readonly api: LiveApi
  /** null: the vendor's endpoint (RUN-222). */
  readonly baseUrl: string | null
  /** null: used unauthenticated (RUN-220). */
  readonly apiKey: Redacted.Redacted | null
}

export type ModelConnection = LiveConnection | ScriptConnection

export interface CallOptions {
  readonly connection: ModelConnection
  readonly model: string
  /** Number of this try of the request, from 1. */
  readonly attempt: number
  /** Needed for a connection of api `script`, which fails without it. */
  readonly script?: ScriptPosition
}

const families: { readonly [api in LiveApi]: Family } = { responses, "chat-completions": chatCompletions, anthropic }

/** Loads what a live request of this kind needs, ahead of the first. One that cannot be loaded fails that request. */
export const warm = (api: LiveApi): Effect.Effect<void> => Effect.ignore(library(families[api].load))

const placeholder = "set-by-the-guard"

const live = (
  request: ModelRequest,
  connection: LiveConnection,
  model: string,
  fetch: GuardedFetch.Fetch
): Stream.Stream<ModelPart, ModelFailure> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const family = families[connection.api]
      const baseUrl = endpointOf(connection.api, connection.baseUrl)
      if (baseUrl === null || !URL.canParse(baseUrl)) {
        return yield* refused("The provider has no usable base_url")
      }
      const clock = yield* Clock.Clock
      const key = connection.apiKey === null ? "" : Redacted.value(connection.apiKey)
      let answered = false
      const context = (): FailureContext => ({ key, now: clock.currentTimeMillisUnsafe(), answered })
      const abort = yield* Effect.acquireRelease(
        Effect.sync(() => new AbortController()),
        (controller) => Effect.sync(() => controller.abort())
      )
      const guarded = GuardedFetch.make({
        fetch,
        apiKey: connection.apiKey,
        keyHeader: family.keyHeader,
        onAnswer: () => {
          answered = true
        }
      })
      const opened = yield* family.open({ baseUrl, model, placeholder, fetch: guarded as typeof globalThis.fetch })
      const owner = { api: connection.api, connection: connection.name, model }
      const limit = request.maxOutputTokens ?? family.outputLimit(model)
      const result = yield* Effect.tryPromise({
        try: () =>
          opened.doStream({
            prompt: family.prompt(promptOf(request, owner)),
            ...(request.tools.length === 0 ? {} : { tools: toolsOf(request), toolChoice: { type: "auto" } }),
            ...(limit === null ? {} : { maxOutputTokens: limit }),
            providerOptions: family.options,
            abortSignal: abort.signal
          }),
        catch: (error) => failureOf(error, context())
      })
      const assembler = Assemble.make(owner, context)
      let finished = false
      return Stream.fromReadableStream({
        evaluate: () => result.stream,
        onError: (error) => failureOf(error, context())
      }).pipe(
        Stream.mapEffect((part) => Effect.suspend(() => Effect.fromResult(assembler.push(part)))),
        Stream.flattenIterable,
        Stream.tap((part) =>
          Effect.sync(() => {
            finished = part.type === "finish"
          })
        ),
        Stream.concat(
          Stream.suspend(() =>
            finished ? Stream.empty : Stream.fail(disconnected("The provider's stream ended before its answer did"))
          )
        ),
        Stream.takeUntil((part) => part.type === "finish")
      )
    })
  )

/** What a model takes in: what a scenario states, else what is known of the id (AGT-194). */
export const windowOf = (connection: ModelConnection, model: string): number =>
  connection.api === "script" ? ScriptModel.scriptWindow(connection) : contextWindow(model)

export class Models extends Context.Service<
  Models,
  {
    readonly stream: (request: ModelRequest, options: CallOptions) => Stream.Stream<ModelPart, ModelFailure>
  }
>()("@tackroom/host/models/Models") {
  static readonly layerFetch = (fetch: GuardedFetch.Fetch): Layer.Layer<Models> =>
    Layer.succeed(Models, {
      stream: (request, options) => {
        const { connection, model } = options
        if (connection.api !== "script") return live(request, connection, model, fetch)
        return options.script === undefined
          ? Stream.fail(refused("A scripted model needs its place in the session"))
          : ScriptModel.stream(request, connection, options.script, options.attempt)
      }
    })

  static readonly layer: Layer.Layer<Models> = Models.layerFetch(httpFetch)
}
