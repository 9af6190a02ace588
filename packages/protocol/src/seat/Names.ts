/**
 * Names and ids of rigs, seats, people and what happens to them (seat contract, section 1): their schemas, and the pure
 * rules that derive one from another. Nothing here guesses: a reference that fits no form is `undefined`.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { ulid } from "../Ids.ts"
import { lazySchema } from "../internal/Lazy.ts"
import { bytes, pattern } from "../run/Bounds.ts"

const named = (regExp: RegExp, identifier: string, expected: string) =>
  lazySchema(() => pattern(regExp, expected).annotate({ identifier }))

/** Name of a rig. @since 0.1.0 */
export const RigName = named(
  /^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$/u,
  "RigName",
  "1 to 40 of the characters A-Z a-z 0-9 _ -, the first a letter or digit"
)

/** First half of a seat's name; it has no hyphen, so that a session name splits in one way. @since 0.1.0 */
export const PodName = named(
  /^[A-Za-z0-9][A-Za-z0-9_]{0,39}$/u,
  "PodName",
  "1 to 40 of the characters A-Z a-z 0-9 _, the first a letter or digit"
)

/** Second half of a seat's name. @since 0.1.0 */
export const MemberName = named(
  /^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$/u,
  "MemberName",
  "1 to 40 of the characters A-Z a-z 0-9 _ -, the first a letter or digit"
)

/** Name of a preset, which is the `harness` of launch records and the `runtime` of posts. @since 0.1.0 */
export const PresetName = named(
  /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/u,
  "PresetName",
  "1 to 64 of the characters A-Z a-z 0-9 _ -, the first a letter or digit"
)

/** Id of a registered person. @since 0.1.0 */
export const PersonId = named(
  /^[a-z0-9][a-z0-9_-]{0,39}$/u,
  "PersonId",
  "1 to 40 of the characters a-z 0-9 _ -, the first a letter or digit"
)

/** `<pod>-<member>@<rig>`: address of a seat, and the name of its tmux session. @since 0.1.0 */
export const SessionName = named(
  /^[A-Za-z0-9][A-Za-z0-9_]{0,39}-[A-Za-z0-9][A-Za-z0-9_-]{0,39}@[A-Za-z0-9][A-Za-z0-9_-]{0,39}$/u,
  "SeatSessionName",
  "a session name, pod-member@rig"
)

const ulidPattern = "[0-7][0-9A-HJKMNP-TV-Z]{25}"
const prefixed = (prefix: string, identifier: string, what: string) =>
  named(new RegExp(`^${prefix}${ulidPattern}$`, "u"), identifier, `${what}, ${prefix} and a ULID`)

/** Prefixes of the ids that a rig service mints. @since 0.1.0 */
export const seatIdPrefixes = {
  node: "nod_",
  ask: "ask_",
  row: "row_",
  streamItem: "str_",
  snapshot: "snp_",
  send: "snd_"
} as const
/** What an id of a rig service names. @since 0.1.0 */
export type SeatIdKind = keyof typeof seatIdPrefixes

/** Id of a seat; it survives stops, relaunches and resumes. @since 0.1.0 */
export const NodeId = prefixed("nod_", "NodeId", "a node id")
/** Id of a request that a person was asked about. @since 0.1.0 */
export const AskId = prefixed("ask_", "AskId", "an ask id")
/** Id of one owner's turn at an ask. @since 0.1.0 */
export const RowId = prefixed("row_", "RowId", "a row id")
/** Id of an item of the stream. @since 0.1.0 */
export const StreamItemId = prefixed("str_", "StreamItemId", "a stream item id")
/** Id of a snapshot of a rig. @since 0.1.0 */
export const SnapshotId = prefixed("snp_", "SnapshotId", "a snapshot id")

/** Names an occupant or a launch attempt. @since 0.1.0 */
export const Generation = named(
  /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/u,
  "Generation",
  "a version 4 UUID"
)

/** Id that the agent gave its conversation: 1 to 1,024 bytes without control characters. @since 0.1.0 */
export const NativeRef = lazySchema(() =>
  bytes(1, 1024)
    .check(Schema.isPattern(/^[^\p{Cc}]*$/u, { expected: "no control characters" }))
    .annotate({ identifier: "NativeRef", expected: "a conversation id of 1 to 1024 bytes without control characters" })
)

/**
 * Mints an id of a rig service from a time in milliseconds and ten random bytes.
 *
 * @throws RangeError as `ulid` does
 * @since 0.1.0
 */
export const mintSeatId = (kind: SeatIdKind, timeMs: number, random: Uint8Array): string =>
  seatIdPrefixes[kind] + ulid(timeMs, random)

/** The three names that make a seat. @since 0.1.0 */
export interface SeatParts {
  readonly rig: string
  readonly pod: string
  readonly member: string
}

/** The session name of a seat. @since 0.1.0 */
export const sessionNameOf = ({ rig, pod, member }: SeatParts): string => `${pod}-${member}@${rig}`

/** What a seat reference names: its id, or the parts of its name. @since 0.1.0 */
export type SeatReference = { readonly nodeId: string } | SeatParts

const isNodeId = Schema.is(NodeId)
const isPod = Schema.is(PodName)
const isMember = Schema.is(MemberName)
const isRig = Schema.is(RigName)

/**
 * Reads a seat reference: a node id, a session name `pod-member@rig`, or `pod.member@rig`. `undefined` for anything else.
 *
 * @since 0.1.0
 */
export const readSeatReference = (text: string): SeatReference | undefined => {
  const minted: boolean = isNodeId(text)
  if (minted) return { nodeId: text }
  const at = text.indexOf("@")
  if (at < 0) return undefined
  const rig = text.slice(at + 1)
  const local = text.slice(0, at)
  // A pod has neither a dot nor a hyphen, so the first of either ends it.
  const split = local.search(/[.-]/u)
  if (split < 0) return undefined
  const pod = local.slice(0, split)
  const member = local.slice(split + 1)
  return isRig(rig) && isPod(pod) && isMember(member) ? { rig, pod, member } : undefined
}
