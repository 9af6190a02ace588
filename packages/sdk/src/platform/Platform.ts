/**
 * What the root of the sdk needs of the machine under it (D-21). One half per platform, chosen by the conditional import
 * `#platform`: Node answers, the browser fails with `unsupported_operation`, so that the root bundles for both (RT-004).
 */
import type { UnsupportedOperation } from "@tackroom/protocol"
import { Data, type Effect, type Scope } from "effect"
import type { EnvironmentSource } from "../process/ChildEnvironment.ts"
import type { ProcessOwnerOptions, ProcessOwnerService } from "../process/ProcessOwner.ts"
import type { ProcessIdentity } from "../process/StartTime.ts"

/** A path that cannot be used. `code` is the system's (`ENOENT`, `EACCES`, …), `EFBIG` for a file over its limit. */
export class PathUnusable extends Data.TaggedError("PathUnusable")<{
  readonly path: string
  readonly code: string
  readonly message: string
}> {}

/** One half of `#platform`. */
export interface Platform {
  readonly name: "node" | "browser"
  /** The path with every symbolic link resolved. */
  readonly realPath: (path: string) => Effect.Effect<string, PathUnusable | UnsupportedOperation>
  /** False when there is nothing, or something else than a directory. */
  readonly isDirectory: (path: string) => Effect.Effect<boolean, UnsupportedOperation>
  /** A whole file of at most `maxBytes`. */
  readonly readFile: (path: string, maxBytes: number) => Effect.Effect<Uint8Array, PathUnusable | UnsupportedOperation>
  readonly hostname: Effect.Effect<string, UnsupportedOperation>
  /** This process: pid and start time, as leases and process records name it (RT-131, HRN-032). */
  readonly self: Effect.Effect<ProcessIdentity, UnsupportedOperation>
  /** True when that process lives on this machine; a reused pid is another process. */
  readonly isSameProcess: (identity: ProcessIdentity) => Effect.Effect<boolean, UnsupportedOperation>
  /** Variables of this process. */
  readonly environment: Effect.Effect<EnvironmentSource, UnsupportedOperation>
  /** An owner of child processes; it ends them with the scope. */
  readonly processes: (
    options: Omit<ProcessOwnerOptions, "environment"> & { readonly environment?: EnvironmentSource }
  ) => Effect.Effect<ProcessOwnerService, UnsupportedOperation, Scope.Scope>
  /** SHA-256 in lower-case hex; a string is hashed as UTF-8, lone surrogates as U+FFFD. */
  readonly sha256: (content: Uint8Array | string) => Effect.Effect<string>
  /** Cryptographically random bytes. */
  readonly randomBytes: (count: number) => Uint8Array
}
