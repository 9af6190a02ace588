/**
 * Subscriptions (section 7): replay from a cursor, then live, each event once. A subscription holds at most its buffer: when
 * that is full, what follows is read from the journal again, or the subscription ends, as asked. A subscriber that never
 * reads costs its buffer and nobody else anything.
 *
 * Implements RT-184, RT-220 to RT-247.
 *
 * @since 0.1.0
 */
import {
  CursorAhead,
  CursorInvalid,
  RuntimeDisposed,
  ScopeMismatch,
  SessionNotFound,
  SubscriptionDenied,
  SubscriptionIdentityRequired,
  TooManySubscribers,
  type RuntimeError
} from "@tackroom/protocol"
import { EVENT_CONTRACT_VERSION, type ControlNotice, type Envelope } from "@tackroom/protocol/events"
import { Cause, Context, Deferred, Effect, Exit, Layer, Stream } from "effect"
import { Store } from "../store/Store.ts"
import { fromAnswer } from "./Answers.ts"
import { envelopeOf, factsOf, Hub } from "./Hub.ts"
import { estimate } from "./LargeValues.ts"
import { Minting, timestamp } from "./Minting.ts"
import { Options, type Identity } from "./Options.ts"

export interface SubscribeInput {
  readonly sessionId?: string
  readonly sessionIds?: ReadonlyArray<string>
  readonly directory?: string
  readonly workspaceId?: string
  readonly after?: number | Readonly<Record<string, number>>
  readonly includeChildren?: boolean
  readonly identity?: Identity
  /** In-process only: exempt from the delivery policy (RT-247). */
  readonly hostInternal?: boolean
  readonly overflow?: "catch-up" | "close"
}

/** What a subscription yields: journaled events, and control notices without cursor. */
export type SubscriptionItem = Envelope | ControlNotice

/** Whether an item is a journaled event. */
export const isEnvelope = (item: SubscriptionItem): item is Envelope => "cursor" in item

/** An attached subscription. One reader at a time. */
export interface Subscription {
  /** The next item; undefined at the end. */
  readonly next: Effect.Effect<SubscriptionItem | undefined, RuntimeError>
  /** The next item when it is here and nobody has to be asked whether it may be shown; undefined says nothing: ask `next`. */
  readonly poll: () => Envelope | undefined
  readonly close: Effect.Effect<void>
}

const replayPage = 500
const replayBytes = 4 * 1024 * 1024
const policyMs = 5_000
const sessionLimit = 32

export class Subscriptions extends Context.Service<
  Subscriptions,
  {
    /** Attaches at once: every event committed from here on is seen (RT-220). Never fails; problems come with `next`. */
    readonly open: (input: SubscribeInput) => Subscription
    readonly stream: (input: SubscribeInput) => Stream.Stream<SubscriptionItem, RuntimeError>
    readonly count: () => number
    readonly closeAll: Effect.Effect<void>
  }
