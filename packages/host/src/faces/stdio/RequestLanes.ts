/**
 * Owns the order of a connection: which request may take effect now, which answer leaves next, when a wait request is
 * looked at, when reading stops (RUN-018, RUN-030 to RUN-038). A pure state machine: events in, actions out; no clock, no
 * I/O, no knowledge of methods, sessions or runs beyond the kind and the lane it is told.
 *
 * Invariants: answers leave in arrival order, each exactly once; at most one ordinary request runs; only the first
 * unanswered request is answered, so at most one wait result is held; every action is caused by an event, so nothing
 * spins; memory is bounded by `limits`, by one answer per running request and by one input chunk.
 */

/** How a request takes effect. `answered` came with its answer: it only waits for its turn. */
export type Kind = "ordinary" | "control" | "wait" | "answered"

/** An answer as text, and its size. */
export interface Written {
  readonly frame: string
  readonly bytes: number
}

/** What arrived. `T` is the driver's own data and is never looked at. */
export interface Arrival<T> {
  readonly kind: "ordinary" | "control" | "wait"
  /** What the request touches: the effects on one lane keep their order. Null: the whole host. */
  readonly lane: string | null
  readonly mutating: boolean
  /** Nothing behind it takes effect before it has (initialize). */
  readonly barrier: boolean
  /** Bytes of its frame. */
  readonly bytes: number
  /** How long a wait may be held once everything ahead of it is answered or waits itself. */
  readonly waitMs: number
  readonly data: T
}

/** A request that is not answered yet. The fields after `data` belong to the machine. */
export interface Entry<T> {
  readonly seq: number
  readonly kind: Kind
  readonly lane: string | null
  readonly mutating: boolean
  readonly barrier: boolean
  readonly bytes: number
  readonly waitMs: number
  readonly data: T | undefined
  started: boolean
  finished: boolean
  answer: string | undefined
  answerBytes: number
  /** Waits: everything ahead is answered or waits too. */
  reached: boolean
  checking: boolean
  watching: boolean
  /** Waits: answer with the current state as soon as this one is first. */
  due: boolean
  /** Waits: ready or out of time, so those before it are due. */
  over: boolean
}

export type Action<T> =
  /** Let the request take effect, then call `finished`. */
  | { readonly _tag: "Start"; readonly entry: Entry<T> }
  /** Read the current state of a wait request, then call `checked`. */
  | { readonly _tag: "Check"; readonly entry: Entry<T> }
  /** Call `changed` at the next change after the last check began. */
  | { readonly _tag: "Watch"; readonly entry: Entry<T> }
  /** Call `elapsed` after `entry.waitMs`. */
  | { readonly _tag: "Timer"; readonly entry: Entry<T> }
  /** Drop watch and timer of this wait request. */
  | { readonly _tag: "Release"; readonly entry: Entry<T> }
  /** Write this answer. */
  | { readonly _tag: "Answer"; readonly entry: Entry<T>; readonly frame: string }
  | { readonly _tag: "PauseReading" }
  | { readonly _tag: "ResumeReading" }

export interface LaneLimits {
  readonly pendingRequests: number
  readonly pendingBytes: number
  /** Answers without a request behind them (refusals, bad frames) that may wait before reading pauses. */
  readonly waitingAnswers: number
  readonly outputStopBytes: number
  readonly outputResumeBytes: number
}

/** RUN-018 and RUN-038. */
export const laneLimits: LaneLimits = {
  pendingRequests: 256,
  pendingBytes: 16_777_216,
  waitingAnswers: 4_096,
  outputStopBytes: 16_777_216,
  outputResumeBytes: 8_388_608
}

const pauseReading = { _tag: "PauseReading" } as const
const resumeReading = { _tag: "ResumeReading" } as const

/** First in, first out, without moving the rest at each removal. */
class Fifo<A> {
  private items: Array<A | undefined> = []
  private head = 0
  get size(): number {
    return this.items.length - this.head
  }
  at(index: number): A | undefined {
    return this.items[this.head + index]
  }
  push(item: A): void {
    this.items.push(item)
  }
  shift(): void {
    this.items[this.head] = undefined
    this.head += 1
    if (this.head === this.items.length) {
      this.items.length = 0
      this.head = 0
    } else if (this.head > 1_024 && this.head * 2 > this.items.length) {
      this.items = this.items.slice(this.head)
      this.head = 0
    }
  }
}

