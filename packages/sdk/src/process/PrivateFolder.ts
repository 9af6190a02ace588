/**
 * Folders that a program keeps for itself at a path that a person gave.
 *
 * Made one by one: Node's recursive mkdir never comes back where the system answers that a parent is not there though it is,
 * as below /proc.
 */
import * as fs from "node:fs"
import * as path from "node:path"

const isFolder = (folder: string): boolean => fs.statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false

/** Makes a folder of mode 0700 and the parents that are missing; one that is there stays as it is. */
export const makePrivateFolder = (folder: string): void => {
  if (isFolder(folder)) return
  const parent = path.dirname(folder)
  // A parent that is something else is for the system to name, by the folder that was asked for.
  if (!fs.existsSync(parent)) makePrivateFolder(parent)
  try {
    fs.mkdirSync(folder, { mode: 0o700 })
  } catch (cause) {
    // Another process was faster.
    if (!isFolder(folder)) throw cause
  }
}
