/**
 * The process of `tackroom acp`: streams, signals, exit code (serve-mode 1.2, 1.3).
 *
 * Stdout is reserved before anything else is loaded. The end of stdin, a signal and a client that is gone are one thing: every
 * turn is cancelled and answered, the host is closed with its children, and the exit code is 0. A second signal ends the
 * process at once; the guard of the children ends what they left (SRV-017).
 */
import { reserveStdout } from "@tackroom/sdk/process"

const signals = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const

/** What the program knows of itself. */
export interface Program {
  readonly version: string
  /** Where state is kept when nobody says otherwise. */
  readonly stateDir: string
}

/** Runs the words behind `acp`; the result is the exit code. */
export const acp = async (args: ReadonlyArray<string>, program: Program): Promise<number> => {
  const output = reserveStdout()
  const [{ parseAcp }, { Usage }, { serveAcp }] = await Promise.all([
    import("./Arguments.ts"),
    import("../start/Flags.ts"),
    import("./ServeAcp.ts")
  ])
  const parsed = parseAcp(args)
  if (parsed instanceof Usage) {
    process.stderr.write(`tackroom acp: ${parsed.message}\nTry: tackroom acp --help\n`)
    return 2
  }
  const stop = new AbortController()
  for (const [signal, number] of Object.entries(signals)) {
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(128 + number)
      stop.abort()
    })
  }
  // A reader that went away is the end of the conversation, not of the program (SRV-018).
  process.on("SIGPIPE", () => undefined)
  return serveAcp({
    options: parsed,
    process: {
      version: program.version,
      cwd: process.cwd(),
      env: process.env,
      stateDir: program.stateDir,
      runner: { command: process.execPath, args: [...process.execArgv, process.argv[1] ?? "", "tool-runner"] }
    },
    input: process.stdin,
    output,
    stderr: process.stderr,
    now: Date.now,
    logLevel: process.env["TACKROOM_LOG_LEVEL"],
    stopped: stop.signal
  })
}
