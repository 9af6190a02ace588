/**
 * The contract every store keeps (STO-), as a list of cases that any test runner can run: one case per behaviour, each over
 * a fresh, empty store.
 *
 * ```ts
 * for (const test of storeContract(environment)) it.effect(test.title, () => test.run)
 * ```
 *
 * @since 0.1.0
 */
import type { Effect, Scope } from "effect"
import type { RuntimeStore } from "../store/RuntimeStore.ts"
import { interactionCases } from "./storeContractInteractions.ts"
import { readCases } from "./storeContractReads.ts"
import { sequenceCases } from "./storeContractSequences.ts"
import { sessionCases } from "./storeContractSessions.ts"
import { turnCases } from "./storeContractTurns.ts"

/** What a kind of store gives the contract. @since 0.1.0 */
export interface StoreEnvironment {
  /** Makes an empty store that has the extension {@link notesName}; it is closed with the scope. */
  readonly make: Effect.Effect<RuntimeStore, never, Scope.Scope>
  /** A second store over what `store` holds now, after closing it. */
  readonly reopen: (store: RuntimeStore) => Effect.Effect<RuntimeStore, never, Scope.Scope>
}

/** One behaviour. `ids` are the rules it proves. @since 0.1.0 */
export interface StoreCase {
  readonly ids: ReadonlyArray<string>
  readonly title: string
  readonly run: Effect.Effect<void, unknown>
}

/**
 * The cases of the contract over one kind of store. The title ends with the ids of its rules in brackets.
 *
 * @since 0.1.0
 */
export const storeContract = (environment: StoreEnvironment): ReadonlyArray<StoreCase> =>
  [...sessionCases, ...turnCases, ...interactionCases, ...readCases, ...sequenceCases].map((make) => make(environment))
