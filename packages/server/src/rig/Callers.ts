/**
 * Who calls, and for which seat they speak (seat contract 5.1). Pure over rows: it is asked when a request starts, and
 * again in the transaction that records it.
 */
import {
  GrantPending,
  GrantRevoked,
  GrantStale,
  GrantWrongSeat,
  HookUnauthorized,
  MissingSessionIdentity,
  readSeatReference,
  SeatAmbiguous,
  SeatNotFound,
  sessionNameOf,
  SessionNotFound
} from "@tackroom/protocol/seat"
import type { AskRow } from "./AskRows.ts"
import type { GrantRow, SeatRow, SeatRows } from "./SeatRows.ts"

export type SeatCaller =
  | { readonly _tag: "Local" }
  /** The grant's hash. */
  | { readonly _tag: "Grant"; readonly hash: string }

export type RigCaller = { readonly _tag: "Operator" } | { readonly _tag: "Person"; readonly id: string }

export interface Claims {
  readonly nodeId?: string
  readonly sessionName?: string
  readonly generation?: string
  readonly ask?: AskRow
}

export type GrantRefusal = HookUnauthorized | GrantWrongSeat | GrantStale | GrantRevoked | GrantPending

/** Checks a grant against what a request claims, in the order of the contract. */
export const checkGrant = (seats: SeatRows, hash: string, claims: Claims): GrantRow | GrantRefusal => {
  const grant = seats.grant(hash)
  if (grant === undefined) return new HookUnauthorized({})
  const { nodeId, generation } = grant
  const own = seats.seat(nodeId)
  const namesAnother =
    (claims.nodeId !== undefined && claims.nodeId !== nodeId) ||
    (claims.sessionName !== undefined && claims.sessionName !== own?.session) ||
    (claims.ask !== undefined && claims.ask.nodeId !== nodeId)
  if (namesAnother) return new GrantWrongSeat({})
  if (seats.wasReplaced(nodeId, generation)) return new GrantStale({})
  if (grant.revokedAt !== null) return new GrantRevoked({})
  const occupant = seats.occupant(generation)
  if (occupant?.state === "reserved") return new GrantPending({})
  if (occupant?.state !== "live") return new GrantRevoked({})
  const claimsAnother =
    (claims.generation !== undefined && claims.generation !== generation) ||
    (claims.ask !== undefined && claims.ask.generation !== generation)
  return claimsAnother ? new GrantStale({}) : grant
}

/** The seat that a request with the local token names: the id first, then the name. */
const namedSeat = (seats: SeatRows, claims: Claims): SeatRow | MissingSessionIdentity | SessionNotFound => {
  if (claims.nodeId === undefined && claims.sessionName === undefined) return new MissingSessionIdentity({})
  const found =
    (claims.nodeId === undefined ? undefined : seats.seat(claims.nodeId)) ??
    (claims.sessionName === undefined ? undefined : seats.seatOfSession(claims.sessionName))
  return found ?? new SessionNotFound({})
}

export interface SpokenFor {
  readonly seat: SeatRow
  /** The generation of a grant, which is authenticated. */
  readonly authenticated: string | undefined
}

export const isRefusal = <A>(value: A | Error): value is Extract<A | Error, Error> => value instanceof Error

/** The seat a request speaks for, or why it may not. */
export const speaksFor = (
  seats: SeatRows,
  caller: SeatCaller,
  claims: Claims
): SpokenFor | GrantRefusal | MissingSessionIdentity | SessionNotFound => {
  if (caller._tag === "Local") {
    const seat = namedSeat(seats, claims)
    return isRefusal(seat) ? seat : { seat, authenticated: undefined }
  }
  const grant = checkGrant(seats, caller.hash, claims)
  if (isRefusal(grant)) return grant
  const seat = seats.seat(grant.nodeId)
  return seat === undefined ? new SessionNotFound({}) : { seat, authenticated: grant.generation }
}

/** The seat that an operator's reference names; it never guesses. */
export const findSeat = (seats: SeatRows, reference: string): SeatRow | SeatNotFound | SeatAmbiguous => {
  const read = readSeatReference(reference)
  if (read === undefined) {
    // A bare name is no reference, but tells which seats were meant.
    const near = seats
      .seats("", 1_000)
      .filter(({ pod, member }) => reference === `${pod}.${member}` || reference === `${pod}-${member}`)
    return near.length > 1
      ? new SeatAmbiguous({ seat: reference, matches: near.map(({ session }) => session) })
      : (near[0] ?? new SeatNotFound({ seat: reference }))
  }
  const found = "nodeId" in read ? seats.seat(read.nodeId) : seats.seatOfSession(sessionNameOf(read))
  return found ?? new SeatNotFound({ seat: reference })
}
