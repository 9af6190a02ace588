/**
 * The version of a program: that of the package it lies in, so that programs of one package agree on one (RUN-092). The
 * same lookup works for sources, for `dist` and for a bundle.
 */
import * as fs from "node:fs"
import * as path from "node:path"

const versionIn = (file: string, name: string): string | undefined => {
  const parsed: unknown = JSON.parse(fs.readFileSync(file, "utf8"))
  if (typeof parsed !== "object" || parsed === null || !("name" in parsed) || !("version" in parsed)) return undefined
  return parsed.name === name && typeof parsed.version === "string" ? parsed.version : undefined
}

/** The version of the package of that name, looked for from a directory upwards. */
export const packageVersion = (name: string, from: string): string => {
  for (let directory = from; ; directory = path.dirname(directory)) {
    const file = path.join(directory, "package.json")
    const version = fs.existsSync(file) ? versionIn(file, name) : undefined
    if (version !== undefined) return version
    if (directory === path.dirname(directory)) throw new Error(`the package ${name} is not complete: ${from}`)
  }
}
