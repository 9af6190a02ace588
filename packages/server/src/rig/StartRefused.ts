/** Why a service does not start. Nothing was left behind; the exit code tells a supervisor whether trying again helps. */
import { Data } from "effect"

export const startReasons = {
  already_running: 75,
  bad_setting: 78,
  host_not_loopback: 78,
  guest_port_conflict: 78,
  guest_bind_failed: 78,
  bind_failed: 78,
  unsafe_file: 78,
  unsafe_home: 78,
  socket_path_too_long: 78,
  tmux_too_old: 78,
  store_unusable: 78
} as const

export type StartReason = keyof typeof startReasons

export class StartRefused extends Data.TaggedError("StartRefused")<{
  readonly reason: StartReason
  readonly detail: string
}> {}
