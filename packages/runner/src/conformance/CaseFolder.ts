/**
 * A fresh folder for a case. Its path is short, because sockets are put into it, and nothing of it is left, unless the
 * operator keeps it.
 */
import { Effect, type Scope } from "effect"
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export const make = (keep: boolean): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(realpathSync(tmpdir()), "tkc-"))),
    (folder) =>
      keep ? Effect.void : Effect.sync(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  )
