/**
 * Large values of a host's events, made whole again: a field that the host cut is read from its artifact and put back, and
 * content that is an artifact of the host is kept as one here, so that an event is worth the same without its host.
 */
import type { ArtifactRef, Attachment, EventPayload } from "@tackroom/protocol/events"
import { setAtPointer } from "@tackroom/protocol/text"
import type { HarnessError } from "@tackroom/protocol"
import { Effect } from "effect"
import type { HarnessContext } from "../Harness.ts"
import type { HostConnection, HostFailed } from "./HostConnection.ts"

interface Content {
  readonly mime: string
  readonly bytes: Uint8Array
}

export interface HostArtifacts {
  /** The payload whole. What the host does not keep any more stays cut. */
  readonly whole: (
    hostSessionId: string,
    payload: EventPayload,
    artifacts: ReadonlyArray<ArtifactRef> | undefined
  ) => Effect.Effect<EventPayload, HarnessError>
}

/** As large as one answer may be. */
const chunkBytes = 524_288

const joined = (chunks: ReadonlyArray<Uint8Array>): Uint8Array => {
  const whole = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0))
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.length
  }
  return whole
}

const fromBase64 = (text: string): Uint8Array => Uint8Array.from(atob(text), (unit) => unit.charCodeAt(0))

/** Makes the reader of one session's artifacts. */
export const makeHostArtifacts = (
  connection: HostConnection,
  context: HarnessContext,
  sessionId: string
): HostArtifacts => {
  const read = Effect.fnUntraced(function* (hostSessionId: string, artifactId: string) {
    const chunks: Array<Uint8Array> = []
    let offset = 0
    while (true) {
      const part = yield* connection.call("artifact/read", {
        sessionId: hostSessionId,
        artifactId,
        offset,
        length: chunkBytes
      })
      const bytes = fromBase64(part.data)
      chunks.push(bytes)
      offset += bytes.length
      if (part.eof || bytes.length === 0) return { mime: part.mediaType, bytes: joined(chunks) }
    }
  })

  /** What cannot be read is gone for good (RUN-200, RUN-201); a host that is lost is the follower's business. */
  const content = (hostSessionId: string, artifactId: string): Effect.Effect<Content | undefined> =>
    read(hostSessionId, artifactId).pipe(
      Effect.catch((failed: HostFailed) =>
        Effect.as(Effect.logWarning("An artifact of a host could not be read", failed.message), undefined)
      )
    )

  const kept = (hostSessionId: string, artifactId: string) =>
    Effect.flatMap(content(hostSessionId, artifactId), (found) =>
      found === undefined ? Effect.succeed(undefined) : context.artifacts.put(sessionId, found.mime, found.bytes)
    )

  const attachment = (hostSessionId: string, one: Attachment): Effect.Effect<Attachment, HarnessError> =>
    one.type !== "inline"
      ? Effect.succeed(one)
      : Effect.map(kept(hostSessionId, one.artifactId), (artifactId): Attachment => {
          if (artifactId !== undefined) return { ...one, artifactId }
          const { artifactId: _gone, type: _type, ...rest } = one
          return { ...rest, type: "unretained", bytes: 0 }
        })

  const inflated = Effect.fnUntraced(function* (
    hostSessionId: string,
    payload: EventPayload,
    artifacts: ReadonlyArray<ArtifactRef>
  ) {
    const whole: unknown = structuredClone(payload)
    for (const reference of artifacts) {
      const found = yield* content(hostSessionId, reference.artifactId)
      if (found === undefined) continue
      const text = new TextDecoder().decode(found.bytes)
      const value: unknown = reference.mime.startsWith("application/json") ? JSON.parse(text) : text
      if (reference.path === "") return value as EventPayload
      setAtPointer(whole, reference.path, value)
    }
    return whole as EventPayload
  })

  return {
    whole: Effect.fnUntraced(function* (hostSessionId, payload, artifacts) {
      const event = artifacts === undefined ? payload : yield* inflated(hostSessionId, payload, artifacts)
      switch (event.type) {
        case "image-delta":
        case "audio-delta":
        case "thinking-audio-delta": {
          const artifactId = yield* kept(hostSessionId, event.artifactId)
          return artifactId === undefined ? event : { ...event, artifactId }
        }
        case "tool-output":
          return event.attachments === undefined
            ? event
            : {
                ...event,
                attachments: yield* Effect.forEach(event.attachments, (one) => attachment(hostSessionId, one))
              }
        default:
          return event
      }
    })
  }
}
