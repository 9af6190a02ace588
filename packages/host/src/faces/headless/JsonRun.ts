/**
 * A run for a program: `tackroom run --json` (HDL-013 to HDL-017, HDL-031). The lines of serve mode without its control
 * lines and ops; what would be an op is a signal or a reader that left.
 */
import { Effect, Fiber, type Scope } from "effect"
import { Projection } from "../lines/Projection.ts"
import { followRun } from "../lines/RunFeed.ts"
import { RunLines } from "../lines/RunLines.ts"
import { makeLinesOut } from "../lines/LinesOut.ts"
import type { FacePlan, FaceSession } from "../start/FaceHost.ts"
import { exitCodes } from "../start/NotStarted.ts"
import { LiveRun } from "../lines/LiveRun.ts"
import type { Edge } from "./Edge.ts"

/** How long lines that nobody reads are waited for at the end (SRV-229). */
const flushPatience = "10 seconds"

const aborted = (signal: AbortSignal): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const done = (): void => resume(Effect.void)
    if (signal.aborted) return done()
    signal.addEventListener("abort", done, { once: true })
    return Effect.sync(() => signal.removeEventListener("abort", done))
  })

/** Follows the run to its result; the answer is the exit code. */
export const followJson = (
  edge: Edge,
  opened: FaceSession,
  { budgets }: FacePlan,
  admitted: { readonly turnId: string; readonly after: number }
): Effect.Effect<number, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { cancelled, options, output } = edge
    const { runs } = opened.host
    const { sessionId } = opened.session
    const out = makeLinesOut(output)
    const projection = new Projection({
      turnId: admitted.turnId,
      answerTimeout: budgets.answerTimeout ?? undefined,
      reportsRounds: opened.capabilities.rounds,
      baseline: new Map()
    })
    const run = new LiveRun({
      runId: options.runId ?? "",
      lines: new RunLines({
        face: "headless",
        runId: options.runId,
        opId: undefined,
        events: options.events ?? "full",
        warnings: opened.warnings,
        model: opened.model,
        sessionId,
        duplicate: false
      }),
      projection,
      out,
      background: [],
      onResult: () => undefined
    })
    const following = yield* Effect.forkScoped(
      followRun({ runs, sessionId, after: admitted.after, projection, take: (items) => run.take(items) })
    )
    yield* Effect.forkScoped(
      Effect.andThen(
        aborted(cancelled),
        Effect.suspend(() => {
          run.cancel(output.isClosed() ? "gone" : "signal", undefined)
          return Effect.ignore(runs.cancel({ sessionId }))
        })
      )
    )
    const end = yield* Fiber.join(following)
    yield* Effect.timeoutOption(out.flushed, flushPatience)
    const completed = end === "committed" && projection.end?.status === "completed" && !cancelled.aborted
    return completed ? exitCodes.completed : exitCodes.ended
  })
