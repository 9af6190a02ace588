/**
 * Values too large for an event (6.5): chunks of 1 MiB, each put in a transaction of its own ahead of the event whose
 * commit brings the artifact's row (RT-211). Above 32 MiB only size and digest are kept (RT-212).
 */
import { mintId } from "@tackroom/protocol"
import { Clock, Effect } from "effect"
import type { ArtifactRow } from "./Rows.ts"
import type { StoreFailure } from "./RuntimeStore.ts"
import type { StoreBackend, StoreTx } from "./StoreTx.ts"

/** Bytes of one chunk. */
const chunkBytes = 1 << 20
/** Bytes above which an artifact is not retained. */
const artifactLimit = 32 << 20

const hex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")

const sha256 = (bytes: Uint8Array): Effect.Effect<string> =>
  Effect.map(
    Effect.promise(() => crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>)),
    (digest) => hex(new Uint8Array(digest))
  )

/** Puts the chunks and answers the row to commit with the event. */
export const putArtifact = Effect.fnUntraced(function* (
  backend: StoreBackend,
  sessionId: string,
  mime: string,
  bytes: Uint8Array
): Effect.fn.Return<ArtifactRow, StoreFailure> {
  const id = mintId("artifact", yield* Clock.currentTimeMillis, backend.random(10))
  const retained = bytes.byteLength <= artifactLimit
  const row: ArtifactRow = { id, sessionId, sha256: yield* sha256(bytes), bytes: bytes.byteLength, mime, retained }
  if (!retained) return row
  for (let n = 0; n * chunkBytes < bytes.byteLength; n++) {
    const chunk = bytes.subarray(n * chunkBytes, (n + 1) * chunkBytes)
    yield* backend.write((tx) => tx.putChunk(id, n, chunk))
  }
  return row
})

/** Bytes `offset … offset + length` of an artifact; fewer at its end, none when it is not retained. */
export const artifactBytes = Effect.fnUntraced(function* (tx: StoreTx, id: string, offset: number, length: number) {
  const row = yield* tx.get("artifact", { id })
  const end = Math.min(offset + length, row?.retained === true ? row.bytes : 0)
  if (offset >= end) return new Uint8Array(0)
  const out = new Uint8Array(end - offset)
  for (let n = Math.floor(offset / chunkBytes); n * chunkBytes < end; n++) {
    const chunk = (yield* tx.chunk(id, n)) ?? new Uint8Array(0)
    const from = Math.max(0, offset - n * chunkBytes)
    const part = chunk.subarray(from, Math.min(chunk.byteLength, end - n * chunkBytes))
    out.set(part, n * chunkBytes + from - offset)
  }
  return out
})
