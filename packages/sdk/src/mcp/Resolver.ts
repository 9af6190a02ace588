/**
 * Which MCP servers a session gets, and what becomes of the others. Pure: it reads no variable, no file and no secret, and
 * `${…}` in a value is text like any other (RT-305).
 *
 * Implements RT-300 to RT-302, RT-305.
 *
 * @since 0.1.0
 */
import { ConfigInvalid } from "@tackroom/protocol"
import type { McpEntry, SecretValue } from "@tackroom/protocol/events"

/** A server as it is started or reached. `Value` is a `SecretValue` until the values are filled in. @since 0.1.0 */
export type EffectiveMcpServer<Value = SecretValue> =
  | {
      readonly name: string
      readonly source: "managed" | "user"
      readonly transport: "stdio"
      readonly command: string
      readonly args: ReadonlyArray<string>
      readonly env: Readonly<Record<string, Value>>
    }
  | {
      readonly name: string
      readonly source: "user"
      readonly transport: "remote"
      readonly url: string
      readonly headers: Readonly<Record<string, Value>>
    }

/** What became of a server that somebody named. @since 0.1.0 */
export interface McpStatus {
  /** It is one of the managed servers. */
  readonly default: boolean
  /** An entry of the user stands for it, in place of a managed one if there is one. */
  readonly override: boolean
  readonly enabled: boolean
  /** Who decides about it: whoever manages servers, the configuration made for the harness, or the harness itself. */
  readonly control: "managed" | "generated-config" | "external-unmanaged"
  readonly apply: "applied" | "blocked" | "disabled" | "external-unmanaged"
  /** Why it is blocked; says which field, never a value. */
  readonly error?: string
}

/** A server that somebody other than the user provides; always a program. @since 0.1.0 */
export type ManagedMcpEntry = Omit<McpEntry, "type" | "url" | "headers"> & { readonly type: "stdio" }

/** Servers by name, and the status of every name that was given. @since 0.1.0 */
export interface ResolvedMcp {
  readonly mcp: Readonly<Record<string, EffectiveMcpServer>>
  readonly status: Readonly<Record<string, McpStatus>>
}

const serverOf = (name: string, source: "managed" | "user", entry: McpEntry): EffectiveMcpServer | string => {
  if (entry.type === "remote") {
    if (entry.url === undefined || entry.url === "") return "url is missing"
    return { name, source: "user", transport: "remote", url: entry.url, headers: entry.headers ?? {} }
  }
  if (entry.command === undefined || entry.command === "") return "command is missing"
  return { name, source, transport: "stdio", command: entry.command, args: entry.args ?? [], env: entry.env ?? {} }
}

/**
 * Works out the servers of a session. A user's entry replaces the managed one of its name, also when it is disabled or
 * incomplete; nothing of one is mixed into the other.
 *
 * ```ts
 * const { mcp, status } = resolveEffectiveMcp({ managed: {}, user: { files: { type: "stdio", command: "/bin/files" } } })
 * ```
 *
 * @throws ConfigInvalid naming the field, when `strict` is set and a managed server is incomplete
 * @since 0.1.0
 */
export const resolveEffectiveMcp = (given: {
  readonly managed: Readonly<Record<string, ManagedMcpEntry>>
  readonly user: Readonly<Record<string, McpEntry>>
  readonly strict?: boolean
}): ResolvedMcp => {
  const mcp: Array<readonly [string, EffectiveMcpServer]> = []
  const status: Array<readonly [string, McpStatus]> = []
  const managed = new Map<string, McpEntry>(Object.entries(given.managed))
  const user = new Map(Object.entries(given.user))
  for (const [name, entry] of new Map([...managed, ...user])) {
    const override = user.has(name)
    const who = {
      default: managed.has(name),
      override,
      control: override ? ("generated-config" as const) : ("managed" as const)
    }
    if (entry.disabled === true) {
      status.push([name, { ...who, enabled: false, apply: "disabled" }])
      continue
    }
    const server = serverOf(name, override ? "user" : "managed", entry)
    if (typeof server === "string") {
      if (given.strict === true && !override) {
        throw new ConfigInvalid({ field: `managed.${name}`, expected: `a complete entry: ${server}` })
      }
      status.push([name, { ...who, enabled: true, apply: "blocked", error: server }])
      continue
    }
    mcp.push([name, server])
    status.push([name, { ...who, enabled: true, apply: "applied" }])
  }
  // From entries, so that no name is a property that objects have of their own.
  return { mcp: Object.fromEntries(mcp), status: Object.fromEntries(status) }
}
