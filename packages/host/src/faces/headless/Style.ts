/**
 * How lines for a person look: colours, signs, width. Pure.
 *
 * Colours only when asked for; a dumb terminal or a locale without UTF-8 gets ASCII signs. What comes from a model or a
 * tool goes through `oneLine` or `safe` first, so that it cannot move the cursor or forge a line.
 */
import { terminalSafe } from "@tackroom/protocol/text"

export type Tint = "dim" | "bold" | "red" | "green" | "yellow" | "cyan"

export interface Style {
  readonly colour: boolean
  readonly unicode: boolean
  /** Columns of a line that is cut to fit. */
  readonly width: number
}

const codes: { readonly [T in Tint]: readonly [number, number] } = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39]
}

export const tint = (style: Style, name: Tint, text: string): string => {
  if (!style.colour || text === "") return text
  const [on, off] = codes[name]
  return `\u001b[${on}m${text}\u001b[${off}m`
}

export interface Signs {
  readonly done: string
  readonly failed: string
  readonly running: string
  readonly unknown: string
  readonly open: string
  readonly notice: string
  readonly dot: string
  readonly minus: string
  readonly ellipsis: string
}

const pretty: Signs = {
  done: "✓",
  failed: "✗",
  running: "▸",
  unknown: "?",
  open: "○",
  notice: "!",
  dot: "·",
  minus: "−",
  ellipsis: "…"
}
const ascii: Signs = {
  done: "+",
  failed: "x",
  running: ">",
  unknown: "?",
  open: "-",
  notice: "!",
  dot: "-",
  minus: "-",
  ellipsis: "..."
}

export const signs = (style: Style): Signs => (style.unicode ? pretty : ascii)

/** Cuts to a number of code points, with an ellipsis where something was left out. */
export const cut = (style: Style, text: string, columns: number): string => {
  const points = [...text]
  const { ellipsis } = signs(style)
  return points.length <= columns ? text : points.slice(0, Math.max(0, columns - ellipsis.length)).join("") + ellipsis
}

/** Text of several lines, safe to print. */
export const safe = (text: string): string => terminalSafe(text)

/** Any text as one safe line: runs of white space become one space. */
export const oneLine = (text: string): string => terminalSafe(text.replace(/\s+/gu, " ").trim(), { lines: false })

/** A duration as a person reads it. */
export const duration = (ms: number): string => {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

export const count = (number: number, one: string, many = `${one}s`): string =>
  `${number.toLocaleString("en-US")} ${number === 1 ? one : many}`

/** The style of a terminal with this environment. */
export const styleOf = (
  terminal: { readonly isTTY: boolean; readonly columns?: number },
  env: Readonly<Record<string, string | undefined>>
): Style => {
  const dumb = env["TERM"] === "dumb"
  const locale = env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || ""
  const noColour = (env["NO_COLOR"] ?? "") !== ""
  return {
    colour: terminal.isTTY && !noColour && !dumb,
    unicode: !dumb && (locale === "" || /utf-?8/iu.test(locale)),
    width: terminal.isTTY ? Math.max(40, Math.min(terminal.columns ?? 80, 160)) : 160
  }
}
