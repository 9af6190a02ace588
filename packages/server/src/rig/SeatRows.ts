/** Rows of rigs, seats, occupants, launch attempts and grants. Each function is one statement; who calls it decides. */
import { Declaration, type RigFile, type SeatLaunch, seatCodec } from "@tackroom/protocol/seat"
import { Result } from "effect"
import type { Connection } from "../database/SqliteFile.ts"
import type { KnownAddress } from "./Addresses.ts"

export interface SeatRow {
  readonly nodeId: string
  readonly rig: string
  readonly pod: string
  readonly member: string
  readonly session: string
  readonly harness: string
  readonly cwd: string
  readonly model: string | null
  readonly firstInput: string | null
  readonly guest: boolean
  readonly nativeRef: string | null
  /** Name of the preset that reported the conversation. */
  readonly refHarness: string | null
  readonly refMissing: boolean
  readonly launch: SeatLaunch
  readonly warnings: ReadonlyArray<string>
}

export type OccupantState = "reserved" | "live" | "ended" | "dropped"

export interface OccupantRow {
  readonly generation: string
  readonly nodeId: string
  readonly ordinal: number
  readonly attempt: string
  readonly state: OccupantState
  readonly harness: string
  readonly declaration: Declaration
}

export interface AttemptRow {
  readonly attempt: string
  readonly generation: string
  readonly resumes: string | null
  readonly wantsRecord: boolean
  readonly folder: boolean
  readonly waitUntil: number
  readonly state: "waiting" | "late" | "set"
}

export interface GrantRow {
  readonly hash: string
  readonly nodeId: string
  readonly generation: string
  readonly revokedAt: number | null
}

interface SeatColumns {
  readonly node_id: string
  readonly rig: string
  readonly pod: string
  readonly member: string
  readonly session: string
  readonly harness: string
  readonly cwd: string
  readonly model: string | null
  readonly first_input: string | null
  readonly guest: number
  readonly native_ref: string | null
  readonly ref_harness: string | null
  readonly ref_missing: number
  readonly launch: string
  readonly warnings: string
}

interface OccupantColumns {
  readonly generation: string
  readonly node_id: string
  readonly ordinal: number
  readonly attempt: string
  readonly state: OccupantState
  readonly harness: string
  readonly declaration: string
}

interface AttemptColumns {
  readonly attempt: string
  readonly generation: string
  readonly resumes: string | null
  readonly wants_record: number
  readonly folder: number
  readonly wait_until: number
  readonly state: AttemptRow["state"]
}

const declarations = seatCodec(Declaration)

/** What an older service stored of a launch; a field that it did not know reads false. */
const declarationFrom = (json: string): Declaration => Result.getOrThrow(declarations.decode(JSON.parse(json)))

const seatFrom = (row: SeatColumns): SeatRow => ({
  nodeId: row.node_id,
  rig: row.rig,
  pod: row.pod,
  member: row.member,
  session: row.session,
  harness: row.harness,
  cwd: row.cwd,
  model: row.model,
  firstInput: row.first_input,
  guest: row.guest === 1,
  nativeRef: row.native_ref,
  refHarness: row.ref_harness,
  refMissing: row.ref_missing === 1,
  launch: JSON.parse(row.launch) as SeatLaunch,
  warnings: JSON.parse(row.warnings) as ReadonlyArray<string>
})

const occupantFrom = (row: OccupantColumns): OccupantRow => ({
  generation: row.generation,
  nodeId: row.node_id,
  ordinal: row.ordinal,
  attempt: row.attempt,
  state: row.state,
  harness: row.harness,
  declaration: declarationFrom(row.declaration)
})

const attemptFrom = (row: AttemptColumns): AttemptRow => ({
  attempt: row.attempt,
  generation: row.generation,
  resumes: row.resumes,
  wantsRecord: row.wants_record === 1,
  folder: row.folder === 1,
  waitUntil: row.wait_until,
  state: row.state
})

export const noLaunch: SeatLaunch = {
  state: "none",
  at: null,
  ordinal: 0,
  generation: null,
  attempt: null,
  resumes: false,
  late: false,
  seen: false,
  reason: null,
  otherRef: null,
  warnings: []
}

const flag = (value: boolean): number => (value ? 1 : 0)

