/** The help and the completion scripts of the operator commands, made from their table. Pure. */
import { type CommandName, commandNames, type CommandSpec, commands, commonFlags, type FlagSpec } from "./Commands.ts"

const table = (rows: ReadonlyArray<readonly [string, string]>): string => {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}\n`).join("")
}

const usageOf = ({ words, args, flags }: CommandSpec): string =>
  [
    "tackroom rig",
    ...words,
    ...args.map(({ name, optional }) => (optional === true ? `[<${name}>]` : `<${name}>`)),
    ...(flags.length === 0 ? [] : ["[flags]"])
  ].join(" ")

const flagText = ({ name, value, alias }: FlagSpec): string =>
  `--${name}${value === undefined ? "" : ` ${value}`}${alias === undefined ? "" : `, --${alias}`}`

const overview = (): string => `Seats for agents in terminals: what they do, what they ask, and who answers.

Usage:
  tackroom rig COMMAND [arguments] [flags]

Commands:
${table(commandNames.map((name) => [commands[name].words.join(" "), commands[name].summary]))}
Flags of every command:
${table(commonFlags.map((flag) => [flagText(flag), flag.summary]))}
A seat is named by its session (dev-builder@mill), as dev.builder@mill, or by its
node id. All commands but serve talk to the running service of TACKROOM_HOME.

Exit codes: 0 done, 1 refused, 2 a fault, the service not reachable, or
something left running, 64 usage. serve also ends with 75 (another service has
this home) and 78 (a setting or a file is not usable).
`

/** The help of the program, or of one command. */
export const helpText = (name: CommandName | undefined): string => {
  if (name === undefined) return overview()
  const spec: CommandSpec = commands[name]
  return `${spec.summary}.

Usage:
  ${usageOf(spec)}

Flags:
${table([...spec.flags, ...commonFlags].map((flag) => [flagText(flag), flag.summary]))}`
}

export const shells = ["bash", "zsh", "fish"] as const
export type Shell = (typeof shells)[number]

/** Words that may follow what was typed so far. */
const followers = (): ReadonlyArray<readonly [string, ReadonlyArray<string>]> => {
  const groups = new Map<string, Set<string>>()
  for (const name of commandNames) {
    const spec: CommandSpec = commands[name]
    spec.words.forEach((word, at) => {
      const before = spec.words.slice(0, at).join(" ")
      groups.set(before, (groups.get(before) ?? new Set()).add(word))
    })
    const flags = [...spec.flags, ...commonFlags].map((flag) => `--${flag.name}`)
    groups.set(spec.words.join(" "), new Set(flags))
  }
  return [...groups].map(([before, words]) => [before, [...words]])
}

const bash = (): string => `# bash completion of tackroom rig
_tackroom_rig() {
  local words=("\${COMP_WORDS[@]:1:COMP_CWORD-1}") typed="\${COMP_WORDS[COMP_CWORD]}" path="" word
  [ "\${words[0]}" = rig ] && words=("\${words[@]:1}")
  for word in "\${words[@]}"; do case $word in -*) ;; *) path="\${path:+$path }$word" ;; esac; done
  while :; do
    case $path in
${followers()
  .map(
    ([before, words]) =>
      `      ${JSON.stringify(before)}) COMPREPLY=($(compgen -W ${JSON.stringify(words.join(" "))} -- "$typed")); return ;;`
  )
  .join("\n")}
      *" "*) path="\${path% *}" ;;
      *) return ;;
    esac
  done
}
complete -o default -F _tackroom_rig tackroom-rig
complete -o default -F _tackroom_rig tackroom
`

const zsh = (): string => `#compdef tackroom-rig
autoload -U +X bashcompinit && bashcompinit
${bash()}`

const fish = (): string =>
  `# fish completion of tackroom rig\n${commandNames
    .map((name) => {
      const spec: CommandSpec = commands[name]
      const [first = "", second] = spec.words
      const condition =
        second === undefined
          ? `not __fish_seen_subcommand_from ${[...new Set(commandNames.map((one) => commands[one].words[0]))].join(" ")}`
          : `__fish_seen_subcommand_from ${first}`
      return `complete -c tackroom-rig -n '${condition}' -a ${second ?? first} -d '${spec.summary.replaceAll("'", "")}'`
    })
    .join("\n")}\n`

export const completions = (shell: Shell): string => ({ bash, zsh, fish })[shell]()
