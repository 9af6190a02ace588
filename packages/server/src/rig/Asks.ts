/**
 * Permission requests of runners, and what people do with them (seat contract 5.3 to 5.5, section 7). `PermissionMachine`
 * decides; here is read what a decision needs, and what it says is committed in one transaction, before anyone hears of it.
 */
import {
  AskNotFound,
  type AnswerBody,
  type AskState,
  type AskView,
  type CloseBody,
  type HandoffBody,
  identifierText,
  NotAllowed,
  OtherHostUnsupported,
  type PermissionRead,
  type PermissionSubmit,
  type PermissionSubmitted,
  type PermissionWithdrawn,
  type RefusalReason,
  RowClosed,
  RowNotFound,
  type RowOwner,
  type SeatError,
  seatLimits,
  StaleGeneration,
  UnknownPerson,
  type WithdrawReason
} from "@tackroom/protocol/seat"
import { headCodePoints, terminalSafe } from "@tackroom/protocol/text"
import { Effect } from "effect"
import type { Activities } from "./Activities.ts"
import type { AskRow } from "./AskRows.ts"
import { recordPermit } from "./AskSettling.ts"
import { checkGrant, findSeat, isRefusal, type RigCaller, type SeatCaller, speaksFor } from "./Callers.ts"
import * as Minting from "./Minting.ts"
import * as Machine from "./PermissionMachine.ts"
import { occurredAt } from "./Posts.ts"
import { iso } from "./RigClock.ts"
import type { RigStore, Tx } from "./RigStore.ts"
import { kept, showable } from "./ShownOptions.ts"
import { storedToolCall } from "./ToolCallText.ts"
import { askKey, seatKey, type Waiters } from "./Waiters.ts"

const untold = "the seat has not been told yet"

/** Of a title, in a message to another seat. */
const titleCharacters = 200

export interface AsksConfig {
  readonly store: RigStore
  readonly activities: Activities
  readonly waiters: Waiters
  readonly unaskable: "permit" | "refuse"
  readonly maxOptions: number
  /** Sends a seat what it was handed; says whether it took it. */
  readonly deliver: (seat: string, text: string) => Effect.Effect<boolean>
  /** Whether the service is closing: waiting reads are answered then. */
  readonly closing: () => boolean
}

export interface AnsweredAsk {
  readonly ask: AskView
  readonly repeated?: boolean
}

/** Who acts, as a body names them, when the caller may act so (RIG-193). */
const actor = (tx: Tx, caller: RigCaller, by: string): string | NotAllowed | UnknownPerson => {
  if (caller._tag === "Person") {
    return by === caller.id ? by : new NotAllowed({ reason: "a person's token acts as that person" })
  }
  return by === Machine.primary || tx.asks.people().some(({ id }) => id === by) ? by : new UnknownPerson({ person: by })
}

const factsOf = (tx: Tx, ask: AskRow): Machine.AskFacts => {
  const row = tx.asks.row(ask.rowId)
  return {
    askId: ask.askId,
    seat: tx.seats.seat(ask.nodeId)?.session ?? "",
    state: ask.state,
    options: ask.options,
    owner: row?.owner ?? { person: Machine.primary },
    handoffs: ask.handoffs,
    ...(ask.result === null || ask.settledAt === null
      ? {}
      : { settled: { settlement: ask.result, at: iso(ask.settledAt) } })
  }
}

const readAnswer = (ask: AskRow, stale: boolean): PermissionRead => {
  const base = { ok: true, askId: ask.askId } as const
  if (stale) return { ...base, state: "stale" }
  const { optionId = "", reason, said } = ask.result ?? {}
  const words = said === undefined ? {} : { said }
  switch (ask.state) {
    case "answered":
      return { ...base, state: "answered", optionId }
    case "permitted":
      return { ...base, state: "permitted", optionId, ...words }
    case "refused": {
      const why = reason as RefusalReason | undefined
      return { ...base, state: "refused", ...(why === undefined ? {} : { reason: why }), ...words }
    }
    case "withdrawn":
      return { ...base, state: "withdrawn", ...(reason === undefined ? {} : { reason }) }
    default:
      return { ...base, state: ask.state }
  }
}

