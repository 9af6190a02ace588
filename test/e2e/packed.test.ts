/** What is published, as a stranger loads it: the built half of each package alone, without its optional peers. */
import { assert, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll } from "vitest"
import { type Manifest, manifests } from "./architecture/Packages.ts"
import { root } from "./architecture/Sources.ts"

const published = ["@tackroom/protocol", "@tackroom/sdk"].flatMap((name) =>
  manifests.filter((manifest) => manifest.name === name)
)
const entries = published.flatMap((manifest) =>
  Object.keys(manifest.exports)
    .filter((key) => key !== "./package.json")
    .map((key) => manifest.name + key.slice(1))
)

/** The folder a registry would hand out: package.json with the published maps, and `dist`. */
const lay = (manifest: Manifest, modules: string): void => {
  const folder = join(modules, manifest.name)
  mkdirSync(folder, { recursive: true })
  const { exports, imports } = manifest.publishConfig
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({
      name: manifest.name,
      type: "module",
      exports,
      ...(imports === undefined ? { imports: manifest.imports } : { imports })
    })
  )
  cpSync(join(root, manifest.folder, "dist"), join(folder, "dist"), { recursive: true })
}

describe("a published package", () => {
  let folder: string

  beforeAll(() => {
    for (const manifest of published) {
      assert.isTrue(existsSync(join(root, manifest.folder, "dist/index.js")), `${manifest.name} is not built`)
    }
    folder = realpathSync(mkdtempSync(join(tmpdir(), "tackroom-packed-")))
    const modules = join(folder, "node_modules")
    for (const manifest of published) lay(manifest, modules)
    symlinkSync(realpathSync(join(root, "node_modules/effect")), join(modules, "effect"), "dir")
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }))
    assert.isFalse(existsSync(join(dirname(folder), "node_modules")))
  })

  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  for (const entry of entries) {
    it(`loads ${entry} from what is built, with no optional peer installed [RT-008]`, async () => {
      const { stdout } = await promisify(execFile)(
        process.execPath,
        ["--input-type=module", "--eval", "console.log(Object.keys(await import(process.argv[1])).length)", entry],
        { cwd: folder, timeout: 60_000 }
      )
      assert.isAbove(Number(stdout), 0)
    })
  }
})
