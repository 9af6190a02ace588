/**
 * Plays the calls of one response: asks first where the scenario says so, all at once; then each call in its order (AGT-335).
 * Nothing is run. After a crash a call that had started is reported `uncertain` and not played again.
 */
import type { HarnessError } from "@tackroom/protocol"
import type { HarnessEvent, PermissionOption } from "@tackroom/protocol/events"
import { Effect, Fiber } from "effect"
import type { CallStep } from "../../scenario/index.ts"
import type { HarnessContext, PermissionDecision } from "../Harness.ts"
import type { PlayedCall, Progress } from "./Progress.ts"
import { displayOf, faceOf, textOf, titleOf } from "./ToolFace.ts"

/** What the parts of a turn share. */
export interface TurnOutput {
  readonly emit: (...events: ReadonlyArray<HarnessEvent>) => Effect.Effect<void>
  /** Returns when everything emitted before is durable. */
  readonly durable: Effect.Effect<void>
  /** Waits on the Effect clock, as scaled by the option `speed`. */
  readonly wait: (ms: number) => Effect.Effect<void>
}

export interface CallInput extends TurnOutput {
  readonly context: HarnessContext
  readonly progress: Progress
  readonly sessionId: string
  readonly turnId: string
  /** `ask`: everything but reading is asked; `auto`: what the scenario asks; `full`: nothing is. */
  readonly mode: "ask" | "auto" | "full"
  /** The process ends after these calls: those without an end of their own stay open. */
  readonly endsOpen: boolean
}

const usualOptions: ReadonlyArray<PermissionOption> = [
  { id: "allow_once", label: "Allow once", kind: "allow_once" },
  { id: "allow_always", label: "Allow for this session", kind: "allow_always" },
  { id: "reject_once", label: "Reject", kind: "reject_once" }
]

export const callId = (responseId: string, index: number): string => `${responseId}.c${index + 1}`

/** The events that show a call before it runs. */
export const announceCall = (id: string, step: CallStep): ReadonlyArray<HarnessEvent> => [
  {
    type: "tool-start",
    toolCallId: id,
    toolName: step.tool,
    kind: faceOf(step.tool).kind,
    display: displayOf(step.tool, step.arguments)
  },
  { type: "tool-input", toolCallId: id, input: step.arguments }
]

const optionsFor = (input: CallInput, step: CallStep): ReadonlyArray<PermissionOption> | undefined => {
  if (input.mode === "full" || input.progress.always.has(step.tool)) return undefined
  if (step.ask === undefined) {
    return input.mode === "ask" && faceOf(step.tool).category !== "read" ? usualOptions : undefined
  }
  return step.ask === true ? usualOptions : step.ask
}

type Verdict = "allowed" | { readonly refused: string }

const verdictOf = (decision: PermissionDecision): Verdict =>
  decision.decision === "allow_once" || decision.decision === "allow_always"
    ? "allowed"
    : { refused: decision.note ?? "The person refused this call." }

const ask = (
  input: CallInput,
  id: string,
  step: CallStep,
  options: ReadonlyArray<PermissionOption>
): Effect.Effect<Verdict, HarnessError> => {
  const path = textOf(step.arguments, "path")
  const command = textOf(step.arguments, "command")
  const url = textOf(step.arguments, "url")
  return input.context.ask
    .permission({
      sessionId: input.sessionId,
      turnId: input.turnId,
      nativeRequestId: `${id}.ask`,
      tool: step.tool,
      title: titleOf(step.tool, step.arguments),
      arguments: step.arguments,
      toolCallId: id,
      category: faceOf(step.tool).category,
      paths: path === undefined ? [] : [path],
      details: { ...(command === undefined ? {} : { command }), ...(url === undefined ? {} : { url }) },
      options
    })
    .pipe(
      Effect.map((decision) => {
        if (decision.decision === "allow_always") input.progress.always.add(step.tool)
        return verdictOf(decision)
      }),
      Effect.catchTag("Withdrawn", (withdrawn) =>
        Effect.succeed<Verdict>({ refused: `The request was withdrawn: ${withdrawn.reason}.` })
      )
    )
}

const sideEvents = (id: string, step: CallStep): ReadonlyArray<HarnessEvent> => {
  const stdout = step.tool === "shell.run" ? textOf(step.output, "stdout") : undefined
  if (stdout !== undefined && stdout !== "") {
    return [{ type: "tool-output-delta", toolCallId: id, delta: stdout, stream: "stdout" }]
  }
  const path = step.tool === "files.write" ? textOf(step.arguments, "path") : undefined
  const newText = textOf(step.arguments, "content")
  return path === undefined || newText === undefined ? [] : [{ type: "file-diff", toolCallId: id, path, newText }]
}

const playOne = Effect.fnUntraced(function* (input: CallInput, id: string, step: CallStep) {
  yield* input.emit({ type: "tool-status", toolCallId: id, status: "running" })
  yield* input.wait(step.runningMs ?? 0)
  if (step.error !== undefined) {
    return yield* input.emit({ type: "tool-error", toolCallId: id, error: step.error, code: "failed" })
  }
  if (input.endsOpen && step.output === undefined) return
  yield* input.emit(...sideEvents(id, step), { type: "tool-output", toolCallId: id, output: step.output ?? null })
})

/** Plays what is left of a response's calls; `played` is what the session's events already say of them. */
export const playCalls = Effect.fnUntraced(function* (
  input: CallInput,
  responseId: string,
  steps: ReadonlyArray<CallStep>,
  played: ReadonlyArray<PlayedCall>
) {
  const left: Array<{ readonly id: string; readonly step: CallStep }> = []
  for (const [index, step] of steps.entries()) {
    const id = callId(responseId, index)
    const known = played.find((call) => call.callId === id)
    if (known?.ended === true) continue
    if (known?.started === true) {
      yield* input.emit({
        type: "tool-status",
        toolCallId: id,
        status: "uncertain",
        metadata: { reason: "The harness was restarted while the call ran." }
      })
    } else left.push({ id, step })
  }
  // The calls are in the journal before anyone is asked about them.
  yield* input.durable
  const asked = yield* Effect.forEach(left, ({ id, step }) => {
    const options = optionsFor(input, step)
    return options === undefined
      ? Effect.succeed(undefined)
      : Effect.forkChild(ask(input, id, step, options), { startImmediately: true })
  })
  for (const [index, { id, step }] of left.entries()) {
    const fiber = asked[index]
    const verdict = fiber === undefined ? "allowed" : yield* Fiber.join(fiber)
    if (verdict === "allowed") yield* playOne(input, id, step)
    else yield* input.emit({ type: "tool-error", toolCallId: id, error: verdict.refused, code: "denied" })
  }
})
