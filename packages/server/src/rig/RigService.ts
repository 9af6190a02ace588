/**
 * The rig service as one composition: home and lock, store, tmux, seats, permissions, listeners, endpoint file, in the order
 * of RIG-001. Its scope ends it; seats go on without it (RIG-006).
 */
import { paneVariables, type SeatError } from "@tackroom/protocol/seat"
import { Effect, Result, type Scope } from "effect"
import * as path from "node:path"
import { type Addresses, cutOff, knownPorts } from "./Addresses.ts"
import * as Activities from "./Activities.ts"
import * as Asks from "./Asks.ts"
import { findSeat, isRefusal } from "./Callers.ts"
import * as FeedStreams from "./FeedStreams.ts"
import * as Home from "./Home.ts"
import * as LaunchFiles from "./LaunchFiles.ts"
import * as LaunchRecords from "./LaunchRecords.ts"
import * as Launches from "./Launches.ts"
import * as Occupants from "./Occupants.ts"
import * as Posts from "./Posts.ts"
import * as ReadingTimers from "./ReadingTimers.ts"
import * as Reconciling from "./Reconciling.ts"
import * as Retention from "./Retention.ts"
import * as RigApi from "./RigApi.ts"
import * as RigClock from "./RigClock.ts"
import { iso } from "./RigClock.ts"
import * as RigHttp from "./RigHttp.ts"
import * as Rigs from "./Rigs.ts"
import * as RigStore from "./RigStore.ts"
import * as SeatHttp from "./SeatHttp.ts"
import * as Sends from "./Sends.ts"
import type { ServiceLog } from "./ServiceLog.ts"
import * as Sessions from "./Sessions.ts"
import type { Settings, Variables } from "./Settings.ts"
import { StartRefused } from "./StartRefused.ts"
import * as Stops from "./Stops.ts"
import * as Tmux from "./Tmux.ts"
import * as Waiters from "./Waiters.ts"

export interface RigServiceConfig {
  readonly settings: Settings
  readonly variables: Variables
  readonly version: string
  readonly log: ServiceLog
}

export interface RigService {
  readonly url: string
  readonly guestUrl: string | null
  readonly home: string
  readonly operatorToken: string
  readonly hookToken: string
  readonly store: RigStore.RigStore
}

/** What the tmux server is started with; nothing else of the service's environment is in a pane by itself. */
const tmuxVariables: ReadonlySet<string> = new Set(paneVariables)

const oldest = [3, 2] as const

const isOldTmux = (version: string): boolean => {
  const match = /^(?:next-)?(\d+)\.(\d+)/u.exec(version)
  if (match === null) return false
  const [major, minor] = [Number(match[1]), Number(match[2])]
  return major < oldest[0] || (major === oldest[0] && minor < oldest[1])
}

const authority = (host: string, port: number): string => `${host.includes(":") ? `[${host}]` : host}:${port}`

