/**
 * The version of this program: that of the package it lies in.
 * The same lookup works for the sources, for `dist` and for the bundle.
 */
import * as fs from "node:fs"
import * as path from "node:path"

const packageName = "@tackroom/runner"

const versionIn = (file: string): string | undefined => {
  const parsed: unknown = JSON.parse(fs.readFileSync(file, "utf8"))
  if (typeof parsed !== "object" || parsed === null || !("name" in parsed) || !("version" in parsed)) return undefined
  return parsed.name === packageName && typeof parsed.version === "string" ? parsed.version : undefined
}

const lookUp = (from: string): string => {
  for (let directory = from; ; directory = path.dirname(directory)) {
    const file = path.join(directory, "package.json")
    const version = fs.existsSync(file) ? versionIn(file) : undefined
    if (version !== undefined) return version
    if (directory === path.dirname(directory)) throw new Error(`the package ${packageName} is not complete: ${from}`)
  }
}

let known: string | undefined

export const version = (): string => {
  known ??= lookUp(import.meta.dirname)
  return known
}
