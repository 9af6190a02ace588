/** A request that a person was asked about, as the rig of a case keeps it: pending until the case settles it. */
import { idText, type JsonObject } from "../../Json.ts"

/** How an ask stands. */
export type AskState =
  | { readonly state: "pending" }
  | { readonly state: "answered" | "permitted"; readonly optionId: string; readonly said?: string }
  | { readonly state: "refused" | "withdrawn"; readonly reason: string; readonly said?: string }
  | { readonly state: "stale" }

export interface Ask {
  readonly askId: string
  readonly requestId: string
  readonly turnId: string
  readonly state: () => AskState
  /** Settles it, and tells those that wait. */
  readonly settle: (state: AskState) => void
  /** Tells once, when it is settled; the result forgets that. */
  readonly onSettled: (tell: () => void) => () => void
}

export const makeAsk = (askId: string, body: JsonObject): Ask => {
  const waiting = new Set<() => void>()
  let state: AskState = { state: "pending" }
  return {
    askId,
    requestId: idText(body["requestId"]) ?? "",
    turnId: idText(body["turnId"]) ?? "",
    state: () => state,
    settle: (next) => {
      state = next
      for (const tell of Array.from(waiting)) {
        waiting.delete(tell)
        tell()
      }
    },
    onSettled: (tell) => {
      waiting.add(tell)
      return () => void waiting.delete(tell)
    }
  }
}
