/**
 * Identifiers of the runtime: prefixes, checked schemas, minting, and the rules for ids which a caller brings (3.1).
 *
 * Ids are plain strings in TypeScript. Minting is pure: time and random bytes are arguments, so that a program decides
 * where they come from and a test may fix them.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"

/**
 * Prefixes of ids minted by the runtime and the host. An id is the prefix and a ULID, or for messages a UUID.
 *
 * @since 0.1.0
 */
export const idPrefixes = {
  session: "ses_",
  turn: "trn_",
  interaction: "int_",
  artifact: "art_",
  message: "msg_",
  journal: "jrn_",
  team: "team_",
  task: "task_",
  delivery: "dlv_",
  schedule: "sch_",
  memory: "mem_",
  invocation: "inv_",
  part: "prt_",
  lease: "lse_",
  instance: "ins_"
} as const

/**
 * What an id names; a key of {@link idPrefixes}.
 *
 * @since 0.1.0
 */
export type IdKind = keyof typeof idPrefixes

/**
 * A session id: minted (`ses_` + ULID) or the caller's own, 1–128 characters of `[A-Za-z0-9._:@-]` (3.1).
 *
 * @since 0.1.0
 */
export const SessionId = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9._:@-]{1,128}$/u)).annotate({
  identifier: "SessionId",
  expected: "a session id: 1 to 128 characters of [A-Za-z0-9._:@-]"
})

/**
 * A turn id: `trn_` and `[A-Za-z0-9_-]`, at most 64 characters. Without the prefix it is refused (3.1).
 *
 * @since 0.1.0
 */
export const TurnId = Schema.String.check(Schema.isPattern(/^trn_[A-Za-z0-9_-]{1,60}$/u)).annotate({
  identifier: "TurnId",
  expected: "a turn id starting with trn_"
})

/**
 * The id of a permission or a question: `int_` for both (D-2).
 *
 * @since 0.1.0
 */
export const InteractionId = Schema.String.check(Schema.isPattern(/^int_[A-Za-z0-9_-]{1,60}$/u)).annotate({
  identifier: "InteractionId",
  expected: "an interaction id starting with int_"
})

/**
 * An artifact id: `art_` and `[A-Za-z0-9_-]`, at most 64 characters.
 *
 * @since 0.1.0
 */
export const ArtifactId = Schema.String.check(Schema.isPattern(/^art_[A-Za-z0-9_-]{1,60}$/u)).annotate({
  identifier: "ArtifactId",
  expected: "an artifact id starting with art_"
})

/**
 * The id of a store's journal: `jrn_`, made with the store (RT-185).
 *
 * @since 0.1.0
 */
export const JournalId = Schema.String.check(Schema.isPattern(/^jrn_[A-Za-z0-9_-]{1,60}$/u)).annotate({
  identifier: "JournalId",
  expected: "a journal id starting with jrn_"
})

/**
 * A user message id, which is the submission id: 1–200 characters, no control characters, no lone surrogates (D-3, D-4).
 * Reserved prefixes are allowed here, because the runtime's own producers use them; see {@link callerMessageIdProblem}.
 *
 * @since 0.1.0
 */
export const MessageId = Schema.String.check(Schema.isPattern(/^[^\p{Cc}\p{Cs}]{1,200}$/u)).annotate({
  identifier: "MessageId",
  expected: "a message id: 1 to 200 characters without control characters"
})

/**
 * A position in a session's journal: an integer from 0 (before the first event) to 2^53 − 1.
 *
 * @since 0.1.0
 */
export const Cursor = Schema.Natural.annotate({ identifier: "Cursor", expected: "a cursor: an integer of 0 or more" })

/**
 * Prefixes of message ids that belong to the runtime's and the host's own producers (3.1, RT-090).
 *
 * @since 0.1.0
 */
export const reservedMessagePrefixes = ["ow-schedule/", "schedule/", "team/", "goal/"] as const

/**
 * Whether a message id starts with a reserved prefix.
 *
 * @since 0.1.0
 */
export const hasReservedPrefix = (id: string): boolean =>
  reservedMessagePrefixes.some((prefix) => id.startsWith(prefix))

const isMessageId = Schema.is(MessageId)
const isSessionId = Schema.is(SessionId)

/**
 * Says what is wrong with a message id brought by a caller, or `undefined` when it may be used (3.1, RT-090).
 *
 * @since 0.1.0
 */
export const callerMessageIdProblem = (id: string): string | undefined => {
  if (!isMessageId(id)) return "a message id has 1 to 200 characters and no control characters"
  const reserved = reservedMessagePrefixes.find((prefix) => id.startsWith(prefix))
  return reserved === undefined ? undefined : `message ids starting with "${reserved}" are reserved`
}

/**
 * Says what is wrong with a session id brought by a caller, or `undefined` when it may be used (3.1).
 *
 * @since 0.1.0
 */
export const callerSessionIdProblem = (id: string): string | undefined =>
  isSessionId(id) ? undefined : "a session id has 1 to 128 characters of [A-Za-z0-9._:@-]"

/**
 * The id of the assistant message that answers a user message: the user message's id + `_r` (3.1).
 *
 * @since 0.1.0
 */
export const assistantMessageIdOf = (messageId: string): string => `${messageId}_r`

const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

/**
 * A ULID from a time in milliseconds since the epoch and ten random bytes. Ids of one millisecond are not ordered.
 *
 * @throws RangeError when fewer than ten bytes are given or the time does not fit 48 bits
 * @since 0.1.0
 */
export const ulid = (timeMs: number, random: Uint8Array): string => {
  if (random.length < 10) throw new RangeError("a ULID takes 10 random bytes")
  if (!Number.isInteger(timeMs) || timeMs < 0 || timeMs > 0xffff_ffff_ffff) {
    throw new RangeError("a ULID takes a time of 48 bits")
  }
  let out = ""
  let time = timeMs
  for (let i = 0; i < 10; i++) {
    out = crockford.charAt(time % 32) + out
    time = Math.floor(time / 32)
  }
  let bits = 0
  let held = 0
  for (let i = 0; i < 10; i++) {
    bits = (bits << 8) | (random[i] ?? 0)
    held += 8
    while (held >= 5) {
      held -= 5
      out += crockford.charAt((bits >>> held) & 31)
    }
    bits &= (1 << held) - 1
  }
  return out
}

/**
 * Mints an id of the given kind: its prefix and {@link ulid}.
 *
 * @since 0.1.0
 */
export const mintId = (kind: IdKind, timeMs: number, random: Uint8Array): string =>
  idPrefixes[kind] + ulid(timeMs, random)

/**
 * A version 4 UUID from sixteen random bytes.
 *
 * @throws RangeError when fewer than sixteen bytes are given
 * @since 0.1.0
 */
export const uuidV4 = (random: Uint8Array): string => {
  if (random.length < 16) throw new RangeError("a UUID takes 16 random bytes")
  let hex = ""
  for (let i = 0; i < 16; i++) {
    const byte = random[i] ?? 0
    const value = i === 6 ? (byte & 0x0f) | 0x40 : i === 8 ? (byte & 0x3f) | 0x80 : byte
    if (i === 4 || i === 6 || i === 8 || i === 10) hex += "-"
    hex += value.toString(16).padStart(2, "0")
  }
  return hex
}

/**
 * Mints a user message id for a submission whose caller brought none: `msg_` + UUID (RT-084).
 *
 * @since 0.1.0
 */
export const mintMessageId = (random: Uint8Array): string => idPrefixes.message + uuidV4(random)
