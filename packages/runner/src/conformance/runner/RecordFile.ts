/** The launch record as it is read whenever its folder changes: every content it ever had is on the timeline. */
import { Effect, type Scope } from "effect"
import { readFileSync, watch } from "node:fs"
import { parseObject } from "../Json.ts"
import type { SeatTimeline } from "./Seen.ts"

/** Watches from now on. The result looks once more, for a record whose news has not come yet. */
export const watchRecord = (
  timeline: SeatTimeline,
  folder: string,
  path: string
): Effect.Effect<() => void, never, Scope.Scope> => {
  let last: string | undefined
  const look = (): void => {
    let text: string
    try {
      text = readFileSync(path, "utf8")
    } catch {
      // It is not there, or not any more.
      return
    }
    if (text === last) return
    last = text
    timeline.add({ kind: "file", what: "record", text: `launch record ${text}`, record: parseObject(text) })
  }
  return Effect.acquireRelease(
    Effect.sync(() => watch(folder, look)),
    (watcher) => Effect.sync(() => watcher.close())
  ).pipe(Effect.as(look))
}
