/** Whether a process still lives. One that has ended and that nobody collected does not (Linux; elsewhere it still counts). */
import { readLinuxStat } from "@tackroom/sdk/process"

export const isLiving = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  if (process.platform !== "linux") return true
  const stat = readLinuxStat(pid)
  return stat !== undefined && stat.state !== "Z" && stat.state !== "X"
}
