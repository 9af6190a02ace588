/** A folder of the size of a real checkout: the sources and what is built of `effect`, more than 2,000 files. */
import { cpSync, mkdirSync, readdirSync, realpathSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

export interface Checkout {
  readonly path: string
  readonly files: number
}

/** Stands in exactly one file, deep in the folder. */
export const needle = "the one needle in this haystack"
export const needleFile = "src/unstable/deep/down/Needle.ts"

const effect = realpathSync(join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..", "node_modules", "effect"))

const countFiles = (path: string): number =>
  readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).length

export const makeCheckout = (path: string): Checkout => {
  cpSync(join(effect, "src"), join(path, "src"), { recursive: true })
  cpSync(join(effect, "dist"), join(path, "dist"), {
    recursive: true,
    filter: (file) => !file.endsWith(".d.ts.map")
  })
  const deep = join(path, needleFile)
  mkdirSync(dirname(deep), { recursive: true })
  writeFileSync(deep, `// first line\nexport const needle = "${needle}"\n`)
  return { path, files: countFiles(path) }
}
