/**
 * The contract every harness driver keeps (10.2, 10.8), as a list of cases for any test runner. The driver is run by the
 * real runtime over a real store; what it emits is recorded on the way.
 *
 * A kit needs to know what to say to the harness to make it do something: that is the `peer`. A declared capability for
 * which the peer has no scene fails HRN-002, because nothing shows that it holds.
 *
 * ```ts
 * for (const test of harnessContract(scripted({ speed: 0 }), { peer, directory })) it(test.title, () => test.run())
 * ```
 *
 * @since 0.1.0
 */
import type { HarnessCapabilities } from "../harness/Capabilities.ts"
import type { HarnessFactory } from "../harness/Harness.ts"
import type { CreateSession } from "../runtime/Sessions.ts"
import type { RuntimeStore } from "../store/RuntimeStore.ts"
import { harnessCases } from "./harnessContractCases.ts"

/** What makes the harness do something: a prompt, and how the session is made for it. @since 0.1.0 */
export interface HarnessScene {
  readonly prompt: string
  readonly session?: Partial<Pick<CreateSession, "model" | "agent" | "permissionMode" | "instructions">>
}

/** The scenes of one harness. @since 0.1.0 */
export interface HarnessPeer {
  /** Answers with text and completes. */
  readonly hello: HarnessScene
  /** Calls at least one tool without asking, and completes. */
  readonly tool?: HarnessScene
  /** Asks at least one permission; allowed or denied, the turn ends. */
  readonly permission?: HarnessScene
  /** Asks at least two permissions that are pending together. */
  readonly parallel?: HarnessScene
  /** Asks a question; answered, the turn completes. */
  readonly question?: HarnessScene
  /** Works until it is cancelled, for a second at least. */
  readonly long?: HarnessScene
  /** Ends failed. */
  readonly failure?: HarnessScene
}

/** @since 0.1.0 */
export interface HarnessKitOptions {
  readonly peer: HarnessPeer
  /** An existing directory the sessions work in. */
  readonly directory: string
  /** A fresh, empty store for each case. */
  readonly makeStore: () => RuntimeStore
}

/** How a case ended when it did not fail. @since 0.1.0 */
export type HarnessVerdict =
  | { readonly verdict: "pass" }
  /** The capability is not declared, or a race was not decided. */
  | { readonly verdict: "skip"; readonly reason: string }

/** One behaviour. `id` is the rule it proves; `run` rejects when it does not hold. @since 0.1.0 */
export interface HarnessCase {
  readonly id: string
  readonly title: string
  readonly requires?: keyof HarnessCapabilities
  readonly run: () => Promise<HarnessVerdict>
}

/**
 * The cases for one harness. The title ends with the id of its rule in brackets.
 *
 * @since 0.1.0
 */
export const harnessContract = (factory: HarnessFactory, options: HarnessKitOptions): ReadonlyArray<HarnessCase> =>
  harnessCases(factory, options)
