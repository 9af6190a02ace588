/**
 * A run until its result is written: the lines it writes, its ask, its cancel (serve-mode 4.6).
 *
 * Everything that numbers a line also writes it in the same step, so that numbers and lines never part; queueing the
 * result and freeing the slot are one step too (SRV-144). It starts nothing and settles nothing.
 */
import type { CancelCause } from "@tackroom/protocol/serve"
import { Effect } from "effect"
import type { Request } from "./AskQueue.ts"
import type { Item } from "./Item.ts"
import type { Projection } from "./Projection.ts"
import type { RunLines } from "./RunLines.ts"
import type { LinesOut } from "./LinesOut.ts"

export interface LiveRunOptions {
  readonly runId: string
  readonly lines: RunLines
  readonly projection: Projection
  readonly out: LinesOut
  /** What came between the runs, behind the start. */
  readonly background: ReadonlyArray<Item>
  /** Called in the step that queues the result. */
  readonly onResult: () => void
}

interface Cancel {
  readonly cause: CancelCause
  readonly opId: string | undefined
}

export class LiveRun {
  readonly runId: string
  readonly #options: LiveRunOptions
  /** Asks that an op settled; their events may still be on the way. */
  readonly #answered = new Set<string>()
  #cancel: Cancel | undefined
  #isCancelTold = false

  constructor(options: LiveRunOptions) {
    this.runId = options.runId
    this.#options = options
  }

  get isCancelling(): boolean {
    return this.#cancel !== undefined
  }

  /** The ask that may be answered. */
  get openAsk(): Request | undefined {
    const open = this.#options.projection.openAsk
    return open === undefined || this.#answered.has(open.requestId) ? undefined : open
  }

  get missedAsk(): string | undefined {
    return this.#options.projection.missedAsk
  }

  /** From now on this ask counts as answered by this op, unless `unanswered` takes it back. */
  answered(askId: string, opId: string | undefined): void {
    this.#answered.add(askId)
    this.#options.lines.answeredBy(askId, opId)
  }

  unanswered(askId: string): void {
    this.#answered.delete(askId)
    this.#options.lines.notAnswered(askId)
  }

  /** True the first time; the notice is written at once, or right behind the start (SRV-220). */
  cancel(cause: CancelCause, opId: string | undefined): boolean {
    if (this.#cancel !== undefined) return false
    this.#cancel = { cause, opId }
    this.#options.projection.cancelAsked()
    this.#tellCancel()
    return true
  }

  /** Takes what the journal says, at the pace of the reader. */
  take(items: ReadonlyArray<Item>): Effect.Effect<void> {
    const { out } = this.#options
    return Effect.forEach(items, (item) => Effect.map(out.room, () => this.#write(item)), { discard: true })
  }

  #write(item: Item): void {
    const { background, lines, onResult, out } = this.#options
    for (const line of lines.lines([item])) out.run(line)
    if (item.type === "start") {
      for (const line of lines.lines(background)) out.run(line)
      this.#tellCancel()
    }
    if (item.type === "result") onResult()
  }

  #tellCancel(): void {
    const { lines, out } = this.#options
    if (this.#cancel === undefined || this.#isCancelTold || !lines.hasStarted) return
    this.#isCancelTold = true
    for (const line of lines.cancelling(this.#cancel.cause, this.#cancel.opId)) out.run(line)
  }
}
