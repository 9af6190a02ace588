/** Rigs: making one, and bringing all its seats up, down and back (seat contract 9.6). Each seat's outcome is its own. */
import {
  FieldNotAllowed,
  commandOnlyFields,
  isSeatError,
  type RigFile,
  RigExists,
  RigInvalid,
  RigNotFound,
  type RigView,
  type SeatError,
  type SeatOutcome,
  sessionNameOf,
  SnapshotFailed,
  SnapshotNotFound,
  type SnapshotView,
  undeliveredFields
} from "@tackroom/protocol/seat"
import { Effect } from "effect"
import * as fs from "node:fs"
import { findSeat, isRefusal } from "./Callers.ts"
import type { Launches } from "./Launches.ts"
import * as Minting from "./Minting.ts"
import { presetFile } from "./Presets.ts"
import type { RigStore, Tx } from "./RigStore.ts"
import { noLaunch, type SeatRow } from "./SeatRows.ts"
import type { Stops } from "./Stops.ts"

export interface RigCommand {
  readonly fresh?: boolean
  readonly seats?: ReadonlyArray<string>
  readonly snapshotId?: string
}

export interface Rigs {
  /** `raw` is the file as it came, for what it names beyond its schema. */
  readonly create: (
    file: RigFile,
    raw: unknown
  ) => Effect.Effect<{ readonly rig: RigView; readonly warnings: ReadonlyArray<string> }, SeatError>
  readonly up: (rig: string, command: RigCommand) => Effect.Effect<ReadonlyArray<SeatOutcome>, SeatError>
  readonly restore: (rig: string, command: RigCommand) => Effect.Effect<ReadonlyArray<SeatOutcome>, SeatError>
  readonly down: (
    rig: string,
    snapshot: boolean
  ) => Effect.Effect<
    { readonly outcomes: ReadonlyArray<SeatOutcome>; readonly snapshot: SnapshotView | null },
    SeatError
  >
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A field of a rig file that only a command sets. */
const forbidden = (raw: unknown): FieldNotAllowed | undefined => {
  if (!isObject(raw)) return undefined
  const seats: ReadonlyArray<unknown> = Array.isArray(raw["seats"]) ? raw["seats"] : []
  const top = commandOnlyFields.find((field) => Object.hasOwn(raw, field))
  if (top !== undefined) return new FieldNotAllowed({ path: top })
  for (const [index, seat] of seats.entries()) {
    const field = commandOnlyFields.find((name) => isObject(seat) && Object.hasOwn(seat, name))
    if (field !== undefined) return new FieldNotAllowed({ path: `seats[${index}].${field}` })
  }
  return undefined
}

/** What a file names and nobody delivers (RIG-056). */
const undelivered = (raw: unknown, index?: number): ReadonlyArray<string> => {
  const at = index === undefined ? raw : isObject(raw) && Array.isArray(raw["seats"]) ? raw["seats"][index] : undefined
  return isObject(at)
    ? undeliveredFields.filter((field) => Object.hasOwn(at, field)).map((field) => `${field} is not delivered`)
    : []
}

const isFolder = (path: string): boolean => fs.statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

/** How many seats of a rig are launched at once. */
const atOnce = 8

/** Why a seat did not start: of a preset the first of what is wrong, and where all of it is told. */
const detailOf = (error: SeatError, presets: string): string => {
  if (!("preset" in error)) return error.message
  const [problem, ...more] = error.problems ?? []
  if (problem === undefined) return error.message
  const rest = more.length === 0 ? "" : ` (and ${more.length} more)`
  return `${problem}${rest}; see tackroom rig preset check ${presetFile(presets, error.preset)}`
}

export const make = (store: RigStore, launches: Launches, stops: Stops, presets: string): Rigs => {
  /** How often a rig went down: a way up that was under way then starts nothing more. */
  const downs = new Map<string, number>()
  const rigOf = (name: string): Effect.Effect<ReadonlyArray<SeatRow>, SeatError> =>
    Effect.suspend(() =>
      store.seats.rig(name) === undefined
        ? Effect.fail(new RigNotFound({ rig: name }))
        : Effect.succeed(store.seats.seatsOfRig(name))
    )

  const chosen = (
    rig: string,
    all: ReadonlyArray<SeatRow>,
    references: ReadonlyArray<string> | undefined
  ): Effect.Effect<ReadonlyArray<SeatRow>, SeatError> =>
    Effect.gen(function* () {
      if (references === undefined) return all
      const wanted: Array<SeatRow> = []
      for (const reference of references) {
        const found = findSeat(
          store.seats,
          reference.includes("@") || reference.startsWith("nod_") ? reference : `${reference}@${rig}`
        )
        if (isRefusal(found)) return yield* found
        wanted.push(found)
      }
      return wanted
    })

  /** A launch whose refusal is this seat's outcome. */
  const launched = (seat: SeatRow, fresh: boolean): Effect.Effect<SeatOutcome> =>
    launches
      .launch(seat.nodeId, { fresh })
      .pipe(
        Effect.catch((error) =>
          Effect.succeed<SeatOutcome>(
            error.code === "seat_running"
              ? { seat: seat.session, outcome: "already_running" }
              : { seat: seat.session, outcome: "not_started", reason: error.code, detail: detailOf(error, presets) }
          )
        )
      )

  const bring = (rig: string, command: RigCommand): Effect.Effect<ReadonlyArray<SeatOutcome>, SeatError> =>
    Effect.gen(function* () {
      const seats = yield* chosen(rig, yield* rigOf(rig), command.seats)
      const before = downs.get(rig)
      const one = (seat: SeatRow): Effect.Effect<SeatOutcome> =>
        Effect.suspend(() =>
          downs.get(rig) === before
            ? launched(seat, command.fresh ?? false)
            : Effect.succeed({ seat: seat.session, outcome: "not_started", reason: "rig_went_down" })
        )
      return yield* Effect.forEach(seats, one, { concurrency: atOnce })
    })

  const restored = (rig: string, command: RigCommand): Effect.Effect<void, SeatError> =>
    Effect.gen(function* () {
      yield* rigOf(rig)
      const latest = store.logs.snapshots(rig, Number.MAX_SAFE_INTEGER, 1)[0]
      const snapshot = command.snapshotId === undefined ? latest : store.logs.snapshot(command.snapshotId)
      if (snapshot === undefined || snapshot.rig !== rig) {
        return yield* new SnapshotNotFound(command.snapshotId === undefined ? {} : { snapshot: command.snapshotId })
      }
      yield* store.write((tx) => {
        for (const kept of snapshot.seats) {
          const seat = tx.seats.seatOfSession(kept.seat)
          // A seat that is at work keeps what it has.
          if (seat === undefined || tx.seats.live(seat.nodeId) !== undefined) continue
          tx.seats.setConversation(seat.nodeId, kept.nativeRef, kept.nativeRef === null ? null : kept.harness, false)
        }
      })
    })

  const snapshotOf = (tx: Tx, rig: string): string => {
    const id = Minting.seatId("snapshot", tx.wall)
    tx.logs.addSnapshot({
      id,
      rig,
      at: tx.wall,
      file: JSON.stringify(tx.seats.rig(rig)?.file ?? null),
      seats: tx.seats.seatsOfRig(rig).map((seat) => ({
        seat: seat.session,
        harness: seat.refHarness ?? seat.harness,
        declaration: (tx.seats.live(seat.nodeId) ?? tx.seats.latest(seat.nodeId))?.declaration ?? null,
        nativeRef: seat.nativeRef,
        cwd: seat.cwd,
        permissions: tx.asks.setting(seat.nodeId),
        launchState: seat.launch.state
      }))
    })
    tx.tell("rig.changed", rig)
    return id
  }

  const viewOf = (id: string | undefined): SnapshotView | null => {
    const found = id === undefined ? undefined : store.logs.snapshot(id)
    if (found === undefined) return null
    const { ordinal: _ordinal, ...view } = found
    return view
  }

  return {
    create: (file, raw) =>
      Effect.gen(function* () {
        const field = forbidden(raw)
        if (field !== undefined) return yield* field
        for (const [index, seat] of file.seats.entries()) {
          if (!isFolder(seat.cwd)) {
            return yield* new RigInvalid({ path: `seats[${index}].cwd`, expected: "a folder that exists" })
          }
        }
        return yield* store.write((tx) => {
          const known = tx.seats.rig(file.name)
          if (known !== undefined) {
            if (JSON.stringify(known.file) !== JSON.stringify(file)) return new RigExists({ rig: file.name })
          } else {
            tx.seats.addRig(file.name, file, tx.wall)
            for (const [index, seat] of file.seats.entries()) {
              tx.seats.addSeat({
                nodeId: Minting.seatId("node", tx.wall),
                rig: file.name,
                pod: seat.pod,
                member: seat.member,
                session: sessionNameOf({ rig: file.name, pod: seat.pod, member: seat.member }),
                harness: seat.harness,
                cwd: seat.cwd,
                model: seat.model ?? null,
                firstInput: seat.firstInput ?? null,
                guest: seat.guest ?? false,
                launch: noLaunch,
                warnings: [...undelivered(raw), ...undelivered(raw, index)]
              })
            }
            tx.tell("rig.changed", file.name)
          }
          const view = store.views.rig(file.name)
          if (view === undefined) return new RigNotFound({ rig: file.name })
          const warnings = [...new Set(tx.seats.seatsOfRig(file.name).flatMap((seat) => seat.warnings))]
          return { rig: view, warnings }
        })
      }),
    up: bring,
    restore: (rig, command) => Effect.andThen(restored(rig, command), bring(rig, command)),
    down: (rig, mustSnapshot) =>
      Effect.gen(function* () {
        const seats = yield* rigOf(rig)
        const id = yield* store
          .write((tx) => snapshotOf(tx, rig))
          .pipe(
            Effect.catch((error): Effect.Effect<undefined, SeatError> =>
              mustSnapshot
                ? Effect.fail(isSeatError(error) ? new SnapshotFailed({}) : error)
                : Effect.succeed(undefined)
            )
          )
        downs.set(rig, (downs.get(rig) ?? 0) + 1)
        const outcomes = yield* Effect.forEach(
          seats,
          (seat) =>
            stops.stop(seat).pipe(
              Effect.catch((error) =>
                Effect.succeed<SeatOutcome>({
                  seat: seat.session,
                  outcome: "left_running",
                  reason: error.code,
                  detail: error.message
                })
              )
            ),
          { concurrency: atOnce }
        )
        return { outcomes, snapshot: viewOf(id) }
      })
  }
}
