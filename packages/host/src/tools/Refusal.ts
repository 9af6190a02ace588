/**
 * How a tool call ends without a result, inside the tool runner's process.
 *
 * Owns the two errors which the tools of this folder throw: `NotRun` (nothing was done: outcome `not_run`) and `Failed` (the
 * tool was at work and did not reach its end: outcome `failed`). It knows nothing of Effect, so that the runner starts fast;
 * the host turns both into its own errors (`ToolRunner.ts`). Messages are for the model: they name paths as it gave them.
 */

/** The call was refused before anything was done. */
export class NotRun extends Error {
  override readonly name = "NotRun"
  readonly code: "denied" | "failed"

  constructor(message: string, code: "denied" | "failed" = "failed") {
    super(message)
    this.code = code
  }
}

/** The call was started and failed. */
export class Failed extends Error {
  override readonly name = "Failed"
  readonly code: "failed" | "timeout" | "cancelled"
  readonly output: unknown

  constructor(message: string, code: "failed" | "timeout" | "cancelled" = "failed", output?: unknown) {
    super(message)
    this.code = code
    this.output = output
  }
}

/** The code of a system error (`ENOENT`), or undefined. */
export const errnoOf = (cause: unknown): string | undefined =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : undefined

const words: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  ENOTDIR: "has a part that is not a directory",
  EISDIR: "is a directory",
  EACCES: "may not be opened (permission denied)",
  EPERM: "may not be changed (not permitted)",
  ENOSPC: "cannot be written: no space left",
  EDQUOT: "cannot be written: quota exceeded",
  EROFS: "is on a read-only file system",
  ENAMETOOLONG: "has a name that is too long",
  ELOOP: "goes through too many symlinks",
  EEXIST: "already exists",
  EMFILE: "cannot be opened: too many open files",
  ENXIO: "is a device, pipe or socket"
}

/** A path in a message: as given, cut when very long, control characters shown as escapes. */
export const named = (path: string): string => JSON.stringify(path.length > 300 ? `${path.slice(0, 300)}…` : path)

/** What a failed system call on `given` means, in words; the real path and the raw message stay inside. */
export const fileFailure = (given: string, cause: unknown): Failed => {
  if (cause instanceof Failed) return cause
  const code = errnoOf(cause)
  const text = code === undefined ? undefined : words[code]
  return new Failed(`${named(given)} ${text ?? `could not be used (${code ?? "unexpected failure"})`}`)
}
