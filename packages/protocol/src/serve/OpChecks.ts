/**
 * What an op may do in the state a serve-mode program is in: the ordered checks of SRV-100, SRV-103 and SRV-190 to 192.
 * Pure; the state is a view that the program gives.
 *
 * @since 0.1.0
 */
import type { ReadOp } from "./OpReading.ts"
import { refuse, type Refusal } from "./Refusal.ts"

/** The state that ops are checked against. @since 0.1.0 */
export interface ServeView {
  /** The run whose `result` is not written yet; null when there is none. */
  readonly activeRunId: string | null
  /** The outcome of the active run is committed: it can neither be cancelled nor answered any more. */
  readonly isOver: boolean
  /** It is being stopped. */
  readonly isCancelling: boolean
  /** A run id of an accepted `submit` of this process. */
  readonly wasUsed: (runId: string) => boolean
  readonly openAsk: string | undefined
  /** The last ask of this run that ended without an answer of the driver's. */
  readonly missedAsk: string | undefined
}

type OpOf<Name extends ReadOp["op"]> = Extract<ReadOp, { readonly op: Name }>

/** Whether a run may start; what the store knows of its submission comes after (SRV-299). @since 0.1.0 */
export const checkSubmit = (op: OpOf<"submit">, view: ServeView): Refusal | undefined => {
  if (view.activeRunId !== null) return refuse("busy", { activeRunId: view.activeRunId })
  return view.wasUsed(op.runId) ? refuse("run_id_reused", { runId: op.runId }) : undefined
}

const checkRun = (runId: string | null, view: ServeView): Refusal | undefined => {
  const activeRunId = view.isOver ? null : view.activeRunId
  return activeRunId !== null && runId === activeRunId ? undefined : refuse("unknown_run", { runId, activeRunId })
}

/** Whether the active run may be cancelled; a second time is fine and changes nothing. @since 0.1.0 */
export const checkCancel = (op: OpOf<"cancel">, view: ServeView): Refusal | undefined => checkRun(op.runId, view)

/** Whether the answer settles the open ask; whether its values fit is checked after. @since 0.1.0 */
export const checkAnswer = (op: OpOf<"answer">, view: ServeView): Refusal | undefined => {
  const run = checkRun(op.runId, view)
  if (run !== undefined) return run
  if (op.askId === undefined && view.missedAsk !== undefined) {
    return refuse("ambiguous_answer", { askId: view.missedAsk })
  }
  const open = view.isCancelling ? undefined : view.openAsk
  if (op.askId !== undefined && open !== undefined && op.askId !== open) {
    return refuse("stale_answer", { askId: op.askId, pendingAskId: open })
  }
  return open === undefined ? refuse("no_pending_ask", {}) : undefined
}
