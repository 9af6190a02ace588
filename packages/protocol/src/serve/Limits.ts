/**
 * Sizes of serve mode (serve-mode 2 to 5). Bytes are bytes of UTF-8, characters are Unicode code points.
 *
 * @since 0.1.0
 */

/** The only version of serve mode. @since 0.1.0 */
export const serveVersion = 1 as const

/** Sizes that both sides of serve mode know. @since 0.1.0 */
export const serveLimits = {
  /** A line in, without its end; and a line out, with it (SRV-033, SRV-064). */
  lineBytes: 1_048_576,
  /** Levels of nesting in an op (SRV-037). */
  depth: 64,
  /** Characters of `run_id`, `op_id` and `ask_id`. */
  idCharacters: 256,
  /** Characters of an op's name that an error repeats (SRV-093). */
  opNameCharacters: 64,
  /** Values of an `answer`, and of each group in it. */
  answers: 64,
  /** A message of an error, of a refusal or of `result.errors` (SRV-133). */
  messageBytes: 2_048,
  deltaBytes: 65_536,
  logBytes: 8_192,
  toolArgsBytes: 2_048,
  previewBytes: 8_192,
  diffBytes: 131_072,
  planBytes: 262_144,
  mediaBytes: 262_144,
  questionBytes: 8_192,
  optionBytes: 1_024,
  options: 64,
  eventBytes: 8_192
} as const
