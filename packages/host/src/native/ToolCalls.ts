/**
 * The calls of one response: check, approval, dispatch record, run, end (AGT-004, AGT-005, AGT-013, AGT-033, AGT-035).
 *
 * It owns their order and their events. It does not own the policy (the runtime's `decide` asks the host's), the tools
 * (`tools/`), nor the response itself. Every call gets exactly one end; a call with a dispatch record and no end, as a
 * crash leaves it, ends `unknown` and is not run again (RUN-522). A failed tool is an answer to the model, never a
 * failed turn.
 */
import type { HarnessError } from "@tackroom/protocol"
import type { HarnessEvent } from "@tackroom/protocol/events"
import { Deferred, Effect, Fiber, type Schema } from "effect"
import { completed, dispatchRecord, notRun, problemEnd, type ToolCallsInput } from "./CallEvents.ts"
import { answerQuestion, askQuestion, questionProblem, updatePlan, type Answered } from "./InternalTools.ts"
import type { SessionSetup, SessionTool, ToolProblem } from "./SessionSetup.ts"
import type { Call } from "./Transcript.ts"

/** A response may hold this many calls (AGT-013). */
export const callLimit = 64
/** Neighbouring calls of category read run at once, at most this many (AGT-004). */
export const parallelReads = 8

type Verdict =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly code: "denied" | "cancelled"; readonly why: string }

const allowed: Verdict = { allowed: true }

/** Modes `only` and `never` keep a record of every call, `always` and `reviewer` of those that are no reads (AGT-110). */
export const needsApproval = (setup: SessionSetup, tool: SessionTool): boolean => {
  if (tool.category === undefined) return false
  const keepsAll = setup.approvals.mode === "only" || setup.approvals.mode === "never"
  return keepsAll || tool.category !== "read"
}

/** Says why a call cannot be run at all, before anybody is asked. */
const objection = (setup: SessionSetup, call: Call, index: number): string | undefined => {
  if (index >= callLimit) return `a response may hold at most ${callLimit} calls`
  const tool = setup.tools.find((tool) => tool.alias === call.alias)
  if (tool === undefined) return "no tool of this name is available"
  if (call.problem === "not_json") return "the arguments are not valid JSON"
  if (call.problem === "too_deep") return "the arguments are nested too deep"
  if (call.problem !== undefined) return "the arguments are not a JSON object"
  const issues = tool.validate(call.input)
  if (issues.length === 0) return tool.qualifiedName === "ask_user" ? questionProblem(call.input) : undefined
  const listed = issues.slice(0, 10).map((issue) => `${issue.path}: expected ${issue.expected}`)
  return `the arguments do not fit the tool's schema. ${listed.join("; ")}`
}

/** Ends every call of a response that is still open, in order. Returns when each has its end emitted. */
export const runCalls = Effect.fnUntraced(function* (input: ToolCallsInput) {
  const { output, response, setup } = input
  const runnable: Array<{ readonly call: Call; readonly tool: SessionTool }> = []
  for (const [index, call] of response.calls.entries()) {
    if (call.end !== undefined) continue
    if (call.dispatched) {
      yield* output.emit(problemEnd(call, { outcome: "unknown", message: "the host ended while it ran" }))
      continue
    }
    const why = objection(setup, call, index)
    const tool = setup.tools.find((tool) => tool.alias === call.alias)
    if (why !== undefined || tool === undefined) {
      yield* output.emit(notRun(call, "failed", why ?? "no tool of this name is available"))
    } else runnable.push({ call, tool })
  }
  if (runnable.length === 0) return

  // Whatever needs a person is pending at once (AGT-004, AGT-180); each call then waits for its own.
  const jobs = yield* Effect.forEach(runnable, ({ call, tool }) => raise(input, call, tool))
  for (const { raised } of jobs) if (raised !== undefined) yield* Deferred.await(raised)
  for (const batch of inBatches(jobs)) {
    yield* Effect.forEach(batch, (job) => runOne(input, job), { concurrency: parallelReads, discard: true })
  }
})

interface Job {
  readonly call: Call
  readonly tool: SessionTool
  readonly verdict?: Fiber.Fiber<Verdict, HarnessError>
  /** The request for approval is in the journal. */
  readonly raised?: Deferred.Deferred<void>
  readonly answer?: Fiber.Fiber<Answered, HarnessError>
}

const raise = Effect.fnUntraced(function* (input: ToolCallsInput, call: Call, tool: SessionTool) {
  if (tool.qualifiedName === "ask_user") {
    const answer = yield* Effect.forkChild(askQuestion(input, call))
    return { call, tool, answer } satisfies Job
  }
  if (!needsApproval(input.setup, tool)) return { call, tool } satisfies Job
  const changed = bindingMatters(input.setup, tool)
  if (changed && !call.noticed) yield* input.output.emit(bindingNotice(call, tool))
  const raised = yield* Deferred.make<void>()
  const verdict = yield* Effect.forkChild(
    askFor(input, call, tool, changed, raised).pipe(Effect.ensuring(Deferred.succeed(raised, undefined)))
  )
  return { call, tool, verdict, raised } satisfies Job
})

/** Under `always` a person is asked anyway, and may allow the tool as it is now for the session (AGT-121). */
const bindingMatters = (setup: SessionSetup, tool: SessionTool): boolean =>
  setup.approvals.mode !== "always" && setup.bindingChanged(tool.qualifiedName)

