/**
 * Reading events and the transcript (4.5, 4.6), and following what changes about sessions.
 *
 * Implements RT-182, RT-184, RT-186.
 *
 * @since 0.1.0
 */
import {
  CursorAhead,
  CursorInvalid,
  ScopeMismatch,
  SessionInvalid,
  SessionNotFound,
  type RuntimeError
} from "@tackroom/protocol"
import type { Artifact, Envelope, Interaction, Message, Session, TurnOutcome } from "@tackroom/protocol/events"
import { Cause, Context, Deferred, Effect, Exit, Layer, Stream } from "effect"
import { Store } from "../store/Store.ts"
import { envelopeOf, factsOf, Hub } from "./Hub.ts"
import { interactionOf, messageOf } from "./PublicRows.ts"
import { Sessions } from "./Sessions.ts"
import { Subscriptions, type SubscribeInput, type Subscription, type SubscriptionItem } from "./Subscriptions.ts"
import type { Identity } from "./Options.ts"

export interface EventPage {
  readonly events: ReadonlyArray<Envelope>
  readonly head: number
  readonly nextAfter: number
}

/** Exactly one form (4.6). */
export type PageRequest =
  | { readonly limit: number; readonly before?: string }
  | { readonly view: "latest-turn"; readonly before?: string }
  | { readonly view: "latest-surface" }
  | { readonly turnId: string }

export interface MessagePage {
  readonly messages: ReadonlyArray<Message>
  readonly nextCursor?: string
  readonly head: number
  readonly turnId?: string
  readonly coverage?: "complete" | "partial" | "unavailable"
  readonly reason?: string
  readonly terminal?: TurnOutcome
}

/** State, not a log: the latest row of a session wins. */
export type Change =
  | { readonly type: "snapshot"; readonly sessions: ReadonlyArray<Session> }
  | { readonly type: "session"; readonly row: Session }
  | { readonly type: "removed"; readonly id: string }
  | { readonly type: "interaction"; readonly row: Interaction }

export interface ChangesInput {
  readonly workspaceId?: string
  readonly directory?: string
  readonly identity?: Identity
}

const artifactChunk = 1024 * 1024

export class Events extends Context.Service<
  Events,
  {
    readonly subscribe: (input: SubscribeInput) => Subscription
    readonly stream: (input: SubscribeInput) => Stream.Stream<SubscriptionItem, RuntimeError>
    readonly read: (
      sessionId: string,
      options?: { readonly after?: number; readonly limit?: number; readonly maxBytes?: number }
    ) => Effect.Effect<EventPage, RuntimeError>
    readonly list: (sessionId: string, directory?: string) => Effect.Effect<ReadonlyArray<Message>, RuntimeError>
    readonly page: (sessionId: string, request: PageRequest) => Effect.Effect<MessagePage, RuntimeError>
    readonly head: (
      sessionId: string
    ) => Effect.Effect<{ readonly cursor: number; readonly journalId: string }, RuntimeError>
    readonly changes: (input?: ChangesInput) => Stream.Stream<Change, RuntimeError>
    readonly artifact: (
      sessionId: string,
      artifactId: string
    ) => Effect.Effect<
      { readonly artifact: Artifact; readonly bytes: Stream.Stream<Uint8Array, RuntimeError> },
      RuntimeError
    >
  }
