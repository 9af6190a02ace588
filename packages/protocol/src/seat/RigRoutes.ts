/**
 * The routes of a rig service for people and programs under `/api/rig/v1` (seat contract 9.7), once as a table: the
 * service dispatches by it, clients call by it.
 *
 * An answer is `{"ok": true, …result}`, an error one of `SeatErrors`. Views and lists carry `feedCursor`, the position of
 * the feed at which they were read, so that a list and the feed behind it have no hole between them.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { Timestamp } from "../events/Content.ts"
import { lazySchema } from "../internal/Lazy.ts"
import { AbsolutePath, bytes, chars, list, optional } from "../run/Bounds.ts"
import { MemberName, PersonId, PodName, PresetName, RigName } from "./Names.ts"
import {
  AskView,
  FeedCursor,
  Person,
  RigView,
  SeatOutcome,
  SeatView,
  SendResult,
  SnapshotView,
  StreamItem
} from "./RigViews.ts"
import { askStates } from "./Permission.ts"
import { seatLimits } from "./SeatLimits.ts"

const text = Schema.String
const Words = chars(1, seatLimits.textCharacters)
const Reference = chars(1, 200)

/** Exactly one of several optional fields is given. */
const exactlyOneOf = (...names: ReadonlyArray<string>) =>
  Schema.makeFilter((body: object) => names.filter((name) => Object.hasOwn(body, name)).length === 1, {
    expected: `exactly one of ${names.join(", ")}`,
    toJsonSchema: () => ({ oneOf: names.map((name) => ({ required: [name] })) })
  })

/** A seat of a rig file. @since 0.1.0 */
export const RigFileSeat = lazySchema(() =>
  Schema.Struct({
    pod: PodName,
    member: MemberName,
    harness: PresetName,
    cwd: AbsolutePath,
    model: optional(chars(1, 200)),
    firstInput: optional(bytes(1, seatLimits.promptBytes)),
    guest: optional(Schema.Boolean)
  }).annotate({ identifier: "RigFileSeat" })
)
/** @since 0.1.0 */
export type RigFileSeat = typeof RigFileSeat.Type

/** A rig: its name and its seats. @since 0.1.0 */
export const RigFile = lazySchema(() =>
  Schema.Struct({ format: Schema.Literal(1), name: RigName, seats: list(RigFileSeat, 200, 1) })
    .check(
      Schema.makeFilter(
        (rig: { readonly seats: ReadonlyArray<{ readonly pod: string; readonly member: string }> }) =>
          new Set(rig.seats.map(({ pod, member }) => `${pod}-${member}`)).size === rig.seats.length,
        { expected: "seats of different names", toJsonSchema: () => ({}) }
      )
    )
    .annotate({ identifier: "RigFile" })
)
/** @since 0.1.0 */
export type RigFile = typeof RigFile.Type

/** Fields a rig file may name and no service here delivers: a launch warns of them (RIG-056). @since 0.1.0 */
export const undeliveredFields = ["guidance", "skills", "startup"] as const

/** Fields that only a command sets, never a rig file (RIG-196). @since 0.1.0 */
export const commandOnlyFields = ["permissions", "permissionsTo", "permissions_to", "setPermissionsTo"] as const

/** Body of `up`, `restore` and `down`. @since 0.1.0 */
export const RigCommand = lazySchema(() =>
  Schema.Struct({
    fresh: optional(Schema.Boolean),
    seats: optional(list(Reference, 200)),
    snapshotId: optional(Reference)
  })
)

/** A name in one line of an envelope. */
const Sender = lazySchema(() =>
  chars(1, 100).check(
    Schema.isPattern(/^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]*$/u, {
      expected: "a name of 1 to 100 characters in one line"
    })
  )
)

/** Body of a send. @since 0.1.0 */
export const SendBody = lazySchema(() =>
  Schema.Struct({
    text,
    from: optional(Sender),
    raw: optional(Schema.Boolean),
    verify: optional(Schema.Boolean),
    force: optional(Schema.Boolean),
    reason: optional(Words)
  }).check(
    Schema.makeFilter(
      (body: { readonly force?: boolean; readonly reason?: string }) =>
        body.force !== true || body.reason !== undefined,
      {
        expected: "a reason with force",
        toJsonSchema: () => ({})
      }
    )
  )
)
/** @since 0.1.0 */
export type SendBody = typeof SendBody.Type

/** Body of a seat's permission setting. @since 0.1.0 */
export const PermissionsBody = lazySchema(() =>
  Schema.Struct({
    to: optional(PersonId),
    deny: optional(Schema.Literal(true)),
    default: optional(Schema.Literal(true)),
    reason: Words
  }).check(exactlyOneOf("to", "deny", "default"))
)
/** @since 0.1.0 */
export type PermissionsBody = typeof PermissionsBody.Type

