/**
 * Which subcommand a command line names (D-18, D-34). Pure: it looks at words only and loads nothing.
 *
 * It owns the list of built-in names. It does not read the flags of a subcommand, which are the subcommand's own.
 * A name that is not built in is another program, `tackroom-NAME`; that it may not exist is found out by `External`.
 */

export interface BuiltIn {
  readonly name: string
  readonly summary: string
}

/** What this program does itself, in the order of the help. */
export const builtIns: ReadonlyArray<BuiltIn> = [
  { name: "run", summary: "Give one prompt to an agent and show its work" },
  { name: "serve", summary: "Serve one session to a driving program: JSON lines on stdio" },
  { name: "acp", summary: "Be an agent in an editor: the Agent Client Protocol on stdio" },
  { name: "harness-stdio", summary: "Run agents for an application: the run protocol on stdio" },
  { name: "tool-runner", summary: "Run tools for a host, which starts it by itself" },
  { name: "help", summary: "Explain a subcommand: tackroom help run" }
]

/** Programs that other packages bring. */
export const companions: ReadonlyArray<BuiltIn> = [
  { name: "rig", summary: "the seat service (package @tackroom/server)" },
  { name: "server", summary: "the runtime over HTTP (package @tackroom/server)" },
  { name: "seat", summary: "an agent in a terminal seat (package @tackroom/runner)" },
  { name: "conformance", summary: "black-box checks of the wires (package @tackroom/runner)" }
]

export type Command =
  | { readonly _tag: "Help"; readonly topic: string | undefined }
  | { readonly _tag: "Version" }
  | { readonly _tag: "Run"; readonly args: ReadonlyArray<string> }
  | { readonly _tag: "Serve"; readonly args: ReadonlyArray<string> }
  | { readonly _tag: "Acp"; readonly args: ReadonlyArray<string> }
  | { readonly _tag: "HarnessStdio"; readonly args: ReadonlyArray<string> }
  | { readonly _tag: "ToolRunner"; readonly args: ReadonlyArray<string> }
  | { readonly _tag: "External"; readonly name: string; readonly args: ReadonlyArray<string> }
  | { readonly _tag: "Usage"; readonly message: string }

/** A name that can be part of a file name `tackroom-NAME` and of nothing else. */
const programName = /^[a-z][a-z0-9-]{0,62}$/u

const helpFlags: ReadonlySet<string> = new Set(["--help", "-h"])

const asksForHelp = (args: ReadonlyArray<string>): boolean => {
  const end = args.indexOf("--")
  return (end < 0 ? args : args.slice(0, end)).some((arg) => helpFlags.has(arg))
}

const helpOn = (topic: string | undefined): Command => {
  if (topic === undefined || builtIns.some(({ name }) => name === topic)) return { _tag: "Help", topic }
  return programName.test(topic) ? { _tag: "External", name: topic, args: ["--help"] } : unknown(topic)
}

const unknown = (name: string): Command => ({
  _tag: "Usage",
  message: name.startsWith("-") ? `there is no flag ${name}` : `there is no subcommand ${JSON.stringify(name)}`
})

/** Reads a command line, without the program's own name. */
export const parseCommand = (argv: ReadonlyArray<string>): Command => {
  const [name, ...args] = argv
  if (name === undefined) return { _tag: "Usage", message: "a subcommand is missing" }
  if (helpFlags.has(name)) return helpOn(args[0])
  if (name === "--version" || name === "-V" || name === "version") return { _tag: "Version" }
  if (name === "help") return helpOn(args.find((arg) => !helpFlags.has(arg)))
  if (builtIns.some((builtIn) => builtIn.name === name) && asksForHelp(args)) return { _tag: "Help", topic: name }
  switch (name) {
    case "run":
      return { _tag: "Run", args }
    case "serve":
      return { _tag: "Serve", args }
    case "acp":
      return { _tag: "Acp", args }
    case "harness-stdio":
      return { _tag: "HarnessStdio", args }
    case "tool-runner":
      return { _tag: "ToolRunner", args }
    default:
      return programName.test(name) ? { _tag: "External", name, args } : unknown(name)
  }
}
