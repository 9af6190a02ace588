/**
 * A run as its client sees it: the events, the interactions, the end. All it knows it asks the host for with `run/wait`
 * (RUN-572, RUN-575); its cursors make it go on after the host was started again, without a gap or a repeat (RT-353).
 */
import {
  Busy,
  type CancelResult,
  type RunDecision,
  type EventRecord,
  fromWireEvent,
  type Interruption,
  InvalidState,
  limits,
  NotFound,
  type ParamsOf,
  type RespondResult,
  type RunStartResult,
  type RunState,
  type Summary,
  type TerminalStatus,
  type WireEvent
} from "@tackroom/protocol/run"
import { AnsweredDifferently, HostExited, PartialFailure } from "./ClientErrors.ts"
import type { HostClient } from "./HostClient.ts"

/** One event of a run. */
export interface RunItem {
  readonly agent: string
  readonly sessionId: string
  /** The cursor of the event in its session. */
  readonly cursor: number
  /** The event with camelCase payload; `undefined` for a type this version does not know (RUN-175). */
  readonly event: EventRecord | undefined
  /** The event as the host wrote it. */
  readonly wire: WireEvent
  readonly summary: Summary | null
}

/** How a run ended. */
export type RunResult = RunState & { readonly status: TerminalStatus }

/** An answer to an interaction: a decision or a text, or either with more. */
export type RunAnswer =
  | string
  | { readonly decision: RunDecision; readonly reason?: string }
  | { readonly answer: string }

/** An approval that waits for a person. */
export type Approval = Extract<Interruption, { readonly kind: "approval" }>
/** A question that waits for a person. */
export type Question = Extract<Interruption, { readonly kind: "question" }>

/** Who settles interactions. What they return is sent; `undefined` leaves the interaction to somebody else. */
export interface InteractionHandlers {
  readonly onApproval?: (
    approval: Approval,
    run: Run
  ) =>
    | RunDecision
    | { readonly decision: RunDecision; readonly reason?: string }
    | undefined
    | Promise<RunDecision | { readonly decision: RunDecision; readonly reason?: string } | undefined>
  readonly onQuestion?: (question: Question, run: Run) => string | undefined | Promise<string | undefined>
}

/** Options of a run. */
export interface RunOptions extends InteractionHandlers {
  /** Names the work: repeating a run with the same id and text never starts a second one. Default: a fresh one. */
  readonly submissionId?: string
  /** Where to read from: what an earlier `run.cursors` gave. Default: the run's start. */
  readonly cursors?: Readonly<Record<string, number>>
  /** Gives up watching; the run goes on. Use `cancel` to end it. */
  readonly signal?: AbortSignal
}

/** What a run needs of the host it is on. */
export interface RunHost {
  /** The connection, now or after a restart. Rejects when there will be none, and says why. */
  readonly ready: () => Promise<HostClient>
}

/** A run that was started or is watched. Iterate it for events; await `result` for the end. */
export class Run implements AsyncIterable<RunItem> {
  readonly sessionId: string
  readonly submissionId: string
  /** The admission. Rejects when the run was refused. */
  readonly started: Promise<RunStartResult | undefined>
  private readonly host: RunHost
  private readonly text: string | undefined
  private readonly options: RunOptions
  private readonly seen: Record<string, number>
  private readonly asked = new Set<string>()
  private readonly given = new Map<string, RunAnswer>()
  /** Aborted with what a handler threw. */
  private readonly fault = new AbortController()
  private readonly signal: AbortSignal
  private latest: RunState | undefined
  /** How often in a row the host did not know a run that it had admitted. */
  private unfinished = 0
  private end: Promise<RunResult> | undefined

