/**
 * The service home on disk: private folders, one service at a time, the token files, and the endpoint file that runners
 * read (seat contract 2.3).
 *
 * The lock is an SQLite file held in an exclusive transaction: it dies with the process, however it ends. Its handle is
 * kept by a module-level set, because a collected handle closes and takes its lock along (D-23). A file that others may
 * read or that belongs to somebody else is refused, never mended: what it holds may be known already.
 */
import { rigFiles } from "@tackroom/protocol/seat"
import { makePrivateFolder } from "@tackroom/sdk/process"
import Database from "better-sqlite3"
import { Effect, type Scope } from "effect"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { isBusy } from "../database/SqliteFile.ts"
import * as Minting from "./Minting.ts"
import { StartRefused, type StartReason } from "./StartRefused.ts"

export interface Home {
  readonly path: string
  readonly hookToken: string
  readonly operatorToken: string
  readonly store: string
  readonly presets: string
  readonly launches: string
  readonly transcripts: string
  readonly writeEndpoint: (baseUrl: string) => Effect.Effect<void, StartRefused>
}

const heldLocks = new Set<Database.Database>()

const refused = (reason: StartReason, detail: string) => new StartRefused({ reason, detail })

const attempt = <A>(reason: StartReason, work: () => A): Effect.Effect<A, StartRefused> =>
  Effect.try({
    try: work,
    catch: (cause) =>
      cause instanceof StartRefused
        ? cause
        : refused(reason, cause instanceof Error ? cause.message : "the file system answered something else")
  })

const othersMayUse = 0o077

const ownedBySomebodyElse = (stat: fs.Stats): boolean => {
  const uid = process.getuid?.()
  return uid !== undefined && stat.uid !== uid
}

/** A folder of ours: made with 0700, refused when it is somebody else's, closed to others when it was open. */
const privateFolder = (folder: string): void => {
  makePrivateFolder(folder)
  const stat = fs.statSync(folder)
  if (!stat.isDirectory()) throw refused("unsafe_home", `${folder} is no folder`)
  if (ownedBySomebodyElse(stat)) throw refused("unsafe_home", `${folder} belongs to another user`)
  if ((stat.mode & othersMayUse) !== 0) fs.chmodSync(folder, 0o700)
}

/** A file name of the service, its own or an SQLite companion of it. */
const known = new Set<string>([
  rigFiles.hookToken,
  rigFiles.endpoint,
  rigFiles.operatorToken,
  rigFiles.socket,
  rigFiles.presets,
  rigFiles.launch,
  rigFiles.transcripts,
  "tmux.server"
])
const isOwn = (name: string): boolean => known.has(name) || /^rig\.(?:sqlite|lock)(?:-wal|-shm|-journal)?$/u.test(name)

/** Why a folder that exists must be left as it is: it holds other files and is open to others. */
const objection = (folder: string): string | undefined => {
  if (path.dirname(folder) === folder) return "it is the root of a file system"
  const stat = fs.statSync(folder, { throwIfNoEntry: false })
  if (stat === undefined || (stat.mode & othersMayUse) === 0) return undefined
  const others = fs.readdirSync(folder).filter((name) => !isOwn(name))
  return others.length === 0 ? undefined : "it holds other files and is open to other users"
}

const lock = (file: string): Database.Database => {
  if (!fs.existsSync(file)) fs.closeSync(fs.openSync(file, "a", 0o600))
  const db = new Database(file, { timeout: 0 })
  try {
    db.pragma("journal_mode = DELETE")
    db.exec("BEGIN EXCLUSIVE")
  } catch (cause) {
    db.close()
    if (isBusy(cause)) throw refused("already_running", `another service has ${path.dirname(file)}`)
    throw cause
  }
  heldLocks.add(db)
  return db
}

/** Reads a token file, making it when it is missing. */
const tokenFile = (file: string, make: () => string, form: RegExp): string => {
  if (!fs.existsSync(file)) {
    const next = `${file}.${randomBytes(4).toString("hex")}.new`
    const descriptor = fs.openSync(next, "wx", 0o600)
    fs.writeSync(descriptor, make())
    fs.fsyncSync(descriptor)
    fs.closeSync(descriptor)
    fs.renameSync(next, file)
  }
  const stat = fs.lstatSync(file)
  if (!stat.isFile() || ownedBySomebodyElse(stat) || (stat.mode & othersMayUse) !== 0) {
    throw refused("unsafe_file", `${file} must be a file of this user with mode 0600; remove it to get a new token`)
  }
  const token = fs.readFileSync(file, "utf8").trim()
  if (!form.test(token)) throw refused("unsafe_file", `${file} holds no token; remove it to get a new one`)
  return token
}

const replaceFile = (file: string, text: string): void => {
  const next = `${file}.${randomBytes(4).toString("hex")}.new`
  const descriptor = fs.openSync(next, "wx", 0o600)
  try {
    fs.writeSync(descriptor, text)
    fs.fsyncSync(descriptor)
  } finally {
    fs.closeSync(descriptor)
  }
  fs.renameSync(next, file)
}

/** Opens the home for the life of the scope. */
export const open = (home: string): Effect.Effect<Home, StartRefused, Scope.Scope> =>
  Effect.gen(function* () {
    const root = yield* attempt("unsafe_home", () => {
      if (!path.isAbsolute(home)) throw refused("unsafe_home", `${home} is no absolute path`)
      const reason = objection(home)
      if (reason !== undefined) throw refused("unsafe_home", `${home} cannot be the home: ${reason}`)
      privateFolder(home)
      return fs.realpathSync(home)
    })
    yield* Effect.acquireRelease(
      attempt("unsafe_home", () => lock(path.join(root, rigFiles.lock))),
      (held) =>
        Effect.sync(() => {
          heldLocks.delete(held)
          held.close()
        })
    )
    return yield* attempt("unsafe_home", () => {
      const presets = path.join(root, rigFiles.presets)
      const launches = path.join(root, rigFiles.launch)
      const transcripts = path.join(root, rigFiles.transcripts)
      for (const folder of [presets, launches, transcripts]) privateFolder(folder)
      const hookToken = tokenFile(path.join(root, rigFiles.hookToken), Minting.hookToken, /^[0-9a-f]{64}$/u)
      const operatorToken = tokenFile(
        path.join(root, rigFiles.operatorToken),
        () => Minting.token("operator"),
        /^tro_[A-Za-z0-9_-]{43}$/u
      )
      return {
        path: root,
        hookToken,
        operatorToken,
        store: path.join(root, rigFiles.store),
        presets,
        launches,
        transcripts,
        writeEndpoint: (baseUrl: string) =>
          attempt("unsafe_home", () =>
            replaceFile(path.join(root, rigFiles.endpoint), `${JSON.stringify({ baseUrl, token: hookToken })}\n`)
          )
      }
    })
  })
