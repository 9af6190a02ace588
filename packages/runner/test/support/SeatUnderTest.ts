/** The program `tackroom-seat` as it runs in a seat: in a pseudo-terminal or over pipes, with a rig and a scripted agent. */
import { type ChildProcess, execFile, spawn as spawnProcess } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, readlinkSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { type IPty, spawn } from "@lydell/node-pty"
import { onTestFinished } from "vitest"
import { RigStub, seat, token } from "./RigStub.ts"
import { type Rule, ScriptedAgent } from "./ScriptedAgent.ts"

const built = fileURLToPath(new URL("../../dist/bin/tackroom-seat.cjs", import.meta.url))
const source = fileURLToPath(new URL("../../src/main.ts", import.meta.url))
/** The program as it is published; from source where nothing is built. */
export const program = existsSync(built) ? built : source

export const bracketed = (text: string): string => `\u001b[200~${text}\u001b[201~`

/** The first bytes of a seat: from here on a terminal hands over what is typed as it is. */
export const rawMode = "\u001b[?2004h"

export interface SeatSetup {
  /** More arguments, before the agent's command. */
  readonly flags?: ReadonlyArray<string>
  /** More variables; `undefined` takes one away. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly rules?: Readonly<Record<string, Rule>>
  readonly agentArgs?: ReadonlyArray<string>
  readonly pipes?: boolean
  /** Run it below a shell, which tells the terminal's mode before and after. */
  readonly shell?: boolean
  /** The agent's command in place of the scripted agent. */
  readonly command?: ReadonlyArray<string>
  /** Makes files in the seat's folder; gives more variables. */
  readonly prepare?: (folder: string) => Readonly<Record<string, string>>
  /** No variable of a rig at all. */
  readonly alone?: boolean
  /** The folder of a seat before, whose agent is launched again. */
  readonly folder?: string
}

const modeWords = `tr ' ;' '\\n\\n' | grep -x -e '-\\{0,1\\}icanon' -e '-\\{0,1\\}echo' | tr '\\n' ' '`
const tellingShell = `mode() { stty -a | ${modeWords}; }; echo before $(mode); "$@"; code=$?; echo after $code $(mode)`

export interface SeatEnd {
  readonly code: number
  readonly signal: number | string | undefined
}

/** Text that grows, and waiting for what will be in it. */
export class Screen {
  text = ""
  readonly #waiting = new Set<() => void>()
  add(data: string): void {
    this.text += data
    for (const look of this.#waiting) look()
  }
  until(pattern: RegExp | string): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        const found = typeof pattern === "string" ? this.text.includes(pattern) : pattern.test(this.text)
        if (!found) return
        this.#waiting.delete(look)
        resolve()
      }
      this.#waiting.add(look)
      look()
    })
  }
  /** Lines as a person reads them, without the draft. The terminal puts a carriage return of its own before a line feed. */
  get lines(): ReadonlyArray<string> {
    // oxlint-disable-next-line no-control-regex -- the erase sequence of the draft line
    return this.text.replace(/draft > [^\r\n]*\r\u001b\[K/gu, "").split(/\r+\n/u)
  }
}

export class SeatUnderTest {
  readonly screen = new Screen()
  readonly ended: Promise<SeatEnd>
  readonly pid: number
  readonly #pty: IPty | undefined
  readonly #child: ChildProcess | undefined

  readonly agent: ScriptedAgent
  readonly rig: RigStub
  readonly folder: string

  constructor(parts: {
    readonly agent: ScriptedAgent
    readonly rig: RigStub
    readonly folder: string
    readonly args: ReadonlyArray<string>
    readonly env: Record<string, string>
    readonly pipes: boolean
    readonly shell: boolean
  }) {
    const { args, env, folder, pipes, shell } = parts
    this.agent = parts.agent
    this.rig = parts.rig
    this.folder = folder
    const words = [program, ...args]
    if (pipes) {
      const child = spawnProcess(process.execPath, words, { env, cwd: folder, stdio: ["pipe", "pipe", "pipe"] })
      this.#child = child
      this.pid = child.pid ?? 0
      child.stdout?.setEncoding("utf8").on("data", (data: string) => this.screen.add(data))
      child.stderr?.setEncoding("utf8").on("data", (data: string) => this.screen.add(data))
      this.ended = new Promise((resolve) =>
        child.on("close", (code, signal) => resolve({ code: code ?? -1, signal: signal ?? undefined }))
      )
    } else {
      const start = shell
        ? ["/bin/sh", "-c", tellingShell, "sh", process.execPath, ...words]
        : [process.execPath, ...words]
      const pty = spawn(start[0] ?? "", start.slice(1), { cols: 200, rows: 50, cwd: folder, env })
      this.#pty = pty
      this.pid = pty.pid
      pty.onData((data) => this.screen.add(data))
      this.ended = new Promise((resolve) =>
        pty.onExit(({ exitCode, signal }) => resolve({ code: exitCode, signal: signal === 0 ? undefined : signal }))
      )
    }
  }

