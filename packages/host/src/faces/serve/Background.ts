/**
 * What happened in the session between two runs: late output, a background task (SRV-301, SRV-302). It is read from the
 * journal when the next run starts; a face keeps only the cursor of where it was. Events of turns are not among it.
 */
import type { RuntimeError } from "@tackroom/protocol"
import { Effect } from "effect"
import { utf8Length } from "@tackroom/protocol/text"
import type { Runs } from "../../runs/Runs.ts"
import type { Item } from "../lines/Item.ts"
import { Projection } from "../lines/Projection.ts"
import { oneLineJson } from "../lines/Texts.ts"

const keptItems = 256
const keptBytes = 1_048_576

type Background = Extract<Item, { readonly type: "notify"; readonly kind: "background" | "background_dropped" }>

const backgroundOf = (item: Item): Background | undefined => {
  switch (item.type) {
    case "delta":
      return {
        type: "notify",
        cursor: item.cursor,
        kind: "background",
        data: { kind: "text", data: { text: item.text } }
      }
    case "log":
      return {
        type: "notify",
        cursor: item.cursor,
        kind: "background",
        data: { kind: "text", data: { text: item.message } }
      }
    case "notify": {
      const cursor = item.cursor === undefined ? {} : { cursor: item.cursor }
      return { type: "notify", ...cursor, kind: "background", data: { kind: item.kind, data: item.data as never } }
    }
    default:
      return undefined
  }
}

/** The newest of the events between two cursors, and how many older ones were left out. */
export const readBackground = Effect.fnUntraced(function* (
  runs: Pick<Runs, "entries">,
  sessionId: string,
  after: number,
  upTo: number
): Effect.fn.Return<ReadonlyArray<Item>, RuntimeError> {
  const projection = Projection.betweenRuns()
  const kept: Array<{ readonly item: Background; readonly bytes: number }> = []
  let bytes = 0
  let dropped = 0
  for (let cursor = after; cursor < upTo;) {
    const page = yield* runs.entries(sessionId, cursor)
    if (page.entries.length === 0) break
    for (const entry of page.entries) {
      cursor = entry.cursor
      if (cursor > upTo) break
      if (entry.turnId !== undefined) continue
      for (const made of projection.push({ ...entry, afterTurn: undefined })) {
        const item = backgroundOf(made)
        if (item === undefined) continue
        const size = utf8Length(oneLineJson(item.data))
        kept.push({ item, bytes: size })
        bytes += size
        while (kept.length > keptItems || (bytes > keptBytes && kept.length > 1)) {
          bytes -= kept.shift()?.bytes ?? 0
          dropped += 1
        }
      }
    }
  }
  const items = kept.map(({ item }) => item)
  return dropped === 0 ? items : [{ type: "notify", kind: "background_dropped", data: { count: dropped } }, ...items]
})
