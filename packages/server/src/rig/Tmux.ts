/**
 * tmux, as this service uses it: a server of its own behind one socket, exact targets, secrets on its standard input.
 *
 * A question has three answers: present, absent, unavailable. Unavailable (no program, no answer in time, a server that
 * lives and cannot be reached) says nothing about any session and never means absent.
 */
import { isSameProcess, startTime } from "@tackroom/sdk/process"
import { Effect } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import * as fs from "node:fs"
import type { Variables } from "./Settings.ts"

export type TmuxAnswer =
  | { readonly _tag: "Done"; readonly stdout: string }
  /** It answered that the thing is not there; what commands before printed is kept. */
  | { readonly _tag: "Absent"; readonly stdout: string }
  | { readonly _tag: "Failed"; readonly detail: string; readonly stdout: string }
  | { readonly _tag: "Unavailable"; readonly detail: string }

export type Probe =
  | {
      readonly _tag: "Present"
      readonly nodeId: string | undefined
      readonly generation: string | undefined
      readonly pid: number
      readonly dead: boolean
      readonly inMode: boolean
    }
  | { readonly _tag: "Absent" }
  | { readonly _tag: "Unavailable"; readonly detail: string }

export interface NewSession {
  readonly name: string
  readonly cwd: string
  readonly environment: Readonly<Record<string, string>>
  readonly words: ReadonlyArray<string>
  readonly transcript: { readonly file: string; readonly bytes: number }
}

export interface SessionSample {
  readonly name: string
  readonly dead: boolean
}

/** All sessions of the server, and the screens of those that were asked for. */
export interface Sample {
  readonly sessions: ReadonlyArray<SessionSample>
  readonly screens: ReadonlyMap<string, string>
}

export interface TmuxConfig {
  readonly socket: string
  /** Names the server that was started, so that one that cannot be reached is told from one that is gone. */
  readonly serverFile: string
  readonly environment: Variables
  readonly program?: string
}

const patienceMs = 5_000
const stdoutLimit = 32 << 20

const safe = /[A-Za-z0-9_./:@%+=,-]/u

/** A word of tmux's command language in double quotes: what could mean anything is written in octal. */
const quoted = (text: string): string =>
  `"${[...text]
    .map((character) => {
      const code = character.codePointAt(0) ?? 0
      if (code >= 0x80 || safe.test(character)) return character
      return `\\${code.toString(8).padStart(3, "0")}`
    })
    .join("")}"`

/** A word in which tmux would expand `#{…}` and `#(…)`. */
const literalFormat = (text: string): string => text.replaceAll("#", "##")

const shellQuoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

const target = (name: string): string => `=${name}:`

const absent = /can't find (?:session|window|pane)|no such (?:session|window|pane)|session not found/u
const noServer = /no server running on|error connecting to .*\((?:No such file or directory|Connection refused)\)/u

const options: ReadonlyArray<ReadonlyArray<string>> = [
  ["set-option", "-g", "exit-empty", "off"],
  ["set-option", "-g", "remain-on-exit", "off"],
  ["set-option", "-g", "history-limit", "5000"],
  ["set-option", "-g", "default-size", "200x50"],
  ["set-option", "-g", "update-environment", ""],
  ["set-option", "-g", "destroy-unattached", "off"],
  ["set-option", "-g", "status", "off"],
  ["set-option", "-s", "set-clipboard", "off"]
]