export class RequestLanes<T> {
  private readonly limits: LaneLimits
  private readonly queue = new Fifo<Entry<T>>()
  /** Ordinary requests that have not finished; the first may be running. */
  private readonly ordinary = new Fifo<Entry<T>>()
  /** Controls that have not finished, in arrival order. */
  private controls: Array<Entry<T>> = []
  private nextSeq = 0
  private pending = 0
  private pendingBytes = 0
  /** `answered` entries in the queue. */
  private waitingAnswers = 0
  private overfull = false
  /** Handed to the writer and not yet taken by the reader. */
  private unsent = 0
  /** Answers that wait for their turn. */
  private held = 0
  private outputBlocked = false
  private memoryBlocked = false
  private reading = true
  private actions: Array<Action<T>> = []

  constructor(limits: LaneLimits = laneLimits) {
    this.limits = limits
  }

  /** Nothing is unanswered. */
  get idle(): boolean {
    return this.queue.size === 0
  }

  /** Accepted requests without an answer. */
  get unanswered(): number {
    return this.pending
  }

  /** The actions caused since the last call, in order. */
  take(): ReadonlyArray<Action<T>> {
    if (this.actions.length === 0) return noActions
    const taken = this.actions
    this.actions = []
    return taken
  }

  /** Whether a request of this size would be one too many: it is not to be executed but answered `busy` (RUN-038). */
  isFull(bytes: number): boolean {
    return this.pending >= this.limits.pendingRequests || this.pendingBytes + bytes > this.limits.pendingBytes
  }

  /** A request arrived. False when `isFull`: nothing was queued. */
  arrive(request: Arrival<T>): boolean {
    if (this.isFull(request.bytes)) return false
    const entry = this.enqueue(request)
    this.pending += 1
    this.pendingBytes += entry.bytes
    if (entry.kind === "ordinary") this.ordinary.push(entry)
    else if (entry.kind === "control") this.controls.push(entry)
    this.step()
    return true
  }

  /** A frame arrived whose answer is known already: a bad frame, or a refusal. It takes its place in the order. */
  arriveAnswered({ frame, bytes }: Written): void {
    const entry = this.enqueue({
      kind: "answered",
      lane: null,
      mutating: false,
      barrier: false,
      bytes: 0,
      waitMs: 0,
      data: undefined
    })
    entry.answer = frame
    entry.answerBytes = bytes
    entry.finished = true
    this.held += bytes
    this.waitingAnswers += 1
    this.step()
  }

  /** A started request took effect, or failed. */
  finished(entry: Entry<T>, { frame, bytes }: Written): void {
    if (entry.finished) return
    entry.finished = true
    entry.answer = frame
    entry.answerBytes = bytes
    this.held += bytes
    if (entry.kind === "ordinary") this.ordinary.shift()
    else this.controls = this.controls.filter((control) => control !== entry)
    this.step()
  }

  /**
   * A check of a wait request ended; `ready` when it is worth returning for. `write` makes the answer from what was read
   * and is called only when this is the moment to answer.
   */
  checked(entry: Entry<T>, ready: boolean, write: () => Written): void {
    if (entry.finished || !entry.checking) return
    entry.checking = false
    if (ready) entry.over = true
    if ((entry.due || entry.over) && this.queue.at(0) === entry) {
      const { frame, bytes } = write()
      entry.finished = true
      entry.answer = frame
      entry.answerBytes = bytes
      this.held += bytes
    } else if (!entry.due && !entry.over) {
      entry.watching = true
      this.actions.push({ _tag: "Watch", entry })
    }
    this.step()
  }

  /** A watched wait request may have something new to say. */
  changed(entry: Entry<T>): void {
    if (entry.finished || !entry.watching) return
    entry.watching = false
    if (!entry.due && !entry.over) this.check(entry)
    this.step()
  }

  /** The time of a wait request is over. */
  elapsed(entry: Entry<T>): void {
    if (entry.finished || entry.over) return
    entry.over = true
    this.step()
  }

  /** How many bytes the writer holds now. */
  output(unsent: number): void {
    this.unsent = unsent
    this.step()
  }

  /** No frame will follow: waits are answered with their current state (RUN-524). */
  stop(): void {
    for (let index = 0; index < this.queue.size; index++) {
      const entry = this.queue.at(index)
      if (entry?.kind === "wait") entry.due = true
    }
    this.step()
  }

  private enqueue(request: Omit<Arrival<T>, "kind" | "data"> & { kind: Kind; data: T | undefined }): Entry<T> {
    const entry: Entry<T> = {
      seq: this.nextSeq++,
      kind: request.kind,
      lane: request.lane,
      mutating: request.mutating,
      barrier: request.barrier,
      bytes: request.bytes,
      waitMs: request.waitMs,
      data: request.data,
      started: false,
      finished: false,
      answer: undefined,
      answerBytes: 0,
      reached: false,
      checking: false,
      watching: false,
      due: false,
      over: false
    }
    this.queue.push(entry)
    return entry
  }

