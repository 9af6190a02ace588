/**
 * One turn as a run of a serve-mode program: its id is the turn's (HRN-220), its result the turn's end. A program that
 * breaks off with an `error` line and gives no result ends the turn too, as a fault of the protocol (HRN-221).
 */
import type { HarnessError } from "@tackroom/protocol"
import type { HarnessEvent } from "@tackroom/protocol/events"
import type { ErrorLine, RunLine } from "@tackroom/protocol/serve"
import { Deferred, Effect, Exit, Option } from "effect"
import { classifyTurnError } from "../Definitions.ts"
import { makeFrames } from "../Frames.ts"
import type { HarnessContext, TurnInput } from "../Harness.ts"
import type { TurnOutput } from "../TurnFibers.ts"
import { makeServeAsks } from "./ServeAsks.ts"
import { endOfResult } from "./ResultLines.ts"
import { newRun, type RunProgress } from "./RunProgress.ts"
import { translateLine } from "./ServeLines.ts"
import type { RunItem, ServeProcess } from "./ServeProcess.ts"

/** A turn that runs, as its cancel sees it. */
export interface RunningTurn {
  /** Completes when the program took the run, or will not. */
  readonly submitted: Deferred.Deferred<void>
  /** Completes with the turn's terminal event. */
  readonly over: Deferred.Deferred<HarnessEvent>
}

export const makeRunningTurn = (): RunningTurn => ({ submitted: Deferred.makeUnsafe(), over: Deferred.makeUnsafe() })

export interface ServeTurnInput {
  readonly turn: TurnInput
  readonly prompt: string
  readonly output: TurnOutput
  readonly running: RunningTurn
  readonly program: ServeProcess
  readonly context: HarnessContext
}

/** How long an `error` line in a run waits for a result that may follow it. */
const resultGraceMs = 1_000
/** How long a run that was given up may take to its result; a program that took the cancel is free then. */
const cancelGraceMs = 5_000
/** A program of the bare contract may still be closing its last run when the next one comes. */
const busyTries = 20
const busyWaitMs = 50

/** A frame for the translation: a line, or what could not be read as one. */
type Frame = { readonly line: RunLine } | { readonly kind: string; readonly broken: boolean }

/** The program was closed by us: whoever did that says how the turn ends. */
const isOurs = (error: HarnessError): boolean => error._tag === "HarnessUnavailable"

const messageOf = (line: ErrorLine): string => line.error.message.slice(0, 2_000)