export const make = ({ store, activities, waiters, unaskable, maxOptions, deliver, closing }: AsksConfig) => {
  const people = (tx: Tx): ReadonlyArray<string> | undefined => {
    let found: ReadonlyArray<string> | undefined
    tx.attempt("reading the people", () => {
      found = tx.asks.people().map(({ id }) => id)
    })
    return found
  }

  const earlierOf = (
    tx: Tx,
    request: { readonly generation: string; readonly nativeRef: string; readonly requestId: string },
    content: string
  ): Machine.EarlierRequest | undefined => {
    const ask = tx.asks.latestOfRequest(request.generation, request.nativeRef, request.requestId)
    const permit = tx.asks.latestPermit(request.generation, request.nativeRef, request.requestId)
    if (permit !== undefined && (ask === undefined || permit.at > ask.openedAt)) {
      return {
        turnId: permit.turnId,
        sameContent: permit.content === content,
        outcome: { _tag: "Permit", optionId: permit.optionId, reason: permit.reason }
      }
    }
    return ask === undefined
      ? undefined
      : {
          turnId: ask.turnId,
          sameContent: ask.content === content,
          outcome: { _tag: "Ask", askId: ask.askId, pending: ask.state === "pending" }
        }
  }

  const decideSubmit = (tx: Tx, caller: SeatCaller, body: PermissionSubmit): PermissionSubmitted | SeatError => {
    const spoken = speaksFor(tx.seats, caller, body)
    if (isRefusal(spoken)) return spoken
    const { seat } = spoken
    const occupant = tx.seats.live(seat.nodeId)
    if (occupant === undefined) return new StaleGeneration({})
    const generation = body.generation ?? spoken.authenticated ?? occupant.generation
    if (generation !== occupant.generation) return new StaleGeneration({})
    const nativeRef = body.nativeRef ?? ""
    const turnId = identifierText(body.turnId)
    const requestId = identifierText(body.requestId)
    const request = { generation, nativeRef, requestId }
    const content = Minting.hashOf(JSON.stringify([body.toolCall, body.options]))
    const setting = tx.asks.setting(seat.nodeId)
    const decision = Machine.submit({
      turnId,
      options: body.options,
      showable: showable(body.options, maxOptions),
      earlier: earlierOf(tx, request, content),
      setting:
        setting.mode === "person" && setting.person !== undefined
          ? { mode: "person", person: setting.person }
          : { mode: setting.mode === "deny" ? "deny" : "default" },
      people: people(tx),
      defaultPerson: tx.asks.defaultPerson(),
      unaskable
    })
    switch (decision._tag) {
      case "Refused":
        return decision.error
      case "SameAsk":
        return { ok: true, askId: decision.askId, created: false }
      case "SamePermit":
        return { ok: true, state: "permitted", optionId: decision.optionId, reason: decision.reason }
      case "Permit": {
        const { option, reason } = decision
        tx.asks.addPermit({ ...request, turnId, content, optionId: option.optionId, reason, at: tx.wall })
        recordPermit(tx, {
          seat: seat.session,
          toolCall: body.toolCall,
          option,
          conversation: nativeRef,
          requestId,
          turnId,
          askId: null,
          why: reason
        })
        return { ok: true, state: "permitted", optionId: option.optionId, reason }
      }
      case "Ask": {
        const askId = Minting.seatId("ask", tx.wall)
        const rowId = Minting.seatId("row", tx.wall)
        tx.asks.addAsk(
          {
            ...request,
            askId,
            rowId,
            nodeId: seat.nodeId,
            turnId,
            toolCall: storedToolCall(body.toolCall),
            options: kept(body.options),
            content,
            why: decision.why,
            openedAt: tx.wall
          },
          { person: decision.person }
        )
        activities.askOpened(tx, seat.nodeId, askId, occurredAt(body.occurredAt) ?? tx.now)
        tx.tell("ask.opened", askId)
        return { ok: true, askId, created: true }
      }
    }
  }

  /** A submit whose occupant is about to register waits for it, so that an early request is not lost. */
  const registered = (caller: SeatCaller, body: PermissionSubmit): Effect.Effect<void> =>
    Effect.suspend(() => {
      const nodeId = waitsOn(caller, body)
      if (nodeId === undefined) return Effect.void
      return waiters.watching([seatKey(nodeId)], (changed) =>
        waitsOn(caller, body) === undefined
          ? Effect.void
          : Effect.timeoutOrElse(changed, {
              duration: seatLimits.submitRegistrationWaitMs,
              orElse: () => Effect.void
            })
      )
    })

  const waitsOn = (caller: SeatCaller, body: PermissionSubmit): string | undefined => {
    if (caller._tag === "Grant") {
      const grant = store.seats.grant(caller.hash)
      return grant !== undefined && store.seats.occupant(grant.generation)?.state === "reserved"
        ? grant.nodeId
        : undefined
    }
    const spoken = speaksFor(store.seats, caller, body)
    if (isRefusal(spoken) || body.generation === undefined) return undefined
    const { nodeId } = spoken.seat
    return store.seats.reserved(nodeId)?.generation === body.generation ? nodeId : undefined
  }

  const askFor = (rows: Pick<RigStore, "asks" | "seats">, caller: SeatCaller, askId: string): AskRow | SeatError => {
    const ask = rows.asks.ask(askId)
    if (caller._tag === "Grant") {
      const grant = checkGrant(rows.seats, caller.hash, ask === undefined ? {} : { ask })
      if (isRefusal(grant)) return grant
    }
    return ask ?? new AskNotFound({})
  }

  /** With the local token an ask of an occupant that was replaced is stale, however it ended. */
  const isStale = (ask: AskRow): boolean => store.seats.wasReplaced(ask.nodeId, ask.generation)

  const look = (caller: SeatCaller, askId: string): PermissionRead | SeatError => {
    const ask = askFor(store, caller, askId)
    return isRefusal(ask) ? ask : readAnswer(ask, isStale(ask))
  }

  const waitFor = (caller: SeatCaller, askId: string, until: number): Effect.Effect<PermissionRead, SeatError> =>
    Effect.gen(function* () {
      const nodeId = store.asks.ask(askId)?.nodeId ?? ""
      const seen = yield* waiters.watching([askKey(askId), seatKey(nodeId)], (changed) =>
        Effect.gen(function* () {
          const answer = look(caller, askId)
          if (isRefusal(answer)) return yield* answer
          const left = until - store.clock.steady()
          if (answer.state !== "pending" || left <= 0 || closing()) return answer
          yield* Effect.timeoutOrElse(changed, { duration: left, orElse: () => Effect.void })
          return undefined
        })
      )
      return seen ?? (yield* waitFor(caller, askId, until))
    })

  const settled = (tx: Tx, ask: AskRow, outcome: Machine.Answered, note: string | null): AnsweredAsk | SeatError => {
    if (outcome._tag === "Refused") return outcome.error
    if (outcome._tag === "Settle") activities.settle(tx, ask, outcome.settlement, note)
    const view = store.views.ask(ask.askId)
    if (view === undefined) return new AskNotFound({})
    return outcome._tag === "Repeated" ? { ask: view, repeated: true } : { ask: view }
  }

  const answerOf = (body: AnswerBody): Machine.Answer => {
    if (body.option !== undefined) return { option: body.option }
    if (body.verb !== undefined) return { verb: body.verb }
    return { text: body.text ?? "", acceptDefault: body.acceptDefault ?? false }
  }

  const newOwner = (tx: Tx, to: HandoffBody["to"]): RowOwner | SeatError => {
    if (to.person !== undefined) {
      const { person } = to
      return person === Machine.primary || tx.asks.people().some(({ id }) => id === person)
        ? { person }
        : new UnknownPerson({ person })
    }
    const reference = to.seat ?? ""
    if (reference.split("@").length > 2 || reference.includes("/")) return new OtherHostUnsupported({})
    const seat = findSeat(tx.seats, reference)
    return isRefusal(seat) ? seat : { seat: seat.session }
  }

  /** What a seat is told of an ask that it was handed: no options, and how its row is closed. */
  const envelopeOf = (ask: AskView, rowId: string, note: string | undefined): string =>
    [
      `${ask.seat} waits for permission and this was handed to you.`,
      `Tool call: ${terminalSafe(headCodePoints(String(ask.toolCall["title"] ?? "(untitled)"), titleCharacters), { lines: false })}`,
      ...(note === undefined ? [] : [`Note: ${terminalSafe(note)}`]),
      `Row: ${rowId}`,
      "You cannot choose an option. Close the row when you are done:",
      `tackroom rig row close ${rowId} --as done|failed|denied|canceled`
    ].join("\n")

  return {
    submit: (caller: SeatCaller, body: PermissionSubmit): Effect.Effect<PermissionSubmitted, SeatError> =>
      Effect.andThen(
        registered(caller, body),
        store.write((tx) => decideSubmit(tx, caller, body))
      ),

    read: (caller: SeatCaller, askId: string, waitSeconds: number): Effect.Effect<PermissionRead, SeatError> =>
      Effect.suspend(() => waitFor(caller, askId, store.clock.steady() + waitSeconds * 1_000)),

    withdraw: (
      caller: SeatCaller,
      askId: string,
      reason: WithdrawReason
    ): Effect.Effect<PermissionWithdrawn, SeatError> =>
      store.write((tx) => {
        const ask = askFor(tx, caller, askId)
        if (isRefusal(ask)) return ask
        const done = ask.state === "pending" && activities.settle(tx, ask, Machine.withdrawn("withdraw", reason))
        const state: AskState = done ? "withdrawn" : ask.state
        return { ok: true, askId, state } as const
      }),

    answer: (caller: RigCaller, askId: string, body: AnswerBody): Effect.Effect<AnsweredAsk, SeatError> =>
      store.write((tx): AnsweredAsk | SeatError => {
        const ask = tx.asks.ask(askId)
        if (ask === undefined) return new AskNotFound({})
        const by = actor(tx, caller, body.by)
        if (typeof by !== "string") return by
        return settled(tx, ask, Machine.answer(factsOf(tx, ask), by, answerOf(body)), null)
      }),

    closeRow: (caller: RigCaller, rowId: string, body: CloseBody): Effect.Effect<AnsweredAsk, SeatError> =>
      store.write((tx): AnsweredAsk | SeatError => {
        const row = tx.asks.row(rowId)
        const ask = row === undefined ? undefined : tx.asks.ask(row.askId)
        if (row === undefined || ask === undefined) return new RowNotFound({ row: rowId })
        const isOwner = "seat" in row.owner && row.owner.seat === body.by
        if (isOwner && caller._tag === "Person")
          return new NotAllowed({ reason: "a person's token acts as that person" })
        const by = isOwner ? body.by : actor(tx, caller, body.by)
        if (typeof by !== "string") {
          const isSeat = tx.seats.seatOfSession(body.by) !== undefined
          return isSeat ? new NotAllowed({ reason: "a seat closes its own rows only" }) : by
        }
        if (ask.rowId !== rowId) return new RowClosed({ rowId, state: row.state })
        const outcome = Machine.closeRow(factsOf(tx, ask), by, body.closure)
        if (outcome._tag === "Refused" && row.state !== "open") return new RowClosed({ rowId, state: row.state })
        return settled(tx, ask, outcome, body.note ?? null)
      }),

    handoff: (caller: RigCaller, askId: string, body: HandoffBody): Effect.Effect<AnsweredAsk, SeatError> =>
      Effect.gen(function* () {
        const passed = yield* store.write((tx) => {
          const ask = tx.asks.ask(askId)
          if (ask === undefined) return new AskNotFound({})
          const by = actor(tx, caller, body.by)
          if (typeof by !== "string") return by
          const owner = newOwner(tx, body.to)
          if (isRefusal(owner)) return owner
          const refusal = Machine.handoff(factsOf(tx, ask), owner)
          if (refusal !== undefined) return refusal
          const rowId = Minting.seatId("row", tx.wall)
          tx.asks.closeRow(ask.rowId, "handed_off", tx.wall, by, body.note ?? null)
          tx.asks.addRow(rowId, askId, owner, tx.wall)
          // A kill before the seat has its message leaves a row that says so.
          if ("seat" in owner) tx.asks.noteRow(rowId, untold)
          tx.asks.passOn(askId, rowId, `handed_by:${by}`)
          tx.tell("ask.row", askId)
          return { rowId, owner, view: store.views.ask(askId) }
        })
        if (passed.view === undefined) return yield* new AskNotFound({})
        if (!("seat" in passed.owner)) return { ask: passed.view }
        const took = yield* deliver(passed.owner.seat, envelopeOf(passed.view, passed.rowId, body.note))
        const said = yield* store.write((tx) => {
          // Whoever closed it meanwhile has said something about it.
          if (tx.asks.row(passed.rowId)?.state === "open") {
            tx.asks.noteRow(passed.rowId, took ? null : "the seat could not take the message; its row is open")
            tx.tell("ask.row", askId)
          }
          return store.views.ask(askId)
        })
        return { ask: said ?? passed.view }
      })
  }
}

export type Asks = ReturnType<typeof make>
