/**
 * Loads a built part of the program with the compiled code of an earlier run. Node's own compile cache holds what was
 * compiled when a file was loaded; most functions are compiled later, when they are first called, and that is half the
 * work of a start. Here the code is kept once the part has run for a while.
 *
 * It owns the files `tackroom-USE-KEY.code` in Node's compile cache directory, which is by version of Node, kind of machine
 * and user. The build ends a part with a key made of its content, so compiled code is never used with another text; V8
 * itself refuses what another version or other flags have made, but not what is damaged: a file holds the code twice, and
 * comparing the halves takes less time than loading a checksum. Nothing here can fail a start: without a directory, a
 * key or a usable file the part is loaded as any module, and a file that cannot be written is not.
 */
import * as fs from "node:fs"
import { createRequire, Module } from "node:module"
import * as path from "node:path"
import { Script } from "node:vm"

export interface Part {
  /** Absolute path of a CommonJS file. */
  readonly file: string
  /** Names what the program does with it. */
  readonly use: string
  readonly directory: string | undefined
}

/** The last line of a built part. Its text is ASCII, so that it is read without decoding. */
const sealed = /\n\/\/ part ([0-9a-f]{64})\n$/u
const sealLength = "\n// part ".length + 64 + 1

/** By then a host has done what every start does, and often a first turn. */
const keepAfterMs = 5_000

const ownOnly = 0o022

/** Compiled code is run: it is taken from a whole file that nobody else could have written. */
const readKept = (file: string): Buffer | undefined => {
  try {
    const descriptor = fs.openSync(file, fs.constants.O_RDONLY | (fs.constants.O_NOFOLLOW ?? 0))
    try {
      const { mode, uid } = fs.fstatSync(descriptor)
      const own = process.getuid === undefined || (uid === process.getuid() && (mode & ownOnly) === 0)
      if (!own) return undefined
      const both = fs.readFileSync(descriptor)
      const code = both.subarray(0, both.length / 2)
      return code.length > 0 && code.equals(both.subarray(both.length / 2)) ? code : undefined
    } finally {
      fs.closeSync(descriptor)
    }
  } catch {
    // Not there yet, or not readable: the code is compiled.
    return undefined
  }
}

const keep = (file: string, code: Uint8Array): void => {
  const next = `${file}.${process.pid}`
  try {
    const descriptor = fs.openSync(next, "wx", 0o600)
    try {
      fs.writeFileSync(descriptor, Buffer.concat([code, code]))
      // The name must never stand for a file that a power failure left half written.
      fs.fsyncSync(descriptor)
    } finally {
      fs.closeSync(descriptor)
    }
    fs.renameSync(next, file)
  } catch {
    // A full disk or a directory that went away costs the next start some milliseconds and nothing else.
    fs.rmSync(next, { force: true })
  }
}

/** Loads the part; the result is what it exports. */
export const loadPart = ({ directory, file, use }: Part): unknown => {
  const require = createRequire(file)
  const source = directory === undefined ? "" : fs.readFileSync(file, "latin1")
  const key = sealed.exec(source.slice(-sealLength))?.[1]
  if (directory === undefined || key === undefined) return require(file)

  const kept = path.join(directory, `tackroom-${use}-${key}.code`)
  const cachedData = readKept(kept)
  const script = new Script(`(function (exports, require, module, __filename, __dirname) { ${source}})`, {
    filename: file,
    ...(cachedData === undefined ? {} : { cachedData })
  })
  if (cachedData === undefined || script.cachedDataRejected === true) {
    let done = false
    const once = () => {
      if (done) return
      done = true
      keep(kept, script.createCachedData())
    }
    setTimeout(once, keepAfterMs).unref()
    // A run that failed has done little of what the next one needs.
    process.once("exit", (code) => (code === 0 ? once() : undefined))
  }
  // Known like any module: what the part loads later takes from it what they share.
  const module = new Module(file)
  module.filename = file
  require.cache[file] = module
  const body = script.runInThisContext() as (...args: ReadonlyArray<unknown>) => void
  body.call(module.exports, module.exports, require, module, file, path.dirname(file))
  module.loaded = true
  return module.exports
}
