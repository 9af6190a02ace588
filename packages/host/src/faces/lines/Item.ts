/** What a projection makes of events, before it has numbers, ids of ops and a run's name (`RunLines` adds those). */
import type { LogLine, Notice, RunFault, ServeUsage, StopReason, UsageDetail } from "@tackroom/protocol/serve"

/** How the asks of a run ended, as `result.asks` counts them. */
export interface AskCounts {
  readonly allowed: number
  readonly refused: number
  readonly unanswered: number
}

/** How a run ended: what `result` and `last_run` say. */
export interface End {
  readonly cursor: number | undefined
  readonly status: "completed" | "failed" | "cancelled"
  readonly stopReason: StopReason
  readonly cancelled: boolean
  readonly answer: string
  readonly errors: ReadonlyArray<RunFault>
  readonly usage: ServeUsage | undefined
  readonly usageDetail: UsageDetail | undefined
  readonly uncertain: ReadonlyArray<{ readonly id: string; readonly name: string }>
  readonly asks: AskCounts
  /** False only for the two ends that no store could keep (SRV-304, SRV-305). */
  readonly committed: boolean
}

export type Item =
  | { readonly type: "start"; readonly cursor: number; readonly turnId: string; readonly prompt: string }
  | { readonly type: "delta"; readonly cursor: number; readonly text: string }
  | ({ readonly type: "notify"; readonly cursor?: number } & Notice)
  | ({ readonly type: "log"; readonly cursor: number } & Pick<
      LogLine,
      "message" | "messageTruncated" | "level" | "code"
    >)
  | { readonly type: "result"; readonly end: End }

export const noAsks: AskCounts = { allowed: 0, refused: 0, unanswered: 0 }
