/**
 * A folder of one test: state directory, workspace, scenarios, configuration, and the hosts started in it.
 *
 * It owns what must be gone afterwards: every host it started, and the folder. Processes are found by what they inherited
 * from a host of this lab (its `TMPDIR`) and by their descent, so that a survivor is seen whatever its name is.
 */
import { execFileSync } from "node:child_process"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { type Loose, type RawHost, type RawHostOptions, startHost } from "./RawHost.ts"

export interface Agent {
  readonly id: string
  readonly tools?: ReadonlyArray<string>
  readonly [more: string]: unknown
}

export interface LabOptions {
  /** The scripted model of each agent, by agent id. */
  readonly scenarios?: Readonly<Record<string, Loose>>
  readonly agents?: ReadonlyArray<Agent>
  /** Members of the configuration beside state directory, providers and agents. */
  readonly config?: Readonly<Record<string, unknown>>
}

export interface Lab {
  readonly root: string
  readonly stateDir: string
  readonly workspace: string
  readonly config: Readonly<Record<string, unknown>>
  /** Starts a host on the state directory. */
  readonly start: (
    options?: Partial<RawHostOptions> & { readonly config?: Readonly<Record<string, unknown>> }
  ) => RawHost
  /** Starts a host and initializes it. */
  readonly open: (options?: Parameters<Lab["start"]>[0]) => Promise<RawHost>
  /** Pids of living processes that come from a host of this lab. */
  readonly processes: () => ReadonlyArray<number>
  /** Waits until none of them is left; what is left after `ms` is the result. */
  readonly emptied: (ms: number) => Promise<ReadonlyArray<number>>
  readonly remove: () => Promise<void>
}

/** A folder that is removed when the running test is over. */
export const makeLab = (options: LabOptions = {}): Lab => {
  const lab = makeUnownedLab(options)
  onTestFinished(lab.remove)
  return lab
}

const withDefaults = (agent: Agent): Agent =>
  Object.assign({ instructions: "Play the scenario.", model: { connection: agent.id, model: "script" } }, agent)

/** A folder that the caller removes. */
export const makeUnownedLab = (options: LabOptions = {}): Lab => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "tackroom-e2e-")))
  const stateDir = join(root, "state")
  const workspace = join(root, "work")
  const temporary = join(root, "tmp")
  mkdirSync(workspace)
  mkdirSync(temporary)
  const scenarios = Object.entries(options.scenarios ?? {})
  for (const [name, scenario] of scenarios) {
    writeFileSync(join(root, `${name}.json`), JSON.stringify({ scenario: 1, name, ...scenario }))
  }
  const config = {
    state_dir: stateDir,
    sandbox: "none",
    providers: scenarios.map(([name]) => ({ name, api: "script", scenario: join(root, `${name}.json`) })),
    agents: (options.agents ?? scenarios.map(([id]) => ({ id, tools: ["files.read"] }))).map(withDefaults),
    ...options.config
  }
  const hosts: Array<RawHost> = []
  const descended = new Map<number, string>()

  const start: Lab["start"] = (more = {}) => {
    const { config: changed, ...rest } = more
    const host = startHost(JSON.stringify({ ...config, ...changed }), {
      cwd: root,
      ...rest,
      env: { PATH: process.env["PATH"] ?? "", HOME: root, TMPDIR: temporary, ...rest.env }
    })
    hosts.push(host)
    return host
  }
  const processes: Lab["processes"] = () => {
    const table = readProcesses()
    const found = new Set<number>()
    for (const one of table) {
      if (one.environment.includes(`TMPDIR=${temporary}`)) found.add(one.pid)
      if (descended.get(one.pid) === one.started) found.add(one.pid)
    }
    for (let grew = true; grew;) {
      grew = false
      for (const one of table) {
        if (found.has(one.pid) || !found.has(one.parent)) continue
        found.add(one.pid)
        grew = true
      }
    }
    // Kept by start time: an orphan no longer shows whose it was, and a pid may be given again.
    for (const one of table) if (found.has(one.pid)) descended.set(one.pid, one.started)
    return [...found]
  }
  const emptied: Lab["emptied"] = async (ms) => {
    const end = performance.now() + ms
    // The end of a process that is not our child gives no event: this is the one thing that has to be looked for.
    for (let left = processes(); ; left = processes()) {
      if (left.length === 0 || performance.now() > end) return left
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  return {
    root,
    stateDir,
    workspace,
    config,
    start,
    open: async (more) => {
      const host = start(more)
      await host.call("initialize", { protocol_version: 1, client: { name: "e2e", version: "0" } })
      return host
    },
    processes,
    emptied,
    remove: async () => {
      for (const host of hosts) if (!host.ended()) host.kill("SIGKILL")
      await Promise.all(hosts.map((host) => host.exited))
      rmSync(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
    }
  }
}

interface Process {
  readonly pid: number
  readonly parent: number
  readonly started: string
  readonly environment: string
}

/** Living processes; zombies are gone already. */
const readProcesses = (): ReadonlyArray<Process> => (existsSync("/proc/self/stat") ? fromProc() : fromPs())

const fromProc = (): ReadonlyArray<Process> =>
  readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8")
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
      if (fields[0] === "Z" || fields[0] === "X") return []
      return [
        {
          pid: Number(name),
          parent: Number(fields[1]),
          started: fields[19] ?? "",
          environment: readFileSync(`/proc/${name}/environ`, "utf8")
        }
      ]
    } catch {
      // It ended while it was looked at, or is another user's.
      return []
    }
  })

const fromPs = (): ReadonlyArray<Process> =>
  execFileSync("ps", ["axeww", "-o", "pid=,ppid=,stat=,lstart=,command="], { encoding: "utf8", maxBuffer: 64 << 20 })
    .split("\n")
    .flatMap((line) => {
      const match = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s+(.*)$/.exec(line)
      if (match === null || match[3]?.startsWith("Z") === true) return []
      return [{ pid: Number(match[1]), parent: Number(match[2]), started: match[4] ?? "", environment: match[5] ?? "" }]
    })

/** Resident memory of a process in MiB. */
export const residentMiB = (pid: number): number =>
  Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" })) / 1024
