/**
 * Reads an event as it was before its large fields were cut: the whole values are taken from their artifacts (RT-211), so
 * that a transcript read from the journal equals the one that was lived (AGT-002).
 */
import type { EventPayload } from "@tackroom/protocol/events"
import { setAtPointer } from "@tackroom/protocol/text"
import type { EventRow, RuntimeStore } from "@tackroom/sdk/effect"
import { Effect } from "effect"

/** The payload with every retained artifact put back in its place. */
export const inflate = Effect.fnUntraced(function* (
  store: Pick<RuntimeStore, "artifactBytes">,
  event: Pick<EventRow, "payload" | "artifacts">
) {
  const payload: unknown = structuredClone(event.payload)
  for (const reference of event.artifacts ?? []) {
    const bytes = yield* store.artifactBytes(reference.artifactId, 0, reference.bytes)
    if (bytes.length !== reference.bytes) continue
    const text = new TextDecoder().decode(bytes)
    const value: unknown = reference.mime.startsWith("application/json") ? JSON.parse(text) : text
    // An event that was too large as a whole is its artifact (RT-210).
    if (reference.path === "") return value as EventPayload
    setAtPointer(payload, reference.path, value)
  }
  return payload as EventPayload
})
