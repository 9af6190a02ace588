/**
 * A session of an agent, as an application uses it: start runs, send inputs, look, cancel, close.
 */
import type {
  AttachResult,
  CancelResult,
  CloseResult,
  ParamsOf,
  ResultOf,
  SessionInput,
  SessionRef,
  SessionState
} from "@tackroom/protocol/run"
import { PartialFailure } from "./ClientErrors.ts"
import type { RequestOptions } from "./HostClient.ts"
import { checkedCancel, type InteractionHandlers, Run, type RunHost, type RunOptions } from "./Run.ts"

/** Makes a fresh submission id (RUN-571). */
export const newSubmissionId = (): string => `sub_${globalThis.crypto.randomUUID()}`

/** A session. Made by `agent.session` and `host.attach`; it stays usable when the host is started again. */
export class AgentSession {
  readonly id: string
  /** The session and its team. */
  readonly ref: SessionRef
  /** What `session/attach` told, for a session that was attached. */
  readonly attached: AttachResult | undefined
  private readonly host: RunHost
  private readonly handlers: InteractionHandlers
  private readonly onClosed: () => void

  /** Use `agent.session` or `host.attach`. */
  constructor(options: {
    readonly host: RunHost
    readonly ref: SessionRef
    readonly handlers: InteractionHandlers
    readonly onClosed: () => void
    readonly attached?: AttachResult
  }) {
    this.host = options.host
    this.ref = options.ref
    this.id = options.ref.sessionId
    this.handlers = options.handlers
    this.onClosed = options.onClosed
    this.attached = options.attached
  }

  /** Starts a run. A refusal shows when the run is iterated or its result is awaited. */
  run(text: string, options: RunOptions = {}): Run {
    const submissionId = options.submissionId ?? newSubmissionId()
    return new Run(this.host, this.id, submissionId, text, { ...this.handlers, ...options })
  }

  /** Watches a run that was started before, by this application or another one; `cursors` says from where. */
  watch(submissionId: string, options: Omit<RunOptions, "submissionId"> = {}): Run {
    return new Run(this.host, this.id, submissionId, undefined, { ...this.handlers, ...options })
  }

  /** Sends a message, a decision or an answer. A message gets a fresh submission id when none is given. */
  async send(
    input: SessionInput,
    options: RequestOptions & { readonly submissionId?: string } = {}
  ): Promise<ResultOf<"session/send">> {
    const submissionId = options.submissionId ?? (input.type === "message" ? newSubmissionId() : undefined)
    const params: ParamsOf<"session/send"> = {
      sessionId: this.id,
      input,
      ...(submissionId === undefined ? {} : { submissionId })
    }
    const client = await this.host.ready()
    return client.sessionSend(params, options)
  }

  /** The aggregate state of the session and its team. */
  async state(options: RequestOptions = {}): Promise<SessionState> {
    const client = await this.host.ready()
    return client.sessionState({ sessionId: this.id }, options)
  }

  /** Cancels what is active. Throws `PartialFailure` when a member was not reached (RUN-574). */
  async cancel(options: { readonly team?: boolean } = {}): Promise<CancelResult> {
    const client = await this.host.ready()
    return checkedCancel(await client.runCancel({ sessionId: this.id, ...options }))
  }

  /** Closes the session for good. Throws `PartialFailure` when a member could not be closed (RUN-574). */
  async close(): Promise<CloseResult> {
    const client = await this.host.ready()
    const result = await client.agentClose({ sessionId: this.id })
    if (Object.keys(result.errors).length > 0) {
      throw new PartialFailure({ action: "close", done: result.closed, errors: result.errors })
    }
    this.onClosed()
    return result
  }
}
