/**
 * Writes the published documents to `schemas/`, or with `--check` names those that differ from what the schemas say and
 * exits with 1.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { documents, printed } from "./Documents.ts"

const directory = fileURLToPath(new URL("../schemas/", import.meta.url))
const check = process.argv.includes("--check")

mkdirSync(directory, { recursive: true })
const present = new Set(readdirSync(directory))
const drifted: Array<string> = []
for (const [file, document] of documents()) {
  const text = printed(document)
  const same = present.delete(file) && readFileSync(`${directory}${file}`, "utf8") === text
  if (same) continue
  drifted.push(file)
  if (!check) writeFileSync(`${directory}${file}`, text)
}
for (const file of present) drifted.push(`${file} (nothing generates it)`)

if (check && drifted.length > 0) {
  console.error(`generated files differ from the schemas; run the generator:\n  ${drifted.join("\n  ")}`)
  process.exitCode = 1
} else if (!check) {
  console.log(drifted.length === 0 ? "nothing to write" : `wrote ${drifted.join(", ")}`)
}
