/**
 * The calls of a run, from the lines that tell of them. They may come without ids, and then by name in the order in which
 * they were announced; how a call ended is told only by programs that have `tool_status`, and is left out for the others.
 * Pure.
 */
import type { HarnessEvent } from "@tackroom/protocol/events"
import type { NotifyLine } from "@tackroom/protocol/serve"
import type { Schema } from "effect"
import { type Call, only, respond, responded, type RunProgress, andThen, type Translated } from "./RunProgress.ts"

type NoticeOf<Kind extends NotifyLine["kind"]> = Extract<NotifyLine, { readonly kind: Kind }>["data"]

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

export const callsTold = (state: RunProgress, data: NoticeOf<"tool_calls">): Translated =>
  data.reduce<Translated>(
    (before, told) =>
      andThen(before, (now) => {
        const known = now.calls.find((call) => call.id === told.id)
        const made = known === undefined ? addCall(now, told.name, told.id) : only(now)
        return andThen(made, (next) => {
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

export const isRunning = (state: RunProgress, name: string): Translated =>
  // With `tool_status` the same is told with its id.
  state.hasToolStatus
    ? only(state)
    : andThen(ensureCall(state, name, undefined), (next) => {
        const call = callNamed(next, name, "ready")
        return call === undefined ? only(next) : running(next, call)
      })

/** One result was delivered: of the call that runs longest, with nothing known of what it was. */
export const resultDelivered = (state: RunProgress): Translated => {
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

export const toolStatus = (state: RunProgress, data: NoticeOf<"tool_status">): Translated =>
  andThen(ensureCall(state, data.name, data.id), (next) => {
    const call = next.calls.find((one) => one.id === data.id)
    if (call === undefined || call.state === "ended") return only(next)
    const located: ReadonlyArray<HarnessEvent> =
      data.locations === undefined ? [] : [{ type: "tool-location", toolCallId: call.id, locations: data.locations }]
    const toolCallId = call.id
    switch (data.status) {
      case "running":
        return andThen(running(next, call), (now) => only(now, ...located))
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