>()("@tackroom/sdk/runtime/Subscriptions") {
  static readonly layer = Layer.effect(
    Subscriptions,
    Effect.gen(function* () {
      const store = yield* Store
      const hub = yield* Hub
      const options = yield* Options
      const minting = yield* Minting
      const open = new Set<{ readonly end: () => void }>()
      let closed = false

      const notice = (
        code: string,
        message: string,
        details: Record<string, unknown>,
        sessionId?: string
      ): ControlNotice => ({
        ...(sessionId === undefined ? {} : { sessionId }),
        at: timestamp(minting.now()),
        contractVersion: EVENT_CONTRACT_VERSION,
        payload: { type: "harness-notice", code, message, severity: "info", details: details as never }
      })

      const make = (input: SubscribeInput): Subscription => {
        const named =
          input.sessionIds === undefined
            ? input.sessionId === undefined
              ? undefined
              : [input.sessionId]
            : input.sessionIds
        const wanted = named === undefined ? undefined : new Set(named)
        /** Last cursor handed out, or skipped, per session. */
        const delivered = new Map<string, number>()
        /** Sessions with events that are not in the buffer; read from the journal. */
        const behind = new Map<string, number>()
        let buffer: Array<Envelope> = []
        let bytes = 0
        let full = false
        let overflowed = false
        let ended = false
        let ready = false
        let begun: Effect.Effect<void, RuntimeError> | undefined
        let wake = Deferred.makeUnsafe<void>()
        const page: Array<Envelope> = []
        let failure: RuntimeError | undefined

        // Later, once per batch: a reader that is resumed runs the application's code, which must not run inside a commit.
        let ringing = false
        const ring = (): void => {
          if (ringing) return
          ringing = true
          queueMicrotask(() => {
            ringing = false
            Deferred.doneUnsafe(wake, Exit.void)
          })
        }

        const joins = (envelope: Envelope): boolean => {
          if (input.workspaceId !== undefined && envelope.workspaceId !== input.workspaceId) return false
          if (input.directory !== undefined && envelope.directory !== input.directory) return false
          if (wanted === undefined || wanted.has(envelope.sessionId)) return true
          const parent = envelope.parentSessionId
          if (input.includeChildren !== true || parent === undefined || !wanted.has(parent)) return false
          // A new child: it joins from its first event on.
          wanted.add(envelope.sessionId)
          if (!delivered.has(envelope.sessionId)) delivered.set(envelope.sessionId, 0)
          return true
        }

        const listener = (envelope: Envelope): void => {
          if (ended || overflowed || !joins(envelope)) return
          if (!delivered.has(envelope.sessionId)) delivered.set(envelope.sessionId, envelope.cursor - 1)
          if (full) {
            behind.set(envelope.sessionId, envelope.cursor)
            return
          }
          const size = estimate(envelope.payload)
          if (buffer.length >= options.subscriberBufferSize || bytes + size > options.subscriberBufferBytes) {
            if (input.overflow === "close") {
              overflowed = true
              buffer = []
              bytes = 0
            } else {
              full = true
              behind.set(envelope.sessionId, envelope.cursor)
            }
          } else {
            buffer.push(envelope)
            bytes += size
          }
          ring()
        }

        const live = input.includeChildren === true || named === undefined ? "*" : named
        const admitted = open.size < options.maxSubscribers && !closed
        const detach = admitted ? hub.subscribe(live, listener) : () => undefined
        const token = { end: () => finish() }
        if (admitted) open.add(token)

        const finish = (): void => {
          if (ended) return
          ended = true
          buffer = []
          page.length = 0
          detach()
          open.delete(token)
          ring()
        }

        const fail = (error: RuntimeError): Effect.Effect<never, RuntimeError> => {
          failure = error
          finish()
          return Effect.fail(error)
        }

        // ---------------------------------------------------------- the beginning

        const cursorOf = (sessionId: string): number | undefined =>
          typeof input.after === "number" ? input.after : input.after?.[sessionId]

        const permitted = Effect.fnUntraced(function* (sessionId: string, rootSessionId: string) {
          const policy = options.eventDelivery
          if (policy?.subscribe === undefined || input.hostInternal === true || input.identity === undefined) return
          const { identity, subscribe } = { identity: input.identity, subscribe: policy.subscribe }
          const answer = yield* fromAnswer(() => subscribe({ identity, sessionId, rootSessionId })).pipe(
            Effect.timeoutOrElse({ duration: policyMs, orElse: () => Effect.succeed("deny" as const) }),
            Effect.catchDefect(() => Effect.succeed("deny" as const))
          )
          if (answer === "deny") return yield* new SubscriptionDenied({})
        })

        const childrenOf = Effect.fnUntraced(function* (id: string): Effect.fn.Return<void, RuntimeError> {
          const rows = yield* store.listSessions({ parentSessionId: id, limit: 500 })
          for (const row of rows) {
            hub.learn(factsOf(row))
            wanted?.add(row.id)
            if (input.after !== undefined) {
              delivered.set(row.id, cursorOf(row.id) ?? 0)
              behind.set(row.id, row.head)
            }
            yield* childrenOf(row.id)
          }
        })

        const begin = Effect.gen(function* () {
          if (closed) return yield* new RuntimeDisposed({})
          if (!admitted) return yield* new TooManySubscribers({ limit: options.maxSubscribers })
          if (options.eventDelivery !== undefined && input.identity === undefined && input.hostInternal !== true) {
            return yield* new SubscriptionIdentityRequired({})
          }
          if (named !== undefined && named.length > sessionLimit) {
            return yield* new TooManySubscribers({ limit: sessionLimit })
          }
          for (const sessionId of named ?? []) {
            const row = yield* store.getSession(sessionId)
            if (row === undefined) return yield* new SessionNotFound({ sessionId })
            if (
              (input.workspaceId !== undefined && row.workspaceId !== input.workspaceId) ||
              (input.directory !== undefined && row.directory !== input.directory)
            ) {
              return yield* new ScopeMismatch({ sessionId })
            }
            hub.learn(factsOf(row))
            yield* permitted(sessionId, row.rootId)
            const after = cursorOf(sessionId)
            if (after === undefined) continue
            // The watermark: what was committed until now comes by replay, the rest by the hub (RT-221).
            const head = yield* store.head(sessionId)
            if (!Number.isInteger(after) || after < 0) return yield* new CursorInvalid({ head })
            if (after > head) return yield* new CursorAhead({ head })
            delivered.set(sessionId, after)
            behind.set(sessionId, Math.max(behind.get(sessionId) ?? 0, head))
          }
          if (input.includeChildren === true) for (const id of named ?? []) yield* childrenOf(id)
        })

        // ---------------------------------------------------------- reading on

        /** Reads one page of one session that is behind; false when none is. */
        const catchUp = Effect.fnUntraced(function* () {
          for (const [sessionId, target] of behind) {
            const from = delivered.get(sessionId) ?? 0
            const facts = hub.facts(sessionId)
            if (from >= target || facts === undefined) {
              behind.delete(sessionId)
              continue
            }
            const read = yield* store.read(sessionId, from, replayPage, replayBytes)
            if (read.events.length === 0) {
              behind.delete(sessionId)
              continue
            }
            for (const row of read.events) page.push(envelopeOf(facts, row))
            return true
          }
          return false
        })

        const isExempt = options.eventDelivery === undefined || input.hostInternal === true

        /** Whether an event may be shown; `terminate` ends the subscription (RT-241 to RT-246). */
        const authorize = Effect.fnUntraced(function* (envelope: Envelope) {
          const policy = options.eventDelivery
          const identity = input.identity
          if (policy === undefined || isExempt || identity === undefined) return "deliver"
          return yield* fromAnswer(() => policy.authorize({ identity, envelope })).pipe(
            Effect.timeoutOrElse({ duration: policyMs, orElse: () => Effect.succeed("terminate" as const) }),
            Effect.catchDefect(() => Effect.succeed("terminate" as const))
          )
        })

        /** The next event in order, from the page or the buffer; undefined when there is none now. */
        const take = (): Envelope | undefined | "gap" => {
          while (page.length > 0) {
            const envelope = page.shift()
            if (envelope !== undefined && envelope.cursor > (delivered.get(envelope.sessionId) ?? 0)) return envelope
          }
          while (buffer.length > 0) {
            const envelope = buffer[0]
            if (envelope === undefined) break
            const last = delivered.get(envelope.sessionId) ?? envelope.cursor - 1
            if (envelope.cursor > last + 1) {
              behind.set(envelope.sessionId, Math.max(behind.get(envelope.sessionId) ?? 0, envelope.cursor - 1))
              return "gap"
            }
            buffer.shift()
            bytes -= estimate(envelope.payload)
            if (envelope.cursor > last) return envelope
          }
          return undefined
        }

        const poll = (): Envelope | undefined => {
          if (!ready || !isExempt || ended || overflowed) return undefined
          const envelope = take()
          if (envelope === undefined || envelope === "gap") return undefined
          delivered.set(envelope.sessionId, envelope.cursor)
          return envelope
        }

        const synced = (): ControlNotice =>
          notice(
            "runtime.subscription_synced",
            "Everything committed before is shown",
            { cursors: Object.fromEntries(delivered) },
            named?.length === 1 ? named[0] : undefined
          )

        const step: Effect.Effect<SubscriptionItem | undefined, RuntimeError> = Effect.gen(function* () {
          while (true) {
            if (ended) return undefined
            if (overflowed) {
              const session = named?.length === 1 ? named[0] : undefined
              const resumeAfter = session === undefined ? Object.fromEntries(delivered) : (delivered.get(session) ?? 0)
              finish()
              return notice(
                "runtime.subscription_overflow",
                "The buffer of this subscription was full",
                { bufferSize: options.subscriberBufferSize, resumeAfter },
                session
              )
            }
            if (page.length === 0 && !ready && behind.size > 0) {
              if (yield* catchUp()) continue
            }
            if (page.length === 0 && !ready && behind.size === 0) {
              ready = true
              if (input.after !== undefined) return synced()
            }
            const envelope = take()
            if (envelope === "gap") {
              if (!(yield* catchUp())) buffer.shift()
              continue
            }
            if (envelope === undefined) {
              if (behind.size > 0) {
                // The buffer is drained: from here on it may fill again, and the journal has the rest (RT-223).
                full = false
                yield* catchUp()
                continue
              }
              wake = Deferred.makeUnsafe<void>()
              if (buffer.length > 0 || overflowed || ended || behind.size > 0) continue
              yield* Deferred.await(wake)
              continue
            }
            delivered.set(envelope.sessionId, envelope.cursor)
            const verdict = yield* authorize(envelope)
            if (verdict === "omit") continue
            if (verdict === "terminate") {
              finish()
              return notice("runtime.subscription_terminated", "This subscription was ended", { reason: "policy" })
            }
            return envelope
          }
        })

        const next = Effect.suspend(() => {
          if (failure !== undefined) return Effect.fail(failure)
          if (ended) return Effect.succeed(undefined)
          if (begun === undefined) begun = begin.pipe(Effect.catch(fail))
          const first = begun
          begun = Effect.void
          return Effect.andThen(first, step)
        })

        return { next, poll, close: Effect.sync(finish) }
      }

      return Subscriptions.of({
        open: make,
        stream: (input) =>
          Stream.unwrap(
            Effect.map(
              Effect.acquireRelease(
                Effect.sync(() => make(input)),
                (subscription) => subscription.close
              ),
              (subscription) =>
                Stream.fromPull(
                  Effect.succeed(
                    Effect.flatMap(subscription.next, (item) =>
                      item === undefined ? endOfPull : Effect.succeed([item] as const)
                    )
                  )
                )
            )
          ),
        count: () => open.size,
        closeAll: Effect.sync(() => {
          closed = true
          for (const subscription of open) subscription.end()
        })
      })
    })
  )
}

const endOfPull = Cause.done()
