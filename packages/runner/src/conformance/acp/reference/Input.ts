/** Bytes of stdin as lines, and each line as a JSON value or as what is wrong with it. */
import type { Settings } from "./Settings.ts"

export type Read = { readonly value: unknown } | { readonly bad: true }

/** Splits bytes; `onLine` gets every line that is not blank. */
export const makeInput = ({ broken }: Settings, onLine: (read: Read) => void, exit: (code: number) => void) => {
  const strict = new TextDecoder("utf-8", { fatal: true })
  let rest: Buffer = Buffer.alloc(0)

  const line = (bytes: Buffer): void => {
    if (broken("ACK-034") && bytes.length > 65_536) return exit(1)
    let value: unknown
    try {
      const text = strict.decode(bytes)
      if (text.trim() === "" && !broken("ACK-033")) return
      value = JSON.parse(text)
    } catch {
      return broken("ACK-035") ? exit(1) : onLine({ bad: true })
    }
    onLine({ value })
  }

  /** A faulty reader changes what came. */
  const normal = (chunk: Buffer): Buffer => {
    if (broken("ACK-031")) return Buffer.from(chunk.toString("latin1").replaceAll("\u00e2\u0080\u00a8", "\n"), "latin1")
    return broken("ACK-032") ? Buffer.from(chunk.toString("utf8")) : chunk
  }

  return (given: Buffer): void => {
    rest = Buffer.concat([rest, normal(given)])
    for (let end = rest.indexOf(0x0a); end >= 0; end = rest.indexOf(0x0a)) {
      const bytes = rest.subarray(0, end)
      rest = broken("ACK-037") ? Buffer.alloc(0) : rest.subarray(end + 1)
      line(bytes)
    }
  }
}
