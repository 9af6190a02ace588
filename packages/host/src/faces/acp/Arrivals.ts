/**
 * Prompts in the order in which their frames were read (ACP-008). The SDK may begin a `session/cancel` before the prompt that
 * was sent ahead of it, so a cancel is noted against what had arrived by then: a prompt that is not begun yet will find it.
 *
 * It holds live requests and nothing else; an answered one is gone.
 */

/** A prompt that was read and is not answered. */
export interface Arrival {
  readonly id: string | number | null
  readonly sessionId: string
  cancelled: boolean
  /** Called when a cancel comes while its turn runs. */
  onCancel: (() => void) | undefined
}

export class Arrivals {
  readonly #open: Array<Arrival & { taken: boolean }> = []

  /** The frame of a prompt was read. */
  read(id: Arrival["id"], sessionId: string): void {
    this.#open.push({ id, sessionId, cancelled: false, onCancel: undefined, taken: false })
  }

  /** The prompt's handler begins. */
  begin(id: Arrival["id"], sessionId: string): Arrival {
    const arrival = this.#open.find((open) => !open.taken && open.id === id && open.sessionId === sessionId)
    if (arrival === undefined) return { id, sessionId, cancelled: false, onCancel: undefined }
    arrival.taken = true
    return arrival
  }

  /** A response for that id was written. */
  answered(id: Arrival["id"]): void {
    const index = this.#open.findIndex((open) => open.id === id)
    if (index >= 0) this.#open.splice(index, 1)
  }

  /** A cancel was read: of a session's prompts, or of the request with that id. */
  cancel(what: { readonly sessionId: string } | { readonly id: Arrival["id"] }): void {
    for (const open of this.#open) {
      const isMeant = "sessionId" in what ? open.sessionId === what.sessionId : open.id === what.id
      if (!isMeant || open.cancelled) continue
      open.cancelled = true
      open.onCancel?.()
    }
  }

  /** The client is gone. */
  cancelAll(): void {
    for (const open of this.#open) {
      if (open.cancelled) continue
      open.cancelled = true
      open.onCancel?.()
    }
  }
}
