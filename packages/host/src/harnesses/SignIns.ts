/**
 * Signing in to the harness behind a face (ACP-035 to ACP-037). It owns nothing: how one signs in the harness says, and
 * whether one is signed in it keeps.
 */
import { type HarnessError, UnsupportedOperation } from "@tackroom/protocol"
import type { HarnessRef } from "@tackroom/protocol/events"
import type { HarnessCapabilities, SignInMethod } from "@tackroom/sdk/adapters"
import type { HarnessRegistry } from "@tackroom/sdk/effect"
import { Effect } from "effect"
import { harnessKeyOf } from "./Harnesses.ts"

export interface SignIns {
  /** What the harness named when it was last started; starts nothing (ACP-030). */
  readonly known: (harness: HarnessRef) => ReadonlyArray<SignInMethod>
  /** Starts the harness once, to know what it takes and how one signs in. */
  readonly probe: (harness: HarnessRef, directory: string) => Effect.Effect<HarnessCapabilities, HarnessError>
  /** Starts the harness and asks how one signs in. */
  readonly methods: (harness: HarnessRef, directory: string) => Effect.Effect<ReadonlyArray<SignInMethod>, HarnessError>
  readonly use: (
    harness: HarnessRef,
    id: string,
    directory: string
  ) => Effect.Effect<void, HarnessError | UnsupportedOperation>
}

export const make = (registry: Pick<HarnessRegistry["Service"], "driver" | "made">): SignIns => ({
  known: (harness) => registry.made(harness)?.signIn?.known() ?? [],
  probe: (harness, directory) =>
    Effect.flatMap(registry.driver(harness), (driver) => driver.capabilities({ directory })),
  methods: (harness, directory) =>
    Effect.flatMap(registry.driver(harness), ({ signIn }) => signIn?.methods(directory) ?? Effect.succeed([])),
  use: (harness, id, directory) =>
    Effect.flatMap(registry.driver(harness), ({ signIn }): Effect.Effect<void, HarnessError | UnsupportedOperation> =>
      signIn === undefined
        ? Effect.fail(new UnsupportedOperation({ harness: harnessKeyOf(harness), operation: "signIn" }))
        : signIn.use(id, directory)
    )
})
