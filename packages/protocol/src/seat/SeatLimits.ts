/**
 * The limits of the seat contract as constants (2.4). Keys ending in `Bytes` count UTF-8 bytes, in `Ms` milliseconds, in
 * `Seconds` seconds, in `Characters` code points; the others count things.
 *
 * @since 0.1.0
 */

/** Every limit by its name. @since 0.1.0 */
export const seatLimits = {
  hookBodyBytes: 65_536,
  permissionBodyBytes: 4_194_304,
  rigBodyBytes: 2_097_152,
  toolCallBytes: 65_536,
  /** Levels of nesting in one field of a tool call; one that is deeper is left out. */
  toolCallDepth: 128,
  toolTitleBytes: 4_096,
  nameBytes: 256,
  headerBytes: 16_384,
  bodyArrivalMs: 10_000,
  waitSeconds: 25,
  idleLivenessSeconds: 3_600,
  beatSecondsMin: 5,
  beatSecondsMax: 60,
  beatSecondsDefault: 30,
  workingSeconds: 15,
  screenSeconds: 3,
  launchRecordBytes: 16_384,
  presetBytes: 65_536,
  promptBytes: 1_048_576,
  queuedPrompts: 64,
  queuedPromptBytes: 8_388_608,
  agentFrameBytes: 33_554_432,
  textCharacters: 4_000,
  optionIdCharacters: 200,
  optionsMin: 2,
  guestConnections: 64,
  guestPostsPerSecond: 50,
  guestPostBurst: 200,
  feedBufferBytes: 1_048_576,
  feedEvents: 100_000,
  handoffs: 20,
  keptPosts: 10_000,
  keptPostDays: 30,
  keptAskDays: 90,
  keptStreamItems: 100_000,
  keptStreamDays: 30,
  keptSnapshots: 20,
  idempotencyHours: 24,
  transcriptBytes: 67_108_864,
  socketPathBytes: 100,
  launchWaitSecondsMin: 5,
  launchWaitSecondsMax: 600,
  maxOptionsMin: 2,
  maxOptionsMax: 9,
  registrationWaitMs: 1_000,
  submitRegistrationWaitMs: 3_000,
  sendLockMs: 10_000,
  listDefault: 100,
  listMax: 500
} as const

/** The name of a limit. @since 0.1.0 */
export type SeatLimit = keyof typeof seatLimits

const whole = (value: unknown): value is number => typeof value === "number" && Number.isInteger(value)

/** `livenessSeconds` of an idle Stop: a whole number of 1 to 3,600, any other value counts as absent. @since 0.1.0 */
export const idleLiveness = (value: unknown): number | undefined =>
  whole(value) && value >= 1 && value <= seatLimits.idleLivenessSeconds ? value : undefined

/** `livenessSeconds` of a working beat: cut to 5 to 60, and 30 where it is no number. @since 0.1.0 */
export const beatLiveness = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value)
    ? Math.min(Math.max(value, seatLimits.beatSecondsMin), seatLimits.beatSecondsMax)
    : seatLimits.beatSecondsDefault

/** `waitSeconds` of a read: at most 25, and 0 for anything that is no whole number of 0 or more. @since 0.1.0 */
export const readWait = (value: string | null | undefined): number =>
  value !== null && value !== undefined && /^[0-9]+$/u.test(value) ? Math.min(Number(value), seatLimits.waitSeconds) : 0
