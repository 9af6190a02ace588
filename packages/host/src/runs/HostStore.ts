/**
 * Typed access to the host's tables: reads as queries of the store extension, writes as operations that commit with a
 * call of the runtime (STO-010). It owns the names of both; `HostTables` implements them per kind of store.
 */
import type { RuntimeStore, StoreFailure, StoreOp, UsageTotals } from "@tackroom/sdk/effect"
import type { Effect } from "effect"
import type { HostGrant, HostRun, HostSession, Observed, SessionSummary, SessionView } from "./HostRows.ts"

/** The extension's name in the store and its migrations. */
export const extensionName = "host"

/** An artifact by name and size. */
export interface ArtifactNote {
  readonly artifactId: string
  readonly bytes: number
}

/** Arguments and results of the reads. */
export interface HostQueries {
  readonly session: { readonly args: { readonly sessionId: string }; readonly result: HostSession | null }
  readonly sessionByCreation: {
    readonly args: { readonly owner: string; readonly creationId: string }
    readonly result: HostSession | null
  }
  /** Newest activity first; `after` continues behind a row. */
  readonly sessions: {
    readonly args: {
      readonly agentId?: string
      readonly includeClosed: boolean
      readonly limit: number
      readonly after?: { readonly activity: number; readonly sessionId: string }
    }
    readonly result: ReadonlyArray<SessionSummary>
  }
  /**
   * A run, what is pending for it and how far its journal is, from one snapshot (RUN-194). Without `submissionId` the
   * active run, else the latest that was admitted.
   */
  readonly observe: {
    readonly args: { readonly sessionId: string; readonly submissionId?: string }
    readonly result: Observed
  }
  /** Usage that was reported in a turn between two cursors. */
  readonly turnUsage: {
    readonly args: {
      readonly sessionId: string
      readonly turnId: string
      readonly after: number
      readonly upTo: number
    }
    readonly result: UsageTotals
  }
  /** Everything that `session/state` tells, from one snapshot. */
  readonly view: { readonly args: { readonly sessionId: string }; readonly result: SessionView }
  /** The artifacts of the latest text of a turn that was too long for its event. */
  readonly textArtifact: {
    readonly args: { readonly sessionId: string; readonly after: number; readonly upTo: number }
    readonly result: ArtifactNote | null
  }
  /** The artifact with a call's whole arguments, as its `tool-input` names it. */
  readonly argumentsArtifact: {
    readonly args: { readonly sessionId: string; readonly turnId: string; readonly callId: string }
    readonly result: string | null
  }
  readonly run: {
    readonly args: { readonly sessionId: string; readonly submissionId: string }
    readonly result: HostRun | null
  }
  /** The run without an end. */
  readonly activeRun: { readonly args: { readonly sessionId: string }; readonly result: HostRun | null }
  /** Newest first, without those that were not accepted when `admittedOnly`. */
  readonly runs: {
    readonly args: { readonly sessionId: string; readonly limit: number; readonly admittedOnly: boolean }
    readonly result: ReadonlyArray<HostRun>
  }
  readonly runOfTurn: {
    readonly args: { readonly sessionId: string; readonly turnId: string }
    readonly result: HostRun | null
  }
  readonly grant: {
    readonly args: { readonly sessionId: string; readonly qualifiedName: string }
    readonly result: HostGrant | null
  }
}

/** Arguments of the writes. */
export interface HostOps {
  readonly putSession: HostSession
  readonly closeSession: { readonly sessionId: string; readonly at: number }
  readonly removeSession: { readonly sessionId: string }
  readonly putRun: HostRun
  /** Ends the run of a turn, if it is still open. */
  readonly endRun: Pick<HostRun, "sessionId" | "status" | "failure" | "output" | "error" | "endCursors"> & {
    readonly turnId: string
    readonly endedAt: number
  }
  readonly putGrant: HostGrant
  readonly removeGrant: { readonly sessionId: string; readonly qualifiedName: string }
  readonly removeGrants: { readonly sessionId: string }
}

export const op = <K extends keyof HostOps>(name: K, args: HostOps[K]): StoreOp => ({
  extension: extensionName,
  op: name,
  args
})

export interface HostStore {
  readonly query: <K extends keyof HostQueries>(
    name: K,
    args: HostQueries[K]["args"]
  ) => Effect.Effect<HostQueries[K]["result"], StoreFailure>
}

/** The extension answers what its own `HostQueries` says; the store passes it through untouched. */
export const hostStore = (store: RuntimeStore): HostStore => ({
  query: <K extends keyof HostQueries>(name: K, args: HostQueries[K]["args"]) =>
    store.query(extensionName, name, args) as Effect.Effect<HostQueries[K]["result"], StoreFailure>
})
