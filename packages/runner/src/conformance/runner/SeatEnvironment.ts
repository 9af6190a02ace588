/** The facts of a case, and the environment in which a rig service would start its runner (seat contract 2.1). Pure. */
import type { Configuration } from "./Configuration.ts"

/** The usual facts of a case. */
export interface Usual {
  readonly folder: string
  readonly home: string
  /** The home of the rig service, as the runner is told. */
  readonly rigHome: string
  readonly launchFolder: string
  readonly recordPath: string
  /** First on PATH when the agent is found by name. */
  readonly bin: string
  readonly attempt: string
  readonly generation: string
  readonly token: string
  readonly url: string
  readonly port: number
}

export const sessionName = "case-seat@check"
export const nodeId = "nod_01JCASE0000000000000000000"

/** The variables; those of a case replace the usual ones, undefined takes one away. */
export const environment = (
  { agentName, baseEnv, harness }: Configuration,
  usual: Usual,
  own: Readonly<Record<string, string | undefined>>
): Readonly<Record<string, string>> => {
  const path = baseEnv["PATH"] ?? "/usr/bin:/bin"
  const variables: Readonly<Record<string, string | undefined>> = {
    ...baseEnv,
    PATH: agentName === undefined ? path : `${usual.bin}:${path}`,
    HOME: usual.home,
    TERM: "xterm-256color",
    OPENRIG_NODE_ID: nodeId,
    OPENRIG_SESSION_NAME: sessionName,
    OPENRIG_RUNTIME: harness,
    OPENRIG_OCCUPANT_GENERATION: usual.generation,
    OPENRIG_HOME: usual.rigHome,
    OPENRIG_URL: usual.url,
    OPENRIG_HOST: "127.0.0.1",
    OPENRIG_PORT: String(usual.port),
    OPENRIG_ACTIVITY_HOOK_TOKEN: usual.token,
    OPENRIG_LAUNCH_ATTEMPT: usual.attempt,
    OPENRIG_LAUNCH_RESULT: usual.recordPath,
    ...own
  }
  return Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  )
}
