/**
 * Lines between the host and its tool runner: one JSON object per line, split at byte 0x0A.
 *
 * Owns the splitting and its bound; not what a line says (`RunnerMessages.ts`). Loaded by both sides, so it knows no Effect; `@tackroom/protocol/text`,
 * which splits the frames of the wires, would load it.
 */

/** A line is a result at most: an edited file of 4 MiB whose chars are all escaped fits. */
export const maxLineBytes = 32 * 1024 * 1024

/** Of the private protocol between host and runner; both are one version of one program. */
export const runnerProtocol = 1

/** Collects chunks to lines, in time linear to their bytes. `push` returns undefined when a line passes the bound. */
export const lineSplitter = (max = maxLineBytes): ((chunk: Uint8Array) => ReadonlyArray<Buffer> | undefined) => {
  let held: Array<Uint8Array> = []
  let size = 0
  return (chunk) => {
    const lines: Array<Buffer> = []
    let from = 0
    for (let end = chunk.indexOf(0x0a); end !== -1; end = chunk.indexOf(0x0a, from)) {
      const part = chunk.subarray(from, end)
      if (size + part.length > max) return undefined
      lines.push(held.length === 0 ? Buffer.from(part) : Buffer.concat([...held, part]))
      held = []
      size = 0
      from = end + 1
    }
    if (from < chunk.length) {
      const rest = chunk.subarray(from)
      size += rest.length
      if (size > max) return undefined
      held.push(Buffer.from(rest))
    }
    return lines
  }
}
