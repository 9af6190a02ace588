/**
 * What the lines of a run mean (serve-mode 4.3, 4.4). Pure: one line and what is known of the run give the events and what
 * is known then.
 *
 * Only the contract's kinds can be counted on. Calls may come without ids, and then by name in the order in which they were
 * announced; how a call ended is told only by programs that have `tool_status`, and is left out for the others.
 */
import type { ErrorClass, HarnessEvent } from "@tackroom/protocol/events"
import type { NotifyLine, RunLine, ServeUsage } from "@tackroom/protocol/serve"
import type { Schema } from "effect"

/** A call of the run, as far as it was told. */
interface Call {
  readonly id: string
  readonly name: string
  readonly state: "ready" | "running" | "ended"
}

/** What is known of a run after some of its lines. */
export interface RunProgress {
  readonly turnId: string
  readonly assistantMessageId: string
  readonly sessionId: string
  /** The program tells how each call ends. */
  readonly hasToolStatus: boolean
  /** Responses that began. */
  readonly rounds: number
  /** The attempt at the current response; 0 between responses. */
  readonly attempt: number
  /** The usage of the current response was told: its text is complete, its calls may still come. */
  readonly isCounted: boolean
  /** Attempts that the last response took, when it was void and comes again. */
  readonly failedAttempts: number
  /** Number of the current part; a part ends with its response or before a call. */
  readonly part: number
  readonly open: "text" | "thinking" | undefined
  readonly hasText: boolean
  readonly calls: ReadonlyArray<Call>
  /** Names that were announced and have no call yet. */
  readonly announced: ReadonlyArray<string>
}

/** A run before its first line. */
export const newRun = (
  of: Pick<RunProgress, "assistantMessageId" | "hasToolStatus" | "sessionId" | "turnId">
): RunProgress => ({
  ...of,
  rounds: 0,
  attempt: 0,
  isCounted: false,
  failedAttempts: 0,
  part: 0,
  open: undefined,
  hasText: false,
  calls: [],
  announced: []
})

export interface Translated {
  readonly state: RunProgress
  readonly events: ReadonlyArray<HarnessEvent>
}

const only = (state: RunProgress, ...events: ReadonlyArray<HarnessEvent>): Translated => ({ state, events })

const then = (before: Translated, next: (state: RunProgress) => Translated): Translated => {
  const after = next(before.state)
  return { state: after.state, events: [...before.events, ...after.events] }
}

const responseId = (state: RunProgress): string => `${state.turnId}.${state.rounds}.${state.attempt}`

/** A response that says something has begun (rounds have no line of their own). */
const respond = (state: RunProgress): Translated => {
  if (state.attempt > 0) return only(state)
  const isRepeat = state.failedAttempts > 0
  const next = {
    ...state,
    rounds: isRepeat ? state.rounds : state.rounds + 1,
    attempt: state.failedAttempts + 1,
    open: undefined
  }
  return only(next, { type: "response-start", responseId: responseId(next), attempt: next.attempt })
}

/** The current response is complete; the next word begins another. */
const responded = (state: RunProgress): RunProgress => ({
  ...state,
  attempt: 0,
  isCounted: false,
  failedAttempts: 0,
  open: undefined
})

const say = (state: RunProgress, channel: "text" | "thinking", delta: string): Translated =>
  then(respond(state.isCounted ? responded(state) : state), (begun) => {
    const part = begun.open === channel ? begun.part : begun.part + 1
    const next = { ...begun, part, open: channel, hasText: begun.hasText || channel === "text" }
    return only(next, {
      type: channel === "text" ? "text-delta" : "thinking-delta",
      delta,
      messageId: state.assistantMessageId,
      partId: partId(next)
    })
  })

const partId = (state: RunProgress): string => `${state.turnId}.p${state.part}`

const replaceText = (state: RunProgress, channel: "text" | "thinking", text: string): Translated => {
  const begun =
    state.open === channel ? only(state) : then(respond(state), (next) => only({ ...next, part: next.part + 1 }))
  return then(begun, (next) =>
    only(
      { ...next, open: undefined, hasText: next.hasText || channel === "text" },
      { type: "text-end", messageId: state.assistantMessageId, partId: partId(next), channel, text }
    )
  )
}

// ---------------------------------------------------------------- calls

const withCall = (state: RunProgress, id: string, more: Partial<Call>): RunProgress => ({
  ...state,
  calls: state.calls.map((call) => (call.id === id ? { ...call, ...more } : call))
})

