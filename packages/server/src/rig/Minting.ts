/** Ids, generations and tokens: where the service takes chance from. */
import { mintSeatId, type SeatIdKind, tokenPrefixes } from "@tackroom/protocol/seat"
import { createHash, randomBytes, randomUUID, timingSafeEqual } from "node:crypto"

export const seatId = (kind: SeatIdKind, at: number): string => mintSeatId(kind, at, randomBytes(10))

/** A generation or an attempt. */
export const uuid = (): string => randomUUID()

/** A token of a kind that its prefix tells: 32 random bytes. */
export const token = (kind: keyof typeof tokenPrefixes): string =>
  tokenPrefixes[kind] + randomBytes(32).toString("base64url")

export const hookToken = (): string => randomBytes(32).toString("hex")

export const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex")

/** Whether two tokens are the same, in a time that tells nothing of where they differ. */
export const sameToken = (given: string, known: string): boolean =>
  timingSafeEqual(createHash("sha256").update(given).digest(), createHash("sha256").update(known).digest())
