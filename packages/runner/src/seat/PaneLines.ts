/** The wording of what a seat tells in its pane. Pure. */
import { headBytes, utf8Length } from "@tackroom/protocol/text"
import type { ChildExit } from "@tackroom/sdk/process"
import { foreignPiece, foreignText, wholeCharacters } from "../terminal/PaneText.ts"

const mirrorBytes = 16_384
const stderrLines = 20
const sampleCharacters = 200

/** A prompt as it stands in the pane, cut when it is long. */
export const mirrored = (text: string): string => {
  const shown = headBytes(text, mirrorBytes)
  const more = utf8Length(text) - utf8Length(shown)
  return foreignText(shown) + (more === 0 ? "" : `\u2026 (${more} bytes more)`)
}

export const toolLine = (tool: {
  readonly title: string | undefined
  readonly kind: string | undefined
  readonly status: string | undefined
}): string =>
  `tool > ${foreignPiece(tool.title ?? "(untitled)")} (${foreignPiece(tool.kind ?? "other")}, ${foreignPiece(tool.status ?? "pending")})`

export const exitLine = ({ code, signal }: Pick<ChildExit, "code" | "signal">): string =>
  `exit > agent ended: ${signal === null ? `code ${code ?? "unknown"}` : `signal ${signal}`}`

/** The end of the agent's standard error. */
export const stderrText = (text: string): ReadonlyArray<string> =>
  text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .slice(-stderrLines)
    .map((line) => `stderr > ${foreignPiece(line, wholeCharacters)}`)

export const badLine = (bytes: number, sample: string): string =>
  `error > the agent wrote a line that is no message (${bytes} bytes): ${foreignPiece(sample).slice(0, sampleCharacters)}`

/** Hours, minutes and seconds where the seat is. */
export const clockTime = (ms: number): string => {
  const date = new Date(ms)
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":")
}