const addCall = (state: RunProgress, name: string, id: string | undefined): Translated => {
  const at = state.announced.indexOf(name)
  const call: Call = { id: id ?? `${state.turnId}.c${state.calls.length + 1}`, name, state: "ready" }
  const next = {
    ...state,
    open: undefined,
    announced: at < 0 ? state.announced : state.announced.toSpliced(at, 1),
    calls: [...state.calls, call]
  }
  return only(next, { type: "tool-start", toolCallId: call.id, toolName: name })
}

/** The call that a line without an id is about: the first of this name that is so far. */
const callNamed = (state: RunProgress, name: string, at: Call["state"]): Call | undefined =>
  state.calls.find((call) => call.name === name && call.state === at)

const inputOf = (args: string, isCut: boolean): Schema.Json => {
  if (isCut) return args
  try {
    return JSON.parse(args) as Schema.Json
  } catch {
    return args
  }
}

const callsTold = (state: RunProgress, data: NoticeOf<"tool_calls">): Translated =>
  data.reduce<Translated>(
    (before, told) =>
      then(before, (now) => {
        const known = now.calls.find((call) => call.id === told.id)
        const made = known === undefined ? addCall(now, told.name, told.id) : only(now)
        return then(made, (next) => {
          const call = known ?? next.calls.at(-1)
          return call === undefined
            ? only(next)
            : only(next, {
                type: "tool-input",
                toolCallId: call.id,
                input: inputOf(told.args, told.argsTruncated === true),
                ...(told.argsTruncated === true ? { metadata: { truncated: true } } : {})
              })
        })
      }),
    respond(state)
  )

const running = (state: RunProgress, call: Call): Translated =>
  call.state !== "ready"
    ? only(state)
    : only(withCall(state, call.id, { state: "running" }), {
        type: "tool-status",
        toolCallId: call.id,
        status: "running"
      })

const ensureCall = (state: RunProgress, name: string, id: string | undefined): Translated =>
  state.calls.some((call) => (id === undefined ? call.name === name && call.state === "ready" : call.id === id))
    ? only(state)
    : addCall(state, name, id)

const isRunning = (state: RunProgress, name: string): Translated =>
  // With `tool_status` the same is told with its id.
  state.hasToolStatus
    ? only(state)
    : then(ensureCall(state, name, undefined), (next) => {
        const call = callNamed(next, name, "ready")
        return call === undefined ? only(next) : running(next, call)
      })

/** One result was delivered: of the call that runs longest, with nothing known of what it was. */
const resultDelivered = (state: RunProgress): Translated => {
  const next = responded(state)
  if (state.hasToolStatus) return only(next)
  const call = next.calls.find((one) => one.state === "running") ?? next.calls.find((one) => one.state === "ready")
  return call === undefined
    ? only(next)
    : only(withCall(next, call.id, { state: "ended" }), {
        type: "tool-output",
        toolCallId: call.id,
        output: null,
        metadata: { reported: false }
      })
}

const toolStatus = (state: RunProgress, data: NoticeOf<"tool_status">): Translated =>
  then(ensureCall(state, data.name, data.id), (next) => {
    const call = next.calls.find((one) => one.id === data.id)
    if (call === undefined || call.state === "ended") return only(next)
    const located: ReadonlyArray<HarnessEvent> =
      data.locations === undefined ? [] : [{ type: "tool-location", toolCallId: call.id, locations: data.locations }]
    const toolCallId = call.id
    switch (data.status) {
      case "running":
        return then(running(next, call), (now) => only(now, ...located))
      case "completed":
        return only(withCall(next, call.id, { state: "ended" }), ...located, {
          type: "tool-output",
          toolCallId,
          output: data.preview ?? null,
          ...(data.attachments === undefined
            ? {}
            : { attachments: data.attachments.filter((one) => one.type !== "inline") }),
          metadata: { preview: true, ...(data.previewTruncated === true ? { truncated: true } : {}) }
        })
      case "failed":
        return only(withCall(next, call.id, { state: "ended" }), ...located, {
          type: "tool-error",
          toolCallId,
          error: data.error ?? "the call failed"
        })
      case "uncertain":
        return only(withCall(next, call.id, { state: "ended" }), ...located, {
          type: "tool-status",
          toolCallId,
          status: "uncertain"
        })
    }
  })

