/**
 * The environment of a child process: a short allow-list of the parent's variables plus what was named for this child,
 * and nothing else. The lists are data, so that a test and a document can read them.
 *
 * Entries are variable names; a trailing `*` stands for any suffix (`LC_*`).
 */

/** A parent environment, as `process.env` has it. */
export type EnvironmentSource = Readonly<Record<string, string | undefined>>

const windows = ["SystemRoot", "PATHEXT", "APPDATA", "LOCALAPPDATA", "USERPROFILE", "COMSPEC"] as const

/** What a harness child inherits (HRN-031). */
export const harnessVariables: ReadonlyArray<string> = [
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "LANG",
  "LC_*",
  "TZ",
  "TMPDIR",
  "XDG_*",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "NODE_EXTRA_CA_CERTS",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "NO_PROXY"
]

/** What a host inherits from the program that starts it, and keeps of its own environment (RUN-083, RUN-084). */
export const hostVariables: ReadonlyArray<string> = [
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "LANG",
  "LC_*",
  "TZ",
  "TMPDIR",
  "TEMP",
  "TMP",
  "XDG_*",
  "DBUS_SESSION_BUS_ADDRESS",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "NODE_EXTRA_CA_CERTS",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "NO_PROXY",
  "TACKROOM_LOG_LEVEL"
]

/** What a tool child and an MCP child inherit (RUN-085): no proxies, no certificates, no state directories. */
export const toolVariables: ReadonlyArray<string> = [
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "LANG",
  "LC_*",
  "TZ",
  "TMPDIR"
]

/** What every list gains on Windows, where names are compared without case. */
export const windowsVariables: ReadonlyArray<string> = windows

/** The named lists, for callers that choose one by its role. */
export const environmentLists = {
  harness: harnessVariables,
  host: hostVariables,
  tool: toolVariables
} as const

/** The name of a list. */
export type EnvironmentList = keyof typeof environmentLists

/** What a child gets of its parent's environment, and what beside it. */
export interface EnvironmentSpec {
  /** A named list, or the names themselves. Default `harness`. */
  readonly list?: EnvironmentList | ReadonlyArray<string>
  /** Further variables taken from the parent by exact name; one that is not set is left out. */
  readonly names?: ReadonlyArray<string>
  /** Variables with their values; they win over inherited ones. */
  readonly variables?: Readonly<Record<string, string>>
  /** Names that never pass, whatever the list and `names` say (RUN-085: `connection_env`, `value_env`). */
  readonly never?: ReadonlyArray<string>
}

const isWindows = (platform: string): boolean => platform === "win32"

/** True when `name` is on the list; names are compared without case on Windows. */
export const isListed = (list: ReadonlyArray<string>, name: string, platform: string): boolean => {
  const fold = isWindows(platform) ? (text: string) => text.toUpperCase() : (text: string) => text
  const folded = fold(name)
  return list.some((entry) =>
    entry.endsWith("*") ? folded.startsWith(fold(entry.slice(0, -1))) : folded === fold(entry)
  )
}

const listOf = (spec: EnvironmentSpec, platform: string): ReadonlyArray<string> => {
  const list = spec.list ?? "harness"
  const names = typeof list === "string" ? environmentLists[list] : list
  return isWindows(platform) ? [...names, ...windows] : names
}

/** Builds a child's environment from its parent's. Pure; the result has no `undefined` and no inherited prototype. */
export const childEnvironment = (
  source: EnvironmentSource,
  spec: EnvironmentSpec,
  platform: string
): Record<string, string> => {
  const list = listOf(spec, platform)
  const names = spec.names ?? []
  const never = spec.never ?? []
  const environment: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(source)) {
    if (value === undefined || isListed(never, name, platform)) continue
    if (isListed(list, name, platform) || names.includes(name)) environment[name] = value
  }
  for (const [name, value] of Object.entries(spec.variables ?? {})) environment[name] = value
  return environment
}

/**
 * Removes every variable that is not on the host list or named from `environment`, in place, and returns the removed
 * names in order (RUN-084). Call it before anything is started.
 */
export const scrubEnvironment = (
  environment: Record<string, string | undefined>,
  named: ReadonlyArray<string>,
  platform: string
): ReadonlyArray<string> => {
  const list = listOf({ list: "host" }, platform)
  const removed = Object.keys(environment).filter((name) => !isListed(list, name, platform) && !named.includes(name))
  for (const name of removed) delete environment[name]
  return removed
}
