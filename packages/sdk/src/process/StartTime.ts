/**
 * When a process was started, as an opaque text. A pid alone names nobody for long: the pair of pid and start time names
 * one process for ever, so a record made of both tells a living child from a stranger that got its number.
 *
 * Linux reads `/proc/<pid>/stat` (clock ticks since boot, with the boot id so that a reboot is seen), macOS asks `ps`.
 * Where neither works the answer is `undefined`, and nothing is ever ended on the strength of it.
 */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"

/** The fields of `/proc/<pid>/stat` used here. */
export interface LinuxStat {
  /** `Z` is a zombie: ended, not yet collected by its parent. */
  readonly state: string
  readonly pgid: number
  readonly startTicks: string
}

/** Parses `/proc/<pid>/stat`; the command in parentheses may itself hold spaces and parentheses. */
export const parseLinuxStat = (text: string): LinuxStat | undefined => {
  const close = text.lastIndexOf(")")
  if (close < 0) return undefined
  const fields = text
    .slice(close + 1)
    .trim()
    .split(/\s+/)
  const state = fields[0]
  const pgid = Number(fields[2])
  const startTicks = fields[19]
  if (state === undefined || startTicks === undefined || !Number.isInteger(pgid)) return undefined
  return { state, pgid, startTicks }
}

const readText = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    // Absent or unreadable means: no such process, as far as we may know.
    return undefined
  }
}

/** Reads one process of Linux, or `undefined` when there is none. */
export const readLinuxStat = (pid: number): LinuxStat | undefined => {
  const text = readText(`/proc/${pid}/stat`)
  return text === undefined ? undefined : parseLinuxStat(text)
}

let bootId: string | undefined
const linuxBootId = (): string => {
  bootId ??= readText("/proc/sys/kernel/random/boot_id")?.trim() ?? "unknown"
  return bootId
}

const darwinStartTime = (pid: number): string | undefined => {
  try {
    const text = execFileSync("/bin/ps", ["-o", "lstart=,state=", "-p", String(pid)], {
      encoding: "utf8",
      env: { LC_ALL: "C", TZ: "UTC" },
      stdio: ["ignore", "pipe", "ignore"],
      timeout: 5000
    }).trim()
    return text === "" ? undefined : darwinStart(text)
  } catch {
    // ps exits with 1 when there is no such process.
    return undefined
  }
}

/** The answer of `ps -o lstart=,state=` as a start time; a zombie (`Z`) counts as gone. */
export const darwinStart = (text: string): string | undefined => {
  const words = text.trim().split(/\s+/)
  const state = words.at(-1) ?? ""
  return words.length < 6 || state.startsWith("Z") ? undefined : `darwin:${words.slice(0, -1).join(" ")}`
}

/**
 * The start time of a living process, or `undefined` when it is gone, a zombie, or the platform does not tell.
 * Costs microseconds on Linux and one run of `ps` on macOS.
 */
export const startTime = (pid: number, platform: string = process.platform): string | undefined => {
  if (!Number.isInteger(pid) || pid <= 0) return undefined
  if (platform === "linux") {
    const stat = readLinuxStat(pid)
    return stat === undefined || stat.state === "Z" || stat.state === "X"
      ? undefined
      : `linux:${linuxBootId()}:${stat.startTicks}`
  }
  return platform === "darwin" ? darwinStartTime(pid) : undefined
}

/** What names one process for ever. */
export interface ProcessIdentity {
  readonly pid: number
  /** As `startTime` gave it. */
  readonly started: string
}

/** True when the process with this pid is still the one recorded, not a later one with the same number (HRN-033, RT-131). */
export const isSameProcess = (identity: ProcessIdentity): boolean =>
  identity.started !== "" && startTime(identity.pid) === identity.started
