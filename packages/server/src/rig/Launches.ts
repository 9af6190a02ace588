/**
 * Launches of seats, step by step (seat contract 9.2): what was reserved is registered when tmux shows it, or dropped with
 * everything that was made for it. The record that the program writes decides how the launch came out.
 *
 * One launch a seat at a time. A launch that waits for its record survives the service: the wait goes on with what is left.
 */
import {
  declarationOf,
  FirstInputFailed,
  InternalFault,
  LaunchFailed,
  type LaunchState,
  LaunchInProgress,
  paneVariables,
  type Preset,
  presetCommand,
  type SeatError,
  type SeatLaunch,
  seatLimits,
  type SeatOutcome,
  SeatRunning,
  seatVariables,
  TmuxUnavailable
} from "@tackroom/protocol/seat"
import { findProgram } from "@tackroom/sdk/process"
import { Deferred, Effect, type Scope } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import type { Home } from "./Home.ts"
import { type LaunchFiles, messageOf } from "./LaunchFiles.ts"
import { type LaunchRecords, setLaunch } from "./LaunchRecords.ts"
import * as Minting from "./Minting.ts"
import type { Occupants } from "./Occupants.ts"
import { findPreset } from "./Presets.ts"
import { isRefusal } from "./Callers.ts"
import { iso } from "./RigClock.ts"
import type { RigStore } from "./RigStore.ts"
import { type AttemptRow, noLaunch, type OccupantRow, type SeatRow } from "./SeatRows.ts"
import type { ServiceLog } from "./ServiceLog.ts"
import type { Variables } from "./Settings.ts"
import type { Tmux } from "./Tmux.ts"
import { seatKey, type Waiters } from "./Waiters.ts"

export interface LaunchesConfig {
  readonly store: RigStore
  readonly tmux: Tmux
  readonly home: Home
  readonly occupants: Occupants
  readonly files: LaunchFiles
  readonly records: LaunchRecords
  readonly waiters: Waiters
  readonly log: ServiceLog
  readonly waitMs: number
  /** Variables of the service that a pane may get by name. */
  readonly variables: Variables
  /** Where a seat reaches the service; `guest` is absent when that listener is off. */
  readonly endpoints: () => {
    readonly host: string
    readonly port: number
    readonly url: string
    readonly guest?: string
  }
}

export interface Launches {
  /** Starts a seat. The outcome is known when its record came or the wait ended. */
  readonly launch: (nodeId: string, options: { readonly fresh: boolean }) => Effect.Effect<SeatOutcome, SeatError>
  /** Completes when no launch of this seat is before its registration: then a stop sees what it started. */
  readonly begun: (nodeId: string) => Effect.Effect<void>
  /** Goes on with the launches that were under way when the service ended. */
  readonly resume: Effect.Effect<void>
}

const lookEveryMs = 250
const lateEveryMs = 1_000

interface Reserved {
  readonly occupant: OccupantRow
  readonly attempt: AttemptRow
  readonly grant: string | undefined
  readonly seat: SeatRow
}

