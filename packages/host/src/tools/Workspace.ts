/**
 * Which paths a tool may touch (AGT-060, AGT-061), and how a checked path is opened.
 *
 * Owns: resolving a path of the model against the workspace, refusing what lies outside it or in `state_dir`, and opening
 * files and directories so that a path exchanged between check and use is noticed. Does not own what is then read or written.
 *
 * Invariants: `resolve` follows every symlink of the existing part, also dangling ones, and refuses with `NotRun` naming the
 * path as given, in the same words whether or not anything is there. `open` compares what was opened with what was resolved
 * and fails with `Failed` on a difference, before a byte is read. Files are opened without following a last symlink and
 * without blocking, so that pipes and devices can be refused.
 *
 * On Linux names are looked up below an open directory (`/proc/self/fd/N/name`), so that no exchange of a parent can lead
 * out; elsewhere the path is resolved again after opening and compared by device and inode.
 */
import { constants, realpath as followLinksBy, type Stats } from "node:fs"
import { type FileHandle, lstat, mkdir, open, readlink, realpath, stat } from "node:fs/promises"
import { dirname, isAbsolute, join, relative, resolve as resolvePath, sep } from "node:path"
import { promisify } from "node:util"
import { errnoOf, Failed, fileFailure, named, NotRun } from "./Refusal.ts"

/** Resolves symlinks and keeps the spelling otherwise, as at the session's creation. */
const followLinks = promisify(followLinksBy)

/** A path that passed the check. `real` has no symlink in it; `exists` is what was seen at the check. */
export interface Resolved {
  readonly given: string
  readonly real: string
  /** Below the workspace, `/` between its parts, `.` for the workspace itself. */
  readonly shown: string
  readonly kind: "file" | "dir" | "missing"
}

/** An open directory. `at(name)` is a path of an entry that stays below this directory whatever happens to its parents. */
export interface Directory {
  readonly real: string
  readonly path: string
  readonly at: (name: string) => string
  readonly handle: FileHandle
}

const maxSymlinks = 40
/** How names are looked up below an open directory. */
export type Lookup = "descriptor" | "path"
const platformLookup: Lookup = process.platform === "linux" ? "descriptor" : "path"
const noFollow = process.platform === "win32" ? 0 : constants.O_NOFOLLOW
const nonBlock = process.platform === "win32" ? 0 : constants.O_NONBLOCK
const directoryOnly = process.platform === "win32" ? 0 : constants.O_DIRECTORY

/** Whether `path` is `folder` or lies in it; both are real paths. */
export const isInside = (folder: string, path: string): boolean => {
  const way = relative(folder, path)
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way))
}

const isMissing = (cause: unknown): boolean => {
  const code = errnoOf(cause)
  return code === "ENOENT" || code === "ENOTDIR"
}

const kindOf = (info: Stats): "file" | "dir" | "symlink" | "other" =>
  info.isFile() ? "file" : info.isDirectory() ? "dir" : info.isSymbolicLink() ? "symlink" : "other"

/** Follows every symlink of the existing part by hand, so that a dangling link is followed too. */
const walk = async (start: string): Promise<{ readonly real: string; readonly missing: ReadonlyArray<string> }> => {
  const root = resolvePath(start, "/")
  let current = root
  let links = 0
  const missing: Array<string> = []
  const pending = start.slice(root.length).split(sep).reverse()
  for (let part = pending.pop(); part !== undefined; part = pending.pop()) {
    if (part === "" || part === ".") continue
    if (part === "..") {
      if (missing.pop() === undefined) current = dirname(current)
      continue
    }
    if (missing.length > 0) {
      missing.push(part)
      continue
    }
    const next = join(current, part)
    const info = await lstat(next).catch((cause: unknown) => {
      if (isMissing(cause)) return undefined
      throw cause
    })
    if (info === undefined) missing.push(part)
    else if (info.isSymbolicLink()) {
      links += 1
      if (links > maxSymlinks) throw new NotRun("too many symlinks")
      const target = await readlink(next)
      const steps = isAbsolute(target) ? target.slice(resolvePath(target, "/").length) : target
      if (isAbsolute(target)) current = resolvePath(target, "/")
      pending.push(...steps.split(sep).reverse())
    } else current = next
  }
  // The system's own spelling: on case-insensitive file systems two spellings are one file.
  return { real: await realpath(current), missing }
}

/** The real path of a folder that may not exist yet, for comparing with others. */
const realFolder = async (folder: string): Promise<string> => {
  const found = await walk(resolvePath(folder))
  return join(found.real, ...found.missing)
}

