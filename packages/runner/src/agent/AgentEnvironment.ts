/**
 * The environment of the agent, built up and not copied (SEAT-091): the machine's usual variables, who the seat is, and what
 * was named for it. What would let an agent speak for its seat, or open it anew, never passes.
 */
import { seatVariables } from "@tackroom/protocol/seat"
import type { EnvironmentSpec } from "@tackroom/sdk/process"

const machineVariables = [
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "TERM",
  "LANG",
  "LC_*",
  "TZ",
  "TMPDIR",
  "XDG_*"
] as const

const seatNames = [
  seatVariables.nodeId,
  seatVariables.sessionName,
  seatVariables.runtime,
  seatVariables.home,
  seatVariables.url,
  seatVariables.host,
  seatVariables.port
] as const

const never = [seatVariables.token, "OPENRIG_LAUNCH_*", seatVariables.resumeRef, seatVariables.firstInput] as const

/** Names every process that an agent of this run started. */
export const runMarker = "TACKROOM_SEAT_RUN"

export const agentEnvironment = (options: {
  /** Variables named with `--env`. */
  readonly names: ReadonlyArray<string>
  readonly marker: string
  readonly model: { readonly variable: string; readonly value: string } | undefined
}): EnvironmentSpec => ({
  list: [...machineVariables, ...seatNames],
  names: options.names,
  never,
  variables: {
    ...(options.model === undefined ? {} : { [options.model.variable]: options.model.value }),
    [runMarker]: options.marker
  }
})
