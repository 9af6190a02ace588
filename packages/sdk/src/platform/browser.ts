/**
 * The browser half of `#platform`: digests and random bytes work, everything that needs a machine fails with
 * `unsupported_operation`.
 */
import { UnsupportedOperation } from "@tackroom/protocol"
import { Effect } from "effect"
import type { Platform } from "./Platform.ts"

const unsupported = (operation: string): Effect.Effect<never, UnsupportedOperation> =>
  Effect.suspend(() =>
    Effect.fail(
      new UnsupportedOperation({ operation, message: `A browser does not support ${operation}; use a runtime on Node` })
    )
  )

const hex = (bytes: ArrayBuffer): string =>
  Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("")

/** The platform of a browser. */
export const platform: Platform = {
  name: "browser",
  realPath: () => unsupported("realPath"),
  isDirectory: () => unsupported("isDirectory"),
  readFile: () => unsupported("readFile"),
  hostname: unsupported("hostname"),
  self: unsupported("processIdentity"),
  isSameProcess: () => unsupported("processIdentity"),
  environment: unsupported("environment"),
  processes: () => unsupported("processes"),
  sha256: (content) =>
    Effect.promise(async () =>
      hex(
        await crypto.subtle.digest(
          "SHA-256",
          typeof content === "string" ? new TextEncoder().encode(content) : Uint8Array.from(content)
        )
      )
    ),
  randomBytes: (count) => crypto.getRandomValues(new Uint8Array(count))
}
