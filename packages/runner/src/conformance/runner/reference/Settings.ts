/**
 * What the reference runner was told: its place in the seat, its agent, and the fault that is switched on. Pure.
 *
 * A fault is named by the promise it breaks, so that a broken twin is this program with one flag. The reference shares no
 * code with `tackroom-seat`: it is small on purpose, says only what the contract asks for, and stands beside the checks as
 * their own proof.
 */
import { parseArgs } from "node:util"

export type Environment = Readonly<Record<string, string | undefined>>

export interface Settings {
  readonly env: Environment
  readonly harness: string
  readonly agent: ReadonlyArray<string>
  /** Seconds are multiplied by this. */
  readonly scale: number
  readonly liveness: number
  readonly idleLiveness: number
  readonly token: string | undefined
  readonly base: string | undefined
  readonly broken: (id: string) => boolean
}

interface Endpoint {
  readonly base: string | undefined
  readonly token: string | undefined
}

/** The endpoint, each half on its own; `file` reads `activity-endpoint.json` of a folder. */
const endpointOf = (
  env: Environment,
  file: (home: string) => { readonly baseUrl?: string; readonly token?: string },
  urlOnly: boolean
): Endpoint => {
  const saved = file(env["OPENRIG_HOME"] ?? `${env["HOME"]}/.openrig`)
  const fromPort =
    env["OPENRIG_PORT"] === undefined
      ? undefined
      : `http://${env["OPENRIG_HOST"] ?? "127.0.0.1"}:${env["OPENRIG_PORT"]}`
  return {
    base: env["OPENRIG_URL"] ?? (urlOnly ? undefined : (fromPort ?? saved.baseUrl)),
    token: env["OPENRIG_ACTIVITY_HOOK_TOKEN"] ?? saved.token
  }
}

export const readSettings = (
  argv: ReadonlyArray<string>,
  env: Environment,
  file: (home: string) => { readonly baseUrl?: string; readonly token?: string }
): Settings => {
  const { positionals, values } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      fault: { type: "string" },
      "time-scale": { type: "string" },
      liveness: { type: "string" },
      "idle-liveness": { type: "string" }
    }
  })
  const broken = (id: string): boolean => values.fault === id
  return {
    env,
    harness: env["OPENRIG_RUNTIME"] ?? "reference",
    agent: positionals,
    scale: Number(values["time-scale"] ?? "1"),
    liveness: Number(values.liveness ?? "30"),
    idleLiveness: Number(values["idle-liveness"] ?? "60"),
    ...endpointOf(env, file, broken("CHK-051")),
    broken
  }
}
