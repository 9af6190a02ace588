/**
 * Where the rig answers and with which token, each found for itself: a variable of the seat, or the service's file. What
 * came from the file is read again when the rig seems to have another one (SEAT-126).
 *
 * It holds the token and shows it to nobody: `secrets` is for the redaction alone.
 */
import * as path from "node:path"
import { defaultSeatHome, defaultSeatHost, rigFiles, seatVariables } from "@tackroom/protocol/seat"
import { Result } from "effect"
import { parseJson } from "@tackroom/protocol/text"

/** A rig that can be asked. */
export interface Endpoint {
  readonly base: URL
  readonly token: string
}

export type EnvironmentView = Readonly<Record<string, string | undefined>>

/** The endpoint of this process as it stands. */
export interface EndpointSource {
  readonly current: () => Endpoint | undefined
  /** Reads the file again; true when base or token are others now. Never more often than the caller asks. */
  readonly refresh: () => boolean
  /** True when base or token came, or could come, from the file. */
  readonly usesFile: boolean
  /** Why there is none although a rig was named, in words that repeat no value. */
  readonly problem: string | undefined
  readonly secrets: () => ReadonlyArray<string>
}

const given = (value: string | undefined): string | undefined =>
  value === undefined || value === "" ? undefined : value

/** True when any variable of a rig is set; without one nothing is looked for. */
export const hasRig = (environment: EnvironmentView): boolean =>
  Object.values(seatVariables).some((name) => given(environment[name]) !== undefined)

/** A base must say where to post and nothing else: user information would be a second secret (SEAT-281). */
const readBase = (text: string): URL | undefined => {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  const plain = url.username === "" && url.password === "" && !/[?#]/u.test(text)
  return plain && (url.protocol === "http:" || url.protocol === "https:") ? url : undefined
}

const baseOf = (environment: EnvironmentView): string | undefined => {
  const url = given(environment[seatVariables.url])
  if (url !== undefined) return url
  const port = given(environment[seatVariables.port])
  if (port === undefined) return undefined
  const host = given(environment[seatVariables.host]) ?? defaultSeatHost
  return `http://${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}`
}

interface FileContent {
  readonly base: string | undefined
  readonly token: string | undefined
}

const readContent = (text: string | undefined): FileContent => {
  const json: unknown = text === undefined ? undefined : Result.getOrUndefined(parseJson(text))
  if (typeof json !== "object" || json === null) return { base: undefined, token: undefined }
  const base = "baseUrl" in json && typeof json.baseUrl === "string" ? given(json.baseUrl) : undefined
  const token = "token" in json && typeof json.token === "string" ? given(json.token) : undefined
  return { base, token }
}

/** Finds the endpoint. `readFile` gives the text of a file, or `undefined` when it cannot be read. */
export const findEndpoint = (
  environment: EnvironmentView,
  readFile: (file: string) => string | undefined
): EndpointSource => {
  const namedBase = baseOf(environment)
  const namedToken = given(environment[seatVariables.token])
  const home =
    given(environment[seatVariables.home]) ??
    (given(environment["HOME"]) === undefined ? undefined : path.join(environment["HOME"] ?? "", defaultSeatHome))
  const usesFile = hasRig(environment) && home !== undefined && (namedBase === undefined || namedToken === undefined)
  const secrets = new Set<string>(namedToken === undefined ? [] : [namedToken])

  const read = (): { readonly endpoint: Endpoint | undefined; readonly problem: string | undefined } => {
    const file = readContent(usesFile ? readFile(path.join(home, rigFiles.endpoint)) : undefined)
    const text = namedBase ?? file.base
    const token = namedToken ?? file.token
    if (token !== undefined) secrets.add(token)
    if (text === undefined || token === undefined) return { endpoint: undefined, problem: undefined }
    const base = readBase(text)
    return base === undefined
      ? { endpoint: undefined, problem: "the address of the rig is not usable" }
      : { endpoint: { base, token }, problem: undefined }
  }

  const first = read()
  let endpoint = first.endpoint

  return {
    current: () => endpoint,
    refresh: () => {
      if (!usesFile) return false
      const next = read().endpoint
      // A file that is being replaced is no reason to forget what worked.
      if (next === undefined) return false
      const changed = next.base.href !== endpoint?.base.href || next.token !== endpoint.token
      endpoint = next
      return changed
    },
    usesFile,
    problem: first.problem,
    secrets: () => [...secrets]
  }
}