export const make = (config: LaunchesConfig): Effect.Effect<Launches, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { store, tmux, home, occupants, files, records, waiters, log } = config
    const scope = yield* Effect.scope
    /** Launches under way, each with its registration or its end before that. */
    const launching = new Map<string, Deferred.Deferred<void>>()

    /** Nothing started: the state says why, unless somebody is in the seat. */
    const notStarted = (seat: SeatRow, reason: string, detail?: string) =>
      Effect.map(
        store.write((tx) => {
          if (tx.seats.live(seat.nodeId) === undefined) {
            setLaunch(tx, seat.nodeId, {
              ...noLaunch,
              ordinal: seat.launch.ordinal,
              state: "not_started",
              at: iso(tx.wall),
              reason
            })
          }
        }),
        (): SeatOutcome => ({
          seat: seat.session,
          outcome: "not_started",
          reason,
          ...(detail === undefined ? {} : { detail })
        })
      )

    /** L2: the conversation that a launch reopens, `null` for a new one, or why nothing may start. */
    const conversationOf = (
      seat: SeatRow,
      preset: Preset,
      fresh: boolean
    ): { readonly ref: string | null } | string => {
      if (fresh || seat.nativeRef === null) return { ref: null }
      if (preset.resume !== true) return "resume_not_declared"
      return seat.refHarness === preset.name ? { ref: seat.nativeRef } : "other_harness"
    }

    /**
     * Says so when there is no program of the preset's name: in its pane that would only be a session that ends at once. What
     * `env` reads as something of its own is left to it.
     */
    const absentProgram = (preset: Preset, cwd: string): string | undefined => {
      const [word = ""] = presetCommand(preset)
      if (/^-|=/u.test(word) || findProgram(word, cwd, config.variables["PATH"]) !== undefined) return undefined
      return `${word} is no program ${word.includes("/") ? `from ${cwd}` : "on the PATH of the service"}`
    }

    /** L3: whether the name is free in tmux. */
    const nameFree = (seat: SeatRow): Effect.Effect<"free" | "taken", SeatError> =>
      Effect.gen(function* () {
        const probe = yield* tmux.probe(seat.session)
        if (probe._tag === "Absent") return "free"
        if (probe._tag === "Unavailable") return yield* new TmuxUnavailable({})
        if (probe.nodeId !== seat.nodeId) return "taken"
        if (!probe.dead) return yield* new SeatRunning({ seat: seat.session })
        const killed = yield* tmux.kill(seat.session)
        return killed._tag === "Unavailable" ? yield* new TmuxUnavailable({}) : "free"
      })

    const urlOf = ({ guest }: SeatRow): string | undefined => {
      const endpoints = config.endpoints()
      return guest ? endpoints.guest : endpoints.url
    }

    /** L4. */
    const reserve = (seat: SeatRow, preset: Preset, ref: string | null): Effect.Effect<Reserved, SeatError> =>
      store.write((tx): Reserved | SeatError => {
        const generation = Minting.uuid()
        const attempt = Minting.uuid()
        const declaration = declarationOf(preset)
        const { nodeId } = seat
        const url = urlOf(seat) ?? null
        tx.seats.reserve({ generation, nodeId, attempt, harness: preset.name, declaration, at: tx.wall, url })
        const row = {
          attempt,
          generation,
          resumes: ref,
          wantsRecord: declaration.launchResult,
          folder: false,
          waitUntil: tx.now + config.waitMs
        }
        tx.seats.addAttempt(row)
        const grant = seat.guest ? Minting.token("grant") : undefined
        if (grant !== undefined) {
          tx.seats.addGrant({ hash: Minting.hashOf(grant), nodeId, generation, attempt, at: tx.wall })
        }
        const occupant = tx.seats.occupant(generation)
        if (occupant === undefined) return new InternalFault({})
        setLaunch(tx, nodeId, {
          ...noLaunch,
          state: "starting",
          at: iso(tx.wall),
          ordinal: occupant.ordinal,
          generation,
          attempt,
          resumes: ref !== null,
          warnings: seat.warnings
        })
        return { occupant, attempt: { ...row, state: "waiting" }, grant, seat }
      })

    /** Takes a reservation back with everything that was made for it. */
    const drop = ({ occupant, seat }: Reserved, reason: string) =>
      Effect.andThen(
        store.write((tx) => {
          occupants.drop(tx, occupant)
          setLaunch(tx, seat.nodeId, {
            ...noLaunch,
            state: "not_started",
            at: iso(tx.wall),
            ordinal: occupant.ordinal,
            reason
          })
        }),
        Effect.sync(() => files.removeFolder(occupant.attempt))
      )

    /** L5. */
    const makeFolder = (attempt: string) =>
      Effect.try({
        try: () => fs.mkdirSync(files.folder(attempt), { mode: 0o700 }),
        catch: messageOf
      })

    /** L6. */
    const writeInput = (attempt: string, text: string) =>
      Effect.try({
        try: () => {
          fs.mkdirSync(files.folder(attempt), { recursive: true, mode: 0o700 })
          fs.writeFileSync(files.input(attempt), text, { mode: 0o600, flag: "wx" })
        },
        catch: messageOf
      })

    const environmentOf = (
      { occupant, attempt, grant, seat }: Reserved,
      preset: Preset,
      made: { readonly folder: boolean; readonly input: boolean }
    ): Readonly<Record<string, string>> => {
      const { declaration } = occupant
      const endpoints = config.endpoints()
      const url = urlOf(seat)
      const token = seat.guest ? grant : home.hookToken
      const named = Object.fromEntries(
        [...paneVariables, ...(preset.tackroom?.env ?? [])].flatMap((name) => {
          const value = config.variables[name]
          return value === undefined ? [] : [[name, value] as const]
        })
      )
      const locale = Object.fromEntries(
        Object.entries(config.variables).flatMap(([name, value]) =>
          name.startsWith("LC_") && value !== undefined ? [[name, value] as const] : []
        )
      )
      return {
        ...locale,
        ...named,
        [seatVariables.nodeId]: seat.nodeId,
        [seatVariables.sessionName]: seat.session,
        [seatVariables.runtime]: preset.name,
        [seatVariables.generation]: occupant.generation,
        ...(url === undefined ? {} : { [seatVariables.url]: url }),
        ...(seat.guest
          ? {}
          : {
              [seatVariables.home]: home.path,
              [seatVariables.host]: endpoints.host,
              [seatVariables.port]: String(endpoints.port)
            }),
        ...(declaration.runner && token !== undefined ? { [seatVariables.token]: token } : {}),
        ...(declaration.launchResult ? { [seatVariables.launchAttempt]: attempt.attempt } : {}),
        ...(declaration.launchResult && made.folder
          ? { [seatVariables.launchResult]: files.record(attempt.attempt) }
          : {}),
        ...(attempt.resumes === null ? {} : { [seatVariables.resumeRef]: attempt.resumes }),
        ...(made.input ? { [seatVariables.firstInput]: files.input(attempt.attempt) } : {}),
        ...(declaration.passesModel && seat.model !== null ? { [seatVariables.model]: seat.model } : {})
      }
    }

    const transcriptOf = (reserved: Reserved): string =>
      path.join(home.transcripts, `${reserved.seat.session}.${reserved.occupant.generation}.log`)

    /** L7 and L8: the session is made, read back, and registered. */
    const start = (
      reserved: Reserved,
      preset: Preset,
      made: { readonly folder: boolean; readonly input: boolean }
    ): Effect.Effect<void, SeatError> =>
      Effect.gen(function* () {
        const { occupant, seat } = reserved
        const transcript = transcriptOf(reserved)
        const fail = (detail: string) =>
          Effect.andThen(drop(reserved, "launch_failed"), Effect.fail(new LaunchFailed({ seat: seat.session, detail })))
        const ready = yield* tmux.ensureServer
        if (ready._tag === "Unavailable") {
          yield* drop(reserved, "tmux_unavailable")
          return yield* new TmuxUnavailable({})
        }
        if (ready._tag !== "Done") return yield* fail("the tmux server did not start")
        const opened = yield* Effect.match(
          Effect.try({ try: () => fs.closeSync(fs.openSync(transcript, "a", 0o600)), catch: messageOf }),
          { onFailure: () => false, onSuccess: () => true }
        )
        if (!opened) return yield* fail("its transcript could not be made")
        const created = yield* tmux.create({
          name: seat.session,
          cwd: seat.cwd,
          environment: environmentOf(reserved, preset, made),
          words: presetCommand(preset),
          transcript: { file: transcript, bytes: seatLimits.transcriptBytes }
        })
        const probe = yield* tmux.probe(seat.session)
        const isOurs =
          probe._tag === "Present" &&
          probe.nodeId === seat.nodeId &&
          probe.generation === occupant.generation &&
          !probe.dead
        if (!isOurs) {
          if (probe._tag === "Present" && probe.generation === occupant.generation) yield* tmux.kill(seat.session)
          return yield* fail(created._tag === "Done" ? "the program ended at once" : "tmux made no session for it")
        }
        yield* store.write((tx) => {
          store.live.put(seat.nodeId, { ...store.live.get(seat.nodeId), session: "present" })
          occupants.register(tx, occupant)
        })
      })

    const settledOf = (seat: SeatRow, state: LaunchState, launch: SeatLaunch): SeatOutcome => ({
      seat: seat.session,
      outcome:
        state === "ready" ||
        state === "resumed" ||
        state === "attention" ||
        state === "unconfirmed" ||
        state === "missing" ||
        state === "mismatch"
          ? state
          : state === "stopped"
            ? "stopped"
            : "not_started",
      ...(launch.reason === null ? {} : { reason: launch.reason }),
      ...(launch.warnings.length === 0 ? {} : { warnings: launch.warnings })
    })

    const conclude = (attempt: string, text: string | undefined, late: boolean, reason?: string) =>
      store.write((tx) => records.conclude(tx, attempt, text, late, reason))

    /** L9: looks for the record while the same occupant lives; after the wait more slowly, for a late one. */
    const watch = (attemptId: string): Effect.Effect<void, SeatError> =>
      Effect.gen(function* () {
        for (;;) {
          const attempt = store.seats.attempt(attemptId)
          const occupant = attempt === undefined ? undefined : store.seats.occupant(attempt.generation)
          if (attempt === undefined || attempt.state === "set" || occupant?.state !== "live") {
            files.removeInput(attemptId)
            return
          }
          const late = attempt.state === "late"
          if (!occupant.declaration.launchResult) {
            yield* conclude(attemptId, undefined, false)
            return
          }
          if (!attempt.folder) {
            yield* conclude(attemptId, undefined, false, "record_folder_failed")
            return
          }
          const text = records.usable(store, attempt, occupant)
          if (text !== undefined) {
            yield* conclude(attemptId, text, late)
            return
          }
          if (!late && store.clock.steady() >= attempt.waitUntil) yield* conclude(attemptId, undefined, false)
          yield* Effect.sleep(late ? lateEveryMs : lookEveryMs)
        }
      })

    const watchInBackground = (attemptId: string, done: Deferred.Deferred<void>) =>
      watch(attemptId).pipe(
        Effect.catch((error) =>
          Effect.sync(() => log.write("error", "a launch record was not stored", { code: error.code }))
        ),
        Effect.ensuring(Deferred.succeed(done, undefined)),
        Effect.forkIn(scope)
      )

    /** Completes when the launch state is set, or nobody is in the seat any more. */
    const settledState = (seat: SeatRow, attemptId: string): Effect.Effect<SeatOutcome, SeatError> =>
      Effect.gen(function* () {
        const found = yield* waiters.watching([seatKey(seat.nodeId)], (changed) =>
          Effect.gen(function* () {
            const now = store.seats.seat(seat.nodeId)
            const attempt = store.seats.attempt(attemptId)
            if (now === undefined || attempt === undefined || now.launch.attempt !== attemptId) {
              return { seat: seat.session, outcome: "not_started", reason: "replaced" } satisfies SeatOutcome
            }
            if (attempt.state !== "waiting") {
              const { state } = now.launch
              const ended = state === "ended" ? { reason: "ended_at_once" } : {}
              return { ...settledOf(now, state, now.launch), ...ended }
            }
            yield* changed
            return undefined
          })
        )
        return found ?? (yield* settledState(seat, attemptId))
      })

    const steps = (
      nodeId: string,
      fresh: boolean,
      begun: Deferred.Deferred<void>
    ): Effect.Effect<SeatOutcome, SeatError> =>
      Effect.gen(function* () {
        const seat = store.seats.seat(nodeId)
        if (seat === undefined) return yield* new InternalFault({})
        const found = findPreset(home.presets, seat.harness)
        if (isRefusal(found)) {
          yield* notStarted(seat, found.code)
          return yield* found
        }
        const { preset, warnings } = found
        const conversation = conversationOf(seat, preset, fresh)
        if (typeof conversation === "string") return yield* notStarted(seat, conversation)
        if ((yield* nameFree(seat)) === "taken") return yield* notStarted(seat, "session_name_taken")
        if (seat.guest && config.endpoints().guest === undefined) return yield* notStarted(seat, "guest_listener_off")
        const absent = absentProgram(preset, seat.cwd)
        if (absent !== undefined) return yield* notStarted(seat, "program_not_found", absent)
        const resumes = conversation.ref !== null
        const reserved = yield* reserve(
          { ...seat, warnings: [...seat.warnings, ...warnings] },
          preset,
          conversation.ref
        )
        const { attempt } = reserved.attempt
        const folder = yield* Effect.match(makeFolder(attempt), { onFailure: () => false, onSuccess: () => true })
        if (!folder && resumes && preset.launchResult === true) {
          yield* drop(reserved, "record_folder_failed")
          return { seat: seat.session, outcome: "not_started", reason: "record_folder_failed" } satisfies SeatOutcome
        }
        if (folder) yield* store.write((tx) => tx.seats.setFolder(attempt, true))
        const wantsInput = preset.firstInput === true && !resumes && seat.firstInput !== null
        if (wantsInput) {
          const written = yield* Effect.match(writeInput(attempt, seat.firstInput ?? ""), {
            onFailure: () => false,
            onSuccess: () => true
          })
          if (!written) {
            yield* drop(reserved, "first_input_failed")
            return yield* new FirstInputFailed({ seat: seat.session })
          }
        }
        yield* start(reserved, preset, { folder, input: wantsInput })
        yield* Deferred.succeed(begun, undefined)
        const done = yield* Deferred.make<void>()
        yield* watchInBackground(attempt, done)
        return yield* settledState(seat, attempt)
      })

    const launch: Launches["launch"] = (nodeId, { fresh }) =>
      Effect.suspend(() => {
        const session = store.seats.seat(nodeId)?.session ?? nodeId
        if (launching.has(nodeId)) return Effect.fail(new LaunchInProgress({ seat: session }))
        const begun = Deferred.makeUnsafe<void>()
        launching.set(nodeId, begun)
        return Effect.ensuring(
          steps(nodeId, fresh, begun),
          Effect.suspend(() => {
            launching.delete(nodeId)
            return Deferred.succeed(begun, undefined)
          })
        )
      })

    const resume = Effect.gen(function* () {
      for (const attempt of store.seats.openAttempts()) {
        const done = yield* Deferred.make<void>()
        yield* watchInBackground(attempt.attempt, done)
      }
    })

    const begun: Launches["begun"] = (nodeId) =>
      Effect.suspend(() => {
        const under = launching.get(nodeId)
        return under === undefined ? Effect.void : Deferred.await(under)
      })

    return { launch, begun, resume }
  })
