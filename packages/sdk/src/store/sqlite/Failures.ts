/**
 * What a driver error means to a caller (STO-043, STO-048): busy, full, or not available. Messages carry the driver's
 * result code and nothing of a row.
 */
import { RuntimeStoreCorruptRow, StoreBusy, StoreFull, StoreUnavailable } from "@tackroom/protocol"
import type { StoreFailure } from "../RuntimeStore.ts"

/** The result code of a driver error, like `SQLITE_BUSY`; undefined for anything else. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" && error.code.startsWith("SQLITE_")
    ? error.code
    : undefined

/** Whether another connection holds a lock that will be given back. */
export const isBusy = (error: unknown): boolean => {
  const code = codeOf(error)
  return code !== undefined && (code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED"))
}

/** Results that tell of a wrong statement or value: a mistake in a program, not a state of the store. */
const mistakes = ["SQLITE_CONSTRAINT", "SQLITE_ERROR", "SQLITE_MISMATCH", "SQLITE_MISUSE", "SQLITE_RANGE"]

/** The failure for a driver error; undefined for what is none, or a mistake in a program. */
export const failureOf = (error: unknown): StoreFailure | undefined => {
  if (error instanceof RuntimeStoreCorruptRow || error instanceof StoreUnavailable) return error
  const code = codeOf(error)
  if (code === undefined || mistakes.some((mistake) => code.startsWith(mistake))) return undefined
  if (isBusy(error)) return new StoreBusy({ reason: code })
  if (code.startsWith("SQLITE_FULL")) return new StoreFull({ reason: code })
  return new StoreUnavailable({ reason: code })
}