/**
 * A workspace with its limits, made once per call: the session's folder may have moved since the last. Then `make` fails
 * with `Failed`.
 */
export class Workspace {
  readonly root: string
  readonly #denied: ReadonlyArray<string>
  readonly #lookup: Lookup

  private constructor(root: string, denied: ReadonlyArray<string>, lookup: Lookup) {
    this.root = root
    this.#denied = denied
    this.#lookup = lookup
  }

  static readonly make = async (
    folder: string,
    stateDir: string | undefined,
    lookup: Lookup = platformLookup
  ): Promise<Workspace> => {
    // Resolved once, when the session was made: a link in its place leads to another folder (RUN-351).
    const same = (await followLinks(folder).catch(() => undefined)) === resolvePath(folder)
    const root = same ? await realpath(folder).catch(() => undefined) : undefined
    const info = root === undefined ? undefined : await stat(root).catch(() => undefined)
    if (root === undefined || info === undefined || !info.isDirectory()) {
      throw new Failed("the workspace is not where it was: it was moved, removed or replaced")
    }
    const denied = stateDir === undefined ? [] : [await realFolder(stateDir)]
    return new Workspace(root, denied, lookup)
  }

  /** Whether a real path is the host's own state, which no tool may see. */
  readonly isDenied = (real: string): boolean => this.#denied.some((folder) => isInside(folder, real))

  readonly shown = (real: string): string => {
    const way = relative(this.root, real)
    return way === "" ? "." : way.split(sep).join("/")
  }

  /** Checks a path of the model. Refuses with `NotRun`, in words that do not tell whether the outside path exists. */
  readonly resolve = async (given: string): Promise<Resolved> => {
    if (given.includes("\0")) throw new NotRun(`the path ${named(given)} holds a NUL character`)
    if (!given.isWellFormed()) throw new NotRun(`the path ${named(given)} is not well-formed Unicode text`)
    // Joined as text: `a/../b` must go through the symlink `a`, which a lexical join would skip.
    const found = await walk(isAbsolute(given) ? given : `${this.root}${sep}${given}`).catch((cause: unknown) => {
      const code = errnoOf(cause)
      if (code === "ENAMETOOLONG") throw new NotRun(`the path ${named(given)} is too long`)
      throw outside(given)
    })
    const real = join(found.real, ...found.missing)
    if (!isInside(this.root, real) || this.isDenied(real)) {
      throw outside(given)
    }
    if (found.missing.length > 0) return { given, real, shown: this.shown(real), kind: "missing" }
    const kind = kindOf(await lstat(real))
    if (kind === "other") throw new NotRun(`the path ${named(given)} is a device, pipe or socket`, "denied")
    return { given, real, shown: this.shown(real), kind: kind === "dir" ? "dir" : "file" }
  }

  /** Checks a path again for somebody who opens it by its name, and cannot be watched at it. A difference is a failure. */
  readonly again = async (path: Resolved): Promise<Resolved> => {
    const now = await this.resolve(path.given).catch((cause: unknown) => {
      throw cause instanceof NotRun ? changed(path.given) : cause
    })
    if (now.real !== path.real) throw changed(path.given)
    return now
  }

  /** Opens a checked regular file for reading; the caller closes it. */
  readonly openFile = async (path: Resolved): Promise<FileHandle> => {
    const handle = await open(path.real, constants.O_RDONLY | noFollow | nonBlock).catch((cause: unknown) => {
      throw errnoOf(cause) === "ELOOP" ? changed(path.given) : fileFailure(path.given, cause)
    })
    try {
      const info = await handle.stat()
      if (info.isDirectory()) throw new Failed(`${named(path.given)} is a directory`)
      if (!info.isFile()) throw new Failed(`${named(path.given)} is a device, pipe or socket`)
      await this.#sameAsResolved(handle, info, path)
      return handle
    } catch (cause) {
      await handle.close()
      throw fileFailure(path.given, cause)
    }
  }

  /** Opens a checked directory; the caller closes its handle. */
  readonly openDirectory = async (path: Resolved): Promise<Directory> => {
    const handle = await open(path.real, constants.O_RDONLY | directoryOnly | noFollow).catch((cause: unknown) => {
      const code = errnoOf(cause)
      throw code === "ENOTDIR" && path.kind === "file"
        ? new Failed(`${named(path.given)} is not a directory`)
        : code === "ELOOP" || (code === "ENOTDIR" && path.kind === "dir")
          ? changed(path.given)
          : fileFailure(path.given, cause)
    })
    try {
      await this.#sameAsResolved(handle, await handle.stat(), path)
      return this.#directory(handle, path.real)
    } catch (cause) {
      await handle.close()
      throw fileFailure(path.given, cause)
    }
  }

