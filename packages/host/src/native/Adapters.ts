/**
 * Joins the native agent to the model layer and the tool runner: their words for what `SessionSetup` asks of them.
 *
 * Owns nothing. The key of a provider is read at each request, so that a rotated one is used at once (RUN-224).
 */
import { Effect, Redacted, Stream, type Schema } from "effect"
import type { Providers } from "../catalog/Providers.ts"
import { ModelFailure } from "../models/ModelFailure.ts"
import type { CallOptions, ModelConnection, Models } from "../models/Models.ts"
import type { SessionServers } from "../mcp/SessionServers.ts"
import type { HostSession } from "../runs/HostRows.ts"
import type { ToolRunnerService } from "../tools/ToolRunner.ts"
import type { ExecuteTool, ModelStep, StreamModel, ToolProblem } from "./SessionSetup.ts"

type StreamOf = (typeof Models)["Service"]["stream"]

const noProvider = (message: string) =>
  new ModelFailure({ kind: "credential", status: null, retryAfterMs: null, errorClass: "credential", message })

const gone = (message: string) =>
  new ModelFailure({ kind: "refused", status: null, retryAfterMs: null, errorClass: "model", message })

/** Asks the model of a step through the provider its target names. */
export const streamModel =
  (
    stream: StreamOf,
    providers: Providers,
    sessionOf: (sessionId: string) => Effect.Effect<HostSession, { readonly message: string }>
  ): StreamModel =>
  (step) =>
    Stream.unwrap(
      Effect.map(connectionOf(step, providers, sessionOf), (connection) =>
        stream(step.request, optionsOf(step, connection))
      )
    )

const connectionOf = Effect.fnUntraced(function* (
  step: ModelStep,
  providers: Providers,
  sessionOf: (sessionId: string) => Effect.Effect<HostSession, { readonly message: string }>
): Effect.fn.Return<ModelConnection, ModelFailure> {
  const { connection: name } = step.target
  const provider = yield* providers
    .resolve(name)
    .pipe(
      Effect.mapError((error) =>
        error._tag === "CredentialsMissing" ? noProvider(error.message) : gone(error.message)
      )
    )
  if (provider.api !== "script") {
    return {
      name,
      api: provider.api,
      baseUrl: provider.baseUrl ?? null,
      apiKey: provider.key === undefined ? null : Redacted.make(provider.key)
    }
  }
  const session = yield* sessionOf(step.setup.sessionId).pipe(Effect.mapError((error) => gone(error.message)))
  const scenario = session.definition.scenarios?.[name]
  return scenario === undefined
    ? yield* gone("the session was made without the scenario of this provider")
    : { name, api: "script", scenario }
})

const optionsOf = (step: ModelStep, connection: ModelConnection): CallOptions => ({
  connection,
  model: step.target.model,
  attempt: step.attempt,
  script: {
    turnId: step.turnId,
    agentId: step.setup.agentId,
    kind: "response",
    completed: step.responseIndex,
    aliasOf: (qualifiedName) => step.setup.tools.find((tool) => tool.qualifiedName === qualifiedName)?.alias
  }
})

/** Runs a tool where it belongs: with whoever takes the call, an MCP server or the client of a face, else in the runner process. */
export const executeTool =
  (runner: ToolRunnerService, takers: ReadonlyArray<Pick<SessionServers, "execute">>): ExecuteTool =>
  (call) => {
    for (const taker of takers) {
      const taken = taker.execute(call)
      if (taken !== undefined) return taken
    }
    return runner
      .call({
        tool: call.tool,
        arguments: call.arguments,
        workspace: call.workspace,
        beforeDispatch: call.beforeDispatch,
        onDelta: (delta) => call.onDelta(delta.stream, delta.text)
      })
      .pipe(
        Effect.map(({ diff, output }) => ({
          output: output as unknown as Schema.Json,
          ...(diff === undefined ? {} : { diff })
        })),
        Effect.mapError((error): ToolProblem => {
          switch (error._tag) {
            case "ToolNotRun":
              return { outcome: "not_run", message: error.message }
            case "ToolFailed":
              return { outcome: "failed", message: error.message, code: error.code }
            case "RunnerLost":
              return { outcome: "unknown", message: error.message }
          }
        })
      )
  }