>()("@tackroom/sdk/runtime/Events") {
  static readonly layer = Layer.effect(
    Events,
    Effect.gen(function* () {
      const store = yield* Store
      const hub = yield* Hub
      const sessions = yield* Sessions
      const subscriptions = yield* Subscriptions

      const known = Effect.fnUntraced(function* (sessionId: string) {
        const facts = hub.facts(sessionId)
        if (facts !== undefined) return facts
        return factsOf(yield* sessions.row(sessionId))
      })

      const read = Effect.fnUntraced(function* (
        sessionId: string,
        options: { readonly after?: number; readonly limit?: number; readonly maxBytes?: number } = {}
      ): Effect.fn.Return<EventPage, RuntimeError> {
        const after = options.after ?? 0
        const limit = options.limit ?? 500
        const facts = yield* known(sessionId)
        if (!Number.isInteger(limit) || limit < 1 || limit > 1000) {
          return yield* new SessionInvalid({ field: "limit", expected: "an integer from 1 to 1,000" })
        }
        if (typeof after !== "number" || !Number.isSafeInteger(after) || after < 0) {
          return yield* new CursorInvalid({ head: yield* store.head(sessionId) })
        }
        const page = yield* store.read(sessionId, after, limit, options.maxBytes)
        if (after > page.head) return yield* new CursorAhead({ head: page.head })
        const events = page.events.map((row) => envelopeOf(facts, row))
        return { events, head: page.head, nextAfter: events.at(-1)?.cursor ?? after }
      })

      const encode = (value: unknown): string => btoa(JSON.stringify(value))

      const beforeOf = (sessionId: string, cursor: string | undefined): number | undefined | "bad" => {
        if (cursor === undefined) return undefined
        if (!/^[A-Za-z0-9+/=]{1,600}$/u.test(cursor)) return "bad"
        const value = Exit.match(Effect.runSyncExit(Effect.try(() => JSON.parse(atob(cursor)) as unknown)), {
          onSuccess: (parsed) => parsed,
          onFailure: () => undefined
        })
        return Array.isArray(value) && value[0] === "page" && value[1] === sessionId && Number.isSafeInteger(value[2])
          ? (value[2] as number)
          : "bad"
      }

      const page = Effect.fnUntraced(function* (
        sessionId: string,
        request: PageRequest
      ): Effect.fn.Return<MessagePage, RuntimeError> {
        const head = yield* store.head(sessionId)
        if ("turnId" in request) {
          const turn = yield* store.turn(request.turnId)
          if (turn === undefined || turn.sessionId !== sessionId) {
            return { messages: [], head, turnId: request.turnId, coverage: "unavailable", reason: "unknown_turn" }
          }
          const rows = yield* store.messages(sessionId, { limit: 500, turnId: request.turnId })
          return {
            messages: rows.map(({ message, parts }) => messageOf(message, parts)),
            head,
            turnId: request.turnId,
            coverage: turn.outcome === null ? "partial" : "complete",
            ...(turn.outcome === null ? {} : { terminal: turn.outcome })
          }
        }
        if ("view" in request && request.view === "latest-surface") {
          const rows = yield* store.messages(sessionId, { limit: 20 })
          const messages = rows.map(({ message, parts }) => messageOf(message, parts))
          const user = messages.findLast((message) => message.role === "user")
          const assistant = messages.findLast((message) => message.role === "assistant")
          const text = assistant?.parts.findLast((part) => part.type === "text")
          return {
            messages: [
              ...(user === undefined ? [] : [user]),
              ...(assistant === undefined ? [] : [{ ...assistant, parts: text === undefined ? [] : [text] }])
            ],
            head
          }
        }
        const before = beforeOf(sessionId, request.before)
        if (before === "bad") return yield* new CursorInvalid({ head })
        const limit = "limit" in request ? request.limit : 200
        if (!Number.isInteger(limit) || limit < 1 || limit > 500) {
          return yield* new SessionInvalid({ field: "limit", expected: "an integer from 1 to 500" })
        }
        const rows = yield* store.messages(sessionId, {
          limit: limit + 1,
          ...(before === undefined ? {} : { before })
        })
        let shown = rows.length > limit ? rows.slice(rows.length - limit) : rows
        let more = rows.length > limit
        if ("view" in request) {
          const start = shown.findLastIndex(({ message }) => message.role === "user")
          if (start > 0) {
            shown = shown.slice(start)
            more = true
          }
        }
        const first = shown[0]
        return {
          messages: shown.map(({ message, parts }) => messageOf(message, parts)),
          head,
          ...(more && first !== undefined ? { nextCursor: encode(["page", sessionId, first.message.ordinal]) } : {})
        }
      })

      const list = Effect.fnUntraced(function* (
        sessionId: string,
        directory?: string
      ): Effect.fn.Return<ReadonlyArray<Message>, RuntimeError> {
        const facts = yield* known(sessionId)
        if (directory !== undefined && directory !== facts.directory) return yield* new ScopeMismatch({ sessionId })
        const out: Array<Message> = []
        let before: number | undefined
        while (true) {
          const rows = yield* store.messages(sessionId, { limit: 500, ...(before === undefined ? {} : { before }) })
          out.unshift(...rows.map(({ message, parts }) => messageOf(message, parts)))
          const first = rows[0]
          if (rows.length < 500 || first === undefined) return out
          before = first.message.ordinal
          yield* Effect.yieldNow
        }
      })

      const changes = (input: ChangesInput = {}): Stream.Stream<Change, RuntimeError> =>
        Stream.unwrap(
          Effect.gen(function* () {
            const dirty = new Map<string, "row" | "removed" | "interaction">()
            let wake = Deferred.makeUnsafe<void>()
            const stop = hub.onRow((sessionId, change) => {
              if (dirty.get(sessionId) !== "removed") {
                dirty.set(
                  sessionId,
                  change === "row" && dirty.get(sessionId) === "interaction" ? "interaction" : change
                )
              }
              queueMicrotask(() => Deferred.doneUnsafe(wake, Exit.void))
            })
            yield* Effect.addFinalizer(() => Effect.sync(stop))
            const fits = (session: Session): boolean =>
              (input.workspaceId === undefined || session.workspaceId === input.workspaceId) &&
              (input.directory === undefined || session.directory === input.directory)
            let sent = false
            const shown = new Map<string, string>()
            const pull = Effect.gen(function* () {
              if (!sent) {
                sent = true
                const all: Array<Session> = []
                let cursor: string | undefined
                do {
                  const next = yield* sessions.list({
                    limit: 500,
                    ...(input.workspaceId === undefined ? {} : { workspaceId: input.workspaceId }),
                    ...(input.directory === undefined ? {} : { directory: input.directory }),
                    ...(cursor === undefined ? {} : { cursor })
                  })
                  all.push(...next.items)
                  cursor = next.nextCursor
                } while (cursor !== undefined)
                return [{ type: "snapshot", sessions: all }] as unknown as readonly [Change, ...Array<Change>]
              }
              while (true) {
                const out: Array<Change> = []
                for (const [id, change] of dirty) {
                  dirty.delete(id)
                  if (change === "removed") {
                    out.push({ type: "removed", id })
                    continue
                  }
                  const session = yield* Effect.catchTag(sessions.get(id), "SessionGone", () => Effect.succeed(null))
                  if (session === null || !fits(session)) continue
                  const text = JSON.stringify(session)
                  if (shown.get(id) !== text) {
                    shown.set(id, text)
                    out.push({ type: "session", row: session })
                  }
                  if (change === "interaction") {
                    const rows = yield* store.interactions({ sessionId: id, limit: 64 })
                    for (const row of rows) {
                      const key = `${row.id}:${row.state}`
                      if (shown.get(row.id) === key) continue
                      shown.set(row.id, key)
                      out.push({ type: "interaction", row: interactionOf(row) })
                    }
                  }
                }
                const [first, ...rest] = out
                if (first !== undefined) return [first, ...rest] as const
                if (dirty.size > 0) continue
                wake = Deferred.makeUnsafe<void>()
                yield* Deferred.await(wake)
              }
            })
            return Stream.fromPull(Effect.succeed(pull))
          })
        )

      return Events.of({
        subscribe: subscriptions.open,
        stream: subscriptions.stream,
        read,
        list,
        page,
        head: (sessionId) =>
          Effect.gen(function* () {
            const cursor = yield* store.head(sessionId)
            const info = yield* store.info
            return { cursor, journalId: info.journalId }
          }),
        changes,
        artifact: (sessionId, artifactId) =>
          Effect.gen(function* () {
            const row = yield* store.artifact(artifactId)
            if (row === undefined || row.sessionId !== sessionId) return yield* new SessionNotFound({ sessionId })
            const artifact: Artifact = {
              id: row.id,
              mime: row.mime,
              bytes: row.bytes,
              sha256: row.sha256,
              retained: row.retained
            }
            let offset = 0
            const pull = Effect.gen(function* () {
              if (!row.retained || offset >= row.bytes) return yield* Cause.done()
              const bytes = yield* store.artifactBytes(artifactId, offset, artifactChunk)
              offset += bytes.length
              return [bytes] as const
            })
            return { artifact, bytes: Stream.fromPull(Effect.succeed(pull)) }
          })
      })
    })
  )
}
