/**
 * What differs between the wires of live providers. A module here imports its client library with `load`, ahead of the
 * first live request or on it, never while the program starts: the libraries cost more than the rest of the start.
 */
import type { LanguageModelV4, LanguageModelV4Prompt, SharedV4ProviderOptions } from "@ai-sdk/provider"
import { Effect } from "effect"
import { refused } from "../Classify.ts"
import type { LiveApi } from "../Endpoint.ts"
import type { Fetch } from "../GuardedFetch.ts"
import type { ModelFailure } from "../ModelFailure.ts"

export interface FamilyEndpoint {
  readonly baseUrl: string
  readonly model: string
  /** Stands where a library insists on a key, so that it reads none from the environment; `fetch` replaces it. */
  readonly placeholder: string
  readonly fetch: Fetch & typeof globalThis.fetch
}

export interface Family {
  readonly api: LiveApi
  readonly keyHeader: "authorization" | "x-api-key"
  /** Imports the client library. */
  readonly load: () => Promise<unknown>
  readonly open: (endpoint: FamilyEndpoint) => Effect.Effect<LanguageModelV4, ModelFailure>
  /** Last touches to the prompt. */
  readonly prompt: (prompt: LanguageModelV4Prompt) => LanguageModelV4Prompt
  readonly options: SharedV4ProviderOptions
  /** What to ask for where the request says nothing and the library's own default is too low; null: the default. */
  readonly outputLimit: (model: string) => number | null
}

/** Imports a client library. */
export const library = <A>(load: () => Promise<A>): Effect.Effect<A, ModelFailure> =>
  Effect.tryPromise({ try: load, catch: () => refused("The client library of this provider could not be loaded") })
