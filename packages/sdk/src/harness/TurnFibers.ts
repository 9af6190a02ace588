/**
 * Turns that run in this process as one fiber each, for drivers without a process of their own (HRN-019): their events on
 * the way to the runtime, and their cancel.
 *
 * A cancel is acknowledged when the fiber is gone, at whatever moment it comes; a fiber that ends because the runtime closes
 * says nothing more.
 *
 * @since 0.1.0
 */
import type { HarnessError } from "@tackroom/protocol"
import type { HarnessEvent } from "@tackroom/protocol/events"
import { Cause, Deferred, Effect, Exit, Fiber, Queue, Stream } from "effect"
import { makeBarrier, type HarnessItem, type Positioned, type TurnInput } from "./Harness.ts"

/** What a turn's fiber says. */
export interface TurnOutput {
  /** Hands events over; a full queue holds the turn back. */
  readonly emit: (events: ReadonlyArray<HarnessEvent | Positioned>) => Effect.Effect<void>
  /** Completes when everything emitted before it is committed (AGT-003). */
  readonly durable: Effect.Effect<void>
  readonly isCancelled: () => boolean
  /** From here on the turn ends by itself, and a cancel comes too late. */
  readonly close: () => void
}

/** A turn that runs. */
interface RunningTurn {
  fiber: Fiber.Fiber<void, HarnessError> | undefined
  isCancelled: boolean
  isClosing: boolean
}

/** The running turns of a driver. */
export interface TurnFibers {
  /** The turn's stream; its body starts with the first read. */
  readonly run: (
    turn: TurnInput,
    body: (output: TurnOutput) => Effect.Effect<void, HarnessError>
  ) => Stream.Stream<HarnessItem, HarnessError>
  readonly cancel: (turnId: string) => Effect.Effect<"acknowledged" | "idle">
  /** `open`: it can still be told something; `closing`: it ends, whatever is said. */
  readonly state: (turnId: string) => "none" | "open" | "cancelled" | "closing"
  readonly size: () => number
}

/** Items between a turn and the runtime. */
const queueCapacity = 256

/** Makes the running turns of a driver. */
export const makeTurnFibers = (): TurnFibers => {
  const turns = new Map<string, RunningTurn>()

  const outputOf = (running: RunningTurn, queue: Queue.Queue<HarnessItem, HarnessError | Cause.Done>): TurnOutput => ({
    emit: (events) => Effect.asVoid(Queue.offerAll(queue, events)),
    durable: Effect.flatMap(makeBarrier, (barrier) =>
      Effect.andThen(Queue.offer(queue, barrier), Deferred.await(barrier.committed))
    ),
    isCancelled: () => running.isCancelled,
    close: () => {
      running.isClosing = true
    }
  })

  const ended = (
    turn: TurnInput,
    running: RunningTurn,
    queue: Queue.Queue<HarnessItem, HarnessError | Cause.Done>,
    exit: Exit.Exit<void, HarnessError>
  ): Effect.Effect<unknown> => {
    if (Exit.isSuccess(exit)) return Queue.end(queue)
    if (!Cause.hasInterrupts(exit.cause)) return Queue.failCause(queue, exit.cause)
    if (!running.isCancelled || running.isClosing) return Queue.end(queue)
    const cancelled: HarnessEvent = {
      type: "cancelled",
      sessionId: turn.binding.sessionId,
      assistantMessageId: turn.assistantMessageId,
      reason: "requested"
    }
    return Effect.andThen(Queue.offer(queue, cancelled), Queue.end(queue))
  }

  return {
    run: (turn, body) =>
      Stream.unwrap(
        Effect.gen(function* () {
          const queue = yield* Queue.bounded<HarnessItem, HarnessError | Cause.Done>(queueCapacity)
          const running: RunningTurn = { fiber: undefined, isCancelled: false, isClosing: false }
          turns.set(turn.turnId, running)
          // At once: a fiber that is interrupted before its first step would end nothing.
          running.fiber = yield* Effect.forkScoped(
            Effect.onExit(body(outputOf(running, queue)), (exit) => Effect.asVoid(ended(turn, running, queue, exit))),
            { startImmediately: true }
          )
          // Runs before the fiber is interrupted: with nobody left to read, nothing waits for room.
          yield* Effect.addFinalizer(() => Queue.shutdown(queue))
          return Stream.fromQueue(queue).pipe(Stream.ensuring(Effect.sync(() => turns.delete(turn.turnId))))
        })
      ),
    cancel: (turnId) =>
      Effect.suspend(() => {
        const running = turns.get(turnId)
        if (running?.fiber === undefined || running.isClosing) return Effect.succeed("idle" as const)
        running.isCancelled = true
        return Effect.as(Fiber.interrupt(running.fiber), "acknowledged" as const)
      }),
    state: (turnId) => {
      const running = turns.get(turnId)
      if (running === undefined) return "none"
      if (running.isClosing) return "closing"
      return running.isCancelled ? "cancelled" : "open"
    },
    size: () => turns.size
  }
}
