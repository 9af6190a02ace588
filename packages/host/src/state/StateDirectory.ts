/**
 * The host's state directory: made private, locked for one host at a time, and with an identity of its own (RUN-087,
 * RUN-088).
 *
 * It owns `host.lock`, `host.json`, `host.key` and `tmp/`. It does not own the databases in it. The lock is an SQLite file
 * held in an exclusive transaction: it dies with the process, however it ends, and no child inherits it. The open handle
 * is kept by a module-level set, because a collected handle closes and takes its lock along (D-23).
 *
 * Failure: everything is a `StartupFailed`; nothing is left locked then. A directory that is somebody else's is refused before
 * anything in it changes.
 */
import { StartupFailed } from "@tackroom/protocol/run"
import { makePrivateFolder, startTime } from "@tackroom/sdk/process"
import Database from "better-sqlite3"
import { Effect, type Scope } from "effect"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"

export interface StateDirectory {
  readonly path: string
  readonly hostId: string
  /** 32 random bytes for keyed digests. */
  readonly key: Uint8Array
  readonly temporary: string
}

const heldLocks = new Set<Database.Database>()

const failed = (reason: "state_dir" | "state_dir_locked", at: string, detail: string) =>
  new StartupFailed({ reason, path: at, detail })

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/**
 * Opens the directory for the life of the scope. With `lock` this process is the host of it; without, it only shares what
 * is in it (D-8) and leaves the holder's identity and files alone.
 */
export const open = (
  directory: string,
  options: { readonly lock: boolean }
): Effect.Effect<StateDirectory, StartupFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const root = yield* attempt(directory, () => prepare(directory))
    if (options.lock) {
      yield* Effect.acquireRelease(lock(root), (held) =>
        Effect.sync(() => {
          heldLocks.delete(held)
          held.close()
        })
      )
    }
    return yield* attempt(root, () => {
      const hostId = identify(root, options.lock)
      const key = secret(root)
      const temporary = path.join(root, "tmp")
      if (options.lock) fs.rmSync(temporary, { recursive: true, force: true })
      makePrivateFolder(temporary)
      return { path: root, hostId, key, temporary }
    })
  })

const attempt = <A>(at: string, work: () => A): Effect.Effect<A, StartupFailed> =>
  Effect.try({
    try: work,
    catch: (cause) => (cause instanceof StartupFailed ? cause : failed("state_dir", at, messageOf(cause)))
  })

/** What a host keeps in its state directory; nothing else in it is ever touched. */
const isOwn = (name: string): boolean =>
  name === "tmp" ||
  /^(?:host\.(?:lock|json|key)|sdk-agents\.sqlite|agent-runtime\.db)(?:-wal|-shm|-journal|(?:\.[0-9a-f]{8})?\.new)?$/.test(
    name
  )

/**
 * Why a directory that exists must be left as it is, if so. A host makes its directory private and deletes what is in
 * `tmp/`: so a directory that holds anything else has to be private already, and its `tmp/` empty or a host's (no host puts
 * anything there before `host.key` exists). Reads only.
 */
export const objection = (root: string): string | undefined => {
  if (path.dirname(root) === root) return "it is the root of a file system"
  const isHosts = (): boolean => fs.existsSync(path.join(root, "host.key"))
  if (isHosts()) return undefined
  const others = fs.readdirSync(root).filter((name) => !isOwn(name))
  if (others.length > 0 && (fs.statSync(root).mode & 0o077) !== 0) {
    return "it holds other files and is open to other users; name a directory of its own, or make it private first"
  }
  const temporary = path.join(root, "tmp")
  const found = fs.lstatSync(temporary, { throwIfNoEntry: false })
  if (found === undefined || (found.isDirectory() && fs.readdirSync(temporary).length === 0)) return undefined
  // Another process of ours may have made its key meanwhile.
  return isHosts() ? undefined : "its tmp is in use, and not by a host"
}

