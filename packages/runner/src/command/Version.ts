/** The version of this program: that of the package it lies in, found the same way from sources, `dist` and the bundle. */
import * as fs from "node:fs"
import * as path from "node:path"

const packageName = "@tackroom/runner"

const versionIn = (file: string): string | undefined => {
  const parsed: unknown = JSON.parse(fs.readFileSync(file, "utf8"))
  if (typeof parsed !== "object" || parsed === null || !("name" in parsed) || !("version" in parsed)) return undefined
  return parsed.name === packageName && typeof parsed.version === "string" ? parsed.version : undefined
}

export const version = (): string => {
  for (let directory = import.meta.dirname; ; directory = path.dirname(directory)) {
    const file = path.join(directory, "package.json")
    const found = fs.existsSync(file) ? versionIn(file) : undefined
    if (found !== undefined) return found
    if (directory === path.dirname(directory)) throw new Error(`the package ${packageName} is not complete`)
  }
}