export const make = (config: TmuxConfig) => {
  const program = config.program ?? "tmux"
  const environment = Object.fromEntries(
    Object.entries(config.environment).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  )

  const exec = (args: ReadonlyArray<string>, stdin?: string | Uint8Array): Effect.Effect<TmuxAnswer> =>
    Effect.callback<TmuxAnswer>((resume) => {
      const child: ChildProcess = spawn(program, ["-S", config.socket, "-f", "/dev/null", ...args], {
        env: environment,
        stdio: ["pipe", "pipe", "pipe"]
      })
      const out: Array<Buffer> = []
      const err: Array<Buffer> = []
      let bytes = 0
      let over = false
      const finish = (answer: TmuxAnswer): void => {
        if (over) return
        over = true
        clearTimeout(timer)
        resume(Effect.succeed(answer))
      }
      const timer = setTimeout(() => {
        child.kill("SIGKILL")
        finish({ _tag: "Unavailable", detail: "tmux does not answer" })
      }, patienceMs)
      child.stdout?.on("data", (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes <= stdoutLimit) out.push(chunk)
      })
      child.stderr?.on("data", (chunk: Buffer) => {
        if (err.length < 64) err.push(chunk)
      })
      // A client that ends early closes its pipe; the exit tells why.
      child.stdin?.on("error", () => undefined)
      child.once("error", (error) => finish({ _tag: "Unavailable", detail: error.message }))
      child.once("close", (code) => {
        const stdout = Buffer.concat(out).toString("utf8")
        const said = Buffer.concat(err).toString("utf8").trim()
        if (code === 0) finish({ _tag: "Done", stdout })
        else if (noServer.test(said)) finish(serverLives() ? unreachable : { _tag: "Absent", stdout: "" })
        else if (absent.test(said)) finish({ _tag: "Absent", stdout })
        else if (/error connecting to|lost server|server exited/u.test(said)) {
          finish({ _tag: "Unavailable", detail: said.slice(0, 200) })
        } else finish({ _tag: "Failed", detail: said.slice(0, 200), stdout })
      })
      child.stdin?.end(stdin ?? "")
      return Effect.sync(() => {
        if (over) return
        over = true
        clearTimeout(timer)
        child.kill("SIGKILL")
      })
    })

  const unreachable: TmuxAnswer = { _tag: "Unavailable", detail: "the tmux server lives, but its socket is gone" }

  /** Whether the server that was started last is still there, whatever became of its socket. */
  const serverLives = (): boolean => {
    try {
      const known: unknown = JSON.parse(fs.readFileSync(config.serverFile, "utf8"))
      return (
        typeof known === "object" &&
        known !== null &&
        "pid" in known &&
        "started" in known &&
        typeof known.pid === "number" &&
        typeof known.started === "string" &&
        isSameProcess({ pid: known.pid, started: known.started })
      )
    } catch {
      // No file, or none of ours: no server is known.
      return false
    }
  }

  const rememberServer = (pid: number): void => {
    const next = `${config.serverFile}.new`
    fs.writeFileSync(next, JSON.stringify({ pid, started: startTime(pid) ?? "" }), { mode: 0o600 })
    fs.renameSync(next, config.serverFile)
  }

  /** Commands in one go; a command that fails leaves the others be. */
  const batch = (commands: ReadonlyArray<string>): Effect.Effect<TmuxAnswer> =>
    exec(["source-file", "-"], `${commands.join("\n")}\n`)

  /** Starts the server when there is none, with the settings that everything here relies on. */
  const ensureServer: Effect.Effect<TmuxAnswer> = Effect.gen(function* () {
    if (serverLives()) {
      const reached = yield* exec(["display-message", "-p", "#{pid}"])
      if (reached._tag === "Unavailable") return reached
    }
    const made = yield* exec(["start-server", ...options.flatMap((words) => [";", ...words])])
    if (made._tag !== "Done") return made
    const found = yield* exec(["display-message", "-p", "#{pid}"])
    if (found._tag === "Done" && /^\d+\s*$/u.test(found.stdout)) rememberServer(Number(found.stdout))
    return made
  })

  const environmentOf = (name: string, variable: string): string =>
    `show-environment -t ${quoted(target(name))} ${variable}`

  const probe = (name: string): Effect.Effect<Probe> =>
    Effect.map(
      batch([
        `display-message -p -t ${quoted(target(name))} "pane #{pane_dead} #{pane_pid} #{pane_in_mode} #{session_name}"`,
        environmentOf(name, "OPENRIG_NODE_ID"),
        environmentOf(name, "OPENRIG_OCCUPANT_GENERATION")
      ]),
      // A session that is not ours lacks the variables, which fails their commands and not the first one.
      (answer): Probe => (answer._tag === "Unavailable" ? answer : readProbe(answer.stdout))
    )

  const readProbe = (stdout: string): Probe => {
    const pane = /^pane ([01]) (\d+) (\d+) /mu.exec(stdout)
    if (pane === null) return { _tag: "Absent" }
    return {
      _tag: "Present",
      dead: pane[1] === "1",
      pid: Number(pane[2]),
      inMode: pane[3] !== "0",
      nodeId: /^OPENRIG_NODE_ID=(.*)$/mu.exec(stdout)?.[1],
      generation: /^OPENRIG_OCCUPANT_GENERATION=(.*)$/mu.exec(stdout)?.[1]
    }
  }

  const create = (session: NewSession): Effect.Effect<TmuxAnswer> => {
    const variables = Object.entries(session.environment).map(([name, value]) => `-e ${quoted(`${name}=${value}`)}`)
    const words = ["/usr/bin/env", ...session.words].map(quoted)
    // A limit of the process, in blocks of 512 bytes, and a copier that holds nothing back.
    const copy = `ulimit -c 0; ulimit -f ${Math.ceil(session.transcript.bytes / 512)}; exec cat >> ${shellQuoted(session.transcript.file)}`
    return batch([
      `new-session -d -s ${quoted(session.name)} -x 200 -y 50 -c ${quoted(literalFormat(session.cwd))} ${variables.join(" ")} -- ${words.join(" ")}`,
      `pipe-pane -o -t ${quoted(target(session.name))} ${quoted(literalFormat(copy))}`
    ])
  }

  /** A line that no pane prints by accident. */
  const mark = (name: string): string => `\u0001tackroom ${name}\u0001`

  const sample = (names: ReadonlyArray<string>): Effect.Effect<Sample | undefined> =>
    Effect.map(
      exec(
        ["source-file", "-"],
        [
          `list-panes -a -F "#{session_name} #{pane_dead}"`,
          ...names.flatMap((name) => [
            `display-message -p ${quoted(mark(name))}`,
            `capture-pane -p -t ${quoted(target(name))}`
          ])
        ].join("\n")
      ),
      // A session that ended meanwhile fails its own capture alone.
      (answer) => (answer._tag === "Unavailable" ? undefined : readSample(answer.stdout, names))
    )

  const readSample = (stdout: string, names: ReadonlyArray<string>): Sample => {
    const screens = new Map<string, string>()
    const [list = "", ...rest] = stdout.split("\u0001tackroom ")
    for (const part of rest) {
      const end = part.indexOf("\u0001")
      const name = part.slice(0, end)
      if (names.includes(name)) screens.set(name, part.slice(end + 1))
    }
    const sessions = list.split("\n").flatMap((line) => {
      const match = /^(\S+) ([01])$/u.exec(line)
      return match?.[1] === undefined ? [] : [{ name: match[1], dead: match[2] === "1" }]
    })
    return { sessions, screens }
  }

  return {
    ensureServer,
    probe,
    create,
    sample,
    version: Effect.map(
      Effect.suspend(() => exec(["-V"])),
      (answer) => (answer._tag === "Done" ? answer.stdout.trim().replace(/^tmux /u, "") : undefined)
    ),
    /** Whether the server answers at all. */
    ping: exec(["list-sessions", "-F", "#{session_name}"]),
    kill: (name: string) => exec(["kill-session", "-t", `=${name}`]),
    leaveMode: (name: string) => exec(["send-keys", "-t", target(name), "-X", "cancel"]),
    loadBuffer: (buffer: string, text: string) => exec(["load-buffer", "-b", buffer, "-"], text),
    pasteBuffer: (buffer: string, name: string) =>
      exec(["paste-buffer", "-d", "-r", "-p", "-b", buffer, "-t", target(name)]),
    dropBuffer: (buffer: string) => exec(["delete-buffer", "-b", buffer]),
    /** Byte 15: what stands as a draft goes (SEAT-I5). */
    clearDraft: (name: string) => exec(["send-keys", "-t", target(name), "C-u"]),
    enter: (name: string) => exec(["send-keys", "-t", target(name), "Enter"]),
    /** The last lines of the pane, wrapped lines joined. */
    capture: (name: string, lines: number) => exec(["capture-pane", "-p", "-J", "-t", target(name), "-S", `-${lines}`])
  }
}

export type Tmux = ReturnType<typeof make>
