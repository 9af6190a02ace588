/** Whether there is a program for the first word of a command, asked before it is started where it can only fail unseen. */
import * as fs from "node:fs"
import * as path from "node:path"

const isProgram = (file: string): boolean => {
  try {
    fs.accessSync(file, fs.constants.X_OK)
    return fs.statSync(file).isFile()
  } catch {
    return false
  }
}

/** What a POSIX system looks through where there is no PATH. */
const usualPath = "/usr/local/bin:/bin:/usr/bin"

/** The file that a POSIX system starts for a word: a path from `cwd`, or a name on `search`, the value of PATH. */
export const findProgram = (word: string, cwd: string, search: string = usualPath): string | undefined => {
  if (word === "") return undefined
  const folders = word.includes("/") ? [cwd] : search.split(path.delimiter).map((folder) => path.resolve(cwd, folder))
  return folders.map((folder) => path.resolve(folder, word)).find(isProgram)
}
