/** The settings of a service, read from variables (seat contract 2.2). Pure. */
import { rigDefaults, rigSettings, seatLimits } from "@tackroom/protocol/seat"
import { Result } from "effect"
import { isIP } from "node:net"
import * as path from "node:path"
import { StartRefused } from "./StartRefused.ts"

export type Variables = Readonly<Record<string, string | undefined>>

export interface Settings {
  /** The service home, which seats get as `OPENRIG_HOME`. */
  readonly home: string
  readonly host: string
  readonly port: number
  readonly guest: { readonly host: string; readonly port: number; readonly url: string | undefined } | undefined
  readonly launchWaitMs: number
  readonly socket: string
  readonly unaskable: "permit" | "refuse"
  readonly maxOptions: number
}

/** Addresses that only this machine reaches. */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."))

const refuse = (reason: StartRefused["reason"], detail: string) => Result.fail(new StartRefused({ reason, detail }))

const value = (variables: Variables, name: string): string | undefined => {
  const given = variables[name]
  return given === undefined || given === "" ? undefined : given
}

const whole = (
  variables: Variables,
  name: string,
  absent: number,
  min: number,
  max: number
): Result.Result<number, StartRefused> => {
  const given = value(variables, name)
  if (given === undefined) return Result.succeed(absent)
  const number = /^\d{1,6}$/u.test(given) ? Number(given) : Number.NaN
  return number >= min && number <= max
    ? Result.succeed(number)
    : refuse("bad_setting", `${name} is a whole number from ${min} to ${max}`)
}

/** Where the service of a family home keeps its files. */
export const rigHome = (familyHome: string): string => path.join(familyHome, "rig")

/** Reads the settings; `familyHome` is where all programs of the family keep their state. */
export const readSettings = (variables: Variables, familyHome: string): Result.Result<Settings, StartRefused> =>
  Result.gen(function* () {
    const home = rigHome(familyHome)
    const host = value(variables, rigSettings.host) ?? rigDefaults.host
    if (!isLoopback(host)) {
      return yield* refuse("host_not_loopback", `${rigSettings.host} is ${host}; only a loopback address is taken`)
    }
    const port = yield* whole(variables, rigSettings.port, rigDefaults.port, 0, 65_535)
    const wait = yield* whole(
      variables,
      rigSettings.launchWait,
      rigDefaults.launchWaitSeconds,
      seatLimits.launchWaitSecondsMin,
      seatLimits.launchWaitSecondsMax
    )
    const maxOptions = yield* whole(
      variables,
      rigSettings.maxOptions,
      rigDefaults.maxOptions,
      seatLimits.maxOptionsMin,
      seatLimits.maxOptionsMax
    )
    const unaskable = value(variables, rigSettings.unaskable) ?? rigDefaults.unaskable
    if (unaskable !== "permit" && unaskable !== "refuse") {
      return yield* refuse("bad_setting", `${rigSettings.unaskable} is permit or refuse`)
    }
    const socket = value(variables, rigSettings.tmuxSocket) ?? path.join(home, "tmux.sock")
    if (Buffer.byteLength(socket) > seatLimits.socketPathBytes) {
      return yield* refuse(
        "socket_path_too_long",
        `${socket} is longer than ${seatLimits.socketPathBytes} bytes; set ${rigSettings.tmuxSocket}`
      )
    }
    const guestPort = value(variables, rigSettings.guestPort)
    const settings = { home, host, port, launchWaitMs: wait * 1_000, maxOptions, unaskable, socket } as const
    if (guestPort === undefined) return { ...settings, guest: undefined }
    const number = yield* whole(variables, rigSettings.guestPort, 0, 0, 65_535)
    if (number === port && number !== 0) {
      return yield* refuse("guest_port_conflict", `${rigSettings.guestPort} is the main port, ${port}`)
    }
    return {
      ...settings,
      guest: {
        host: value(variables, rigSettings.guestHost) ?? rigDefaults.guestHost,
        port: number,
        url: value(variables, rigSettings.guestUrl)?.replace(/\/+$/u, "")
      }
    }
  })
