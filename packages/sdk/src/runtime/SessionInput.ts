/**
 * What callers give for sessions (4.1), and the rules and limits it has to keep (3.1).
 *
 * Implements RT-041, RT-047.
 *
 * @since 0.1.0
 */
import { platform } from "#platform"
import { InvalidExecutionBinding, SessionInvalid } from "@tackroom/protocol"
import type {
  EventPayload,
  HarnessRef,
  ModelRef,
  PermissionLevel,
  Session,
  SessionMcp
} from "@tackroom/protocol/events"
import { Effect } from "effect"
import type { SessionRow } from "../store/Rows.ts"
import { utf8Length } from "./Coalescer.ts"

export interface CreateSession {
  readonly id?: string
  readonly workspaceId?: string
  readonly directory: string
  readonly harness: HarnessRef
  readonly model?: ModelRef
  readonly variant?: string
  readonly agent?: string
  readonly instructions?: string
  readonly group?: string
  readonly title?: string
  readonly tags?: ReadonlyArray<string>
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly permissionMode?: string
  /**
   * MCP servers of this session: names of the runtime's configured ones, or entries by name. Values of `env` and `headers`
   * stay in this process: a session that another one opens is without the servers that need them.
   */
  readonly mcp?: SessionMcp
  readonly open?: "eager" | "lazy"
  readonly keepOnFailure?: boolean
}

/** What only the embedding package may add to a session (D-30). */
export interface EmbeddedSession extends CreateSession {
  readonly parentSessionId?: string
  readonly rootSessionId?: string
  readonly toolCallId?: string
  /** Default: the runtime's own owner. */
  readonly owner?: string | null
  readonly harnessPayload?: unknown
  /** Journaled right after `session-created`, in the same transaction. */
  readonly entries?: ReadonlyArray<EventPayload>
}

export interface ListSessionsInput {
  readonly workspaceId?: string
  readonly directory?: string
  readonly parentSessionId?: string | null
  readonly archived?: boolean
  readonly status?: Session["status"]
  readonly owner?: string | null
  readonly limit?: number
  readonly cursor?: string
}

export interface SessionPage {
  readonly items: ReadonlyArray<Session>
  readonly nextCursor?: string
}

export interface UpdateSession {
  readonly title?: string
  readonly tags?: ReadonlyArray<string>
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly time?: { readonly archived?: string | boolean | null }
}

/** A field that is not as it has to be. */
export const invalid = (field: string, expected: string) => new SessionInvalid({ field, expected })

/** The first field over its limit. */
export const checkFields = (input: UpdateSession & { readonly instructions?: string }): SessionInvalid | undefined => {
  if (input.title !== undefined && (input.title.trim().length === 0 || input.title.length > 200)) {
    return invalid("title", "1 to 200 characters")
  }
  if (input.tags !== undefined && (input.tags.length > 32 || input.tags.some((tag) => tag.length > 64))) {
    return invalid("tags", "at most 32 tags of 64 characters")
  }
  if (input.metadata !== undefined && utf8Length(JSON.stringify(input.metadata)) > 16_384) {
    return invalid("metadata", "at most 16 KiB")
  }
  if (input.instructions !== undefined && utf8Length(input.instructions) > 262_144) {
    return invalid("instructions", "at most 262,144 bytes")
  }
  return undefined
}

/** The real path of a directory that can be worked in. */
export const directoryOf = Effect.fnUntraced(function* (directory: string) {
  const field = "directory"
  const bad = (expected: string) => new InvalidExecutionBinding({ field, expected })
  if (typeof directory !== "string" || directory.trim().length === 0) return yield* bad("a path")
  if (utf8Length(directory) > 4096) return yield* bad("at most 4,096 bytes")
  if (!/^(?:\/|[A-Za-z]:[\\/]|\\\\)/u.test(directory)) return yield* bad("an absolute path")
  const real = yield* platform
    .realPath(directory)
    .pipe(Effect.catchTag("PathUnusable", () => Effect.fail(bad("an existing directory"))))
  if (!(yield* platform.isDirectory(real))) return yield* bad("a directory")
  return real
})

/** The lower of two ceilings. */
export const lower = (a: PermissionLevel, b: PermissionLevel | undefined): PermissionLevel => {
  const rank = { ask: 0, auto: 1, full: 2 }
  return b === undefined || rank[a] <= rank[b] ? a : b
}

/** Fields that only the runtime sets (RT-047). */
export const refuseOwn = (input: CreateSession): SessionInvalid | undefined => {
  for (const field of ["handoff", "permissionState", "permissionCeiling"]) {
    if (field in input) return invalid(field, "not to be set by a caller")
  }
  return undefined
}

/** The position of a row in a listing, as callers get it. */
export const encodeCursor = (row: SessionRow): string => btoa(JSON.stringify([row.updatedAt, row.id]))

/** The position that a cursor stands for; undefined when it is none of ours. */
export const decodeCursor = (cursor: string): { readonly updatedAt: number; readonly id: string } | undefined => {
  if (!/^[A-Za-z0-9+/=]{1,400}$/u.test(cursor)) return undefined
  try {
    const value: unknown = JSON.parse(atob(cursor))
    return Array.isArray(value) && typeof value[0] === "number" && typeof value[1] === "string"
      ? { updatedAt: value[0], id: value[1] }
      : undefined
  } catch {
    return undefined
  }
}