  /** Use `AgentSession.run` or `AgentSession.watch`. Without a text the run exists already and is only watched. */
  constructor(host: RunHost, sessionId: string, submissionId: string, text: string | undefined, options: RunOptions) {
    this.host = host
    this.sessionId = sessionId
    this.submissionId = submissionId
    this.text = text
    this.options = options
    this.seen = { ...options.cursors }
    this.signal =
      options.signal === undefined ? this.fault.signal : AbortSignal.any([options.signal, this.fault.signal])
    this.started = this.start()
    // Whoever iterates or awaits the result sees it; a run that nobody looks at must not end the program.
    this.started.catch(ignore)
  }

  /** The end of the run, whoever reads its events. Rejects when it cannot be watched any more. */
  get result(): Promise<RunResult> {
    this.end ??= this.untilEnd()
    return this.end
  }

  /** What waits for a person, as last seen. */
  get interruptions(): ReadonlyArray<Interruption> {
    return (this.latest?.interruptions ?? []).filter((one) => !this.given.has(one.id))
  }

  /** The state last seen, if any. */
  get state(): RunState | undefined {
    return this.latest
  }

  /** The last event given, per session: what to start again from. */
  get cursors(): Readonly<Record<string, number>> {
    return { ...this.seen }
  }

  /** The events from `cursors` on. A second iteration goes on where the first one stopped. */
  async *[Symbol.asyncIterator](): AsyncGenerator<RunItem, void, undefined> {
    await this.started
    for (;;) {
      const state = await this.wait({ cursors: { ...this.seen } })
      for (const { agent, sessionId, event, summary } of state.events ?? []) {
        this.seen[sessionId] = event.seq
        yield { agent, sessionId, cursor: event.seq, event: fromWireEvent(event), wire: event, summary }
      }
      Object.assign(this.seen, state.cursors)
      if (isEnded(state) && state.moreEvents !== true) {
        this.end ??= Promise.resolve(state)
        return
      }
    }
  }

  /** The next state that is worth a look: the end, or something that waits for a person. */
  async untilInterrupted(): Promise<RunState> {
    await this.started
    for (;;) {
      const state = await this.wait({})
      if (isEnded(state) || this.interruptions.length > 0) return state
    }
  }

  /**
   * Settles an interaction. The first answer wins: repeating it is fine, another one rejects with `Conflict` or
   * `AnsweredDifferently` (RT-354). When the host goes away meanwhile, make the same call again.
   */
  async respond(interactionId: string, answer: RunAnswer): Promise<RespondResult> {
    const interruption = this.latest?.interruptions.find((one) => one.id === interactionId)
    const client = await this.host.ready()
    const params = respondParams(interruption?.sessionId ?? this.sessionId, interactionId, answer, interruption?.kind)
    const result = await client.runRespond(params, { signal: this.options.signal })
    const ours = params.decision ?? params.answer
    if (result.alreadyResolved && result.response !== ours) {
      throw new AnsweredDifferently({ interactionId, response: result.response })
    }
    this.given.set(interactionId, answer)
    return result
  }

  /** Cancels the run; with `team` its team is ended for good. Throws `PartialFailure` when a member was not reached. */
  async cancel(options: { readonly team?: boolean } = {}): Promise<CancelResult> {
    const client = await this.host.ready()
    return checkedCancel(await client.runCancel({ sessionId: this.sessionId, ...options }))
  }

  private async start(): Promise<RunStartResult | undefined> {
    const { text, sessionId, submissionId } = this
    if (text === undefined) return undefined
    const { signal } = this.options
    for (;;) {
      const client = await this.host.ready()
      try {
        const started = await client.runStart({ sessionId, submissionId, text }, { signal })
        for (const [member, cursor] of Object.entries(started.cursors)) this.seen[member] ??= cursor
        return started
      } catch (error) {
        // The one mutation that is repeated: its id makes a second run impossible (RUN-571, RT-352).
        if (!(error instanceof HostExited)) throw error
      }
    }
  }

  private async untilEnd(): Promise<RunResult> {
    await this.started
    for (;;) {
      const state = await this.wait({})
      if (isEnded(state)) return state
    }
  }

