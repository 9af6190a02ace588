/**
 * The body of a submit: the request as the agent made it, and no larger than a rig takes (SEAT-161). What had to be left
 * out is named inside the tool call.
 *
 * A body that a rig refuses for its size is a request that nobody is asked about. So there is no request whose body does
 * not fit: after what the contract names goes whatever else is large, and in the end what identifies the call stays.
 */
import { type PermissionSubmit, permissionSubmit, seatLimits, type SeatOption } from "@tackroom/protocol/seat"
import { codePoints, headBytes, headCodePoints, nestsDeeper, utf8Length } from "@tackroom/protocol/text"
import type { SeatNames } from "../activity/ActivityQueue.ts"
import { digestOf, type RequestId } from "./RequestIds.ts"
import { bodyBytes, identifying, markTruncated, spare, type ToolCall, truncatedOf } from "./Truncation.ts"

export interface SubmitParts {
  readonly names: SeatNames
  readonly nativeRef: string
  readonly turnId: string
  readonly requestId: RequestId
  readonly toolCall: ToolCall
  readonly options: ReadonlyArray<SeatOption>
  readonly occurredAt: string
}

export interface Submit {
  /** As JSON. */
  readonly body: unknown
  /** The options as they are submitted, each with the agent's own. */
  readonly offered: ReadonlyArray<{ readonly sent: SeatOption; readonly own: SeatOption }>
}

/** Options beyond this size are what makes a body too large. */
const optionsBytes = 65_536

/** More options than any rig shows; of a longer list the first of each kind are kept beside these. */
const mostOptions = 64

const without = (toolCall: ToolCall, fields: ReadonlyArray<string>): ToolCall => {
  const gone = new Set(fields)
  return Object.fromEntries(Object.entries(toolCall).filter(([field]) => !gone.has(field)))
}

const jsonBytes = (value: unknown): number => utf8Length(JSON.stringify(value) ?? "")

/** The largest fields that no rule names, as many as have to go. */
const largest = (call: ToolCall, excess: number): ReadonlyArray<string> => {
  const sized = Object.keys(call)
    .filter((field) => !identifying.has(field))
    .map((field) => ({ field, bytes: jsonBytes(field) + jsonBytes(call[field]) }))
    .toSorted((left, right) => right.bytes - left.bytes)
  let left = excess
  return sized.flatMap(({ bytes, field }) => {
    if (left <= 0) return []
    left -= bytes
    return [field]
  })
}

/** What identifies the call and is a text, cut; anything else that is there goes. */
const identified = (call: ToolCall): ToolCall =>
  Object.fromEntries(
    Object.entries(call).flatMap(([field, value]) => {
      if (!identifying.has(field)) return [[field, value]]
      const bytes = field === "title" ? seatLimits.toolTitleBytes : seatLimits.nameBytes
      return typeof value === "string" ? [[field, headBytes(value, bytes)]] : []
    })
  )

const shortOption = ({ kind, name, optionId }: SeatOption): SeatOption => ({
  optionId: codePoints(optionId) > seatLimits.optionIdCharacters ? digestOf(optionId) : optionId,
  name: headCodePoints(name, seatLimits.optionIdCharacters),
  kind: headBytes(kind, seatLimits.nameBytes)
})

/** The options of a body that is too large by them: in their order, as many as decide anything. */
const shortOptions = (options: ReadonlyArray<SeatOption>): Submit["offered"] => {
  const seen = new Set<string>()
  return options.flatMap((own, at) => {
    const first = !seen.has(own.kind) && /^(?:allow|reject)_(?:once|always)$/u.test(own.kind)
    seen.add(own.kind)
    return at < mostOptions || first ? [{ sent: shortOption(own), own }] : []
  })
}

export const submitBody = (parts: SubmitParts): Submit => {
  const { names, options, toolCall, ...rest } = parts
  const { runtime: _, ...seat } = names
  let offered: Submit["offered"] = options.map((own) => ({ sent: own, own }))
  const bodyOf = (call: ToolCall): PermissionSubmit => ({
    ...seat,
    ...rest,
    toolCall: call,
    options: offered.map(({ sent }) => sent)
  })
  // What no program can walk through is left out like what is too large: the request is still asked.
  let cut: ReadonlyArray<string> = Object.keys(toolCall).filter((field) =>
    nestsDeeper(toolCall[field], seatLimits.toolCallDepth)
  )
  const lost = truncatedOf(toolCall)
  const marked = (given: ToolCall): ToolCall => markTruncated(given, [...new Set([...lost, ...cut])])
  let call = cut.length === 0 ? toolCall : marked(without(toolCall, cut))
  let size = jsonBytes(bodyOf(call))
  const leaveOut = (fields: ReadonlyArray<string>): void => {
    cut = [...cut, ...fields]
    call = marked(without(call, fields))
    size = jsonBytes(bodyOf(call))
  }
  for (const field of spare) {
    if (size > bodyBytes && field in call) leaveOut([field])
  }
  const title = call["title"]
  if (size > bodyBytes && typeof title === "string" && utf8Length(title) > seatLimits.toolTitleBytes) {
    cut = [...cut, "title"]
    call = marked({ ...call, title: headBytes(title, seatLimits.toolTitleBytes) })
    size = jsonBytes(bodyOf(call))
  }
  if (size > bodyBytes && jsonBytes(options) > optionsBytes) {
    offered = shortOptions(options)
    size = jsonBytes(bodyOf(call))
  }
  if (size > bodyBytes) leaveOut(largest(call, size - bodyBytes))
  if (size > bodyBytes) call = identified(call)
  return { body: permissionSubmit.encode(bodyOf(call)), offered }
}