  /**
   * Opens the directory that holds a checked path, making missing ones when `create` is set. Every step is taken below the
   * step before it, so that a folder exchanged for a symlink meanwhile is never entered.
   */
  readonly openParent = async (path: Resolved, create: boolean): Promise<Directory> => {
    const folder = dirname(path.real)
    if (!isInside(this.root, folder)) throw new Failed(`${named(path.given)} is the workspace itself`)
    const parts = this.shown(folder).split("/")
    let current = await this.openDirectory({ given: path.given, real: this.root, shown: ".", kind: "dir" })
    for (const part of parts) {
      if (part === "." || part === "") continue
      const next: Resolved = { given: path.given, real: join(current.real, part), shown: part, kind: "dir" }
      try {
        if (create) {
          await mkdir(current.at(part)).catch((cause: unknown) => {
            if (errnoOf(cause) !== "EEXIST") throw fileFailure(path.given, cause)
          })
        }
        const entered =
          this.#lookup === "descriptor" ? await this.#enter(current, part, path.given) : await this.openDirectory(next)
        await current.handle.close()
        current = entered
      } catch (cause) {
        await current.handle.close()
        throw fileFailure(path.given, cause)
      }
    }
    if (this.isDenied(current.real)) {
      await current.handle.close()
      throw changed(path.given)
    }
    return current
  }

  /** Opens a file of an open directory for reading, for a walk: undefined when it is no regular file or may not be read. */
  readonly openEntry = async (folder: Directory, name: string): Promise<FileHandle | undefined> => {
    const handle = await open(folder.at(name), constants.O_RDONLY | noFollow | nonBlock).catch(() => undefined)
    if (handle === undefined) return undefined
    const info = await handle.stat()
    const path: Resolved = { given: name, real: join(folder.real, name), shown: name, kind: "file" }
    const same =
      info.isFile() &&
      (await this.#sameAsResolved(handle, info, path).then(
        () => true,
        () => false
      ))
    if (same) return handle
    await handle.close()
    return undefined
  }

  /** Opens a directory of an open directory, for a walk: undefined when it went away, changed, or may not be read. */
  readonly enter = async (folder: Directory, name: string): Promise<Directory | undefined> =>
    this.#lookup === "descriptor"
      ? this.#enter(folder, name, name).catch(() => undefined)
      : this.openDirectory({ given: name, real: join(folder.real, name), shown: name, kind: "dir" }).catch(
          () => undefined
        )

  readonly #enter = async (folder: Directory, name: string, given: string): Promise<Directory> => {
    const handle = await open(folder.at(name), constants.O_RDONLY | directoryOnly | noFollow).catch(
      (cause: unknown) => {
        throw errnoOf(cause) === "ELOOP" ? changed(given) : fileFailure(given, cause)
      }
    )
    return this.#directory(handle, join(folder.real, name))
  }

  /** Whether an opened file is the entry of that name below the workspace, for a file that was just made. */
  readonly verify = async (handle: FileHandle, folder: Directory, name: string, given: string): Promise<void> =>
    this.#sameAsResolved(handle, await handle.stat(), {
      given,
      real: join(folder.real, name),
      shown: name,
      kind: "file"
    })

  readonly #directory = (handle: FileHandle, real: string): Directory => {
    const path = this.#lookup === "descriptor" ? `/proc/self/fd/${handle.fd}` : real
    return { real, path, at: (name) => join(path, name), handle }
  }

  readonly #sameAsResolved = async (handle: FileHandle, info: Stats, path: Resolved): Promise<void> => {
    if (this.#lookup === "descriptor") {
      const opened = await readlink(`/proc/self/fd/${handle.fd}`)
      // A file replaced by a rename since it was opened is still the one that was there.
      if (opened === path.real || (info.nlink === 0 && opened === `${path.real} (deleted)`)) return
      throw changed(path.given)
    }
    const again = await realpath(path.real)
    const there = await lstat(again)
    const sameFile = process.platform === "win32" || (there.ino === info.ino && there.dev === info.dev)
    if (again !== path.real || !sameFile) throw changed(path.given)
  }
}

/** AGT-060: what was opened is not what was checked. */
const changed = (given: string): Failed =>
  new Failed(`${named(given)} changed while it was being opened; nothing was read or written`)

/** One sentence for every refusal, so that it does not tell whether the outside path exists or may be read. */
const outside = (given: string): NotRun =>
  new NotRun(`the path ${named(given)} is outside the workspace or not open to tools`, "denied")