const bindingNotice = (call: Call, tool: SessionTool): HarnessEvent => ({
  type: "harness-notice",
  code: "binding_changed",
  severity: "warn",
  message: `${tool.qualifiedName} is no longer what it was when this session was made; a person decides each call`,
  details: { tool: tool.alias, qualified_name: tool.qualifiedName, tool_call_id: call.callId }
})

/** Neighbouring reads together, everything else alone. */
const inBatches = (jobs: ReadonlyArray<Job>): ReadonlyArray<ReadonlyArray<Job>> => {
  const batches: Array<Array<Job>> = []
  let reading = false
  for (const job of jobs) {
    const isRead = job.tool.category === "read"
    const last = batches.at(-1)
    if (last !== undefined && isRead && reading) last.push(job)
    else batches.push([job])
    reading = isRead
  }
  return batches
}

const askFor = Effect.fnUntraced(
  function* (
    input: ToolCallsInput,
    call: Call,
    tool: SessionTool,
    bindingChanged: boolean,
    raised: Deferred.Deferred<void>
  ) {
    const decision = yield* input.context.ask.permission({
      raised,
      sessionId: input.setup.sessionId,
      turnId: input.turnId,
      nativeRequestId: call.callId,
      tool: tool.alias,
      title: tool.qualifiedName,
      arguments: call.input,
      toolCallId: call.callId,
      paths: pathsOf(call.input),
      ...(tool.category === undefined ? {} : { category: tool.category }),
      details: detailsOf(tool, call.input, bindingChanged),
      options: [
        { id: "once", label: "Allow once", kind: "allow_once" },
        ...(bindingChanged ? [] : [forSession]),
        { id: "deny", label: "Deny", kind: "reject_once" }
      ]
    })
    if (decision.decision === "allow_once" || decision.decision === "allow_always") return allowed
    const who = decision.origin === "person" ? "a person" : "the policy of this host"
    const note = decision.note === undefined ? "" : ` ${decision.note}`
    return { allowed: false, code: "denied", why: `${who} denied this call.${note}` } satisfies Verdict
  },
  (effect) =>
    Effect.catchTag(effect, "Withdrawn", (withdrawn) =>
      Effect.succeed<Verdict>({
        allowed: false,
        code: withdrawn.reason === "cancelled" ? "cancelled" : "denied",
        why: `the request for approval was withdrawn (${withdrawn.reason})`
      })
    )
)

const forSession = { id: "session", label: "Allow for this session", kind: "allow_always" } as const

const pathsOf = (input: Schema.Json): ReadonlyArray<string> => {
  if (typeof input !== "object" || input === null || !("path" in input)) return []
  return typeof input.path === "string" ? [input.path] : []
}

/** `reason` says why a person is asked though the agent's policy would not (run-protocol 15). */
const detailsOf = (tool: SessionTool, input: Schema.Json, bindingChanged: boolean) => ({
  ...(bindingChanged ? { reason: "binding_changed" } : {}),
  ...(tool.qualifiedName === "shell.run" &&
  typeof input === "object" &&
  input !== null &&
  "command" in input &&
  typeof input.command === "string"
    ? { command: input.command }
    : {})
})

const runOne = Effect.fnUntraced(function* (input: ToolCallsInput, { answer, call, tool, verdict }: Job) {
  const { output, setup } = input
  if (answer !== undefined) return yield* answerQuestion(input, call, yield* Fiber.join(answer))
  const decided = verdict === undefined ? allowed : yield* Fiber.join(verdict)
  if (!decided.allowed) return yield* output.emit(notRun(call, decided.code, decided.why))
  if (tool.qualifiedName === "plan.update") return yield* updatePlan(input, call)

  let interrupted: ToolProblem = { outcome: "failed", code: "cancelled", message: "ended when the turn was cancelled" }
  yield* input
    .execute({
      sessionId: setup.sessionId,
      workspace: setup.workspace,
      tool: tool.qualifiedName,
      ...(tool.boundTo === undefined ? {} : { boundTo: tool.boundTo }),
      arguments: call.input,
      keepArtifact: (mime, bytes) => input.context.artifacts.put(setup.sessionId, mime, bytes),
      beforeDispatch: Effect.andThen(output.emit(dispatchRecord(call)), output.durable),
      onDelta: (stream, delta) => output.emit({ type: "tool-output-delta", toolCallId: call.callId, delta, stream }),
      onTerminal: (terminalId) => output.emit({ type: "tool-terminal", toolCallId: call.callId, terminalId }),
      ifInterrupted: (problem) => {
        interrupted = problem
      }
    })
    .pipe(
      Effect.matchEffect({
        onFailure: (problem) => output.emit(problemEnd(call, problem)),
        onSuccess: (result) =>
          result.diff === undefined
            ? output.emit(completed(call, result.output, result.attachments))
            : output.emit(
                { type: "file-diff", toolCallId: call.callId, ...result.diff },
                completed(call, result.output)
              )
      }),
      Effect.onInterrupt(() =>
        output.cancelling()
          ? output.emit(problemEnd(call, call.dispatched ? interrupted : { ...interrupted, outcome: "not_run" }))
          : Effect.void
      )
    )
})