/** What was said since the response began is void; calls of it that did not begin are, too. */
const retried = (state: RunProgress): Translated => {
  if (state.attempt === 0) return only({ ...state, announced: [] })
  const voided = state.calls.filter((call) => call.state === "ready")
  const next = {
    ...state,
    attempt: 0,
    failedAttempts: state.attempt,
    open: undefined,
    announced: [],
    calls: state.calls.map((call) => (call.state === "ready" ? { ...call, state: "ended" as const } : call))
  }
  return only(
    next,
    ...voided.map((call): HarnessEvent => ({
      type: "tool-error",
      toolCallId: call.id,
      error: "The response with this call was withdrawn.",
      code: "cancelled"
    })),
    { type: "response-retracted", responseIds: [responseId(state)], reason: "the program asks its model again" }
  )
}

// ---------------------------------------------------------------- usage

/** How usage is told before its end: what the input counts is only known with the result's detail (HRN-017). */
const usageSoFar = (state: RunProgress, usage: ServeUsage): Translated => {
  // A response without a word was one all the same.
  let begun: Translated = only(state)
  while (begun.state.rounds < usage.rounds) begun = then(begun, (next) => respond(responded(next)))
  return then(begun, (next) =>
    only(
      { ...next, isCounted: true },
      {
        type: "usage",
        observation: {
          kind: "cumulative",
          nativeSessionId: state.turnId,
          tokens: { input: null, output: usage.output, reasoning: null, cache: { read: null, write: null } }
        }
      }
    )
  )
}

// ---------------------------------------------------------------- lines

type NoticeOf<Kind extends NotifyLine["kind"]> = Extract<NotifyLine, { readonly kind: Kind }>["data"]

const notice = (
  code: string,
  message: string,
  severity: "debug" | "info" | "warn" | "error",
  details?: Schema.Json
): HarnessEvent => ({
  type: "harness-notice",
  code,
  message,
  severity,
  ...(details === undefined ? {} : { details })
})

const mcpStatuses = ["starting", "ready", "failed", "cancelled"] as const
const authStatuses = ["authenticated", "unauthenticated", "unknown"] as const

const notified = (state: RunProgress, line: NotifyLine): Translated => {
  switch (line.kind) {
    case "tool_start":
      return then(respond(state), (next) =>
        only({ ...next, open: undefined, announced: [...next.announced, ...line.data] })
      )
    case "tool_calls":
      return callsTold(state, line.data)
    case "tool_running":
      return isRunning(state, line.data)
    case "tools":
      return resultDelivered(state)
    case "tool_status":
      return toolStatus(state, line.data)
    case "retry":
      return retried(state)
    case "usage":
      return usageSoFar(state, line.data)
    case "thinking":
      return line.data.text === "" ? only(state) : say(state, "thinking", line.data.text)
    case "text_replace":
      return line.data.textTruncated === true ? only(state) : replaceText(state, line.data.channel, line.data.text)
    case "diff": {
      const { newText, newTextTruncated, oldText, oldTextTruncated, path, toolId } = line.data
      if (newTextTruncated === true || oldTextTruncated === true) {
        return only(state, notice("diff_truncated", `The change of ${path} is too large to be told`, "info", { path }))
      }
      return only(state, {
        type: "file-diff",
        path,
        newText,
        ...(oldText === null ? {} : { oldText }),
        ...(toolId === undefined ? {} : { toolCallId: toolId })
      })
    }
    case "plan":
      if (line.data.markdownTruncated === true) return only(state)
      return line.data.complete
        ? only(state, { type: "proposed-plan-complete", planMarkdown: line.data.markdown })
        : only(state)
    case "todos":
      return only(state, {
        type: "todo-update",
        todos: line.data.items.map(({ description, id, priority, status }) => ({
          id,
          content: description,
          status,
          ...(priority === undefined ? {} : { priority })
        }))
      })
    case "auto_approved":
      return only(
        state,
        notice("auto_approved", `${line.data.tool} was approved by the program itself`, "debug", {
          tool: line.data.tool,
          toolCallId: line.data.id,
          origin: line.data.origin
        })
      )
    case "subagent":
      return only(state, notice("subagent", `Agent ${line.data.agent}: ${line.data.event ?? "works"}`, "debug"))
    case "compaction":
      return only(state, {
        type: "session-compaction",
        phase: line.data.phase,
        ...(line.data.reason === undefined ? {} : { reason: line.data.reason })
      })
    case "context":
      return only(state, {
        type: "usage",
        contextUsed: line.data.used,
        contextSize: line.data.size,
        ...(line.data.cost === undefined ? {} : { cost: line.data.cost })
      })
    case "title":
      return only(state, { type: "session-title", title: line.data.title, titleSource: "harness" })
    case "mcp": {
      const status = mcpStatuses.find((known) => known === line.data.status)
      if (status === undefined) return only(state)
      return only(state, {
        type: "mcp-server-status",
        serverName: line.data.server,
        status,
        ...(line.data.error === undefined ? {} : { error: line.data.error })
      })
    }
    case "auth":
      return only(state, {
        type: "auth-status",
        status: authStatuses.find((known) => known === line.data.status) ?? "unknown"
      })
    case "rate_limit":
      return only(state, {
        type: "rate-limit",
        status: line.data.status === "limited" ? "limited" : "ok",
        ...(line.data.resetsAt === undefined ? {} : { resetsAt: line.data.resetsAt })
      })
    case "media":
      return line.data.uri === undefined
        ? only(state)
        : only(state, {
            type: "resource-link-delta",
            uri: line.data.uri,
            name: line.data.name ?? line.data.uri,
            mimeType: line.data.mime
          })
    case "background":
      return only(state, notice("background", `Between two runs: ${line.data.kind}`, "debug", line.data.data))
    case "background_dropped":
      return only(
        state,
        notice("background_dropped", `${line.data.count} notices between two runs were left out`, "info")
      )
    case "event":
      return only(state, notice("native_event", `The program tells of ${line.data.type}`, "debug", line.data.payload))
    // The end and the asks of a run are told elsewhere; the others are the program's own session, or liveness.
    case "ask":
    case "ask_resolved":
    case "cancelling":
    case "commands":
    case "config":
    case "error":
    case "goal":
    case "run_finished":
    case "status":
      return only(state)
  }
}

