/**
 * Owns what the host writes to stderr: one JSON object per line, from the level that `TACKROOM_LOG_LEVEL` names (RUN-019).
 * It never waits for stderr: while more than `unsentLimitBytes` are unsent a line is dropped and counted.
 *
 * It does not decide what is a secret: `redact` does, over the finished line. Prompt and tool content must not be given to it.
 */
import type { Writable } from "node:stream"
import { Cause, Layer, Logger, LogLevel, References } from "effect"

/** Unsent bytes on stderr above which lines are dropped. */
export const unsentLimitBytes = 262_144

/** The longest line; a longer one loses its fields. */
const lineLimit = 16_384

export type Level = LogLevel.Severity

export interface StderrLog {
  readonly log: (level: Level, message: string, fields?: Readonly<Record<string, unknown>>) => void
  /** Lines dropped because stderr was full. */
  readonly dropped: () => number
  /** Effect's own logger and level, pointed here. */
  readonly layer: Layer.Layer<never>
}

export interface StderrLogOptions {
  readonly stream: Writable
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly level?: LogLevel.LogLevel
  readonly redact?: (line: string) => string
  readonly onDrop?: () => void
}

/** The level that a text names, whatever its case; `Info` for anything else, so that a typing error hides no warning. */
export const levelFrom = (text: string | undefined): LogLevel.LogLevel => {
  const wanted = text?.trim().toLowerCase()
  return LogLevel.values.find((level) => level.toLowerCase() === wanted) ?? "Info"
}

const isSeverity = (level: LogLevel.LogLevel): level is Level => level !== "All" && level !== "None"

/** A cause without its messages, which may quote content: tags, names and places only. */
export const outline = (cause: Cause.Cause<unknown>): ReadonlyArray<string> =>
  cause.reasons.map((reason) => {
    if (reason._tag === "Interrupt") return "interrupted"
    const thrown = reason._tag === "Die" ? reason.defect : reason.error
    if (!(thrown instanceof Error)) return `${reason._tag} ${typeof thrown}`
    const place = (thrown.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line))
    return `${reason._tag} ${thrown.name} ${place
      .slice(0, 8)
      .map((line) => line.trim())
      .join(" < ")}`
  })

const messageOf = (message: unknown): string =>
  (Array.isArray(message) ? message : [message]).filter((part) => typeof part === "string").join(" ")

export const makeStderrLog = (options: StderrLogOptions): StderrLog => {
  const { stream } = options
  const minimum = LogLevel.getOrdinal(options.level ?? "Info")
  let dropped = 0
  let dead = false
  // A closed stderr must not end the host.
  stream.on("error", () => {
    dead = true
  })

  const log: StderrLog["log"] = (level, message, fields) => {
    if (LogLevel.getOrdinal(level) < minimum) return
    if (dead || stream.writableLength > unsentLimitBytes) {
      dropped += 1
      options.onDrop?.()
      return
    }
    const head = { at: new Date(options.now()).toISOString(), level: level.toLowerCase(), message }
    let line = JSON.stringify({ ...head, ...fields })
    if (line.length > lineLimit) line = JSON.stringify({ ...head, message: message.slice(0, 1_024), cut: true })
    stream.write(`${options.redact === undefined ? line : options.redact(line)}\n`)
  }

  const logger = Logger.make<unknown, void>((entry) => {
    if (!isSeverity(entry.logLevel)) return
    log(
      entry.logLevel,
      messageOf(entry.message),
      entry.cause.reasons.length === 0 ? undefined : { cause: outline(entry.cause) }
    )
  })

  return {
    log,
    dropped: () => dropped,
    layer: Layer.mergeAll(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, options.level ?? "Info"))
  }
}