/** Body of an answer: an option, words, or a verb. @since 0.1.0 */
export const AnswerBody = lazySchema(() =>
  Schema.Struct({
    by: Reference,
    option: optional(chars(1, seatLimits.optionIdCharacters)),
    text: optional(Words),
    acceptDefault: optional(Schema.Boolean),
    verb: optional(Schema.Literals(["deny", "approve", "drop"]))
  }).check(exactlyOneOf("option", "text", "verb"))
)
/** @since 0.1.0 */
export type AnswerBody = typeof AnswerBody.Type

/** Body of a hand-off. @since 0.1.0 */
export const HandoffBody = lazySchema(() =>
  Schema.Struct({
    by: Reference,
    to: Schema.Struct({ person: optional(Reference), seat: optional(Reference) }).check(exactlyOneOf("person", "seat")),
    note: optional(Words)
  })
)
/** @since 0.1.0 */
export type HandoffBody = typeof HandoffBody.Type

/** How a row is closed from outside. @since 0.1.0 */
export const closures = ["done", "failed", "denied", "canceled"] as const

/** Body of closing a row. @since 0.1.0 */
export const CloseBody = lazySchema(() =>
  Schema.Struct({ by: Reference, closure: Schema.Literals(closures), note: optional(Words) })
)
/** @since 0.1.0 */
export type CloseBody = typeof CloseBody.Type

/** A new person. @since 0.1.0 */
export const PersonBody = lazySchema(() => Schema.Struct({ id: PersonId, name: chars(1, 80) }))
/** @since 0.1.0 */
export type PersonBody = typeof PersonBody.Type

/** What a service says of itself. @since 0.1.0 */
export const ServiceStatus = lazySchema(() =>
  Schema.Struct({
    version: text,
    contract: text,
    home: text,
    journalId: text,
    startedAt: Timestamp,
    listeners: Schema.Struct({ main: text, guest: Schema.NullOr(text) }),
    /** Running seats that know another address of this service, and reach nobody there until they are launched again. */
    cutOff: optional(Schema.Array(Schema.Struct({ seat: text, url: text }))),
    counts: Schema.Struct({
      rigs: Schema.Natural,
      seats: Schema.Natural,
      running: Schema.Natural,
      pendingAsks: Schema.Natural,
      people: Schema.Natural
    }),
    tmux: Schema.Literals(["present", "absent", "unavailable"]),
    tmuxVersion: Schema.NullOr(text),
    feedCursor: FeedCursor
  }).annotate({ identifier: "ServiceStatus" })
)
/** @since 0.1.0 */
export type ServiceStatus = typeof ServiceStatus.Type

const cursor = { feedCursor: FeedCursor }
const none = lazySchema(() => Schema.Struct({}))
const optionalText = optional(text)

const page = <S extends Schema.Constraint>(item: S) =>
  Schema.Struct({ items: Schema.Array(item), next: Schema.NullOr(text), ...cursor })

/** A number as a query carries it. */
const Limit = lazySchema(() =>
  Schema.NumberFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 1, maximum: seatLimits.listMax }))
)
const paging = { limit: optional(Limit), after: optionalText }

const outcomes = () => Schema.Struct({ outcomes: Schema.Array(SeatOutcome), ...cursor })
const oneOutcome = () => Schema.Struct({ outcome: SeatOutcome, seat: SeatView, ...cursor })
const oneSeat = () => Schema.Struct({ seat: SeatView, ...cursor })
const oneAsk = () => Schema.Struct({ ask: AskView, repeated: optional(Schema.Boolean), ...cursor })

interface Route<Query extends Schema.Constraint, Body extends Schema.Constraint, Result extends Schema.Constraint> {
  readonly method: "GET" | "POST" | "PUT" | "DELETE"
  /** Below `/api/rig/v1`; `:name` is a path parameter. */
  readonly path: string
  readonly query: Query
  readonly body: Body
  readonly result: Result
}

const get = <Query extends Schema.Struct.Fields, Result extends Schema.Constraint>(
  path: string,
  query: () => Query,
  result: () => Result
): Route<Schema.Struct<Query>, typeof none, Result> => ({
  method: "GET",
  path,
  query: lazySchema(() => Schema.Struct(query())),
  body: none,
  result: lazySchema(result)
})

const write = <Body extends Schema.Constraint, Result extends Schema.Constraint>(
  method: "POST" | "PUT" | "DELETE",
  path: string,
  body: () => Body,
  result: () => Result
): Route<typeof none, Body, Result> => ({
  method,
  path,
  query: none,
  body: lazySchema(body),
  result: lazySchema(result)
})

/** Where the routes are. @since 0.1.0 */
export const rigBase = "/api/rig/v1"

/** The header that makes a writing call safe to repeat. @since 0.1.0 */
export const idempotencyHeader = "idempotency-key"

