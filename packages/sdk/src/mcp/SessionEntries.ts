/**
 * The entries that a caller gives for one session: what is wrong with them, and their values apart from them (D-39). Pure.
 *
 * A session's config is stored, so it holds only names of values. A value that was given for a session is called after it,
 * and no other session's config can name it.
 */
import type { McpEntry, SecretValue } from "@tackroom/protocol/events"

/** A bad field, and what is expected there; never what stood there (RT-322). */
export interface EntryProblem {
  readonly field: string
  readonly expected: string
}

/** A value that was taken out of an entry. */
export interface TakenValue {
  readonly field: ValueField
  readonly value: string
  /** What stands for it where it was said. */
  readonly label: string
}

/** Entries as they are stored, and the values that they name. */
export interface StoredEntries {
  readonly entries: Readonly<Record<string, McpEntry>>
  readonly values: ReadonlyMap<string, TakenValue>
}

export type Values = Readonly<Record<string, SecretValue>>

/** Where an entry has values. */
export type ValueField = "env" | "headers"

const ownPrefix = "session:"

/** A value that belongs to a session and stands in this process only, if it is there. */
export const isSessionSecret = (name: string): boolean => name.startsWith(ownPrefix)

const scopeOf = (sessionId: string): string => `${ownPrefix}${sessionId}/`

const escaped = (name: string): string => name.replaceAll("%", "%25").replaceAll("/", "%2F")

/** A session's id has no slash, so the names of two sessions never meet. */
const secretName = (sessionId: string, server: string, field: ValueField, key: string): string =>
  `${scopeOf(sessionId)}mcp/${escaped(server)}/${field}/${key}`

const serverLimit = 64
const nameLimit = 128
const valueLimit = 65_536

const isName = (name: string): boolean =>
  name.trim().length > 0 && name.length <= nameLimit && name.isWellFormed() && !/\p{Cc}/u.test(name)

/** A URL is stored as it is: what is secret belongs into a header. */
const isPlainUrl = (text: string): boolean => {
  if (!URL.canParse(text)) return false
  const { password, protocol, username } = new URL(text)
  return /^https?:$/u.test(protocol) && username === "" && password === ""
}

const keyPatterns = { env: /^[^=\0]{1,256}$/u, headers: /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/u } as const
const valuePatterns = { env: /^[^\0]*$/u, headers: /^[^\0\r\n]*$/u } as const

const valueProblem = (sessionId: string, field: ValueField, key: string, value: SecretValue): string | undefined => {
  if (!keyPatterns[field].test(key)) return field === "env" ? "names of variables" : "names of headers"
  if (typeof value === "string") {
    return value.length <= valueLimit && valuePatterns[field].test(value)
      ? undefined
      : `at most ${valueLimit} characters that ${field === "env" ? "a variable" : "a header"} can have`
  }
  return isSessionSecret(value.secret) && !value.secret.startsWith(scopeOf(sessionId))
    ? "the name of a secret that is not another session's"
    : undefined
}

/** The first thing that is wrong with a session's entries. */
export const entryProblem = (
  sessionId: string,
  entries: Readonly<Record<string, McpEntry>>
): EntryProblem | undefined => {
  const names = Object.keys(entries)
  if (names.length > serverLimit) return { field: "mcp", expected: `at most ${serverLimit} servers` }
  for (const name of names) {
    if (!isName(name)) return { field: "mcp", expected: `names of 1 to ${nameLimit} characters` }
    const entry = entries[name]
    if (entry === undefined) continue
    const wanted = entry.type === "stdio" ? "command" : "url"
    if ((entry[wanted] ?? "") === "") return { field: `mcp.${name}.${wanted}`, expected: "a text" }
    if (entry.type === "remote" && !isPlainUrl(entry.url ?? "")) {
      return { field: `mcp.${name}.url`, expected: "a URL of http or https without a password" }
    }
    for (const field of ["env", "headers"] as const) {
      for (const [key, value] of Object.entries(entry[field] ?? {})) {
        const expected = valueProblem(sessionId, field, key, value)
        if (expected !== undefined) return { field: `mcp.${name}.${field}`, expected }
      }
    }
  }
  return undefined
}

/** Takes the values out of entries and leaves their names. */
export const withoutValues = (sessionId: string, entries: Readonly<Record<string, McpEntry>>): StoredEntries => {
  const kept = new Map<string, TakenValue>()
  const named = (server: string, field: ValueField, values: Values): Values =>
    Object.fromEntries(
      Object.entries(values).map(([key, value]) => {
        if (typeof value !== "string") return [key, value]
        const secret = secretName(sessionId, server, field, key)
        kept.set(secret, { field, value, label: `${server}.${key}` })
        return [key, { secret }]
      })
    )
  const stored = Object.entries(entries).map(([name, entry]): readonly [string, McpEntry] => [
    name,
    {
      ...entry,
      ...(entry.env === undefined ? {} : { env: named(name, "env", entry.env) }),
      ...(entry.headers === undefined ? {} : { headers: named(name, "headers", entry.headers) })
    }
  ])
  return { entries: Object.fromEntries(stored), values: kept }
}

/** The values of the session's own that entries name. */
export const sessionSecretsOf = (entries: Readonly<Record<string, McpEntry>>): ReadonlySet<string> =>
  new Set(
    Object.values(entries).flatMap(({ env, headers }) =>
      [...Object.values(env ?? {}), ...Object.values(headers ?? {})].flatMap((value) =>
        typeof value === "object" && isSessionSecret(value.secret) ? [value.secret] : []
      )
    )
  )

/** A word like `production`: replaced wherever it stands, it would leave a journal that nobody can read. */
const plainWord = /^[a-z]{1,12}$/u

/** An address without a path: a service's own, and no secret of anybody's. What follows it may be one. */
const isOrigin = (value: string): boolean => URL.canParse(value) && /^https?:\/\/[^/?#@]+\/?$/iu.test(value)

/** How a value is treated in what a harness says; it stands in memory only either way. */
export type Telling =
  | { readonly _tag: "Secret" }
  | { readonly _tag: "Plain" }
  /** Plain if these are places of this machine: a project's directory is part of most of what a harness says. */
  | { readonly _tag: "PlainIfPaths"; readonly paths: ReadonlyArray<string> }

/** Paths of a list that are looked at. */
const mostPaths = 64

/** Whether a value is redacted where it is said. */
export const tellingOf = (field: ValueField, value: string): Telling => {
  if (field === "headers") return { _tag: "Secret" }
  if (plainWord.test(value) || isOrigin(value)) return { _tag: "Plain" }
  const paths = value.split(":", mostPaths + 1)
  return value.startsWith("/") && paths.length <= mostPaths ? { _tag: "PlainIfPaths", paths } : { _tag: "Secret" }
}
