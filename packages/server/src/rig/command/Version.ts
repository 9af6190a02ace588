/** The version of this program: that of the package it lies in. The same lookup works for the sources and the bundle. */
import * as fs from "node:fs"
import * as path from "node:path"

const packageName = "@tackroom/server"

const versionIn = (file: string): string | undefined => {
  const parsed: unknown = JSON.parse(fs.readFileSync(file, "utf8"))
  if (typeof parsed !== "object" || parsed === null || !("name" in parsed) || !("version" in parsed)) return undefined
  return parsed.name === packageName && typeof parsed.version === "string" ? parsed.version : undefined
}

export const version = (): string => {
  for (let folder = import.meta.dirname; ; folder = path.dirname(folder)) {
    const file = path.join(folder, "package.json")
    const found = fs.existsSync(file) ? versionIn(file) : undefined
    if (found !== undefined) return found
    if (folder === path.dirname(folder)) throw new Error(`the package ${packageName} is not complete`)
  }
}
