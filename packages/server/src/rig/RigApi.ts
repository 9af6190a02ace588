/**
 * What each route of the rig API does (seat contract 9.7): one handler a name of the table, no transport. A handler checks
 * nothing that the table's schemas check, and answers what its result schema says.
 */
import {
  AskNotFound,
  InvalidField,
  launchStates,
  NotAllowed,
  NotInAttention,
  type Person,
  PersonExists,
  RigNotFound,
  type RigBody,
  type RigQuery,
  type RigResult,
  type RigRouteName,
  type SeatError,
  seatLimits,
  type SeatOutcome,
  type ServiceStatus,
  TmuxUnavailable,
  UnknownPerson
} from "@tackroom/protocol/seat"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import type { Activities } from "./Activities.ts"
import type { Asks } from "./Asks.ts"
import { findSeat, isRefusal, type RigCaller } from "./Callers.ts"
import type { Launches } from "./Launches.ts"
import * as Minting from "./Minting.ts"
import { occurredAt } from "./Posts.ts"
import type { Rigs } from "./Rigs.ts"
import * as Permission from "./PermissionMachine.ts"
import type { RigStore } from "./RigStore.ts"
import type { SeatRow } from "./SeatRows.ts"
import type { Sends } from "./Sends.ts"
import type { Stops } from "./Stops.ts"
import type { Tmux } from "./Tmux.ts"
import { seatKey, type Waiters } from "./Waiters.ts"

export interface RigApiConfig {
  readonly store: RigStore
  readonly activities: Activities
  readonly asks: Asks
  readonly launches: Launches
  readonly rigs: Rigs
  readonly sends: Sends
  readonly stops: Stops
  readonly tmux: Tmux
  readonly waiters: Waiters
  readonly transcripts: string
  readonly status: Effect.Effect<Omit<ServiceStatus, "counts" | "feedCursor" | "journalId">>
}

/** A call as a handler gets it. */
export interface RigCall<Name extends RigRouteName> {
  readonly caller: RigCaller
  readonly params: Readonly<Record<string, string>>
  readonly query: RigQuery<Name>
  readonly body: RigBody<Name>
  /** The body as it came. */
  readonly raw: unknown
}

export type RigHandlers = {
  readonly [Name in RigRouteName]: (call: RigCall<Name>) => Effect.Effect<RigResult<Name>, SeatError>
}

/** What a person's token may change: the asks, as that person. Everything else is the operator's. */
export const personMay: ReadonlySet<RigRouteName> = new Set(["answerAsk", "handoffAsk", "closeRow"])

const captureLines = 50
const contract = "0.7.9"

export const serviceContract = contract