/** Every route by its name. The feed (`GET /feed`) is a stream and has its frames in `RigViews`. @since 0.1.0 */
export const rigRoutes = {
  status: get(
    "/status",
    () => ({}),
    () => ServiceStatus
  ),
  createRig: write(
    "POST",
    "/rigs",
    () => RigFile,
    () => Schema.Struct({ rig: RigView, warnings: Schema.Array(text), ...cursor })
  ),
  listRigs: get(
    "/rigs",
    () => paging,
    () => page(RigView)
  ),
  getRig: get(
    "/rigs/:rig",
    () => ({}),
    () => Schema.Struct({ rig: RigView, seats: Schema.Array(SeatView), ...cursor })
  ),
  listSnapshots: get(
    "/rigs/:rig/snapshots",
    () => paging,
    () => page(SnapshotView)
  ),
  upRig: write("POST", "/rigs/:rig/up", () => RigCommand, outcomes),
  restoreRig: write("POST", "/rigs/:rig/restore", () => RigCommand, outcomes),
  downRig: write(
    "POST",
    "/rigs/:rig/down",
    () => Schema.Struct({ snapshot: optional(Schema.Boolean) }),
    () => Schema.Struct({ outcomes: Schema.Array(SeatOutcome), snapshot: Schema.NullOr(SnapshotView), ...cursor })
  ),
  listSeats: get(
    "/seats",
    () => ({ ...paging, rig: optionalText }),
    () => page(SeatView)
  ),
  getSeat: get("/seats/:seat", () => ({}), oneSeat),
  captureSeat: get(
    "/seats/:seat/capture",
    () => ({ lines: optional(Limit) }),
    () =>
      Schema.Struct({
        seat: text,
        source: Schema.Literals(["pane", "transcript"]),
        lines: Schema.Array(text),
        ...cursor
      })
  ),
  launchSeat: write(
    "POST",
    "/seats/:seat/launch",
    () => Schema.Struct({ fresh: optional(Schema.Boolean) }),
    oneOutcome
  ),
  stopSeat: write("POST", "/seats/:seat/stop", () => Schema.Struct({ reason: optional(Words) }), oneOutcome),
  revokeGrant: write(
    "POST",
    "/seats/:seat/revoke-grant",
    () => Schema.Struct({ reason: optional(Words) }),
    // `revoked` is false where there was no grant in force.
    () => Schema.Struct({ seat: SeatView, revoked: optional(Schema.Boolean), ...cursor })
  ),
  sendSeat: write(
    "POST",
    "/seats/:seat/send",
    () => SendBody,
    () => SendResult
  ),
  clearAttention: write("POST", "/seats/:seat/clear-attention", () => Schema.Struct({ reason: Words }), oneSeat),
  setPermissions: write("POST", "/seats/:seat/permissions", () => PermissionsBody, oneSeat),
  listAsks: get(
    "/asks",
    () => ({
      ...paging,
      state: optional(Schema.Literals(askStates)),
      seat: optionalText,
      person: optionalText
    }),
    () => page(AskView)
  ),
  getAsk: get("/asks/:ask", () => ({}), oneAsk),
  answerAsk: write("POST", "/asks/:ask/answer", () => AnswerBody, oneAsk),
  handoffAsk: write("POST", "/asks/:ask/handoff", () => HandoffBody, oneAsk),
  closeRow: write("POST", "/rows/:row/close", () => CloseBody, oneAsk),
  listPeople: get(
    "/people",
    () => paging,
    () => page(Person)
  ),
  addPerson: write(
    "POST",
    "/people",
    () => PersonBody,
    () => Schema.Struct({ person: Person, token: text, ...cursor })
  ),
  removePerson: write(
    "DELETE",
    "/people/:person",
    () => none,
    () => Schema.Struct({ person: Person, ...cursor })
  ),
  setDefaultPerson: write(
    "PUT",
    "/people/default",
    () => Schema.Struct({ id: Schema.NullOr(PersonId) }),
    () => Schema.Struct({ items: Schema.Array(Person), ...cursor })
  ),
  listStream: get(
    "/stream",
    () => ({
      ...paging,
      tag: optionalText,
      source: optionalText,
      since: optionalText,
      until: optionalText,
      archived: optional(Schema.Literals(["true", "false"]))
    }),
    () => page(StreamItem)
  )
} as const satisfies Readonly<Record<string, Route<Schema.Constraint, Schema.Constraint, Schema.Constraint>>>

/** The name of a route. @since 0.1.0 */
export type RigRouteName = keyof typeof rigRoutes
/** The checked query of a route. @since 0.1.0 */
export type RigQuery<Name extends RigRouteName> = (typeof rigRoutes)[Name]["query"]["Type"]
/** The checked body of a route. @since 0.1.0 */
export type RigBody<Name extends RigRouteName> = (typeof rigRoutes)[Name]["body"]["Type"]
/** The result of a route. @since 0.1.0 */
export type RigResult<Name extends RigRouteName> = (typeof rigRoutes)[Name]["result"]["Type"]

/** All names of routes. @since 0.1.0 */
export const rigRouteNames = Object.keys(rigRoutes) as ReadonlyArray<RigRouteName>

/** The path of a route with its parameters filled in. @since 0.1.0 */
export const rigPath = (name: RigRouteName, params: Readonly<Record<string, string>> = {}): string =>
  rigBase + rigRoutes[name].path.replace(/:([a-z]+)/gu, (_, key: string) => encodeURIComponent(params[key] ?? ""))
