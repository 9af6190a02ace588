/** The command line and the variables `TACKROOM_SEAT_<FLAG>` as words, before anything is made of them. Pure. */

/** What a flag takes. */
type Shape = "switch" | "value" | "list"

const shapes = {
  harness: "value",
  "agent-command": "value",
  preset: "value",
  env: "list",
  auth: "value",
  "model-env": "value",
  "model-flag": "value",
  "model-config": "value",
  reopen: "value",
  "not-found-code": "list",
  "list-is-complete": "switch",
  "when-unanswerable": "value",
  liveness: "value",
  "idle-liveness": "value",
  "open-timeout": "value",
  "show-thoughts": "switch",
  "show-history": "switch"
} as const satisfies Readonly<Record<string, Shape>>

export type FlagName = keyof typeof shapes

/** Every flag, in the order of the help. */
export const flagNames = Object.keys(shapes) as ReadonlyArray<FlagName>

/** The words of one flag; a switch has `true` or `false`. */
export type Flags = Partial<Readonly<Record<FlagName, ReadonlyArray<string>>>>

export interface CommandLine {
  readonly flags: Flags
  /** What follows `--`; `undefined` when there is none. */
  readonly words: ReadonlyArray<string> | undefined
  readonly wants: "run" | "help" | "version"
  readonly problems: ReadonlyArray<string>
}

const isFlag = (name: string): name is FlagName => Object.hasOwn(shapes, name)

const switchWords: Readonly<Record<string, string>> = { "1": "true", true: "true", "0": "false", false: "false" }

/** Reads a command line, without the program's own name. */
export const readCommandLine = (argv: ReadonlyArray<string>): CommandLine => {
  const flags: Partial<Record<FlagName, Array<string>>> = {}
  const problems: Array<string> = []
  let words: ReadonlyArray<string> | undefined
  let wants: CommandLine["wants"] = "run"
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] ?? ""
    if (word === "--") {
      words = argv.slice(i + 1)
      break
    }
    if (word === "--help" || word === "-h") {
      wants = "help"
      continue
    }
    if (word === "--version" || word === "-V") {
      if (wants === "run") wants = "version"
      continue
    }
    const [, name = "", inline] = /^--([a-z-]+)(?:=(.*))?$/su.exec(word) ?? []
    if (!isFlag(name)) {
      problems.push(
        word.startsWith("-")
          ? `there is no flag ${word.split("=", 1)[0]}`
          : `${JSON.stringify(word)} belongs to no flag; the agent's command follows --`
      )
      continue
    }
    const shape: Shape = shapes[name]
    if (shape === "switch") {
      const value = inline === undefined ? "true" : switchWords[inline]
      if (value === undefined) problems.push(`--${name} takes no value`)
      else flags[name] = [value]
      continue
    }
    const value = inline ?? argv[++i]
    if (value === undefined) problems.push(`--${name} needs a value`)
    else if (shape === "list") flags[name] = [...(flags[name] ?? []), value]
    else if (flags[name] !== undefined) problems.push(`--${name} is given twice`)
    else flags[name] = [value]
  }
  return { flags, words, wants, problems }
}

/** The name of a flag's variable. */
export const flagVariable = (name: FlagName): string => `TACKROOM_SEAT_${name.replaceAll("-", "_").toUpperCase()}`

/** The flags that variables give; a list is separated by commas or blanks. */
export const readFlagVariables = (
  environment: Readonly<Record<string, string | undefined>>
): { readonly flags: Flags; readonly problems: ReadonlyArray<string> } => {
  const flags: Partial<Record<FlagName, ReadonlyArray<string>>> = {}
  const problems: Array<string> = []
  for (const name of flagNames) {
    const text = environment[flagVariable(name)]
    if (text === undefined || text === "") continue
    const shape: Shape = shapes[name]
    if (shape === "list") flags[name] = text.split(/[\s,]+/u).filter((word) => word !== "")
    else if (shape === "value") flags[name] = [text]
    else {
      const value = switchWords[text.toLowerCase()]
      if (value === undefined) problems.push(`${flagVariable(name)} is neither true nor false`)
      else flags[name] = [value]
    }
  }
  return { flags, problems }
}