export const make = (config: RigApiConfig): RigHandlers => {
  const { store, asks } = config
  const { views } = store
  const cursor = () => ({ feedCursor: store.head() })
  const limitOf = (query: { readonly limit?: number }): number => query.limit ?? seatLimits.listDefault

  /** A page, whose `next` is the key of its last item when there may be more. */
  const page = <A>(items: ReadonlyArray<A>, limit: number, keyOf: (item: A) => string) => {
    const last = items.length === limit ? items.at(-1) : undefined
    return { items, next: last === undefined ? null : keyOf(last), ...cursor() }
  }

  /** The place of the item that a page goes on behind; one that is not there is no place. */
  const placeOf = (
    after: string | undefined,
    ordinalOf: (after: string) => number | undefined
  ): Effect.Effect<number, InvalidField> =>
    Effect.suspend(() => {
      const ordinal = after === undefined ? Number.MAX_SAFE_INTEGER : ordinalOf(after)
      return ordinal === undefined
        ? Effect.fail(new InvalidField({ path: "after", expected: "the id of an item that is kept" }))
        : Effect.succeed(ordinal)
    })

  const timeOf = <Name extends string>(
    query: { readonly [Key in Name]?: string },
    name: Name,
    absent: number
  ): Effect.Effect<number, InvalidField> => {
    const time = query[name] === undefined ? absent : occurredAt(query[name])
    return time === undefined
      ? Effect.fail(new InvalidField({ path: name, expected: "a time such as 2026-11-30T09:00:00Z" }))
      : Effect.succeed(time)
  }

  const seatOf = (reference: string | undefined): Effect.Effect<SeatRow, SeatError> =>
    Effect.suspend(() => {
      const found = findSeat(store.seats, reference ?? "")
      return isRefusal(found) ? Effect.fail(found) : Effect.succeed(found)
    })

  const seatView = (nodeId: string) =>
    Effect.suspend(() => {
      const seat = views.seat(nodeId)
      return seat === undefined ? Effect.die(new Error("a seat went away")) : Effect.succeed({ seat, ...cursor() })
    })

  const rigView = (name: string) =>
    Effect.suspend(() => {
      const rig = views.rig(name)
      return rig === undefined ? Effect.fail(new RigNotFound({ rig: name })) : Effect.succeed(rig)
    })

  const oneOutcome = (seat: SeatRow, outcome: SeatOutcome) =>
    Effect.map(seatView(seat.nodeId), (view) => ({ outcome, ...view }))

  const askOutcome = (answered: { readonly ask: RigResult<"getAsk">["ask"]; readonly repeated?: boolean }) => ({
    ...answered,
    ...cursor()
  })

  /** The end of an ended seat's transcript, at most a MiB of it. */
  const transcriptEnd = (seat: SeatRow, lines: number): ReadonlyArray<string> => {
    const last = store.seats.latest(seat.nodeId)
    if (last === undefined) return []
    const file = path.join(config.transcripts, `${seat.session}.${last.generation}.log`)
    const stat = fs.statSync(file, { throwIfNoEntry: false })
    if (stat === undefined) return []
    const length = Math.min(stat.size, 1 << 20)
    const bytes = Buffer.alloc(length)
    const descriptor = fs.openSync(file, "r")
    fs.readSync(descriptor, bytes, 0, length, stat.size - length)
    fs.closeSync(descriptor)
    return lastLines(bytes.toString("utf8"), lines)
  }

  return {
    status: () =>
      Effect.map(config.status, (status) => {
        const { rigs, seats, running } = store.seats.counts()
        return {
          ...status,
          journalId: store.journalId,
          counts: { rigs, seats, running, pendingAsks: store.asks.allPending(), people: store.asks.people().length },
          ...cursor()
        }
      }),

    createRig: ({ body, raw }) => Effect.map(config.rigs.create(body, raw), (made) => ({ ...made, ...cursor() })),
    listRigs: ({ query }) =>
      Effect.sync(() => {
        const limit = limitOf(query)
        const found = store.seats.rigs(query.after ?? "", limit).flatMap(({ name }) => views.rig(name) ?? [])
        return page(found, limit, ({ rig }) => rig)
      }),
    getRig: ({ params }) =>
      Effect.map(rigView(params["rig"] ?? ""), (rig) => ({
        rig,
        seats: store.seats.seatsOfRig(rig.rig).map(views.seatOf),
        ...cursor()
      })),
    listSnapshots: ({ params, query }) =>
      Effect.gen(function* () {
        const { rig } = yield* rigView(params["rig"] ?? "")
        const limit = limitOf(query)
        const before = yield* placeOf(query.after, (after) => store.logs.snapshot(after)?.ordinal)
        const found = store.logs.snapshots(rig, before, limit)
        return page(
          found.map(({ ordinal: _ordinal, ...view }) => view),
          limit,
          ({ snapshotId }) => snapshotId
        )
      }),
    upRig: ({ params, body }) =>
      Effect.map(config.rigs.up(params["rig"] ?? "", body), (outcomes) => ({ outcomes, ...cursor() })),
    restoreRig: ({ params, body }) =>
      Effect.map(config.rigs.restore(params["rig"] ?? "", body), (outcomes) => ({ outcomes, ...cursor() })),
    downRig: ({ params, body }) =>
      Effect.map(config.rigs.down(params["rig"] ?? "", body.snapshot ?? false), (done) => ({ ...done, ...cursor() })),

    listSeats: ({ query }) =>
      Effect.gen(function* () {
        if (query.rig !== undefined) yield* rigView(query.rig)
        const limit = limitOf(query)
        const after = query.after ?? ""
        const rows =
          query.rig === undefined
            ? store.seats.seats(after, limit)
            : store.seats
                .seatsOfRig(query.rig)
                .filter(({ session }) => session > after)
                .slice(0, limit)
        return page(rows.map(views.seatOf), limit, ({ seat }) => seat)
      }),
    getSeat: ({ params }) => Effect.flatMap(seatOf(params["seat"]), ({ nodeId }) => seatView(nodeId)),
    captureSeat: ({ params, query }) =>
      Effect.gen(function* () {
        const seat = yield* seatOf(params["seat"])
        const lines = query.lines ?? captureLines
        if (store.seats.live(seat.nodeId) !== undefined) {
          const shown = yield* config.tmux.capture(seat.session, lines)
          if (shown._tag === "Unavailable") return yield* new TmuxUnavailable({})
          if (shown._tag === "Done") {
            return {
              seat: seat.session,
              source: "pane" as const,
              lines: lastLines(shown.stdout, lines),
              ...cursor()
            }
          }
        }
        return {
          seat: seat.session,
          source: "transcript" as const,
          lines: transcriptEnd(seat, lines),
          ...cursor()
        }
      }),
    launchSeat: ({ params, body }) =>
      Effect.gen(function* () {
        const seat = yield* seatOf(params["seat"])
        const outcome = yield* config.launches.launch(seat.nodeId, { fresh: body.fresh ?? false })
        return yield* oneOutcome(seat, outcome)
      }),
    stopSeat: ({ params }) =>
      Effect.gen(function* () {
        const seat = yield* seatOf(params["seat"])
        return yield* oneOutcome(seat, yield* config.stops.stop(seat))
      }),
    revokeGrant: ({ params }) =>
      Effect.gen(function* () {
        const seat = yield* seatOf(params["seat"])
        const revoked = yield* store.write((tx) => {
          const occupant = tx.seats.live(seat.nodeId) ?? tx.seats.reserved(seat.nodeId)
          tx.after(() => config.waiters.wake(seatKey(seat.nodeId)))
          if (occupant === undefined || !tx.seats.revokeGrants(occupant.generation, tx.wall)) return false
          for (const ask of tx.asks.pendingOfSeat(seat.nodeId)) config.activities.settle(tx, ask, Permission.revoked)
          return true
        })
        return { ...(yield* seatView(seat.nodeId)), revoked }
      }),
    sendSeat: ({ params, body }) => Effect.flatMap(seatOf(params["seat"]), (seat) => config.sends.send(seat, body)),
    clearAttention: ({ params }) =>
      Effect.gen(function* () {
        const seat = yield* seatOf(params["seat"])
        yield* store.write((tx): undefined | SeatError => {
          const now = tx.seats.seat(seat.nodeId) ?? seat
          const { activity } = store.live.get(seat.nodeId)
          const launch = launchStates[now.launch.state].needsPerson && !now.launch.seen
          const attention = activity.attentionPost || activity.attentionAsks.length > 0
          if (!launch && !attention) return new NotInAttention({ seat: seat.session })
          if (launch) {
            tx.seats.setLaunch(seat.nodeId, { ...now.launch, seen: true })
            tx.tell("seat.attention", seat.nodeId)
          }
          if (attention) config.activities.input(tx, seat.nodeId, "attention_cleared")
          return undefined
        })
        return yield* seatView(seat.nodeId)
      }),
    setPermissions: ({ params, body }) =>
      Effect.gen(function* () {
        const seat = yield* seatOf(params["seat"])
        yield* store.write((tx): undefined | UnknownPerson => {
          const person = body.to ?? null
          if (person !== null && !tx.asks.people().some(({ id }) => id === person)) return new UnknownPerson({ person })
          const mode = person !== null ? "person" : body.deny === true ? "deny" : "default"
          tx.asks.addSetting(seat.nodeId, mode, person, body.reason, "operator", tx.wall)
          tx.tell("seat.attention", seat.nodeId)
          return undefined
        })
        return yield* seatView(seat.nodeId)
      }),

    listAsks: ({ query }) =>
      Effect.gen(function* () {
        const limit = limitOf(query)
        const seat = query.seat === undefined ? undefined : yield* seatOf(query.seat)
        const before = yield* placeOf(query.after, (after) => store.asks.ask(after)?.ordinal)
        const found = store.asks.asks({
          state: query.state ?? null,
          nodeId: seat?.nodeId ?? null,
          person: query.person ?? null,
          before,
          limit
        })
        return page(found.map(views.askOf), limit, ({ askId }) => askId)
      }),
    getAsk: ({ params }) =>
      Effect.suspend(() => {
        const ask = views.ask(params["ask"] ?? "")
        return ask === undefined ? Effect.fail(new AskNotFound({})) : Effect.succeed({ ask, ...cursor() })
      }),
    answerAsk: ({ caller, params, body }) => Effect.map(asks.answer(caller, params["ask"] ?? "", body), askOutcome),
    handoffAsk: ({ caller, params, body }) => Effect.map(asks.handoff(caller, params["ask"] ?? "", body), askOutcome),
    closeRow: ({ caller, params, body }) => Effect.map(asks.closeRow(caller, params["row"] ?? "", body), askOutcome),

    listPeople: ({ query }) =>
      Effect.sync(() => {
        const limit = limitOf(query)
        const after = query.after ?? ""
        const found = views
          .people()
          .filter(({ id }) => id > after)
          .slice(0, limit)
        return page(found, limit, ({ id }) => id)
      }),
    addPerson: ({ body }) =>
      Effect.map(
        store.write((tx) => {
          if (body.id === "primary" || tx.asks.people().some(({ id }) => id === body.id)) {
            return new PersonExists({ person: body.id })
          }
          const token = Minting.token("person")
          tx.asks.addPerson(body.id, body.name, Minting.hashOf(token), tx.wall)
          tx.tell("people.changed", body.id)
          return { person: personOf(views.people(), body.id), token }
        }),
        (made) => ({ ...made, ...cursor() })
      ),
    removePerson: ({ params }) =>
      Effect.map(
        store.write((tx) => {
          const id = params["person"] ?? ""
          const person = views.people().find((one) => one.id === id)
          if (person === undefined) return new UnknownPerson({ person: id })
          tx.asks.removePerson(id)
          if (tx.asks.defaultPerson() === id) tx.asks.setDefaultPerson(null)
          tx.tell("people.changed", id)
          return { person }
        }),
        (made) => ({ ...made, ...cursor() })
      ),
    setDefaultPerson: ({ body }) =>
      Effect.map(
        store.write((tx) => {
          const { id } = body
          if (id !== null && !tx.asks.people().some((one) => one.id === id)) return new UnknownPerson({ person: id })
          tx.asks.setDefaultPerson(id)
          tx.tell("people.changed", id ?? "")
          return { items: views.people() }
        }),
        (made) => ({ ...made, ...cursor() })
      ),

    listStream: ({ query }) =>
      Effect.gen(function* () {
        const limit = limitOf(query)
        const source = query.source === undefined ? null : (yield* seatOf(query.source)).session
        const found = store.logs.items({
          tag: query.tag ?? null,
          source,
          since: yield* timeOf(query, "since", 0),
          until: yield* timeOf(query, "until", Number.MAX_SAFE_INTEGER),
          archived: query.archived === undefined ? null : query.archived === "true",
          before: yield* placeOf(query.after, (after) => store.logs.itemOrdinal(after)),
          limit
        })
        return page(
          found.map(({ item }) => item),
          limit,
          ({ streamItemId }) => streamItemId
        )
      })
  }
}

const personOf = (people: ReadonlyArray<Person>, id: string): Person =>
  people.find((one) => one.id === id) ?? { id, name: id, isDefault: false, addedAt: new Date(0).toISOString() }

const lastLines = (text: string, lines: number): ReadonlyArray<string> =>
  text.replace(/\s+$/u, "").split("\n").slice(-lines)

/** A refusal for a person's token on what only the operator does. */
export const notForPeople = (): NotAllowed => new NotAllowed({ reason: "this takes the operator token" })
