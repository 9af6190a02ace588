/** Reads a command line against the table of commands. Pure. */
import { editDistance } from "@tackroom/protocol/text"
import { type CommandName, commandNames, type CommandSpec, commands, commonFlags, type FlagSpec } from "./Commands.ts"

export interface Invocation {
  readonly _tag: "Run"
  readonly name: CommandName
  readonly args: Readonly<Record<string, string>>
  readonly switches: ReadonlySet<string>
  readonly values: Readonly<Record<string, ReadonlyArray<string>>>
  readonly json: boolean
}

export type Parsed =
  | Invocation
  | { readonly _tag: "Help"; readonly name: CommandName | undefined }
  | { readonly _tag: "Version" }
  | { readonly _tag: "Usage"; readonly message: string; readonly name?: CommandName }

const usage = (message: string, name?: CommandName): Parsed => ({
  _tag: "Usage",
  message,
  ...(name === undefined ? {} : { name })
})

/** The command that the first words name, the longest match first. */
const commandOf = (words: ReadonlyArray<string>): CommandName | undefined =>
  commandNames
    .filter((name) => commands[name].words.every((word, at) => words[at] === word))
    .toSorted((left, right) => commands[right].words.length - commands[left].words.length)[0]

const nearest = (word: string, names: ReadonlyArray<string>): string | undefined =>
  names
    .map((name) => ({ name, off: editDistance(word, name) }))
    .filter(({ off }) => off <= 2)
    .toSorted((left, right) => left.off - right.off)[0]?.name

const unknownCommand = (words: ReadonlyArray<string>): Parsed => {
  const [first = "", second] = words
  const group = commandNames.filter((name) => commands[name].words[0] === first)
  if (group.length > 0) {
    const seconds = group.flatMap((name) => commands[name].words[1] ?? [])
    return usage(
      second === undefined
        ? `${first} takes one of: ${seconds.join(", ")}`
        : `there is no command ${first} ${second}; ${first} takes one of: ${seconds.join(", ")}`
    )
  }
  const near = nearest(first, [...new Set(commandNames.map((name) => commands[name].words[0]))])
  return usage(`there is no command ${JSON.stringify(first)}${near === undefined ? "" : `; did you mean ${near}?`}`)
}

/** A switch of every command may stand before the command, too. */
const json = "--json"

export const parse = (words: ReadonlyArray<string>): Parsed => {
  const begin = words.findIndex((word) => word !== json)
  const early = words.slice(0, Math.max(0, begin))
  const argv = begin < 0 ? [] : words.slice(begin)
  const [first] = argv
  if (first === undefined || first === "help" || first === "--help" || first === "-h") {
    const name = commandOf(argv.slice(1))
    return { _tag: "Help", name }
  }
  if (first === "--version" || first === "-V") return { _tag: "Version" }
  if (first.startsWith("-")) return usage(`${first} comes after its command`)
  const name = commandOf(argv)
  if (name === undefined) return unknownCommand(argv)
  const spec: CommandSpec = commands[name]
  const flags: ReadonlyArray<FlagSpec> = [...spec.flags, ...commonFlags]
  const positional: Array<string> = []
  const switches = new Set<string>()
  const values: Record<string, Array<string>> = {}
  let literal = false
  const rest = [...early, ...argv.slice(spec.words.length)]
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] ?? ""
    if (literal || !word.startsWith("-") || word === "-") {
      positional.push(word)
      continue
    }
    if (word === "--") {
      literal = true
      continue
    }
    if (word === "-h") return { _tag: "Help", name }
    const [given = "", inline] = splitFlag(word)
    const flag = flags.find((one) => one.name === given || one.alias === given)
    if (flag === undefined || !word.startsWith("--")) {
      const near = nearest(
        given,
        flags.map((one) => one.name)
      )
      return usage(`there is no flag ${word}${near === undefined ? "" : `; did you mean --${near}?`}`, name)
    }
    if (flag.value === undefined) {
      if (inline !== undefined) return usage(`--${flag.name} takes no value`, name)
      switches.add(flag.name)
      continue
    }
    const value = inline ?? rest[++at]
    if (value === undefined) return usage(`--${flag.name} takes ${flag.value}`, name)
    const known = values[flag.name] ?? []
    if (known.length > 0 && flag.repeat !== true) return usage(`--${flag.name} is given twice`, name)
    values[flag.name] = [...known, value]
  }
  if (switches.has("help")) return { _tag: "Help", name }
  const needed = spec.args.filter((one) => one.optional !== true)
  const missing = needed[positional.length]
  if (missing !== undefined) return usage(`${missing.name} is missing`, name)
  const extra = positional[spec.args.length]
  if (extra !== undefined) return usage(`${JSON.stringify(extra)} is one argument too many`, name)
  return {
    _tag: "Run",
    name,
    args: Object.fromEntries(positional.map((word, at) => [spec.args[at]?.name ?? "", word])),
    switches,
    values,
    json: switches.has("json")
  }
}

const splitFlag = (word: string): ReadonlyArray<string> => {
  const body = word.replace(/^-+/u, "")
  const at = body.indexOf("=")
  return at < 0 ? [body] : [body.slice(0, at), body.slice(at + 1)]
}
