/** What a service says to whoever runs it. Messages hold no token, no text of a person and no tool call. */

export type LogLevel = "debug" | "info" | "warn" | "error"

export interface ServiceLog {
  readonly write: (
    level: LogLevel,
    message: string,
    fields?: Readonly<Record<string, string | number | boolean>>
  ) => void
}

const order: ReadonlyArray<LogLevel> = ["debug", "info", "warn", "error"]

/** A level by its name; anything else is `info`. */
export const levelOf = (name: string | undefined): LogLevel => order.find((level) => level === name) ?? "info"

/** A log that writes one JSON object a line. */
export const lines = (least: LogLevel, clock: () => string, write: (line: string) => void): ServiceLog => ({
  write: (level, message, fields = {}) => {
    if (order.indexOf(level) < order.indexOf(least)) return
    write(`${JSON.stringify({ at: clock(), level, message, ...fields })}\n`)
  }
})

export const silent: ServiceLog = { write: () => undefined }
