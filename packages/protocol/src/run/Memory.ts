/** Memory on the wire (run-protocol section 25). */
import { Schema } from "effect"
import { exactlyOne, HostId, IdParam, int, optional, Timestamp } from "./Bounds.ts"
import { lazySchema } from "../internal/Lazy.ts"

/** An entry of a memory. */
export const MemoryEntry = lazySchema(() =>
  Schema.Struct({
    memoryId: HostId,
    text: Schema.String,
    tags: Schema.Array(Schema.String),
    agent: Schema.String,
    sessionId: HostId,
    createdAt: Timestamp,
    updatedAt: Timestamp
  }).annotate({ identifier: "MemoryEntry" })
)
/** An entry of a memory. */
export type MemoryEntry = typeof MemoryEntry.Type

const scope = { agent: optional(IdParam), memoryScope: optional(IdParam) }

/** Params of `memory/list`: exactly one of an agent and a shared scope. */
export const MemoryListParams = lazySchema(() =>
  Schema.Struct({
    ...scope,
    after: optional(IdParam),
    limit: optional(int(1, 100))
  }).check(exactlyOne("agent", "memoryScope"))
)
/** Params of `memory/list`. */
export type MemoryListParams = typeof MemoryListParams.Type

/** Params of `memory/forget`: exactly one of an agent and a shared scope. */
export const MemoryForgetParams = lazySchema(() =>
  Schema.Struct({ ...scope, memoryId: IdParam }).check(exactlyOne("agent", "memoryScope"))
)
/** Params of `memory/forget`. */
export type MemoryForgetParams = typeof MemoryForgetParams.Type