  type(text: string): void {
    if (this.#pty === undefined) this.#child?.stdin?.write(text)
    else this.#pty.write(text)
  }
  /** As tmux sends a message: the paste, then Enter. */
  send(text: string): void {
    this.type(`${bracketed(text)}\r`)
  }
  endInput(): void {
    this.#child?.stdin?.end()
  }
  /** The pane is closed: the terminal is gone. */
  closePane(): void {
    this.#pty?.kill("SIGHUP")
  }
  pausePane(): void {
    this.#pty?.pause()
  }
  resumePane(): void {
    this.#pty?.resume()
  }
  signal(signal: NodeJS.Signals): void {
    process.kill(this.pid, signal)
  }
  /** The signal to the program below the shell. */
  signalProgram(signal: NodeJS.Signals): void {
    process.kill(Number(readFileSync(`/proc/${this.pid}/task/${this.pid}/children`, "utf8").trim()), signal)
  }
  /** The mode of the terminal now. */
  async mode(): Promise<string> {
    const terminal = readlinkSync(`/proc/${this.pid}/fd/0`)
    const { stdout } = await promisify(execFile)("/bin/sh", ["-c", `stty -a < ${terminal} | ${modeWords}`])
    return stdout.trim()
  }
  get record(): unknown {
    return JSON.parse(readFileSync(join(this.folder, "result.json"), "utf8"))
  }
  get hasRecord(): boolean {
    return existsSync(join(this.folder, "result.json"))
  }
}

export const attempt = "3f0e0000-0000-4000-8000-000000000001"

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return !/^State:\s+Z/mu.test(readFileSync(`/proc/${pid}/status`, "utf8"))
  } catch {
    return false
  }
}

/** Starts a seat; it is ended with the test, and a rig that saw a fault fails it. */
export const startSeat = async (setup: SeatSetup = {}): Promise<SeatUnderTest> => {
  const agent = await ScriptedAgent.listen(setup.rules)
  const rig = await RigStub.listen()
  const folder = setup.folder ?? realpathSync(mkdtempSync(join(tmpdir(), "seat-")))
  const base: Record<string, string | undefined> = {
    PATH: process.env["PATH"],
    HOME: folder,
    TERM: "xterm-256color",
    ...(setup.alone === true
      ? {}
      : {
          OPENRIG_NODE_ID: seat.nodeId,
          OPENRIG_SESSION_NAME: seat.sessionName,
          OPENRIG_RUNTIME: "otter",
          OPENRIG_OCCUPANT_GENERATION: seat.generation,
          OPENRIG_URL: rig.url,
          OPENRIG_ACTIVITY_HOOK_TOKEN: token,
          OPENRIG_LAUNCH_ATTEMPT: attempt,
          OPENRIG_LAUNCH_RESULT: join(folder, "result.json")
        }),
    ...setup.prepare?.(folder),
    ...setup.env
  }
  const env = Object.fromEntries(
    Object.entries(base).filter((entry): entry is [string, string] => entry[1] !== undefined)
  )
  const command = setup.command ?? [...agent.command, ...(setup.agentArgs ?? [])]
  const args = [...(setup.alone === true ? ["--harness", "otter"] : []), ...(setup.flags ?? []), "--", ...command]
  const under = new SeatUnderTest({
    agent,
    rig,
    folder,
    args,
    env,
    pipes: setup.pipes ?? false,
    shell: setup.shell ?? false
  })
  onTestFinished(async () => {
    if (isAlive(under.pid)) under.signal("SIGKILL")
    await under.ended
    agent.close()
    rig.close()
    rmSync(folder, { recursive: true, force: true })
    if (rig.faults.length > 0)
      throw new Error(`the runner sent what the contract does not allow: ${rig.faults.join("; ")}`)
  })
  return under
}

/** A seat whose conversation is open. */
export const openSeat = async (setup: SeatSetup = {}): Promise<SeatUnderTest> => {
  const under = await startSeat(setup)
  await under.screen.until("seat > ready")
  return under
}