  /** Brings everything to rest after an event. */
  private step(): void {
    this.answerFirst()
    this.settleBlocks()
    this.startOrdinary()
    if (this.controls.length > 0) this.startControls()
    this.settleWaits()
    this.settleReading()
  }

  private answerFirst(): void {
    for (;;) {
      const entry = this.queue.at(0)
      if (entry === undefined || !entry.finished || entry.answer === undefined) return
      this.queue.shift()
      this.held -= entry.answerBytes
      this.unsent += entry.answerBytes
      if (entry.kind === "answered") {
        this.waitingAnswers -= 1
      } else {
        this.pending -= 1
        this.pendingBytes -= entry.bytes
        if (entry.reached) this.actions.push({ _tag: "Release", entry })
      }
      this.actions.push({ _tag: "Answer", entry, frame: entry.answer })
      entry.answer = undefined
    }
  }

  private settleBlocks(): void {
    const { outputStopBytes, outputResumeBytes } = this.limits
    if (this.unsent > outputStopBytes) this.outputBlocked = true
    else if (this.unsent < outputResumeBytes) this.outputBlocked = false
    if (this.unsent + this.held > outputStopBytes) this.memoryBlocked = true
    else if (this.unsent + this.held < outputResumeBytes) this.memoryBlocked = false
  }

  private startOrdinary(): void {
    const entry = this.ordinary.at(0)
    if (entry === undefined || entry.started) return
    // The first unanswered request is what everything held back waits for, so only the writer can stop it.
    const blocked = this.queue.at(0) === entry ? this.outputBlocked : this.memoryBlocked
    if (blocked) return
    for (const control of this.controls) {
      if (control.seq > entry.seq) break
      if (entry.lane === null || control.lane === null || control.lane === entry.lane) return
    }
    this.start(entry)
  }

  private startControls(): void {
    for (const entry of this.controls) {
      if (!entry.started && !this.behindItsLane(entry)) this.start(entry)
    }
  }

  /** Whether an earlier mutating request of the same session, or initialize, has not taken effect (RUN-032). */
  private behindItsLane(control: Entry<T>): boolean {
    for (const other of this.controls) {
      if (other === control) break
      if (other.mutating && other.lane === control.lane) return true
    }
    for (let index = 0; index < this.ordinary.size; index++) {
      const other = this.ordinary.at(index)
      if (other === undefined || other.seq > control.seq) return false
      if (other.barrier || (other.mutating && other.lane !== null && other.lane === control.lane)) return true
    }
    return false
  }

  private start(entry: Entry<T>): void {
    entry.started = true
    this.actions.push({ _tag: "Start", entry })
  }

  private check(entry: Entry<T>): void {
    entry.checking = true
    this.actions.push({ _tag: "Check", entry })
  }

  /** Parks, releases and looks at the wait requests that lead the queue (RUN-034, RUN-035). */
  private settleWaits(): void {
    const first = this.queue.at(0)
    if (first === undefined || first.kind !== "wait") return
    let leading = 0
    let lastOver = -1
    for (;;) {
      const entry = this.queue.at(leading)
      if (entry === undefined || entry.kind !== "wait") break
      if (entry.over) lastOver = leading
      leading += 1
    }
    const dueBefore = leading < this.queue.size ? leading : lastOver
    for (let index = 0; index < leading; index++) {
      const entry = this.queue.at(index)
      if (entry === undefined) break
      if (index < dueBefore) entry.due = true
      if (!entry.reached) {
        entry.reached = true
        if (entry.due) continue
        if (entry.waitMs === 0) {
          entry.due = true
          entry.over = true
          for (let before = 0; before < index; before++) {
            const earlier = this.queue.at(before)
            if (earlier !== undefined) earlier.due = true
          }
        } else {
          this.actions.push({ _tag: "Timer", entry })
          this.check(entry)
        }
      }
    }
    if ((first.due || first.over) && !first.checking && !this.outputBlocked) this.check(first)
  }

  private settleReading(): void {
    if (this.waitingAnswers > this.limits.waitingAnswers) this.overfull = true
    else if (this.waitingAnswers === 0) this.overfull = false
    const reading = !this.overfull && !this.memoryBlocked
    if (reading === this.reading) return
    this.reading = reading
    this.actions.push(reading ? resumeReading : pauseReading)
  }
}

const noActions: ReadonlyArray<never> = []
