/**
 * What a check saw, as it stands in a report: cut to a length a person reads, with the secrets of the case masked.
 */

export type EvidenceKind = "post" | "request" | "acp" | "pane" | "file" | "process" | "op" | "line"

export interface Evidence {
  /** Milliseconds since the case began. */
  readonly at: number
  readonly kind: EvidenceKind
  readonly text: string
}

const entryBytes = 4096
const entries = 20

const cut = (text: string): string => {
  const bytes = Buffer.from(text, "utf8")
  if (bytes.length <= entryBytes) return text
  const note = ` … (${bytes.length} bytes)`
  // A cut inside a character would add a replacement mark; the decoder in streaming mode drops the incomplete tail.
  return new TextDecoder().decode(bytes.subarray(0, entryBytes - note.length - 2), { stream: true }) + note
}

/** What was seen and nothing more of it, with every secret replaced. */
export const masked = ({ at, kind, text }: Evidence, secrets: ReadonlyArray<string>): Evidence => ({
  at: Math.round(at),
  kind,
  text: secrets.reduce((rest, secret) => rest.replaceAll(secret, "***"), text)
})

/** The last entries, the same number of each program that was run, each cut. */
export const presentable = (seen: ReadonlyArray<ReadonlyArray<Evidence>>): ReadonlyArray<Evidence> =>
  seen
    .flatMap((one) => one.slice(-Math.max(1, Math.floor(entries / seen.length))))
    .slice(-entries)
    .map((entry) => ({ ...entry, text: cut(entry.text) }))