/** Makes the directory, tightens what of the host's own is looser than 0700 and 0600, and proves that it can be written. */
const prepare = (directory: string): string => {
  if (!path.isAbsolute(directory)) throw failed("state_dir", directory, "the path is not absolute")
  makePrivateFolder(directory)
  const root = fs.realpathSync(directory)
  const stat = fs.statSync(root)
  if (!stat.isDirectory()) throw failed("state_dir", root, "it is not a directory")
  const uid = process.getuid?.()
  if (uid !== undefined && stat.uid !== uid) throw failed("state_dir", root, "it belongs to another user")
  const reason = objection(root)
  if (reason !== undefined) throw failed("state_dir", root, reason)
  if ((stat.mode & 0o077) !== 0) fs.chmodSync(root, 0o700)
  for (const entry of fs.readdirSync(root, { withFileTypes: true })) {
    if (!isOwn(entry.name)) continue
    const at = path.join(root, entry.name)
    // Another process may take its journal or its file in the making away at any moment.
    const mode = fs.lstatSync(at, { throwIfNoEntry: false })?.mode ?? 0
    if ((mode & 0o077) === 0) continue
    if (entry.isFile()) fs.chmodSync(at, 0o600)
    if (entry.isDirectory()) fs.chmodSync(at, 0o700)
  }
  fs.accessSync(root, fs.constants.R_OK | fs.constants.W_OK | fs.constants.X_OK)
  return root
}

const lock = (root: string): Effect.Effect<Database.Database, StartupFailed> =>
  attempt(root, () => {
    const file = path.join(root, "host.lock")
    if (!fs.existsSync(file)) fs.closeSync(fs.openSync(file, "a", 0o600))
    const db = new Database(file, { timeout: 0 })
    try {
      db.pragma("journal_mode = DELETE")
      db.exec("BEGIN EXCLUSIVE")
    } catch (cause) {
      db.close()
      if (isBusy(cause)) throw failed("state_dir_locked", root, `another host holds it${holder(root)}`)
      throw cause
    }
    heldLocks.add(db)
    return db
  })

const isBusy = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && String(cause.code).startsWith("SQLITE_BUSY")

const holder = (root: string): string => {
  const found = readIdentity(root)
  return found === undefined ? "" : ` (pid ${found.pid})`
}

interface Identity {
  readonly id: string
  readonly pid: number
}

const readIdentity = (root: string): Identity | undefined => {
  const file = path.join(root, "host.json")
  if (!fs.existsSync(file)) return undefined
  try {
    const parsed: unknown = JSON.parse(fs.readFileSync(file, "utf8"))
    if (typeof parsed !== "object" || parsed === null || !("id" in parsed) || !("pid" in parsed)) return undefined
    return typeof parsed.id === "string" && typeof parsed.pid === "number"
      ? { id: parsed.id, pid: parsed.pid }
      : undefined
  } catch (cause) {
    if (cause instanceof SyntaxError) return undefined
    throw cause
  }
}

/** Whole content under a name of its own first, so that nobody reads half of it. */
const prepared = (file: string, content: string | Uint8Array): string => {
  const next = `${file}.${randomBytes(4).toString("hex")}.new`
  fs.writeFileSync(next, content, { mode: 0o600, flag: "wx" })
  return next
}

/** Makes a file that is missing. Of processes that do it at once the first one wins. */
const createOnce = (file: string, content: () => string | Uint8Array): void => {
  if (fs.existsSync(file)) return
  const next = prepared(file, content())
  try {
    fs.linkSync(next, file)
  } catch (cause) {
    if (!fs.existsSync(file)) throw cause
  } finally {
    fs.unlinkSync(next)
  }
}

const identify = (root: string, isHolder: boolean): string => {
  const file = path.join(root, "host.json")
  const line = (id: string): string => `${JSON.stringify({ id, pid: process.pid, started: startTime(process.pid) })}\n`
  const minted = `host_${randomBytes(16).toString("hex")}`
  createOnce(file, () => line(minted))
  const known = readIdentity(root)?.id
  if (known !== undefined && !isHolder) return known
  const id = known ?? minted
  fs.renameSync(prepared(file, line(id)), file)
  return id
}

const secret = (root: string): Uint8Array => {
  const file = path.join(root, "host.key")
  createOnce(file, () => randomBytes(32))
  const key = fs.readFileSync(file)
  if (key.length === 32) return key
  throw failed("state_dir", file, "the key file is damaged: it does not hold 32 bytes")
}