/** The events of one line of a run. */
export const translateLine = (state: RunProgress, line: RunLine): Translated => {
  switch (line.type) {
    case "start":
      return only(state, ...line.warnings.map((warning) => notice("run_warning", warning, "warn")))
    case "delta":
      return say(state, "text", line.text)
    case "log":
      return only(state, notice(line.code ?? "log", line.message, line.level ?? "info"))
    case "notify":
      return notified(state, line)
    case "result":
      return ended(state, line)
  }
}

/** What a result tells beside the end: the usage as it is counted here, and an answer that was not streamed. */
const ended = (state: RunProgress, line: Extract<RunLine, { readonly type: "result" }>): Translated => {
  const events: Array<HarnessEvent> = []
  let next = state
  if (!state.hasText && line.answer !== "") {
    const spoken = replaceText(state, "text", line.answer)
    next = spoken.state
    events.push(...spoken.events)
  }
  const { usage, usageDetail } = line
  if (usage !== undefined) {
    const detail = usageDetail ?? { cacheRead: null, cacheWrite: null, reasoning: null, cost: null }
    events.push({
      type: "usage",
      observation: {
        kind: "cumulative",
        nativeSessionId: state.turnId,
        tokens: {
          // Their input has the cached tokens in it, ours leaves them out.
          input: Math.max(0, usage.input - (detail.cacheRead ?? 0) - (detail.cacheWrite ?? 0)),
          output: usage.output,
          reasoning: detail.reasoning,
          cache: { read: detail.cacheRead, write: detail.cacheWrite }
        }
      },
      ...(detail.cost === null ? {} : { cost: detail.cost })
    })
  }
  return { state: next, events }
}

const errorClasses: ReadonlyArray<string> = [
  "credential",
  "harness",
  "model",
  "usage_limit",
  "workspace",
  "session",
  "unknown"
] satisfies ReadonlyArray<ErrorClass>

const isErrorClass = (name: string | undefined): name is ErrorClass => name !== undefined && errorClasses.includes(name)

/** The terminal event of a result (HRN-220). */
export const endOfResult = (
  state: Pick<RunProgress, "assistantMessageId" | "sessionId">,
  line: Extract<RunLine, { readonly type: "result" }>,
  classify: (message: string) => ErrorClass
): HarnessEvent => {
  const { assistantMessageId, sessionId } = state
  if (line.cancelled) return { type: "cancelled", sessionId, assistantMessageId, reason: "requested" }
  const [error] = line.errors
  if (error === undefined) {
    return {
      type: "finish",
      sessionId,
      assistantMessageId,
      reason: line.stopReason === "refusal" ? "refusal" : "end_turn",
      ...(line.answer === "" ? {} : { finalText: line.answer })
    }
  }
  const isLimit = error.code === "budget" || error.code === "timeout"
  return {
    type: "error",
    error: error.message,
    code: isLimit ? error.code : error.runtimeCode === "truncated" ? "truncated" : "harness_error",
    ...(isLimit ? {} : { errorClass: isErrorClass(error.class) ? error.class : classify(error.message) }),
    assistantMessageId
  }
}
