/**
 * The ids under which an agent's requests are submitted: the agent's own, unless a rig could not tell the request by it.
 *
 * A rig refuses an id that came before, or that fits no field of the wire, without asking anybody, and such a refusal
 * permits (rows Q8 and Q9). An agent chooses its ids; so an id that it uses again, or that does not fit, is submitted under
 * another one. The agent's answer goes to its own id all the same: that is the connection's business.
 */
import { identifierText, seatLimits } from "@tackroom/protocol/seat"
import { utf8Length } from "@tackroom/protocol/text"
import { createHash } from "node:crypto"

export type RequestId = string | number | null

/** Stands for a text that is too long for the wire, or that a store would not give back as it was. */
export const digestOf = (text: string): string =>
  `sha256:${createHash("sha256").update(JSON.stringify(text)).digest("hex")}`

const fitting = (id: unknown): RequestId => {
  if (id === null || (typeof id === "number" && Number.isFinite(id))) return id
  const text = typeof id === "string" ? id : `${typeof id} ${typeof id === "number" ? String(id) : JSON.stringify(id)}`
  const fits = typeof id === "string" && id.isWellFormed() && utf8Length(id) <= seatLimits.nameBytes
  return fits ? id : digestOf(text)
}

/** Gives each request of a process an id of its own. Whatever the agent sent as an id is taken. */
export const makeRequestIds = (): ((id: unknown) => RequestId) => {
  /** How often the agent has used an id, by the text that a rig compares. */
  const uses = new Map<string, number>()
  return (id) => {
    const own = fitting(id)
    const text = identifierText(own)
    let use = (uses.get(text) ?? 0) + 1
    let given = own
    // The agent may have used the next one of ours, too.
    while (use > 1 && uses.has(identifierText((given = fitting(`${text}#${use}`))))) use += 1
    uses.set(text, use)
    if (use > 1) uses.set(identifierText(given), 1)
    return given
  }
}
