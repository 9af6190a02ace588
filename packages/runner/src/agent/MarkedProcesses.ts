/**
 * Processes that carry the marker of a run in their environment, wherever they went: what left the agent's group and kept
 * its environment is found by it (SEAT-250). Linux tells the environment of the user's own processes; elsewhere nothing is
 * found.
 */
import { readdirSync, readFileSync } from "node:fs"
import { Result } from "effect"

const environmentOf = (pid: string): string =>
  Result.getOrElse(
    Result.try(() => readFileSync(`/proc/${pid}/environ`, "latin1")),
    () => ""
  )

/** Ends them and says how many there were. */
export const endMarked = (variable: string, marker: string): number => {
  if (process.platform !== "linux") return 0
  const wanted = `${variable}=${marker}`
  const marked = readdirSync("/proc").filter(
    (name) =>
      /^\d+$/u.test(name) && Number(name) !== process.pid && environmentOf(name).split("\u0000").includes(wanted)
  )
  for (const pid of marked) Result.try(() => process.kill(Number(pid), "SIGKILL"))
  return marked.length
}
