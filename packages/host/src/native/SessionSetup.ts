/**
 * What a session was created with, as the native agent needs it: its agent's stored definition, resolved tools, model and
 * policy (RUN-330, AGT-122). Owned by the session's row, not by the catalog: a later change there changes nothing here.
 */
import type { Attachment, Category } from "@tackroom/protocol/events"
import type { Effect, Schema, Stream } from "effect"
import type { ModelFailure } from "../models/ModelFailure.ts"
import type { ModelPart, ModelRequest } from "../models/ModelRequest.ts"

/** Which model answers: the name of a provider and the provider's own id of the model. */
export interface ModelTarget {
  readonly connection: string
  readonly model: string
}

/** One tool as this session sees it. Internal tools have no category and never ask (AGT-034). */
export interface SessionTool {
  readonly qualifiedName: string
  readonly alias: string
  readonly description: string
  readonly schema: { readonly [key: string]: Schema.Json }
  readonly category: Category | undefined
  /** `mcp`: of an MCP server of the host; `session`: of one that the session brought along. */
  readonly source: "native" | "internal" | "mcp" | "session"
  /** What the tool is, for tools that may change while a call waits (AGT-121). */
  readonly boundTo?: string
  /** Issues of arguments that break the schema, empty when they fit (AGT-005). No value is repeated. */
  readonly validate: (input: Schema.Json) => ReadonlyArray<{ readonly path: string; readonly expected: string }>
}

export interface ApprovalPolicy {
  readonly mode: "always" | "only" | "reviewer" | "never"
  /** Qualified names, for mode `only`. */
  readonly tools: ReadonlyArray<string>
}

export interface SessionSetup {
  readonly sessionId: string
  readonly agentId: string
  readonly instructions: string
  readonly workspace: string
  readonly tools: ReadonlyArray<SessionTool>
  readonly model: ModelTarget
  readonly fallback: ModelTarget | undefined
  readonly approvals: ApprovalPolicy
  /** True for a tool that is no longer what it was when the session was made (AGT-121). */
  readonly bindingChanged: (qualifiedName: string) => boolean
}

/** One attempt of one model step. */
export interface ModelStep {
  readonly setup: SessionSetup
  readonly target: ModelTarget
  readonly request: ModelRequest
  readonly turnId: string
  /** Completed responses of the session before this one (AGT-330). */
  readonly responseIndex: number
  /** From 1. */
  readonly attempt: number
}

export type StreamModel = (step: ModelStep) => Stream.Stream<ModelPart, ModelFailure>

/** What a tool gave. `diff` is journaled as `file-diff` (AGT-064), `attachments` with the output (AGT-036). */
export interface ToolOutput {
  readonly output: Schema.Json
  readonly attachments?: ReadonlyArray<Attachment>
  readonly diff?: { readonly path: string; readonly oldText?: string; readonly newText: string }
}

/** How a tool that gave no output ended. */
export interface ToolProblem {
  readonly outcome: "failed" | "not_run" | "unknown"
  readonly message: string
  readonly code?: "failed" | "timeout" | "cancelled"
}

/**
 * Checks and runs one call of a tool, out of process. Interruption ends what runs here and returns when it is gone; a tool
 * of an MCP server is told, and not waited for (RUN-258).
 */
export type ExecuteTool = (call: {
  readonly sessionId: string
  readonly workspace: string
  readonly tool: string
  /** The tool's binding when the call was checked. */
  readonly boundTo?: string
  readonly arguments: Schema.Json
  /** Completes when the dispatch record is durable; a call that was refused before never asks for it (AGT-033). */
  readonly beforeDispatch: Effect.Effect<void>
  readonly onDelta: (stream: "stdout" | "stderr" | "combined", delta: string) => Effect.Effect<void>
  /** The call works in a terminal of the client (ACP-213). */
  readonly onTerminal: (terminalId: string) => Effect.Effect<void>
  /** Says how the call ends when it is interrupted and that is not a plain cancel. */
  readonly ifInterrupted: (problem: ToolProblem) => void
  /** Keeps bytes with the session, and gives the id they are found under. */
  readonly keepArtifact: (mime: string, bytes: Uint8Array) => Effect.Effect<string, { readonly message: string }>
}) => Effect.Effect<ToolOutput, ToolProblem>
