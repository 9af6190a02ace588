/**
 * What the host asks of the agent runtime, in one place (D-26, D-30): the runtime's Effect services with the extra rights
 * of the package around it, narrowed to what `Sessions` and `Runs` use. It owns nothing.
 */
import type { RuntimeError } from "@tackroom/protocol"
import type { EventPayload, Interaction } from "@tackroom/protocol/events"
import type { RuntimeStore, StoreOp } from "@tackroom/sdk/adapters"
import type { Effect } from "effect"

export interface StartedTurn {
  readonly turnId: string
  readonly duplicate: boolean
  /** The session's head before the turn. */
  readonly startCursor: number
}

export type Resolution =
  | { readonly decision: "allow_once" | "allow_always" | "deny"; readonly note?: string }
  | { readonly answers: ReadonlyArray<ReadonlyArray<string>> }

export interface MemberPhase {
  readonly turnId: string
  readonly phase: "queued" | "model" | "tool" | "approval" | "question" | "recovering" | "cancelling"
  readonly tool?: string
  readonly since: number
}

export interface HostRuntime {
  readonly store: RuntimeStore
  readonly journalId: string
  /** Creates the sessions of one agent/session call in one transaction, with the host's own rows. */
  readonly createSessions: (
    sessions: ReadonlyArray<{
      readonly id: string
      readonly directory: string
      readonly title?: string
      readonly notices: ReadonlyArray<EventPayload>
    }>,
    ops: ReadonlyArray<StoreOp>
  ) => Effect.Effect<void, RuntimeError>
  readonly startTurn: (
    input: { readonly sessionId: string; readonly messageId: string; readonly text: string },
    ops: (started: { readonly turnId: string; readonly startCursor: number }) => ReadonlyArray<StoreOp>
  ) => Effect.Effect<StartedTurn, RuntimeError>
  /** Returns when the turn is settled; `settled: false` when even the ladder's end did not do it. */
  readonly cancelTurn: (
    sessionId: string
  ) => Effect.Effect<{ readonly cancelled: boolean; readonly settled: boolean }, RuntimeError>
  readonly closeSession: (sessionId: string, ops: ReadonlyArray<StoreOp>) => Effect.Effect<void, RuntimeError>
  /** A person's answer; `also` are pending interactions that it settles with it, by grant. */
  readonly respond: (
    interactionId: string,
    resolution: Resolution,
    extra: { readonly ops: ReadonlyArray<StoreOp>; readonly also: ReadonlyArray<string> }
  ) => Effect.Effect<{ readonly alreadyResolved: boolean; readonly interaction: Interaction }, RuntimeError>
  readonly phase: (sessionId: string) => MemberPhase | undefined
  /** A new id with this prefix. */
  readonly mint: (prefix: "ses_") => string
}
