/** The messages of `initialize` and `host/info` (run-protocol sections 3 and 7). */
import { Schema } from "effect"
import { chars, int, HostId, optional, SandboxKind, Timestamp } from "./Bounds.ts"
import { Capabilities } from "./Capabilities.ts"
import { Limits } from "./Limits.ts"
import { lazySchema } from "../internal/Lazy.ts"

/** The version of the run protocol that this package describes. */
export const protocolVersion = 1

/** The version of the event contract: the canonical event table. */
export const eventContract = 1

/** A program and its version. */
export const ProgramVersion = lazySchema(() =>
  Schema.Struct({ name: Schema.String, version: Schema.String }).annotate({
    identifier: "ProgramVersion"
  })
)
/** The wall of a host: what it uses, what is there, and why it is not another. */
export const SandboxInfo = lazySchema(() =>
  Schema.Struct({
    selected: SandboxKind,
    available: Schema.Array(SandboxKind),
    reason: optional(Schema.String)
  }).annotate({ identifier: "SandboxInfo" })
)
/** The wall of a host. */
export type SandboxInfo = typeof SandboxInfo.Type

/** Params of `initialize`. Any version, or none, is answered with version 1 (RUN-120). */
export const InitializeParams = lazySchema(() =>
  Schema.Struct({
    protocolVersion: optional(Schema.Int),
    client: optional(Schema.Struct({ name: chars(0, 128), version: chars(0, 128) }))
  })
)
/** Result of `initialize`. */
export const InitializeResult = lazySchema(() =>
  Schema.Struct({
    protocolVersion: Schema.Literal(1),
    host: ProgramVersion,
    capabilities: Capabilities,
    limits: Limits,
    journalId: HostId,
    eventContract: Schema.Literal(1),
    sandbox: SandboxInfo,
    warnings: Schema.Array(Schema.String)
  }).annotate({ identifier: "InitializeResult" })
)
/** Result of `initialize`. */
export type InitializeResult = typeof InitializeResult.Type

/** The counters of `host/info`, in table order. They only grow (RUN-020). */
export const counterKeys = [
  "framesIn",
  "framesRefused",
  "notificationsIgnored",
  "responsesIgnored",
  "applicationRefused",
  "progressDropped",
  "logLinesDropped",
  "busyAnswers"
] as const

const counter = int(0)

/** The counters of `host/info`. */
export const Counters = lazySchema(() =>
  Schema.Struct(
    Object.fromEntries(counterKeys.map((key) => [key, counter])) as {
      readonly [K in (typeof counterKeys)[number]]: typeof counter
    }
  ).annotate({ identifier: "Counters" })
)
/** The counters of `host/info`. */
export type Counters = typeof Counters.Type

/** Result of `host/info`. */
export const HostInfo = lazySchema(() =>
  Schema.Struct({
    host: ProgramVersion,
    pid: int(0),
    startedAt: Timestamp,
    journalId: HostId,
    storage: Schema.Struct({ type: Schema.Literals(["memory", "sqlite", "postgres"]) }),
    sandbox: SandboxInfo,
    state: Schema.Literals(["ready", "draining"]),
    counters: Counters
  }).annotate({ identifier: "HostInfo" })
)
/** Result of `host/info`. */
export type HostInfo = typeof HostInfo.Type
