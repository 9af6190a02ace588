import { assert, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { promisify } from "node:util"

const run = promisify(execFile)
const loader = path.resolve(import.meta.dirname, "../../src/command/CodeCache.ts")

const seal = (text: string): string => `${text}\n// part ${createHash("sha256").update(text).digest("hex")}\n`

/** A folder with a part, a file that the part shares with it, and a program which loads the part and says what it does. */
const setUp = (part: string, options: { readonly exit?: number; readonly directory?: string } = {}) => {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "code-"))
  const kept = path.join(root, "kept")
  fs.mkdirSync(kept)
  const file = path.join(root, "part.cjs")
  fs.writeFileSync(file, part)
  fs.writeFileSync(path.join(root, "later.cjs"), `exports.same = require("./part.cjs").own`)
  fs.writeFileSync(
    path.join(root, "program.mjs"),
    `import { loadPart } from ${JSON.stringify(loader)}
const part = loadPart({ file: ${JSON.stringify(file)}, use: "test", directory: ${options.directory ?? JSON.stringify(kept)} })
process.stdout.write(JSON.stringify([part.answer(20), part.later() === part.own, part.name]))
process.exitCode = ${options.exit ?? 0}`
  )
  const start = async (flags: ReadonlyArray<string> = []) => {
    const ended = await run(process.execPath, [...flags, path.join(root, "program.mjs")]).catch(
      (error: { readonly stdout: string; readonly stderr: string }) => error
    )
    assert.strictEqual(ended.stderr, "")
    return JSON.parse(ended.stdout) as unknown
  }
  const files = () => fs.readdirSync(kept).filter((name) => name.endsWith(".code"))
  return { root, kept, file, start, files, remove: () => fs.rmSync(root, { recursive: true }) }
}

const text = (add: number) =>
  `const own = {}; exports.own = own
exports.answer = (n) => n + ${add}
exports.later = () => require("./later.cjs").same
exports.name = require("node:path").basename(__filename)`

const expected = (answer: number) => [answer, true, "part.cjs"]

describe("a part of the built program", () => {
  it("does the same with and without the code of an earlier run, and keeps that once", async () => {
    const part = setUp(seal(text(22)))
    assert.deepStrictEqual(await part.start(), expected(42))
    const [name] = part.files()
    assert.match(name ?? "", /^tackroom-test-[0-9a-f]{64}\.code$/u)
    const { ino, mode } = fs.statSync(path.join(part.kept, name ?? ""))
    if (process.platform !== "win32") assert.strictEqual(mode & 0o777, 0o600)
    assert.deepStrictEqual(await part.start(), expected(42))
    assert.deepStrictEqual(part.files(), [name])
    assert.strictEqual(fs.statSync(path.join(part.kept, name ?? "")).ino, ino)
    part.remove()
  })

  it("never runs the code of another text, even one of the same length", async () => {
    const part = setUp(seal(text(22)))
    await part.start()
    fs.writeFileSync(part.file, seal(text(23)))
    assert.deepStrictEqual(await part.start(), expected(43))
    assert.lengthOf(part.files(), 2)
    part.remove()
  })

  it("replaces code that is damaged, cut, empty or made with other flags", async () => {
    const part = setUp(seal(text(22)))
    await part.start()
    const file = path.join(part.kept, part.files()[0] ?? "")
    const whole = fs.readFileSync(file)
    const half = whole.subarray(0, whole.length / 2)
    const holed = Buffer.from(whole).fill(0, half.length - 300, half.length - 200)
    const other = Buffer.from("not compiled code")
    const bads = [Buffer.alloc(0), half, holed, Buffer.alloc(whole.length), Buffer.concat([other, other])]
    for (const bad of bads) {
      fs.writeFileSync(file, bad)
      assert.deepStrictEqual(await part.start(), expected(42))
      assert.strictEqual(fs.statSync(file).size, whole.length)
      assert.notDeepEqual(fs.readFileSync(file), bad)
    }
    assert.deepStrictEqual(await part.start(["--no-opt"]), expected(42))
    part.remove()
  })

  it.skipIf(process.platform === "win32")("does not take code that others could have written, or a link", async () => {
    const part = setUp(seal(text(22)))
    await part.start()
    const file = path.join(part.kept, part.files()[0] ?? "")
    fs.chmodSync(file, 0o666)
    const { ino } = fs.statSync(file)
    assert.deepStrictEqual(await part.start(), expected(42))
    assert.notStrictEqual(fs.statSync(file).ino, ino)
    fs.renameSync(file, `${file}.other`)
    fs.symlinkSync(`${file}.other`, file)
    assert.deepStrictEqual(await part.start(), expected(42))
    assert.isFalse(fs.lstatSync(file).isSymbolicLink())
    part.remove()
  })

  it("is loaded as any module without a key, without a directory, and where nothing can be written", async () => {
    const plain = setUp(text(22))
    assert.deepStrictEqual(await plain.start(), expected(42))
    assert.deepStrictEqual(plain.files(), [])
    plain.remove()
    const nowhere = setUp(seal(text(22)), { directory: "undefined" })
    assert.deepStrictEqual(await nowhere.start(), expected(42))
    nowhere.remove()
    const gone = setUp(seal(text(22)))
    fs.rmdirSync(gone.kept)
    assert.deepStrictEqual(await gone.start(), expected(42))
    gone.remove()
  })

  it("keeps nothing of a run that failed", async () => {
    const part = setUp(seal(text(22)), { exit: 2 })
    assert.deepStrictEqual(await part.start(), expected(42))
    assert.deepStrictEqual(part.files(), [])
    part.remove()
  })
})