  /** One observation, over restarts and short refusals. */
  private async wait(extra: Pick<ParamsOf<"run/wait">, "cursors">): Promise<RunState> {
    const { signal } = this
    for (;;) {
      const client = await this.host.ready()
      // Only what was given to somebody is known; what still has to be asked makes the call return at once (RUN-414).
      const known = (this.latest?.interruptions ?? []).map((one) => one.id).filter((id) => this.asked.has(id))
      const params = {
        sessionId: this.sessionId,
        submissionId: this.submissionId,
        waitMs: limits.waitMsMax,
        ...(known.length === 0 ? {} : { knownInteractions: known }),
        ...extra
      }
      try {
        const state = await client.runWait(params, { signal })
        this.unfinished = 0
        this.observe(state)
        return state
      } catch (error) {
        await this.survive(error)
      }
    }
  }

  /** Returns when watching may go on after this error, else throws it. */
  private async survive(error: unknown): Promise<void> {
    if (error instanceof HostExited) {
      // What is pending is told again, so that an answer that was lost is given again.
      this.latest = undefined
      this.asked.clear()
      return
    }
    if (error instanceof Busy) return delay(error.retryAfterMs, this.signal)
    // A start that was reserved and cut short by a crash is finished by the same start.
    const unfinished =
      (error instanceof InvalidState && error.reason === "not_admitted") ||
      (error instanceof NotFound && error.what === "run")
    if (!unfinished || this.text === undefined || this.unfinished === 3) throw error
    this.unfinished += 1
    await this.start()
  }

  private observe(state: RunState): void {
    this.latest = state
    for (const interruption of state.interruptions) {
      if (this.asked.has(interruption.id)) continue
      this.asked.add(interruption.id)
      void this.settle(interruption)
    }
  }

  /** Asks the handler for its kind, once, and sends what it says. */
  private async settle(interruption: Interruption): Promise<void> {
    try {
      const known = this.given.get(interruption.id)
      const answer =
        known ??
        (interruption.kind === "approval"
          ? await this.options.onApproval?.(interruption, this)
          : await this.options.onQuestion?.(interruption, this))
      if (answer === undefined) return
      this.given.set(interruption.id, answer)
      await this.respond(interruption.id, answer)
    } catch (error) {
      // Somebody else was first, the turn is over, or the host is gone: the next state tells what is pending now.
      if (error instanceof HostExited) return void this.asked.delete(interruption.id)
      if (!isSettledElsewhere(error)) this.fault.abort(error)
    }
  }
}

const ignore = (): void => undefined

const isEnded = (state: RunState): state is RunResult =>
  state.status === "completed" || state.status === "cancelled" || state.status === "failed"

const tagOf = (error: unknown): string | undefined =>
  typeof error === "object" && error !== null && "_tag" in error && typeof error._tag === "string"
    ? error._tag
    : undefined

const isSettledElsewhere = (error: unknown): boolean =>
  tagOf(error) === "Conflict" ||
  tagOf(error) === "AnsweredDifferently" ||
  (error instanceof InvalidState && error.reason === "turn_ended") ||
  (error instanceof NotFound && error.what === "interaction")

const decisions: ReadonlySet<string> = new Set<RunDecision>(["once", "session", "deny"])
const isDecision = (text: string): text is RunDecision => decisions.has(text)

const respondParams = (
  sessionId: string,
  interactionId: string,
  answer: RunAnswer,
  kind: Interruption["kind"] | undefined
): ParamsOf<"run/respond"> => {
  const ids = { sessionId, interactionId }
  if (typeof answer !== "string") return { ...ids, ...answer }
  return kind !== "question" && isDecision(answer) ? { ...ids, decision: answer } : { ...ids, answer }
}

/** Throws when a member could not be cancelled (RUN-574, RT-355). */
export const checkedCancel = (result: CancelResult): CancelResult => {
  if (Object.keys(result.errors).length === 0) return result
  throw new PartialFailure({ action: "cancel", done: result.cancelled, errors: result.errors })
}

const delay = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort)
      resolve()
    }, ms)
    signal?.addEventListener("abort", abort, { once: true })
  })
