/**
 * One session as this connection has it open: where the client stands in its journal, the turn the client waits for, and the
 * requests it has to answer. Everything else of the session is the runtime's.
 *
 * One fiber reads the journal in order and writes what it says; each update is written before the next is made, and only
 * after its event was committed (ACP-115 to ACP-117). While no turn of the client runs only what may be sent then is sent;
 * the rest waits for the next turn and comes before anything of it (ACP-125). What belongs to turns of others is theirs.
 */
import type {
  CreateElicitationResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionUpdate
} from "@agentclientprotocol/sdk"
import type { RuntimeError } from "@tackroom/protocol"
import { type EventOf, isTerminal, type TerminalEvent } from "@tackroom/protocol/events"
import { Clock, Deferred, Effect, Exit, Semaphore } from "effect"
import type { Broken } from "../../runs/HostRuntime.ts"
import type { Entry, EntryFeed } from "../../runs/Entries.ts"
import type { Runs } from "../../runs/Runs.ts"
import type { Client } from "./Client.ts"
import type { ClientTerminals } from "./ClientTerminals.ts"
import { absoluteCall, absoluteUpdate } from "./Paths.ts"
import type { Peer } from "./Peer.ts"
import { firstTold, isForBetween, type Projection, type Update } from "./Projection.ts"
import * as Requests from "./Requests.ts"

/** How a turn of the client ended. */
export type TurnEnd =
  | { readonly _tag: "Ended"; readonly event: TerminalEvent; readonly cursor: number }
  | { readonly _tag: "Broken"; readonly broken: Broken }

/** The turn that a prompt waits for. */
interface Turn {
  readonly turnId: string
  readonly end: Deferred.Deferred<TurnEnd>
}

type Ask = EventOf<"permission-request"> | EventOf<"question">

export interface OpenSessionParts {
  readonly sessionId: string
  readonly workspace: string
  readonly runs: Pick<Runs, "follow" | "broken" | "settle">
  readonly client: () => Client
  readonly peer: () => Peer
  readonly projection: Projection
  readonly terminals: Pick<ClientTerminals, "told">
  /** What the client knows of the journal. */
  readonly cursor: number
  /** What is told right behind the response that opened the session. */
  readonly first: ReadonlyArray<SessionUpdate>
  /** Runs work that lives as long as the connection. */
  readonly fork: (work: Effect.Effect<void>) => void
}

/** The terminals that an update shows. */
const terminalsIn = (update: SessionUpdate): ReadonlyArray<string> =>
  update.sessionUpdate === "tool_call" || update.sessionUpdate === "tool_call_update"
    ? (update.content ?? []).flatMap((content) => (content.type === "terminal" ? [content.terminalId] : []))
    : []

/** Updates that wait for the next turn. */
const heldLimit = 256
/** Output of a running call is sent at most this often. */
const passingMs = 250

export class OpenSession {
  readonly sessionId: string
  readonly #parts: OpenSessionParts
  /** Held while a turn is being started, so that none of its events is read before it is known whose it is. */
  readonly #lock = Semaphore.makeUnsafe(1)
  #turn: Turn | undefined
  #held: Array<Update> = []
  readonly #passed = new Map<string, number>()
  /** What is asked in the events that are being read: a grant or a policy may have settled it in the same commit. */
  readonly #fresh = new Map<string, Ask>()
  /** Requests that the client has not answered. */
  readonly #asking = new Map<string, AbortController>()
  /** Nothing is sent before the response that opened the session (ACP-062, ACP-069). */
  readonly #begun = Deferred.makeUnsafe<void>()
  readonly #over = Deferred.makeUnsafe<void>()
  isClosed = false

  constructor(parts: OpenSessionParts) {
    this.sessionId = parts.sessionId
    this.#parts = parts
  }

  get isWorking(): boolean {
    return this.#turn !== undefined
  }

  get projection(): Projection {
    return this.#parts.projection
  }

