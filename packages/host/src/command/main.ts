/**
 * The process edge of `tackroom`: takes the command line, loads the subcommand, sets the exit code.
 *
 * It owns what the program itself prints: help, version and usage errors. Usage errors go to stderr with exit code 2.
 * A subcommand is loaded by a dynamic import, so that a tool runner does not pay for a model client.
 */
import { builtIns, companions, parseCommand, type Command } from "./Command.ts"
import { programs, toolRunner } from "./Parts.ts"
import { version } from "./Version.ts"

const usageCode = 2

/** Writes and completes when the text is with the system; a reader that went away is no failure. */
const say = (stream: NodeJS.WriteStream, text: string): Promise<void> =>
  new Promise((resolve) => {
    stream.once("error", () => resolve())
    stream.write(text, () => resolve())
  })

const complain = async (message: string): Promise<number> => {
  await say(process.stderr, `tackroom: ${message}\nTry: tackroom --help\n`)
  return usageCode
}

const external = async (name: string, args: ReadonlyArray<string>): Promise<number> => {
  const { find, run } = await import("./External.ts")
  const program = process.argv[1] ?? process.execPath
  const found = find({ name, program, env: process.env, platform: process.platform })
  if (found === undefined) {
    const companion = companions.find((entry) => entry.name === name)
    if (companion !== undefined) {
      return complain(`tackroom-${name} is not installed here: ${companion.summary}`)
    }
    const { suggest } = await import("./Suggestion.ts")
    const names = [...builtIns, ...companions].map((entry) => entry.name)
    const near = suggest(name, [...names, "version"])
    const hint = near === undefined ? "" : `. Did you mean ${JSON.stringify(near)}?`
    return complain(
      `there is no subcommand ${JSON.stringify(name)}, and no program tackroom-${name} beside this one or on PATH${hint}`
    )
  }
  const ended = await run(found, args)
  if (ended._tag === "Exited") return ended.code
  if (ended._tag === "NotStarted") return complain(`${found.command} could not be started: ${ended.message}`)
  process.kill(process.pid, ended.signal)
  // Not every signal ends a process at once.
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  return 1
}

/** What a command-line face is told of this program. */
const program = async () => {
  const [{ hostState }, os] = await Promise.all([import("./StateHome.ts"), import("node:os")])
  return {
    version: version(),
    stateDir: hostState({ platform: process.platform, home: os.homedir(), env: process.env })
  }
}

const perform = async (command: Command): Promise<number> => {
  switch (command._tag) {
    case "Help": {
      const { helpText } = await import("./Help.ts")
      await say(process.stdout, helpText(command.topic))
      return 0
    }
    case "Version": {
      await say(process.stdout, `${version()}\n`)
      return 0
    }
    case "Run": {
      const { headless } = await programs("run")
      return headless(command.args, await program())
    }
    case "Serve": {
      const { serve } = await programs("serve")
      return serve(command.args, await program())
    }
    case "Acp": {
      const [{ acp }, { hostState }, os] = await Promise.all([
        programs("acp"),
        import("./StateHome.ts"),
        import("node:os")
      ])
      const stateDir = hostState({ platform: process.platform, home: os.homedir(), env: process.env })
      return acp(command.args, { version: version(), stateDir })
    }
    case "HarnessStdio": {
      const [config, ...rest] = command.args
      if (config === undefined || rest.length > 0)
        return complain("harness-stdio takes one argument, the configuration")
      const { harnessStdio } = await programs("harness-stdio")
      return harnessStdio(config, version())
    }
    case "ToolRunner": {
      if (command.args.length > 0) return complain("tool-runner takes no arguments")
      const { runToolRunner } = await toolRunner()
      return runToolRunner(version())
    }
    case "External":
      return external(command.name, command.args)
    case "Usage":
      return complain(command.message)
  }
}

/** Runs one command line and ends the process with its exit code. */
export const main = async (argv: ReadonlyArray<string>): Promise<void> => {
  process.exit(await perform(parseCommand(argv)))
}
