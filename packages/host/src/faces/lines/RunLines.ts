/**
 * The lines of one run: items get their numbers, the run's name and the ids of the ops that caused them (SRV-066, SRV-067,
 * SRV-095 to SRV-097). Kinds that are not wanted are left out before they are numbered (SRV-342). After the result there
 * is nothing (SRV-142).
 */
import {
  isSourceLine,
  serveVersion,
  type CancelCause,
  type EventSet,
  type NotifyLine,
  type RunFault,
  type RunLine
} from "@tackroom/protocol/serve"
import type { End, Item } from "./Item.ts"

export interface RunLinesOptions {
  /** Serve mode tells a clean run without text as an error; headless counts asks and names the session. */
  readonly face: "serve" | "headless"
  readonly runId: string | undefined
  readonly opId: string | undefined
  readonly events: EventSet
  readonly warnings: ReadonlyArray<string>
  readonly model: string | undefined
  /** Named by `start`, headless only. */
  readonly sessionId: string | undefined
  /** The recorded outcome of a submission that was made before: `start` and `result` alone are written. */
  readonly duplicate: boolean
}

const noAnswer: RunFault = { code: "no_answer", message: "the run completed without assistant text" }

export class RunLines {
  readonly #options: RunLinesOptions
  /** Which op settles which ask. */
  readonly #answered = new Map<string, string | undefined>()
  #started = false
  #seq = 0
  #cancelOpId: string | undefined
  #ended = false

  constructor(options: RunLinesOptions) {
    this.#options = options
  }

  get hasStarted(): boolean {
    return this.#started
  }

  /** What settles this ask was caused by this op (SRV-096). */
  answeredBy(askId: string, opId: string | undefined): void {
    this.#answered.set(askId, opId)
  }

  notAnswered(askId: string): void {
    this.#answered.delete(askId)
  }

  lines(items: ReadonlyArray<Item>): ReadonlyArray<RunLine> {
    return items.flatMap((item) => this.#line(item))
  }

  /** The run is being stopped. What no op wants has the id of the run itself (SRV-097). */
  cancelling(cause: CancelCause, opId: string | undefined): ReadonlyArray<RunLine> {
    const byOp = cause === "cancel" || cause === "shutdown"
    if (byOp) this.#cancelOpId = opId
    return this.#numbered({ type: "notify", kind: "cancelling", data: { cause } }, byOp ? opId : this.#options.opId)
  }

  #line(item: Item): ReadonlyArray<RunLine> {
    if (this.#ended) return []
    const { duplicate, opId, sessionId, warnings } = this.#options
    switch (item.type) {
      case "start":
        this.#started = true
        return this.#numbered(
          {
            type: "start",
            prompt: item.prompt,
            warnings,
            turnId: item.turnId,
            ...(sessionId === undefined ? {} : { sessionId }),
            ...(duplicate ? { duplicate: true } : {}),
            cursor: item.cursor
          },
          opId
        )
      case "result": {
        const line = this.#numbered(this.#result(item.end), opId)
        this.#ended = true
        return line
      }
      case "notify": {
        if (duplicate) return []
        const answered = item.kind === "ask_resolved" && item.data.by === "driver" ? item.data.askId : undefined
        return this.#numbered(item, answered === undefined ? opId : this.#answered.get(answered))
      }
      default:
        return duplicate ? [] : this.#numbered(item, opId)
    }
  }

  #result(end: End) {
    const { duplicate, face, model } = this.#options
    const isSilent = face === "serve" && end.status === "completed" && end.answer.trim() === ""
    const errors = isSilent ? [...end.errors, noAnswer] : end.errors
    return {
      type: "result",
      answer: end.answer,
      errors,
      errorMessages: errors.map(({ message }) => message),
      ...(end.usage === undefined ? {} : { usage: end.usage }),
      cancelled: end.cancelled,
      ...(model === undefined ? {} : { model }),
      status: end.status,
      stopReason: end.stopReason,
      ...(end.usageDetail === undefined ? {} : { usageDetail: end.usageDetail }),
      ...(end.uncertain.length === 0 ? {} : { uncertain: end.uncertain }),
      ...(face === "headless" ? { asks: end.asks } : {}),
      ...(this.#cancelOpId === undefined ? {} : { cancelOpId: this.#cancelOpId }),
      ...(duplicate ? { duplicate: true } : {}),
      ...(end.committed ? {} : { committed: false }),
      ...(end.cursor === undefined ? {} : { cursor: end.cursor })
    } as const
  }

  #numbered(fields: Unnumbered, opId: string | undefined): ReadonlyArray<RunLine> {
    const { events, runId } = this.#options
    if (this.#ended || (events === "source" && !isSourceLine(fields))) return []
    this.#seq += 1
    const { type, ...rest } = fields
    return [
      {
        protocol: serveVersion,
        seq: this.#seq,
        type,
        ...(runId === undefined ? {} : { runId }),
        ...rest,
        ...(opId === undefined ? {} : { opId })
      } as RunLine
    ]
  }
}

type Without<Line> = Line extends unknown ? Omit<Line, "protocol" | "seq" | "runId" | "opId"> : never
type Unnumbered = Without<Exclude<RunLine, NotifyLine>> | Without<NotifyLine>
