/**
 * Process groups of commands, in the runner: asking whether one lives, and ending it (AGT-071).
 *
 * A group lives while it has a member that is no zombie: below a first process that does not reap, dead members stay visible for
 * ever. Nothing tells when the last member of a foreign group ends, so `endGroup` looks every 20 ms, only while one is being
 * ended. On Windows there are no groups: the process tree is ended by `taskkill`.
 */
import { spawn } from "node:child_process"
import { readdir, readFile } from "node:fs/promises"
import { setTimeout } from "node:timers/promises"
import { limits } from "./Limits.ts"
import { errnoOf } from "./Refusal.ts"

const signalGroup = (group: number, signal: NodeJS.Signals | 0): boolean => {
  try {
    return process.kill(-group, signal)
  } catch (cause) {
    // EPERM: it lives, and its member changed user. Only ESRCH says that nothing is there.
    return errnoOf(cause) !== "ESRCH"
  }
}

/** Whether a group has a living member. */
export const groupLives = async (group: number): Promise<boolean> => {
  if (!signalGroup(group, 0)) return false
  if (process.platform !== "linux") return true
  const names = await readdir("/proc")
  for (const name of names) {
    if (!/^\d+$/.test(name)) continue
    const line = await readFile(`/proc/${name}/stat`, "utf8").catch(() => undefined)
    const [state, , member] = line?.slice(line.lastIndexOf(")") + 2).split(" ") ?? []
    if (member === String(group) && state !== "Z" && state !== "X") return true
  }
  return false
}

const lookMillis = 20

const goneWithin = async (group: number, millis: number, now: () => number): Promise<boolean> => {
  const end = now() + millis
  while (await groupLives(group)) {
    if (now() >= end) return false
    await setTimeout(lookMillis)
  }
  return true
}

/** SIGTERM, at most `grace`, SIGKILL. Resolves when no member is left, or when the kernel holds one back for another 2 s. */
export const endGroup = async (group: number, now: () => number, grace: number = limits.killMillis): Promise<void> => {
  if (process.platform === "win32") {
    await new Promise<void>((resolve) => {
      const killer = spawn("taskkill", ["/pid", String(group), "/T", "/F"], { stdio: "ignore", windowsHide: true })
      killer.once("error", () => resolve())
      killer.once("close", () => resolve())
    })
    return
  }
  if (!(await groupLives(group))) return
  signalGroup(group, "SIGTERM")
  // A stopped process takes SIGTERM only when it goes on.
  signalGroup(group, "SIGCONT")
  if (await goneWithin(group, grace, now)) return
  signalGroup(group, "SIGKILL")
  await goneWithin(group, limits.killMillis, now)
}
