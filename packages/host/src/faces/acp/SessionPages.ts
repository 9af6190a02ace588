/** Positions in the list of sessions: opaque, and bound to the filter they were made with (ACP-076). Pure. */
import { createHash } from "node:crypto"

const digestOf = (filter: string): string => createHash("sha256").update(filter).digest("base64url").slice(0, 16)

export const encodePage = (next: string, filter: string): string =>
  Buffer.from(JSON.stringify([digestOf(filter), next])).toString("base64url")

/** The position; undefined when it is none, or of another filter. */
export const decodePage = (cursor: string, filter: string): string | undefined => {
  let parts: unknown
  try {
    parts = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"))
  } catch {
    return undefined
  }
  if (!Array.isArray(parts) || parts.length !== 2) return undefined
  const [digest, next] = parts as ReadonlyArray<unknown>
  return digest === digestOf(filter) && typeof next === "string" ? next : undefined
}