export const make = (db: Connection) => {
  const one = <Params extends ReadonlyArray<unknown>, Row>(sql: string) => db.prepare<Params & unknown[], Row>(sql)

  const addRig = one<[string, string, number], never>("INSERT INTO rigs (name, file, created_at) VALUES (?, ?, ?)")
  const rig = one<[string], { name: string; file: string; created_at: number }>("SELECT * FROM rigs WHERE name = ?")
  const rigs = one<[string, number], { name: string; file: string; created_at: number }>(
    "SELECT * FROM rigs WHERE name > ? ORDER BY name LIMIT ?"
  )
  const addSeat = one<
    [string, string, string, string, string, string, string, string | null, string | null, number, string, string],
    never
  >(
    `INSERT INTO seats (node_id, rig, pod, member, session, harness, cwd, model, first_input, guest, launch, warnings)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
  )
  const seatByNode = one<[string], SeatColumns>("SELECT * FROM seats WHERE node_id = ?")
  const seatBySession = one<[string], SeatColumns>("SELECT * FROM seats WHERE session = ?")
  const seatsOfRig = one<[string], SeatColumns>("SELECT * FROM seats WHERE rig = ? ORDER BY session")
  const seats = one<[string, number], SeatColumns>("SELECT * FROM seats WHERE session > ? ORDER BY session LIMIT ?")
  const setLaunch = one<[string, string], never>("UPDATE seats SET launch = ? WHERE node_id = ?")
  const setConversation = one<[string | null, string | null, number, string], never>(
    "UPDATE seats SET native_ref = ?, ref_harness = ?, ref_missing = ? WHERE node_id = ?"
  )

  const reserve = one<[string, string, string, string, string, string, number, string | null], never>(
    `INSERT INTO occupants (generation, node_id, ordinal, attempt, state, harness, declaration, reserved_at, url)
     VALUES (?, ?, (SELECT COALESCE(MAX(ordinal), 0) + 1 FROM occupants WHERE node_id = ?), ?, 'reserved', ?, ?, ?, ?)`
  )
  const addresses = one<[], { session: string; guest: number; url: string }>(
    `SELECT seats.session, seats.guest, occupants.url FROM occupants JOIN seats USING (node_id)
     WHERE occupants.state IN ('reserved', 'live') AND occupants.url IS NOT NULL
     ORDER BY occupants.reserved_at DESC, seats.session`
  )
  const occupant = one<[string], OccupantColumns>("SELECT * FROM occupants WHERE generation = ?")
  const live = one<[string], OccupantColumns>("SELECT * FROM occupants WHERE node_id = ? AND state = 'live'")
  const reserved = one<[string], OccupantColumns>(
    "SELECT * FROM occupants WHERE node_id = ? AND state = 'reserved' ORDER BY ordinal DESC LIMIT 1"
  )
  const latest = one<[string], OccupantColumns>(
    "SELECT * FROM occupants WHERE node_id = ? AND state <> 'dropped' ORDER BY ordinal DESC LIMIT 1"
  )
  const open = one<[], OccupantColumns>("SELECT * FROM occupants WHERE state IN ('reserved', 'live')")
  const register = one<[number, string], never>(
    "UPDATE occupants SET state = 'live', registered_at = ? WHERE generation = ?"
  )
  const endOthers = one<[number, string, string], never>(
    "UPDATE occupants SET state = 'ended', ended_at = ? WHERE node_id = ? AND generation <> ? AND state = 'live'"
  )
  const endOccupant = one<[string, number, string], never>(
    "UPDATE occupants SET state = ?, ended_at = ? WHERE generation = ? AND state IN ('reserved', 'live')"
  )

  const addAttempt = one<[string, string, string | null, number, number, number], never>(
    `INSERT INTO attempts (attempt, generation, resumes, wants_record, folder, wait_until, state)
     VALUES (?, ?, ?, ?, ?, ?, 'waiting')`
  )
  const attempt = one<[string], AttemptColumns>("SELECT * FROM attempts WHERE attempt = ?")
  const openAttempts = one<[], AttemptColumns>("SELECT * FROM attempts WHERE state <> 'set'")
  const setAttempt = one<[string, string | null, string], never>(
    "UPDATE attempts SET state = ?, record = COALESCE(?, record) WHERE attempt = ?"
  )
  const setFolder = one<[number, string], never>("UPDATE attempts SET folder = ? WHERE attempt = ?")

  const addGrant = one<[string, string, string, string, number], never>(
    "INSERT INTO grants (hash, node_id, generation, attempt, minted_at) VALUES (?, ?, ?, ?, ?)"
  )
  const grant = one<[string], { hash: string; node_id: string; generation: string; revoked_at: number | null }>(
    "SELECT hash, node_id, generation, revoked_at FROM grants WHERE hash = ?"
  )
  const revoke = one<[number, string], never>(
    "UPDATE grants SET revoked_at = ? WHERE generation = ? AND revoked_at IS NULL"
  )
  const revokeSeat = one<[number, string, string], never>(
    "UPDATE grants SET revoked_at = ? WHERE node_id = ? AND generation <> ? AND revoked_at IS NULL"
  )
  const laterRegistered = one<[string, string], number>(
    `SELECT COUNT(*) AS n FROM occupants
     WHERE node_id = ? AND registered_at IS NOT NULL
       AND ordinal > (SELECT ordinal FROM occupants WHERE generation = ?)`
  ).pluck()
  const counts = one<[], { rigs: number; seats: number; running: number }>(
    `SELECT (SELECT COUNT(*) FROM rigs) AS rigs, (SELECT COUNT(*) FROM seats) AS seats,
            (SELECT COUNT(*) FROM occupants WHERE state = 'live') AS running`
  )

  const optional = <Row, A>(row: Row | undefined, from: (row: Row) => A): A | undefined =>
    row === undefined ? undefined : from(row)
  const rigFrom = (row: { name: string; file: string; created_at: number }) => ({
    name: row.name,
    file: JSON.parse(row.file) as RigFile,
    createdAt: row.created_at
  })

  return {
    addRig: (name: string, file: RigFile, at: number) => void addRig.run(name, JSON.stringify(file), at),
    rig: (name: string) => optional(rig.get(name), rigFrom),
    rigs: (after: string, limit: number) => rigs.all(after, limit).map(rigFrom),
    addSeat: (seat: Omit<SeatRow, "nativeRef" | "refHarness" | "refMissing">) =>
      void addSeat.run(
        seat.nodeId,
        seat.rig,
        seat.pod,
        seat.member,
        seat.session,
        seat.harness,
        seat.cwd,
        seat.model,
        seat.firstInput,
        flag(seat.guest),
        JSON.stringify(seat.launch),
        JSON.stringify(seat.warnings)
      ),
    seat: (nodeId: string) => optional(seatByNode.get(nodeId), seatFrom),
    seatOfSession: (session: string) => optional(seatBySession.get(session), seatFrom),
    seatsOfRig: (name: string) => seatsOfRig.all(name).map(seatFrom),
    seats: (after: string, limit: number) => seats.all(after, limit).map(seatFrom),
    setLaunch: (nodeId: string, launch: SeatLaunch) => void setLaunch.run(JSON.stringify(launch), nodeId),
    setConversation: (nodeId: string, nativeRef: string | null, harness: string | null, missing: boolean) =>
      void setConversation.run(nativeRef, harness, flag(missing), nodeId),

    reserve: (row: {
      readonly generation: string
      readonly nodeId: string
      readonly attempt: string
      readonly harness: string
      readonly declaration: Declaration
      readonly at: number
      /** Where it is told that this service listens. */
      readonly url: string | null
    }) =>
      void reserve.run(
        row.generation,
        row.nodeId,
        row.nodeId,
        row.attempt,
        row.harness,
        JSON.stringify(row.declaration),
        row.at,
        row.url
      ),
    /** What running seats were told, the last launch first. */
    addresses: (): ReadonlyArray<KnownAddress> =>
      addresses.all().map(({ guest, session, url }) => ({ seat: session, guest: guest === 1, url })),
    occupant: (generation: string) => optional(occupant.get(generation), occupantFrom),
    live: (nodeId: string) => optional(live.get(nodeId), occupantFrom),
    reserved: (nodeId: string) => optional(reserved.get(nodeId), occupantFrom),
    /** The last occupant whose launch was not dropped. */
    latest: (nodeId: string) => optional(latest.get(nodeId), occupantFrom),
    openOccupants: () => open.all().map(occupantFrom),
    register: (generation: string, at: number) => void register.run(at, generation),
    endOthers: (nodeId: string, generation: string, at: number) => void endOthers.run(at, nodeId, generation),
    end: (generation: string, state: "ended" | "dropped", at: number) =>
      endOccupant.run(state, at, generation).changes > 0,
    /** Whether an occupant that came after this one has registered. */
    wasReplaced: (nodeId: string, generation: string) => (laterRegistered.get(nodeId, generation) ?? 0) > 0,

    addAttempt: (row: Omit<AttemptRow, "state">) =>
      void addAttempt.run(
        row.attempt,
        row.generation,
        row.resumes,
        flag(row.wantsRecord),
        flag(row.folder),
        row.waitUntil
      ),
    attempt: (id: string) => optional(attempt.get(id), attemptFrom),
    openAttempts: () => openAttempts.all().map(attemptFrom),
    setAttempt: (id: string, state: AttemptRow["state"], record: string | null) =>
      void setAttempt.run(state, record, id),
    setFolder: (id: string, made: boolean) => void setFolder.run(flag(made), id),

    addGrant: (row: {
      readonly hash: string
      readonly nodeId: string
      readonly generation: string
      readonly attempt: string
      readonly at: number
    }) => void addGrant.run(row.hash, row.nodeId, row.generation, row.attempt, row.at),
    grant: (hash: string): GrantRow | undefined =>
      optional(grant.get(hash), (row) => ({
        hash: row.hash,
        nodeId: row.node_id,
        generation: row.generation,
        revokedAt: row.revoked_at
      })),
    revokeGrants: (generation: string, at: number) => revoke.run(at, generation).changes > 0,
    revokeOthers: (nodeId: string, generation: string, at: number) => void revokeSeat.run(at, nodeId, generation),
    counts: () => counts.get() ?? { rigs: 0, seats: 0, running: 0 }
  }
}

export type SeatRows = ReturnType<typeof make>
