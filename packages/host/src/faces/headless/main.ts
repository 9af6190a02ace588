/**
 * The process of `tackroom run`: streams, signals, exit code.
 *
 * Stdout is reserved before anything else is loaded, so that only the answer gets there (SRV-010). The first signal, or a
 * reader of stdout that went away, cancels the run; a second signal ends the process at once with 128 + its number, and
 * the guard of the children ends what they left (HDL-041, HDL-042, SRV-017).
 */
import { reserveStdout } from "@tackroom/sdk/process"

const signals = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const

const encoder = new TextEncoder()

/** All of a stream, or undefined when it has more than `limit` bytes. */
const readAll = async (input: NodeJS.ReadStream, limit: number): Promise<Uint8Array | undefined> => {
  const chunks: Array<Buffer> = []
  let bytes = 0
  for await (const chunk of input) {
    const part = Buffer.from(chunk as Uint8Array)
    bytes += part.length
    if (bytes > limit) return undefined
    chunks.push(part)
  }
  return Buffer.concat(chunks)
}

/** What the program knows of itself. */
export interface Program {
  readonly version: string
  /** Where state is kept when nobody says otherwise. */
  readonly stateDir: string
}

/** Runs the words behind `run`; the result is the exit code. */
export const headless = async (args: ReadonlyArray<string>, program: Program): Promise<number> => {
  const output = reserveStdout()
  const { stdin, stderr, stdout } = process
  const [{ parseRun }, { Usage }] = await Promise.all([import("./Arguments.ts"), import("../start/Flags.ts")])
  const options = parseRun(args, { stdin: stdin.isTTY, stderr: stderr.isTTY })
  if (options instanceof Usage) {
    stderr.write(`tackroom run: ${options.message}\nTry: tackroom run --help\n`)
    return 2
  }

  const cancel = new AbortController()
  for (const [signal, number] of Object.entries(signals)) {
    process.on(signal, () => {
      if (cancel.signal.aborted) process.exit(128 + number)
      cancel.abort()
    })
  }

  const [{ run }, { styleOf }, { openTerminal }, { flushed, whenClosed }] = await Promise.all([
    import("./Headless.ts"),
    import("./Style.ts"),
    import("./Terminal.ts"),
    import("./Output.ts")
  ])
  void whenClosed(output).then(() => cancel.abort())

  const code = await run({
    face: {
      version: program.version,
      cwd: process.cwd(),
      env: process.env,
      stateDir: program.stateDir,
      runner: { command: process.execPath, args: [...process.execArgv, process.argv[1] ?? "", "tool-runner"] }
    },
    options,
    output,
    stdoutTerminal: stdout.isTTY,
    stderrTerminal: stderr.isTTY,
    style: styleOf({ isTTY: stderr.isTTY, columns: stderr.columns }, process.env),
    readStdin: (limit) => readAll(stdin, limit),
    openTerminal: () => openTerminal(stdin, (text) => void stderr.write(text)),
    writeOut: (text) => void output.write(encoder.encode(text)),
    writeErr: (text) => void stderr.write(text),
    cancelled: cancel.signal
  })
  await flushed(output)
  if (code !== 0 || !output.isClosed()) return code
  // An answer that nobody could read was not given.
  stderr.write("tackroom run: the answer could not be written to stdout\n")
  return 1
}
