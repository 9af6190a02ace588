/** The assistant text of a run, by response: what is said, what was taken back, and what is the answer (4.3). Pure. */
import type { EventOf } from "@tackroom/protocol/events"

interface Said {
  readonly responseId: string
  /** Number of the round it was said in, from 1. */
  readonly round: number
  readonly text: string
}

export class AnswerText {
  /** Text of the parts that are open, as its deltas had it. */
  readonly #open = new Map<string, Array<string>>()
  #said: Array<Said> = []
  #responseId = ""

  response(responseId: string): void {
    this.#responseId = responseId
  }

  delta({ delta, partId }: EventOf<"text-delta"> | EventOf<"thinking-delta">): void {
    const chunks = this.#open.get(partId)
    if (chunks === undefined) this.#open.set(partId, [delta])
    else chunks.push(delta)
  }

  /** Whether the part's whole text is another one than its deltas were. */
  end({ channel, partId, text }: EventOf<"text-end">, round: number): boolean {
    const streamed = this.#open.get(partId)?.join("") ?? ""
    this.#open.delete(partId)
    if (channel === "text") this.#said.push({ responseId: this.#responseId, round, text })
    return streamed !== text
  }

  retract(responseIds: ReadonlyArray<string>): void {
    this.#said = this.#said.filter(({ responseId }) => !responseIds.includes(responseId))
  }

  /** The last text; of the first `rounds` rounds only, when a cap stopped the next one (SRV-264). */
  last(rounds = Number.POSITIVE_INFINITY): string {
    return this.#said.findLast(({ round }) => round <= rounds)?.text ?? ""
  }
}