  /** The response was written: from now on the journal is followed. */
  begin(): void {
    if (!Deferred.doneUnsafe(this.#begun, Exit.void)) return
    for (const update of this.#parts.first) this.#send(update)
  }

  /** Follows the journal until the session is closed. */
  get follow(): Effect.Effect<void> {
    const { cursor, runs } = this.#parts
    return Effect.gen({ self: this }, function* () {
      yield* Deferred.await(this.#begun)
      const feed = runs.follow(this.sessionId, cursor)
      yield* Effect.raceFirst(this.#read(feed), Deferred.await(this.#over)).pipe(Effect.ensuring(feed.close))
    }).pipe(Effect.catch((error) => Effect.logError("The journal of a session could not be read", error._tag)))
  }

  #read(feed: EntryFeed): Effect.Effect<void, RuntimeError> {
    return Effect.gen({ self: this }, function* () {
      const clock = yield* Clock.Clock
      const { room } = this.#parts.peer()
      while (true) {
        const entries = yield* feed.next
        if (entries.length === 0) return
        yield* this.#lock.withPermits(1)(
          Effect.gen({ self: this }, function* () {
            for (const entry of entries) {
              this.#take(entry, clock.currentTimeMillisUnsafe())
              yield* room
            }
            this.#askFresh()
          })
        )
      }
    })
  }

  /** Starts a turn and waits for its end; `begun` is called once the turn is there. */
  run<E>(start: Effect.Effect<{ readonly turnId: string }, E>, begun: () => void): Effect.Effect<TurnEnd, E> {
    return Effect.gen({ self: this }, function* () {
      const turn = yield* this.#lock.withPermits(1)(
        Effect.gen({ self: this }, function* () {
          const { turnId } = yield* start
          const started: Turn = { turnId, end: Deferred.makeUnsafe<TurnEnd>() }
          this.#turn = started
          this.#parts.projection.begin()
          for (const update of this.#held.splice(0)) this.#send(update.update)
          yield* this.#parts.peer().room
          return started
        })
      )
      begun()
      const broken = Effect.map(this.#parts.runs.broken(this.sessionId), (broken): TurnEnd => ({
        _tag: "Broken",
        broken
      }))
      return yield* Effect.raceFirst(Deferred.await(turn.end), broken).pipe(
        Effect.ensuring(
          Effect.sync(() => {
            if (this.#turn === turn) this.#turn = undefined
            this.#withdrawAll()
          })
        )
      )
    })
  }

  /** Nothing more is written and asked. */
  close(): void {
    this.isClosed = true
    this.#withdrawAll()
    this.begin()
    Deferred.doneUnsafe(this.#over, Exit.void)
  }

  #withdrawAll(): void {
    this.#fresh.clear()
    for (const controller of this.#asking.values()) controller.abort()
    this.#asking.clear()
  }

  #take(entry: Entry, now: number): void {
    const turn = this.#turn
    const isOurs = turn !== undefined && entry.turnId === turn.turnId
    const isOfAnother = entry.turnId !== undefined && !isOurs
    for (const update of this.#parts.projection.push(entry)) {
      if (isOurs) this.#sendOwn(update, now)
      else if (isForBetween(update)) this.#send(update.update)
      else if (turn !== undefined && !isOfAnother) this.#send(update.update)
      else if (!isOfAnother) this.#hold(update)
    }
    if (!isOurs) return
    this.#asked(entry)
    if (isTerminal(entry.payload)) {
      this.#turn = undefined
      Deferred.doneUnsafe(turn.end, Exit.succeed({ _tag: "Ended", event: entry.payload, cursor: entry.cursor }))
    }
  }

  #hold(update: Update): void {
    this.#held.push(update)
    if (this.#held.length > heldLimit) this.#held.shift()
  }

  #sendOwn({ passing, update }: Update, now: number): void {
    if (passing !== undefined) {
      // The call's end has all of its output.
      if (now - (this.#passed.get(passing) ?? 0) < passingMs) return
      this.#passed.set(passing, now)
    }
    this.#send(update)
  }

  #send(update: SessionUpdate): void {
    if (this.isClosed) return
    // A client that is gone is told nothing more; its end is the connection's to notice.
    const told = absoluteUpdate(this.#parts.workspace, update)
    this.#parts.peer().tell(this.sessionId, told)
    for (const id of terminalsIn(told)) this.#parts.terminals.told(id)
  }

  // ------------------------------------------------------------ what the agent asks

  #asked({ payload }: Entry): void {
    switch (payload.type) {
      case "permission-request":
        this.#showCall(payload)
        this.#fresh.set(payload.requestId, payload)
        return
      case "question":
        this.#fresh.set(payload.requestId, payload)
        return
      case "permission-resolved":
      case "question-answered":
      case "question-rejected":
      case "interaction-withdrawn":
        this.#fresh.delete(payload.requestId)
        this.#asking.get(payload.requestId)?.abort()
        this.#asking.delete(payload.requestId)
        return
      default:
    }
  }

  /** A call is told of before it is asked about (ACP-150). */
  #showCall(event: EventOf<"permission-request">): void {
    if (event.toolCallId === undefined) return
    const { call, isNew } = this.#parts.projection.calls.ensure(event.toolCallId, event.tool)
    if (isNew) this.#send(firstTold(call))
  }

  /** Asks what is still open now that nothing more is known: a call that a grant covers asks nobody (AGT-111, ACP-150). */
  #askFresh(): void {
    const asks = [...this.#fresh.values()]
    this.#fresh.clear()
    for (const ask of asks) this.#ask(ask)
  }

  #ask(event: Ask): void {
    const controller = new AbortController()
    this.#asking.set(event.requestId, controller)
    const answer =
      event.type === "question" ? this.#question(event, controller.signal) : this.#permission(event, controller.signal)
    this.#parts.fork(
      Effect.flatMap(answer, (decided) => {
        // Settled elsewhere: its late answer has no effect (ACP-155).
        if (controller.signal.aborted) return Effect.void
        this.#asking.delete(event.requestId)
        const given = { sessionId: this.sessionId, interactionId: event.requestId, resolution: decided }
        return Effect.asVoid(this.#parts.runs.settle(given, {})).pipe(
          Effect.catch((error) => Effect.logDebug("An answer of the client came too late", error._tag))
        )
      })
    )
  }

  /** A request to the client; `undefined` when it answers with an error, or not at all. */
  #call<A>(send: () => Promise<A>): Effect.Effect<A | undefined> {
    return Effect.tryPromise(send).pipe(Effect.catch(() => Effect.succeed(undefined)))
  }

  #permission(event: EventOf<"permission-request">, signal: AbortSignal): Effect.Effect<Requests.Decided> {
    const choices = Requests.choicesOf(event)
    const call = event.toolCallId === undefined ? undefined : this.#parts.projection.calls.find(event.toolCallId)
    const request = Requests.permissionRequest(this.sessionId, event, call, choices)
    return Effect.map(this.#requestPermission(request, signal), (answer) =>
      Requests.decisionOf(choices, answer, event.options.length === 0)
    )
  }

  #requestPermission(
    request: RequestPermissionRequest,
    signal: AbortSignal
  ): Effect.Effect<RequestPermissionResponse | undefined> {
    const located = { ...request, toolCall: absoluteCall(this.#parts.workspace, request.toolCall) }
    return this.#call<RequestPermissionResponse>(() =>
      this.#parts
        .peer()
        .asked.request("session/request_permission", located, { cancellationSignal: signal, stopWaitingOnCancel: true })
    )
  }

  #question(event: EventOf<"question">, signal: AbortSignal): Effect.Effect<Requests.Decided> {
    const rejected: Requests.Decided = { answers: null }
    if (Requests.hasSecret(event))
      return this.#rejected("The agent asked for a secret, which this client cannot be asked for")
    if (this.#parts.client().forms) {
      const request = Requests.form(this.sessionId, event)
      const call = this.#call<CreateElicitationResponse>(() =>
        this.#parts
          .peer()
          .asked.request("elicitation/create", request, { cancellationSignal: signal, stopWaitingOnCancel: true })
      )
      return Effect.map(call, (answer) => Requests.formAnswers(event, answer) ?? rejected)
    }
    if (!Requests.fitsChoices(event)) return this.#rejected("The agent asked a question that this client cannot show")
    return Effect.gen({ self: this }, function* () {
      const answers: Array<ReadonlyArray<string>> = []
      for (const index of event.questions.keys()) {
        const request = Requests.choiceRequest(this.sessionId, event, index)
        if (request === undefined) return rejected
        const answer = Requests.choiceAnswer(event, index, yield* this.#requestPermission(request, signal))
        if (answer === undefined) return rejected
        answers.push(answer)
      }
      return { answers }
    })
  }

  /** A question that cannot be asked is rejected at once, and the client is told (ACP-164). */
  #rejected(why: string): Effect.Effect<Requests.Decided> {
    return Effect.sync(() => {
      const notice = this.#parts.projection.tell("warning", why)
      if (notice !== undefined) this.#send(notice)
      return { answers: null }
    })
  }
}