export const make = ({
  settings,
  variables,
  version,
  log
}: RigServiceConfig): Effect.Effect<RigService, StartRefused | SeatError, Scope.Scope> =>
  Effect.gen(function* () {
    const home = yield* Home.open(settings.home)
    const clock = yield* RigClock.make
    const store = yield* RigStore.open({ file: home.store, clock, log }).pipe(
      Effect.mapError(({ detail }) => new StartRefused({ reason: "store_unusable", detail }))
    )
    const tmux = Tmux.make({
      socket: settings.socket,
      serverFile: path.join(home.path, "tmux.server"),
      environment: Object.fromEntries(
        Object.entries(variables).filter(([name]) => tmuxVariables.has(name) || name.startsWith("LC_"))
      )
    })
    const tmuxVersion = yield* tmux.version
    if (tmuxVersion !== undefined && isOldTmux(tmuxVersion)) {
      return yield* new StartRefused({ reason: "tmux_too_old", detail: `tmux ${tmuxVersion}; 3.2 or newer is needed` })
    }
    if (tmuxVersion === undefined) log.write("warn", "there is no tmux on PATH; no seat can be launched")

    const waiters = Waiters.make()
    const activities = Activities.make(store.live, waiters)
    const files = LaunchFiles.make(home.launches, log)
    const records = LaunchRecords.make(files, waiters)
    const occupants = Occupants.make(activities, waiters, records)
    yield* Reconciling.make({ store, tmux, occupants, log })
    const sessions = yield* Sessions.make({ store, tmux, activities, occupants, log })
    yield* ReadingTimers.make(store, activities, waiters, log)
    yield* Retention.make(store, log)

    let endpoints: ReturnType<Launches.LaunchesConfig["endpoints"]> = {
      host: settings.host,
      port: settings.port,
      url: ""
    }
    const launches = yield* Launches.make({
      store,
      tmux,
      home,
      occupants,
      files,
      records,
      waiters,
      log,
      variables,
      waitMs: settings.launchWaitMs,
      endpoints: () => endpoints
    })
    yield* Sends.settleCutSends(store, log)
    const addresses = (): Addresses => ({
      main: endpoints.url,
      ...(settings.guest?.url === undefined ? { guest: endpoints.guest ?? null } : {})
    })
    const sends = Sends.make(store, tmux, sessions)
    const stops = Stops.make(store, tmux, occupants, launches.begun)
    const rigs = Rigs.make(store, launches, stops, home.presets)
    let closing = false
    const asks = Asks.make({
      store,
      activities,
      waiters,
      unaskable: settings.unaskable,
      maxOptions: settings.maxOptions,
      closing: () => closing,
      deliver: (session, text) =>
        Effect.suspend(() => {
          const seat = findSeat(store.seats, session)
          return isRefusal(seat) ? Effect.succeed(false) : Effect.as(sends.send(seat, { text, from: "rig" }), true)
        }).pipe(Effect.catch(() => Effect.succeed(false)))
    })
    const posts = Posts.make(store, activities, waiters)
    const feed = FeedStreams.make(store)
    const startedAt = iso(clock.wall())
    const api = RigApi.make({
      store,
      activities,
      asks,
      launches,
      rigs,
      sends,
      stops,
      tmux,
      waiters,
      transcripts: home.transcripts,
      status: Effect.map(tmux.ping, (answer) => ({
        version,
        contract: RigApi.serviceContract,
        home: home.path,
        startedAt,
        listeners: { main: endpoints.url, guest: endpoints.guest ?? null },
        cutOff: cutOff(store.seats.addresses(), addresses()),
        tmux: answer._tag === "Done" ? "present" : answer._tag === "Absent" ? "absent" : "unavailable",
        tmuxVersion: tmuxVersion ?? null
      }))
    })
    const http = yield* RigHttp.make({
      store,
      seats: SeatHttp.make(posts, asks),
      api,
      feed,
      hookToken: home.hookToken,
      operatorToken: home.operatorToken,
      log
    })
    const known = store.seats.addresses()
    /** A port that the system chooses is the one that running seats know, when it is to be had. */
    const bind = (listen: typeof http.main, host: string, port: number, guest: boolean) =>
      Effect.gen(function* () {
        for (const candidate of port === 0 ? knownPorts(known, guest) : []) {
          const bound = yield* Effect.result(listen(host, candidate))
          if (Result.isSuccess(bound)) return bound.success
          log.write("warn", "the port that running seats know is not to be had", { detail: bound.failure.detail })
        }
        return yield* listen(host, port)
      })
    const main = yield* bind(http.main, settings.host, settings.port, false)
    const url = `http://${authority(settings.host, main.port)}`
    endpoints = { host: settings.host, port: main.port, url }
    const guest =
      settings.guest === undefined ? undefined : yield* bind(http.guest, settings.guest.host, settings.guest.port, true)
    if (guest !== undefined) {
      endpoints = { ...endpoints, guest: settings.guest?.url ?? `http://${authority(guest.host, guest.port)}` }
    }
    for (const { seat, url: other } of cutOff(known, addresses())) {
      log.write("warn", "a running seat knows another address and is cut off until it is launched again", {
        seat,
        url: other
      })
    }
    // Before the listeners close: who waits is answered, and streams end with a word.
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        closing = true
        waiters.wakeAll()
        feed.close()
      })
    )
    yield* home.writeEndpoint(url)
    yield* launches.resume
    log.write("info", "the rig service runs", { url, home: home.path, guest: endpoints.guest ?? "off" })
    return {
      url,
      guestUrl: endpoints.guest ?? null,
      home: home.path,
      operatorToken: home.operatorToken,
      hookToken: home.hookToken,
      store
    }
  })
