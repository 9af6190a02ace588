/**
 * The runtime's side of the driver contract in a few lines: a journal in memory, barriers completed once their events are in
 * it, asks journaled as requests and resolutions. So a driver is tested against what it really depends on.
 */
import { UnsupportedOperation } from "@tackroom/protocol"
import type { EventPayload, HarnessEvent, PromptInput } from "@tackroom/protocol/events"
import { Deferred, Effect, Option, Queue, Stream } from "effect"
import {
  Barrier,
  type HarnessContext,
  type HarnessItem,
  type PermissionAsk,
  Positioned,
  type QuestionAsk,
  type TurnInput
} from "../../src/harness/Harness.ts"
import type { SessionJournal } from "../../src/harness/Harness.ts"

export interface Row {
  readonly seq: number
  readonly turnId: string | null
  readonly payload: EventPayload
}

export interface Journal extends SessionJournal {
  readonly rows: Array<Row>
  readonly append: (payload: EventPayload, turnId: string | null) => void
  readonly types: (turnId?: string) => ReadonlyArray<string>
}

export const makeJournal = (): Journal => {
  const rows: Array<Row> = []
  return {
    rows,
    append: (payload, turnId) => void rows.push({ seq: rows.length + 1, turnId, payload }),
    types: (turnId) =>
      rows.filter((row) => turnId === undefined || row.turnId === turnId).map((row) => row.payload.type),
    read: (_, after, limit) => Effect.succeed({ events: rows.slice(after, after + limit), head: rows.length })
  }
}

type Decide = (ask: PermissionAsk) => "allow_once" | "allow_always" | "deny" | undefined

export interface BenchOptions {
  readonly journal: Journal
  /** Undefined: nobody answers. */
  readonly decide?: Decide
  readonly answer?: (ask: QuestionAsk) => ReadonlyArray<ReadonlyArray<string>> | null | undefined
}

export interface Bench {
  readonly context: HarnessContext
  /** Asks as they come in. */
  readonly asks: Queue.Queue<PermissionAsk | QuestionAsk>
}

export const makeBench = Effect.fnUntraced(function* (options: BenchOptions) {
  const { journal } = options
  const asks = yield* Queue.unbounded<PermissionAsk | QuestionAsk>()
  let count = 0
  const interactionId = () => `int_${++count}`
  const context: HarnessContext = {
    ask: {
      permission: (ask) =>
        Effect.gen(function* () {
          const requestId = interactionId()
          const { sessionId: _, turnId, nativeRequestId: __, ...subject } = ask
          journal.append({ type: "permission-request", requestId, paths: [], ...subject }, turnId)
          yield* Queue.offer(asks, ask)
          const decision = options.decide?.(ask)
          if (decision === undefined) return yield* Effect.never
          journal.append({ type: "permission-resolved", requestId, tool: ask.tool, decision, origin: "person" }, turnId)
          return { interactionId: requestId, decision, origin: "person" }
        }),
      question: (ask) =>
        Effect.gen(function* () {
          const requestId = interactionId()
          journal.append({ type: "question", requestId, questions: ask.questions }, ask.turnId)
          yield* Queue.offer(asks, ask)
          const answers = options.answer?.(ask)
          if (answers === undefined) return yield* Effect.never
          journal.append({ type: "question-answered", requestId, answers: answers ?? [], origin: "person" }, ask.turnId)
          return { interactionId: requestId, answers }
        })
    },
    artifacts: { put: () => Effect.succeed("art_1") },
    secrets: { get: () => Effect.succeed(undefined) },
    notice: () => Effect.void,
    journal,
    processes: Effect.fail(new UnsupportedOperation({ operation: "processes" })),
    instanceId: "ins_test"
  }
  return { context, asks } satisfies Bench
})

export const binding = {
  workspaceId: "default",
  directory: "/tmp",
  sessionId: "ses_test",
  connectionId: "native:scripted",
  upstreamSessionId: "ses_test",
  upstreamState: "confirmed" as const
}

export const turnInput = (
  journal: Journal,
  turnId: string,
  prompt: PromptInput,
  more?: Partial<TurnInput>
): TurnInput => ({
  binding,
  turnId,
  messageId: `${turnId}-m`,
  assistantMessageId: `${turnId}-m_r`,
  prompt,
  config: { harness: { id: "scripted", access: "native" } },
  origin: "user",
  freshContext: false,
  startCursor:
    journal.rows.findIndex((row) => row.turnId === turnId) < 0
      ? journal.rows.length
      : journal.rows.findIndex((row) => row.turnId === turnId),
  roundFits: Effect.succeed(true),
  ...more
})

/** Admits a turn as the runtime would and returns what the driver gets. */
export const admit = (journal: Journal, turnId: string, text: string, more?: Partial<TurnInput>): TurnInput => {
  const turn = turnInput(journal, turnId, { text }, more)
  journal.append(
    { type: "user-message", messageId: turn.messageId, parts: [{ type: "text", text }], delivery: "start" },
    turnId
  )
  journal.append(
    { type: "turn-start", messageId: turn.messageId, assistantMessageId: turn.assistantMessageId, origin: "user" },
    turnId
  )
  return turn
}

/**
 * Journals what a turn emits until it ends, or until `stop` says that this event was the last before the crash.
 */
export const journaled = <E>(
  journal: Journal,
  turnId: string,
  stream: Stream.Stream<HarnessItem, E>,
  stop?: (event: HarnessEvent, index: number) => boolean
) => {
  let index = 0
  return stream.pipe(
    Stream.mapEffect((item) => {
      if (item instanceof Barrier) {
        return Effect.as(Deferred.succeed(item.committed, undefined), Option.none<HarnessEvent>())
      }
      const event = item instanceof Positioned ? item.event : item
      return Effect.sync(() => {
        journal.append(event, turnId)
        return Option.some<HarnessEvent>(event)
      })
    }),
    Stream.takeUntil((item) => Option.isSome(item) && stop !== undefined && stop(item.value, index++)),
    Stream.runCollect,
    Effect.map((items) => [...items].flatMap((item) => (Option.isSome(item) ? [item.value] : [])))
  )
}

export const only = <Type extends HarnessEvent["type"]>(events: ReadonlyArray<HarnessEvent>, type: Type) =>
  events.filter((event): event is Extract<HarnessEvent, { type: Type }> => event.type === type)
