/**
 * The name of a process in the records of its children: pid and start time, so that another process with a reused pid is not
 * taken for it. Whoever reads the records can tell by the name alone whether their owner lives.
 */
import type { ProcessIdentity } from "./StartTime.ts"

/** Names a process for `ProcessOwnerOptions.instanceId`. */
export const instanceIdOf = (identity: ProcessIdentity): string => `ins_${identity.pid}_${identity.started}`

/** The process that such a name means. */
export const identityOfInstance = (instanceId: string): ProcessIdentity => {
  const [, pid, ...started] = instanceId.split("_")
  return { pid: Number(pid), started: started.join("_") }
}
