/** The bounds of the native tools (run-protocol.md, section 20 and AGT-012), in the unit which each name ends with. */
export const limits = {
  pathChars: 4_096,
  globChars: 1_024,
  /** files.read */
  readFileBytes: 32 * 1024 * 1024,
  readChars: 100_000,
  readBase64Bytes: 256 * 1024,
  readLines: 10_000,
  readLinesDefault: 2_000,
  /** A file with a NUL in its first bytes is binary. */
  binaryProbeBytes: 8 * 1024,
  /** files.list */
  listDepth: 8,
  listEntries: 5_000,
  listEntriesDefault: 500,
  /** files.search */
  patternChars: 1_000,
  contextLines: 10,
  searchMatches: 1_000,
  searchMatchesDefault: 100,
  matchChars: 500,
  /** Only this much of one line is searched; a longer line makes the result `truncated`. */
  searchLineUnits: 256 * 1024,
  /** files.list and files.search end here with what they have found, `truncated`. */
  walkMillis: 20_000,
  /** files.write and files.edit */
  writeBytes: 524_288,
  editFileBytes: 4 * 1024 * 1024,
  edits: 64,
  diffOldBytes: 524_288,
  /** shell.run */
  commandBytes: 32_768,
  stdinBytes: 65_536,
  envEntries: 64,
  envNameChars: 256,
  envValueBytes: 32_768,
  shellSecondsDefault: 120,
  shellSecondsMax: 600,
  captureBytes: 32 * 1024 * 1024,
  shellModelChars: 20_000,
  /** Between SIGTERM and SIGKILL of a group. */
  killMillis: 2_000,
  /** AGT-012 */
  modelChars: 100_000
} as const
