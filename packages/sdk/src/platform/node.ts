/** The Node half of `#platform`. */
import { createHash } from "node:crypto"
import { open, realpath, stat } from "node:fs/promises"
import { hostname } from "node:os"
import { Effect } from "effect"
import { makeProcessOwner } from "../process/ProcessOwner.ts"
import { isSameProcess, startTime } from "../process/StartTime.ts"
import { PathUnusable, type Platform } from "./Platform.ts"

const codeOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "code" in error && typeof error.code === "string"
    ? error.code
    : "EUNKNOWN"

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  EACCES: "may not be read",
  EPERM: "may not be read",
  ENOTDIR: "has a part that is not a directory",
  ELOOP: "has a loop of symbolic links",
  EISDIR: "is a directory",
  ENAMETOOLONG: "is too long",
  ERR_INVALID_ARG_VALUE: "is not a path"
}

const unusable = (path: string, code: string, reason?: string): PathUnusable =>
  new PathUnusable({ path, code, message: `${path} ${reason ?? reasons[code] ?? `cannot be used (${code})`}` })

const readWhole = async (path: string, maxBytes: number): Promise<Uint8Array | PathUnusable> => {
  // Before the opening: to open a pipe waits for its writer.
  const info = await stat(path)
  if (info.isDirectory()) return unusable(path, "EISDIR")
  if (!info.isFile()) return unusable(path, "EINVAL", "is not a regular file")
  const file = await open(path, "r")
  try {
    // The size is a hint only: the file may grow while it is read.
    const buffer = new Uint8Array(Math.min(info.size, maxBytes) + 1)
    let length = 0
    while (length < buffer.length) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, null)
      if (bytesRead === 0) break
      length += bytesRead
    }
    return length > maxBytes
      ? unusable(path, "EFBIG", `is larger than ${maxBytes} bytes`)
      : Uint8Array.from(buffer.subarray(0, length))
  } finally {
    await file.close()
  }
}

/** The platform of Node. */
export const platform: Platform = {
  name: "node",
  realPath: (path) => Effect.tryPromise({ try: () => realpath(path), catch: (error) => unusable(path, codeOf(error)) }),
  isDirectory: (path) =>
    Effect.tryPromise(() => stat(path)).pipe(
      Effect.map((info) => info.isDirectory()),
      Effect.orElseSucceed(() => false)
    ),
  readFile: (path, maxBytes) =>
    Effect.flatMap(
      Effect.tryPromise({ try: () => readWhole(path, maxBytes), catch: (error) => unusable(path, codeOf(error)) }),
      (read) => (read instanceof PathUnusable ? Effect.fail(read) : Effect.succeed(read))
    ),
  hostname: Effect.sync(() => hostname()),
  self: Effect.sync(() => ({ pid: process.pid, started: startTime(process.pid) ?? "" })),
  isSameProcess: (identity) => Effect.sync(() => isSameProcess(identity)),
  environment: Effect.sync(() => process.env),
  processes: (options) =>
    Effect.acquireRelease(
      Effect.sync(() => makeProcessOwner({ environment: process.env, ...options })),
      (owner) => owner.dispose
    ),
  sha256: (content) => Effect.sync(() => createHash("sha256").update(content).digest("hex")),
  randomBytes: (count) => crypto.getRandomValues(new Uint8Array(count))
}
