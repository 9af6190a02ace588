/**
 * What an event of a host's journal means in the session that is driven through it. Pure: one frame in, at most one event
 * out, so that the place of the frame is the place of the event (HRN-241).
 *
 * The canonical events are the host's own words and pass as they are. What is left out is what is not this session's to
 * say: the turn's begin and end (the runtime's and `RunEnd`'s), interactions (`HostAsks`), and facts about the host's own
 * session such as its title by prompt, its config or that it was archived.
 */
import {
  type EventPayload,
  eventSchemas,
  type EventType,
  type HarnessEvent,
  isHarnessEvent
} from "@tackroom/protocol/events"
import { Result, Schema } from "effect"

/** One event of a page, read. */
export interface HostFrame {
  readonly type: string
  /** False for a member of the lead's team. */
  readonly isLead: boolean
  /** Undefined for a type that this version does not know (RUN-175). */
  readonly payload: EventPayload | undefined
}

const decoders = new Map<EventType, (payload: unknown) => Result.Result<EventPayload, unknown>>()

const decoderOf = (type: EventType) => {
  const known = decoders.get(type)
  if (known !== undefined) return known
  const decode = Schema.decodeUnknownResult(eventSchemas[type] as Schema.Codec<EventPayload>)
  decoders.set(type, decode)
  return decode
}

/** The payload as this package would have written it; throws for one that is none of its type (RT-188). */
const checked = (payload: EventPayload): EventPayload => {
  const decoded = decoderOf(payload.type)(payload)
  if (Result.isFailure(decoded)) throw new Error(`it is no ${payload.type} event`)
  return decoded.success
}

/** The events of a team member that are told in its lead's session: what they cost. The lead's journal tells the rest. */
const memberTypes: ReadonlySet<string> = new Set<EventType>(["usage"])

/** The event that a frame is for the driven session; none for what is not its to say. Throws for a broken payload. */
export const eventOf = (frame: HostFrame): HarnessEvent | undefined => {
  const { payload } = frame
  if (payload === undefined || (!frame.isLead && !memberTypes.has(frame.type))) return undefined
  const event = checked(payload)
  switch (event.type) {
    case "finish":
    case "cancelled":
    case "error":
    case "permission-request":
    case "question":
    case "session-status":
    case "session-info":
    case "session-agent":
    case "session-closed":
    case "config-update":
    case "available-commands-update":
    case "goal-updated":
    case "goal-cleared":
      return undefined
    case "session-title":
      return event.titleSource === "prompt" ? undefined : { ...event, titleSource: "harness" }
    case "permission-resolved":
      return autoApproved(event)
    case "subagent-updated": {
      // Ids of the host's sessions are no sessions of this runtime (RT-295).
      const { childSessionId, transcript: _transcript, ...rest } = event
      return childSessionId === undefined ? rest : { ...rest, providerKind: "host-session", providerId: childSessionId }
    }
    default:
      return isHarnessEvent(event) ? event : undefined
  }
}

/** A call that the host approved by itself shows as a notice: nobody was asked here. */
const autoApproved = (
  event: Extract<EventPayload, { readonly type: "permission-resolved" }>
): HarnessEvent | undefined =>
  event.origin === "person"
    ? undefined
    : {
        type: "harness-notice",
        code: "auto_approved",
        message: `The host decided about ${event.tool} by itself: ${event.decision}`,
        severity: "debug",
        details: {
          tool: event.tool,
          decision: event.decision,
          origin: event.origin,
          ...(event.toolCallId === undefined ? {} : { toolCallId: event.toolCallId })
        }
      }
