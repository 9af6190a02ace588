/**
 * A child process under measure: its pipes, its end and the memory of its whole tree. Every child is a group of its own;
 * `endAll` ends what is left.
 */
import { spawn, spawnSync, type ChildProcessWithoutNullStreams } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"

export interface ProgramOptions {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  readonly cwd?: string
}

export interface MeasuredProcess {
  readonly child: ChildProcessWithoutNullStreams
  /** `performance.now()` right before the spawn. */
  readonly spawnedAt: number
  readonly pid: number
  readonly exited: Promise<number>
  /** The last of what it wrote to stderr. */
  readonly stderrTail: () => string
  /** Ends the group at once and waits. */
  readonly kill: () => Promise<void>
  /** Closes its stdin and waits for its own end; kills after the limit. Answers the milliseconds. */
  readonly finish: (limitMs?: number) => Promise<number>
}

const running = new Set<MeasuredProcess>()
const tailLength = 4_000

export const start = (options: ProgramOptions): MeasuredProcess => {
  const spawnedAt = performance.now()
  const child = spawn(options.command, options.args, {
    env: options.env,
    stdio: "pipe",
    detached: true,
    ...(options.cwd === undefined ? {} : { cwd: options.cwd })
  })
  let tail = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    tail = (tail + text).slice(-tailLength)
  })
  // A write to a child that is gone is seen as its exit.
  child.stdin.on("error", () => undefined)
  const exited = new Promise<number>((resolve) => {
    child.once("error", (error) => {
      tail = `${tail}${error.message}`
      resolve(-1)
    })
    child.once("exit", (code) => resolve(code ?? -1))
  })
  const kill = async (): Promise<void> => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      try {
        process.kill(-child.pid, "SIGKILL")
      } catch {
        child.kill("SIGKILL")
      }
    }
    child.stdout.destroy()
    child.stderr.destroy()
    await exited
  }
  const measured: MeasuredProcess = {
    child,
    spawnedAt,
    pid: child.pid ?? -1,
    exited,
    stderrTail: () => tail.trim(),
    kill,
    finish: async (limitMs = 6_000) => {
      const began = performance.now()
      child.stdin.end()
      child.stdout.resume()
      const timer = setTimeout(() => void kill(), limitMs)
      await exited
      clearTimeout(timer)
      return performance.now() - began
    }
  }
  running.add(measured)
  void exited.then(() => running.delete(measured))
  return measured
}

export const endAll = async (): Promise<void> => {
  await Promise.all([...running].map((one) => one.kill()))
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

interface Process {
  readonly pid: number
  readonly parent: number
  readonly kilobytes: number
}

const fromProc = (): ReadonlyArray<Process> =>
  readdirSync("/proc").flatMap((entry) => {
    if (!/^\d+$/u.test(entry)) return []
    try {
      const status = readFileSync(`/proc/${entry}/status`, "utf8")
      const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "mu").exec(status)?.[1] ?? 0)
      return [{ pid: Number(entry), parent: field("PPid"), kilobytes: field("VmRSS") }]
    } catch {
      // It ended between the listing and the reading.
      return []
    }
  })

const fromPs = (): ReadonlyArray<Process> =>
  spawnSync("ps", ["-A", "-o", "pid=,ppid=,rss="], { encoding: "utf8" })
    .stdout.split("\n")
    .flatMap((line) => {
      const [pid, parent, kilobytes] = line.trim().split(/\s+/u).map(Number)
      return pid === undefined || parent === undefined || kilobytes === undefined ? [] : [{ pid, parent, kilobytes }]
    })

const listProcesses = (): ReadonlyArray<Process> => (process.platform === "linux" ? fromProc() : fromPs())

/** A process and all it started. */
const treeOf = (root: number): ReadonlyArray<Process> => {
  const all = listProcesses()
  const members = new Set([root])
  for (let before = 0; before !== members.size;) {
    before = members.size
    for (const one of all) if (members.has(one.parent)) members.add(one.pid)
  }
  return all.filter((one) => members.has(one.pid))
}

/** Resident megabytes (10^6 bytes) of a process and all it started. Shared pages count in each. */
export const residentOfTree = (root: number): number =>
  treeOf(root).reduce((sum, one) => sum + one.kilobytes, 0) * (1_024 / 1e6)

const threadMs = (pid: number): number =>
  readdirSync(`/proc/${pid}/task`).reduce(
    (sum, thread) => sum + Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]) / 1e6,
    0
  )

/**
 * Milliseconds of a processor that a process and all it started have used, by the threads that still live; undefined where
 * the system does not tell. Unlike time on the clock it does not grow with what else the machine does.
 */
export const processorMs = (root: number): number | undefined => {
  if (process.platform !== "linux") return undefined
  try {
    return treeOf(root).reduce((sum, one) => sum + threadMs(one.pid), 0)
  } catch {
    // A thread ended while it was looked at, or the kernel keeps no such numbers.
    return undefined
  }
}
