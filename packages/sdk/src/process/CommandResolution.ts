/**
 * Which file a command name means. POSIX leaves that to the system; Windows needs `PATHEXT` (HRN-045), never takes a shim
 * without an extension, and starts batch files through `cmd.exe` with arguments that it cannot read as its own.
 */
export interface CommandQuery {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly environment: Readonly<Record<string, string>>
  readonly platform: string
  readonly exists: (path: string) => boolean
}

/** What to hand to `spawn`. */
export interface ResolvedCommand {
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** The arguments are already quoted for Windows. */
  readonly verbatim: boolean
}

const variable = (environment: Readonly<Record<string, string>>, name: string): string | undefined => {
  const key = Object.keys(environment).find((entry) => entry.toUpperCase() === name)
  return key === undefined ? undefined : environment[key]
}

const hasExtension = (path: string, extensions: ReadonlyArray<string>): boolean => {
  const lower = path.toLowerCase()
  return extensions.some((extension) => lower.endsWith(extension.toLowerCase()))
}

/** One argument as `cmd.exe` and the C runtime both read it. */
const quoteForCmd = (argument: string): string => {
  const quoted = `"${argument.replace(/(\\*)"/g, '$1$1\\"').replace(/(\\*)$/, "$1$1")}"`
  return quoted.replace(/[()\][%!^"`<>&|;, *?]/g, "^$&")
}

/** Resolves a command for `spawn` without a shell. Pure but for `exists`. */
export const resolveCommand = (query: CommandQuery): ResolvedCommand => {
  if (query.platform !== "win32") return { command: query.command, args: query.args, verbatim: false }
  const extensions = (variable(query.environment, "PATHEXT") ?? ".COM;.EXE;.BAT;.CMD")
    .split(";")
    .filter((e) => e !== "")
  const hasFolder = /[\\/]/.test(query.command)
  const folders = hasFolder ? [""] : (variable(query.environment, "PATH") ?? "").split(";").filter((f) => f !== "")
  const names = hasExtension(query.command, extensions)
    ? [query.command]
    : extensions.map((extension) => query.command + extension.toLowerCase())
  const found = folders
    .flatMap((folder) => names.map((name) => (folder === "" ? name : `${folder.replace(/[\\/]$/, "")}\\${name}`)))
    .find(query.exists)
  const file = found ?? query.command
  if (!hasExtension(file, [".cmd", ".bat"])) return { command: file, args: query.args, verbatim: false }
  const line = [file, ...query.args].map(quoteForCmd).join(" ")
  return {
    command: variable(query.environment, "COMSPEC") ?? "cmd.exe",
    args: ["/d", "/s", "/c", `"${line}"`],
    verbatim: true
  }
}
