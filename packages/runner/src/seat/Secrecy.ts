/** Keeps the rig's token and the values that were named for the agent out of everything that is shown or written (SEAT-280). */
import { makeRedactor, minSecretLength, type Redactor } from "@tackroom/protocol/text"
import type { PaneRedaction } from "../terminal/Pane.ts"

const name = "seat"
const mark = `[redacted:${name}]`
const shown = "***"

const veil = (text: string): string => text.replaceAll(mark, shown)

/** `values` may grow while the program runs: a rig that was started again has another token. */
export const makeSecrecy = (values: () => ReadonlyArray<string>): PaneRedaction => {
  let known = ""
  let redactor: Redactor = makeRedactor([])
  const current = (): Redactor => {
    const secrets = values().filter((value) => value.length >= minSecretLength)
    const key = secrets.join("\u0000")
    if (key !== known) {
      known = key
      redactor = makeRedactor(secrets.map((value) => ({ name, value })))
    }
    return redactor
  }
  return {
    text: (text) => veil(current().text(text)),
    stream: () => {
      const stream = current().stream()
      return { push: (delta) => veil(stream.push(delta)), end: () => veil(stream.end()) }
    }
  }
}
