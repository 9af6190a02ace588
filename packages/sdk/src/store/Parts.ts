/**
 * How parts of a message change: tool calls are put together by call id, file diffs by path, text by its `text-end`.
 * Pure, and without reading anything but the part as it was.
 */
import type { EventOf, FileChange, MessagePart, ToolState } from "@tackroom/protocol/events"

type ToolEvent = EventOf<"tool-start" | "tool-input" | "tool-status" | "tool-content" | "tool-output" | "tool-error">

interface Place {
  readonly id: string
  readonly messageId: string
}

/** The closed text part of a `text-end`, whose text is authoritative (RT-207). A withdrawn part stays withdrawn. */
export const textPart = (payload: EventOf<"text-end">, before: MessagePart | undefined): MessagePart => {
  const place = { id: payload.partId, messageId: payload.messageId }
  if (payload.channel === "thinking") return { ...place, type: "reasoning", text: payload.text }
  const retracted = before?.type === "text" && before.retracted === true
  return { ...place, type: "text", text: payload.text, ...(retracted ? { retracted } : {}) }
}

/** An image, sound or link of the answer, as a file. */
export const mediaPart = (
  payload: EventOf<"image-delta" | "audio-delta" | "resource-link-delta">,
  place: Place
): MessagePart =>
  payload.type === "resource-link-delta"
    ? {
        ...place,
        type: "file",
        mime: payload.mimeType ?? "application/octet-stream",
        filename: payload.name,
        url: payload.uri
      }
    : { ...place, type: "file", mime: payload.mimeType, artifactId: payload.artifactId }

const inputOf = (state: ToolState) => ("input" in state ? (state.input ?? null) : null)
const startedAt = (state: ToolState, at: string): string => ("startedAt" in state ? state.startedAt : at)
const hasEnded = (state: ToolState): boolean => state.status === "completed" || state.status === "error"

const nextState = (payload: ToolEvent, state: ToolState, at: string): ToolState => {
  switch (payload.type) {
    case "tool-start":
    case "tool-content":
      return state
    case "tool-input":
      return { ...state, input: payload.input }
    case "tool-output":
      return {
        status: "completed",
        input: inputOf(state),
        output: payload.output,
        ...(payload.attachments === undefined ? {} : { attachments: payload.attachments }),
        startedAt: startedAt(state, at),
        endedAt: at
      }
    case "tool-error":
      return {
        status: "error",
        input: inputOf(state),
        error: payload.error,
        code: payload.code ?? "failed",
        endedAt: at
      }
    case "tool-status":
      if (hasEnded(state)) return state
      switch (payload.status) {
        case "pending":
          return state
        case "running":
          return state.status === "running" ? state : { status: "running", input: inputOf(state), startedAt: at }
        case "completed":
          return {
            status: "completed",
            input: inputOf(state),
            output: null,
            startedAt: startedAt(state, at),
            endedAt: at
          }
        case "failed":
          return { status: "error", input: inputOf(state), error: "", code: "failed", endedAt: at }
        case "uncertain":
          return { status: "uncertain", input: inputOf(state), startedAt: startedAt(state, at) }
      }
  }
}

/** The tool part after an event of its call. An event before the call's start makes the part. */
export const toolPart = (
  payload: ToolEvent,
  before: MessagePart | undefined,
  place: Place & { readonly at: string }
): MessagePart => {
  const known = before?.type === "tool" ? before : undefined
  const display = payload.display === undefined ? known?.display : { ...known?.display, ...payload.display }
  return {
    id: place.id,
    messageId: place.messageId,
    type: "tool",
    callId: payload.toolCallId,
    tool: payload.type === "tool-start" ? payload.toolName : (known?.tool ?? "unknown"),
    ...(display === undefined ? {} : { display }),
    state: nextState(payload, known?.state ?? { status: "pending" }, place.at)
  }
}

const lines = (text: string): ReadonlyArray<string> => (text === "" ? [] : text.replace(/\n$/u, "").split("\n"))

/** Lines added and removed, after the lines that both texts share at their ends are set aside. */
const countLines = (oldText: string, newText: string): { readonly additions: number; readonly deletions: number } => {
  const before = lines(oldText)
  const after = lines(newText)
  const shorter = Math.min(before.length, after.length)
  let head = 0
  while (head < shorter && before[head] === after[head]) head++
  let tail = 0
  while (tail < shorter - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++
  return { additions: after.length - head - tail, deletions: before.length - head - tail }
}

/** The patch part after a changed file; a later change of the same path replaces the earlier one. */
export const diffPart = (payload: EventOf<"file-diff">, before: MessagePart | undefined, place: Place): MessagePart => {
  const change: FileChange = { path: payload.path, ...countLines(payload.oldText ?? "", payload.newText) }
  const files = before?.type === "patch" ? before.files.filter((file) => file.path !== payload.path) : []
  return { id: place.id, messageId: place.messageId, type: "patch", files: [...files, change] }
}
