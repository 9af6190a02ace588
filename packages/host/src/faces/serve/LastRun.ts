/** How the last turn of a resumed session ended, for a driver that lost its result (SRV-296). */
import type { RuntimeError } from "@tackroom/protocol"
import type { LastRun } from "@tackroom/protocol/serve"
import { Effect } from "effect"
import type { Runs } from "../../runs/Runs.ts"
import type { End } from "../lines/Item.ts"
import { Projection } from "../lines/Projection.ts"

export const readLastRun = Effect.fnUntraced(function* (
  runs: Pick<Runs, "entries" | "lastTurn">,
  sessionId: string,
  reportsRounds: boolean
): Effect.fn.Return<LastRun | undefined, RuntimeError> {
  const last = yield* runs.lastTurn(sessionId)
  if (last === undefined) return undefined
  const { lostAsks, turn } = last
  const projection = new Projection({ turnId: turn.id, answerTimeout: undefined, reportsRounds, baseline: new Map() })
  projection.cancelAsked()
  let end: End | undefined
  for (let cursor = turn.startSeq; end === undefined;) {
    const page = yield* runs.entries(sessionId, cursor)
    for (const entry of page.entries) {
      cursor = entry.cursor
      for (const item of projection.push(entry)) if (item.type === "result") end = item.end
    }
    if (page.entries.length === 0 || cursor >= page.head) break
  }
  if (end === undefined) return undefined
  return {
    submissionId: turn.messageId,
    turnId: turn.id,
    status: end.status,
    stopReason: end.stopReason,
    answer: end.answer,
    errors: end.errors,
    cursor: end.cursor ?? 0,
    ...(end.uncertain.length === 0 ? {} : { uncertain: end.uncertain }),
    ...(lostAsks.length === 0 ? {} : { withdrawnAsks: lostAsks })
  }
})
