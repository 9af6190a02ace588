/**
 * Signals to a process group and the question whether anything of it is left. A group is named by the pid of the child
 * that leads it; the system gives that number to no new process while the group has a member.
 */
import { readdirSync } from "node:fs"
import { Effect } from "effect"
import { sleep } from "./internal/RealTime.ts"
import { readLinuxStat } from "./StartTime.ts"

/** Signals that are sent to groups. */
export type Signal = "SIGTERM" | "SIGKILL" | "SIGINT" | "SIGHUP"

const codeOf = (error: unknown): string | undefined =>
  typeof error === "object" && error !== null && "code" in error && typeof error.code === "string"
    ? error.code
    : undefined

const kill = (target: number, signal: Signal | 0): boolean => {
  try {
    process.kill(target, signal)
    return true
  } catch (error) {
    // EPERM: it exists and belongs to another user. Anything else: there is nothing to signal.
    return codeOf(error) === "EPERM"
  }
}

/** Signals every member; false when the group has none. On Windows only the leader is reached. */
export const signalGroup = (pgid: number, signal: Signal): boolean => {
  if (!Number.isInteger(pgid) || pgid <= 1) return false
  return kill(process.platform === "win32" ? pgid : -pgid, signal)
}

const linuxMemberLives = (pgid: number): boolean => {
  // Newest first: leftovers of a child are younger than most of the system.
  const pids = readdirSync("/proc")
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && pid > 0)
    .sort((a, b) => b - a)
  return pids.some((pid) => {
    const stat = readLinuxStat(pid)
    return stat !== undefined && stat.pgid === pgid && stat.state !== "Z" && stat.state !== "X"
  })
}

/** True while a member of the group lives. A zombie that nobody collects does not count (Linux). */
export const isGroupAlive = (pgid: number): boolean => {
  if (!Number.isInteger(pgid) || pgid <= 1) return false
  if (!kill(process.platform === "win32" ? pgid : -pgid, 0)) return false
  return process.platform === "linux" ? linuxMemberLives(pgid) : true
}

/**
 * Waits until the group has no living member, at most `ms` of real time; true when it is gone. The system tells nobody
 * about the end of a process that is not its child, so this looks, ever more slowly.
 */
export const awaitGroupGone = (pgid: number, ms: number): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    let waited = 0
    let step = 5
    for (;;) {
      if (!isGroupAlive(pgid)) return true
      if (waited >= ms) return false
      const pause = Math.min(step, ms - waited)
      yield* sleep(pause)
      waited += pause
      step = Math.min(step * 2, 100)
    }
  })

/** TERM, up to `graceMs`, KILL: ends what is left of a group. True when nothing is left (HRN-033, HRN-039). */
export const endGroup = (pgid: number, graceMs: number): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    if (!isGroupAlive(pgid)) return true
    signalGroup(pgid, "SIGTERM")
    if (yield* awaitGroupGone(pgid, graceMs)) return true
    signalGroup(pgid, "SIGKILL")
    return yield* awaitGroupGone(pgid, 1000)
  })