/** Runs the turn to its end. Fails with nothing: whatever happens is the turn's end. */
export const followServe = (input: ServeTurnInput): Effect.Effect<void, HarnessError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { context, output, program, running, turn } = input
      const { assistantMessageId } = turn
      const { sessionId } = turn.binding
      const stop = Deferred.makeUnsafe<HarnessEvent>()
      const inbox = yield* program.listen(turn.turnId)
      yield* Effect.addFinalizer(() => inbox.close)

      const failure = (error: string, code: "harness_protocol" | "harness_error"): HarnessEvent => ({
        type: "error",
        error,
        code,
        errorClass: "harness",
        assistantMessageId
      })

      const lost = (error: HarnessError): HarnessEvent => {
        if (error._tag !== "HarnessProcessExited") return failure(error.message, "harness_protocol")
        const { exitCode, signal, stderrTail } = error
        return {
          type: "error",
          error: error.message,
          code: "harness_process_exited",
          errorClass: "harness",
          assistantMessageId,
          process: {
            ...(exitCode === undefined ? {} : { code: exitCode }),
            ...(signal === undefined ? {} : { signal }),
            ...(stderrTail === undefined ? {} : { stderrTail })
          }
        }
      }

      const end = (event: HarnessEvent): Effect.Effect<void> =>
        Effect.suspend(() => {
          output.close()
          Deferred.doneUnsafe(running.submitted, Exit.void)
          Deferred.doneUnsafe(running.over, Exit.succeed(event))
          return output.emit([event])
        })

      const frames = makeFrames<RunProgress, Frame>({
        initial: newRun({
          turnId: turn.turnId,
          sessionId,
          assistantMessageId,
          hasToolStatus: program.has("tool_status")
        }),
        kindOf: (frame) => ("line" in frame ? frame.line.type : frame.kind),
        translate: (state, frame) => {
          if ("line" in frame) return translateLine(state, frame.line)
          if (frame.broken) throw new Error("it does not fit its schema")
          return "unknown"
        }
      })

      let answers = 0
      const asks = yield* makeServeAsks({
        turn,
        context,
        has: program.has,
        durable: output.durable,
        answer: (op) => {
          const opId = `${turn.turnId}.answer${++answers}`
          // Without a refusal the run goes on; a reply to an accepted answer there is none.
          return program.ask({ ...op, opId }, Effect.sleep(resultGraceMs))
        },
        refused: (line) =>
          Effect.andThen(
            Effect.ignore(program.send({ op: "cancel", runId: turn.turnId })),
            Effect.asVoid(
              Deferred.succeed(stop, failure(`the program did not take an answer: ${messageOf(line)}`, "harness_error"))
            )
          )
      })

      // ------------------------------------------------------------ submitting

      const submitted = Effect.fnUntraced(function* (attempt: number) {
        const opId = attempt === 1 ? turn.turnId : `${turn.turnId}.${attempt}`
        // The first line of the run says that the op was taken.
        const first = Deferred.makeUnsafe<RunItem>()
        const listening = Effect.tap(inbox.take, (item) => Deferred.succeed(first, item))
        const refusal = yield* program.ask(
          {
            op: "submit",
            opId,
            runId: turn.turnId,
            prompt: input.prompt,
            ...(program.has("submission_id") ? { submissionId: turn.messageId } : {})
          },
          listening
        )
        return refusal ?? (yield* Deferred.await(first))
      })

      let first = yield* Effect.result(submitted(1))
      for (let attempt = 2; attempt <= busyTries; attempt++) {
        // What was refused did not happen, so it may be said again; only to a program that does not promise to take it.
        const isRefused = first._tag === "Success" && "error" in first.success && "message" in first.success
        if (!isRefused || program.has("submit_after_result")) break
        yield* Effect.sleep(busyWaitMs)
        first = yield* Effect.result(submitted(attempt))
      }
      if (first._tag === "Failure") {
        return yield* isOurs(first.failure) ? Effect.never : end(lost(first.failure))
      }
      if ("type" in first.success) return yield* end(failure(messageOf(first.success), "harness_protocol"))
      Deferred.doneUnsafe(running.submitted, Exit.void)

      // ------------------------------------------------------------ following

      const note = (line: RunLine): Effect.Effect<void> => {
        if (line.type !== "notify") return Effect.void
        if (line.kind === "ask") return asks.put(line.data)
        if (line.kind === "ask_resolved") return asks.over(line.data.askId, line.data.by === "driver")
        return Effect.void
      }

      /** Why the turn ends without its result, and how long one may still come. */
      let verdict: { readonly event: HarnessEvent; readonly graceMs: number } | undefined
      const given = Effect.map(Deferred.await(stop), (event) => ({ _tag: "Stop", event }) as const)
      const next = Effect.suspend(() => (verdict === undefined ? Effect.raceFirst(inbox.take, given) : inbox.take))
      let item: RunItem | { readonly _tag: "Stop"; readonly event: HarnessEvent } = first.success
      while (true) {
        switch (item._tag) {
          case "Line": {
            const events = frames.accept({ line: item.line })
            if (events.length > 0) yield* output.emit(events)
            if (item.line.type === "result") {
              const event = endOfResult({ sessionId, assistantMessageId }, item.line, classifyTurnError)
              return yield* end(verdict?.graceMs === cancelGraceMs ? verdict.event : event)
            }
            yield* note(item.line)
            break
          }
          case "Foreign": {
            const events = frames.accept({ kind: item.kind, broken: item.broken })
            if (events.length > 0) yield* output.emit(events)
            break
          }
          case "Refused":
            verdict ??= { event: failure(messageOf(item.line), "harness_protocol"), graceMs: resultGraceMs }
            break
          case "Gone":
            return yield* isOurs(item.error) ? Effect.never : end(lost(item.error))
          case "Stop":
            verdict = { event: item.event, graceMs: cancelGraceMs }
            break
        }
        if (verdict === undefined) {
          item = yield* next
          continue
        }
        const waited: Option.Option<RunItem | { readonly _tag: "Stop"; readonly event: HarnessEvent }> =
          yield* Effect.timeoutOption(next, verdict.graceMs)
        if (Option.isNone(waited)) return yield* end(verdict.event)
        item = waited.value
      }
    })
  )
