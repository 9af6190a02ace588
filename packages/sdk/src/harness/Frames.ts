/**
 * Translating native frames, written once for all drivers (HRN-019): one frame that cannot be translated costs a
 * `diagnostic` and nothing else, and a kind of frame that nobody knows is told of once.
 *
 * Implements RT-188, RT-189.
 *
 * @since 0.1.0
 */
import type { HarnessEvent } from "@tackroom/protocol/events"

/** How a driver reads its harness's frames. */
export interface FrameReader<State, Frame> {
  /** What is known before the first frame. */
  readonly initial: State
  /** The frame's kind in the harness's own words, for messages and counts. */
  readonly kindOf: (frame: Frame) => string
  /** What a frame means. It must not change `state` in place; `"unknown"` for a kind it does not know. */
  readonly translate: (
    state: State,
    frame: Frame
  ) => { readonly state: State; readonly events: ReadonlyArray<HarnessEvent> } | "unknown"
}

/** A session's frames on their way to events. */
export interface Frames<State, Frame> {
  /** The events of a frame. Never throws. */
  readonly accept: (frame: Frame) => ReadonlyArray<HarnessEvent>
  readonly state: () => State
  /** How many frames of each unknown kind there were. */
  readonly unknown: () => ReadonlyMap<string, number>
}

/** Kinds that are counted; a harness that makes up ever new ones fills no memory. */
const countedKinds = 256
const kindLength = 100

/** Makes the translation of one session's frames. */
export const makeFrames = <State, Frame>(reader: FrameReader<State, Frame>): Frames<State, Frame> => {
  const unknown = new Map<string, number>()
  let state = reader.initial

  const named = (frame: Frame): string => {
    try {
      return reader.kindOf(frame).slice(0, kindLength)
    } catch {
      return "unreadable"
    }
  }

  const untranslated = (frame: Frame, error: unknown): HarnessEvent => ({
    type: "diagnostic",
    diagnostic: {
      code: "adapter_error",
      message: `A frame of kind ${named(frame)} could not be translated`,
      details: { reason: (error instanceof Error ? error.message : String(error)).slice(0, 500) }
    }
  })

  const surprise = (frame: Frame): ReadonlyArray<HarnessEvent> => {
    const kind = named(frame)
    const count = unknown.get(kind)
    if (count === undefined && unknown.size >= countedKinds) return []
    unknown.set(kind, (count ?? 0) + 1)
    if (count !== undefined) return []
    return [
      {
        type: "harness-notice",
        code: "unknown_native_event",
        message: `The harness sends events of kind ${kind}, which this version does not know`,
        severity: "debug",
        details: { kind }
      }
    ]
  }

  return {
    accept: (frame) => {
      try {
        const translated = reader.translate(state, frame)
        if (translated === "unknown") return surprise(frame)
        state = translated.state
        return translated.events
      } catch (error) {
        return [untranslated(frame, error)]
      }
    },
    state: () => state,
    unknown: () => unknown
  }
}
