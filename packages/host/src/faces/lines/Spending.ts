/**
 * What a run used: tokens as they were reported, and answered model requests (4.3). Pure; nothing is estimated.
 *
 * A delta counts once per observation id; a cumulative report counts what it grew since the one before, of an earlier run
 * too, and a smaller value begins anew.
 */
import type { EventOf, TokenUsage } from "@tackroom/protocol/events"
import type { ServeUsage, UsageDetail } from "@tackroom/protocol/serve"

/** The last cumulative report of each native session. */
export type Baseline = ReadonlyMap<string, TokenUsage>

type Sum = { readonly [K in "input" | "output" | "reasoning" | "read" | "write"]: number | null }

const none: Sum = { input: null, output: null, reasoning: null, read: null, write: null }

const flat = ({ cache, input, output, reasoning }: TokenUsage): Sum => ({
  input,
  output,
  reasoning,
  read: cache.read,
  write: cache.write
})

const plus = (sum: number | null, value: number | null): number | null => (value === null ? sum : (sum ?? 0) + value)
const grown = (value: number | null, before: number | null | undefined): number | null =>
  value === null || before === null || before === undefined || value < before ? value : value - before

const merge = (one: Sum, other: Sum, join: (a: number | null, b: number | null) => number | null): Sum => ({
  input: join(one.input, other.input),
  output: join(one.output, other.output),
  reasoning: join(one.reasoning, other.reasoning),
  read: join(one.read, other.read),
  write: join(one.write, other.write)
})

export class Spending {
  readonly #reportsRounds: boolean
  readonly #cumulative: Map<string, TokenUsage>
  readonly #seen = new Set<string>()
  readonly #responses = new Set<string>()
  #sum = none
  #cost: UsageDetail["cost"] = null
  #rounds = 0
  #isAwaiting = false

  constructor(options: { readonly reportsRounds: boolean; readonly baseline: Baseline }) {
    this.#reportsRounds = options.reportsRounds
    this.#cumulative = new Map(options.baseline)
  }

  get baseline(): Baseline {
    return this.#cumulative
  }

  /** Rounds that began: a further attempt at the same response is none. */
  get begun(): number {
    return this.#responses.size
  }

  response({ attempt, responseId }: EventOf<"response-start">): void {
    const isRepeat = (attempt ?? 1) > 1 || this.#responses.has(responseId)
    if (!isRepeat) {
      this.#answered()
      this.#responses.add(responseId)
    }
    this.#isAwaiting = true
  }

  report({ cost, observation }: EventOf<"usage">): void {
    if (cost !== undefined) this.#cost = cost
    if (this.#isAwaiting) this.#answered()
    else if (!this.#reportsRounds && observation?.kind === "delta") this.#rounds += 1
    if (observation === undefined) return
    const { kind, nativeSessionId = "", providerObservationId, tokens } = observation
    if (kind === "cumulative") {
      const before = this.#cumulative.get(nativeSessionId)
      this.#cumulative.set(nativeSessionId, tokens)
      const more = before === undefined ? flat(tokens) : merge(flat(tokens), flat(before), grown)
      this.#sum = merge(this.#sum, more, plus)
      return
    }
    if (providerObservationId !== undefined) {
      if (this.#seen.has(providerObservationId)) return
      this.#seen.add(providerObservationId)
    }
    this.#sum = merge(this.#sum, flat(tokens), plus)
  }

  /** The turn completed: its last response was answered, reported or not. */
  completed(): void {
    this.#answered()
  }

  #answered(): void {
    if (!this.#isAwaiting) return
    this.#isAwaiting = false
    this.#rounds += 1
  }

  /** Undefined when the harness reported no tokens of what it used. */
  get usage(): ServeUsage | undefined {
    const { input, output, read, write } = this.#sum
    const isReported = [input, output, read, write].some((value) => value !== null)
    if (!isReported && !(this.#reportsRounds && this.#rounds === 0)) return undefined
    return { input: (input ?? 0) + (read ?? 0) + (write ?? 0), output: output ?? 0, rounds: this.#rounds }
  }

  get detail(): UsageDetail | undefined {
    const { read, reasoning, write } = this.#sum
    const cost = this.#cost
    return [read, write, reasoning, cost].every((value) => value === null)
      ? undefined
      : { cacheRead: read, cacheWrite: write, reasoning, cost }
  }
}
