/**
 * The host's own rows, in tables of the runtime's database (run-protocol 6.1): what a session was made with, what became
 * of each submission, which grants stand. Times are milliseconds.
 */
import type { HarnessRef } from "@tackroom/protocol/events"
import type { Failure, FullMember, RunStatus } from "@tackroom/protocol/run"
import type { Scenario } from "@tackroom/protocol/scenario"
import type { InteractionRow, UsageTotals } from "@tackroom/sdk/effect"
import type { Schema } from "effect"
import { nativeHarness } from "../harnesses/Harnesses.ts"
import type { ModelTarget } from "../native/SessionSetup.ts"

export type Cursors = { readonly [sessionId: string]: number }

/** What a session keeps of its agent, whatever happens to the catalog later (RUN-330, AGT-333). */
export interface KeptDefinition {
  readonly member: FullMember
  /** Digest of the binding of each selected tool at creation (AGT-121). */
  readonly bindings: { readonly [qualifiedName: string]: string }
  /** The scenarios of its scripted models by connection, read when the session was made. */
  readonly scenarios?: { readonly [connection: string]: Scenario }
}

/** `hr_session`. */
export interface HostSession {
  readonly sessionId: string
  readonly leadId: string
  readonly agentId: string
  readonly role: "lead" | "worker"
  readonly definition: KeptDefinition
  /** Null for a harness that chooses its model itself. */
  readonly model: ModelTarget | null
  readonly sandbox: { readonly kind: "none" | "process" | "openshell"; readonly proved: boolean }
  readonly workspace: string
  readonly name: string | null
  readonly owner: string
  readonly creationId: string | null
  readonly paramsDigest: string
  readonly createdAt: number
  readonly closedAt: number | null
}

/** The harness that runs its turns. */
export const harnessOf = ({ definition }: HostSession): HarnessRef => definition.member.harness ?? nativeHarness

/** Whether a script plays its model, or its whole harness (SRV-008). */
export const isScripted = (session: HostSession): boolean =>
  session.definition.scenarios !== undefined || harnessOf(session).id === "scripted"

/** The error of a start that was refused after its receipt was reserved (RUN-386), as it is answered again. */
export interface RecordedError {
  readonly code: number
  readonly message: string
  readonly data: { readonly kind: string; readonly [key: string]: Schema.Json }
}

/** `hr_run`: the receipt of one submission. `endedAt` is set in the transaction that ends the run and never changes. */
export interface HostRun {
  readonly sessionId: string
  readonly submissionId: string
  readonly state: "admitted" | "not_accepted" | "terminal"
  readonly textDigest: string
  readonly turnId: string | null
  readonly startCursors: Cursors
  readonly endCursors: Cursors | null
  readonly status: Exclude<RunStatus, "running" | "interrupted"> | null
  readonly failure: Failure | null
  readonly output: string | null
  readonly error: RecordedError | { readonly message: string; readonly kind?: string } | null
  readonly createdAt: number
  readonly endedAt: number | null
}

/** `hr_grant`: a person allowed a tool for the rest of a session (AGT-120). */
export interface HostGrant {
  readonly sessionId: string
  readonly qualifiedName: string
  readonly binding: string
  readonly interactionId: string
  readonly grantedAt: number
}

/** A pending interaction, as far as it is shown. */
export type PendingRow = Pick<
  InteractionRow,
  "id" | "sessionId" | "turnId" | "kind" | "nativeId" | "request" | "createdAt"
>

/** A run and what belongs to its state at one moment. */
export interface Observed {
  readonly run: HostRun | null
  readonly head: number
  /** Oldest first; empty for a run that has ended. */
  readonly pending: ReadonlyArray<PendingRow>
}

/** A session at one moment. */
export interface SessionView {
  readonly active: HostRun | null
  readonly latest: HostRun | null
  readonly head: number
  readonly pending: ReadonlyArray<PendingRow>
  readonly grants: ReadonlyArray<HostGrant>
  readonly usage: UsageTotals
}

/** A row of `session/list`. */
export interface SessionSummary {
  readonly session: HostSession
  /** Time of its last change. */
  readonly activity: number
  readonly activeSubmission: string | null
  readonly latestSubmission: string | null
  readonly waiting: boolean
}
