/**
 * The queue of a session (4.2, 5.2): listing and changing what waits. What it does not own: starting entries, which is the
 * turns' (RT-111).
 *
 * Implements RT-113 to RT-118.
 *
 * @since 0.1.0
 */
import { PromptInvalid, SessionNotFound, type RuntimeError } from "@tackroom/protocol"
import type { PromptPart, QueueList } from "@tackroom/protocol/events"
import { Context, Effect, Layer } from "effect"
import { queueList } from "../store/QueueRows.ts"
import type { QueueChange, QueueState } from "../store/RuntimeStore.ts"
import { Store } from "../store/Store.ts"
import { checkPrompt } from "./Admission.ts"
import { Hub } from "./Hub.ts"
import { Journal } from "./Journal.ts"
import { queueUpdate } from "./PublicRows.ts"
import { Turns } from "./Turns.ts"

export class Queue extends Context.Service<
  Queue,
  {
    readonly list: (sessionId: string) => Effect.Effect<QueueList, RuntimeError>
    readonly remove: (
      sessionId: string,
      messageId: string,
      options?: { readonly revision?: number }
    ) => Effect.Effect<QueueList, RuntimeError>
    readonly move: (
      sessionId: string,
      messageId: string,
      options: { readonly before: string | null; readonly revision?: number }
    ) => Effect.Effect<QueueList, RuntimeError>
    readonly reorder: (
      sessionId: string,
      messageIds: ReadonlyArray<string>,
      options: { readonly revision: number }
    ) => Effect.Effect<QueueList, RuntimeError>
    readonly edit: (
      sessionId: string,
      messageId: string,
      parts: ReadonlyArray<PromptPart>,
      options?: { readonly revision?: number }
    ) => Effect.Effect<QueueList, RuntimeError>
    readonly release: (sessionId: string) => Effect.Effect<QueueList, RuntimeError>
  }
>()("@tackroom/sdk/runtime/Queue") {
  static readonly layer = Layer.effect(
    Queue,
    Effect.gen(function* () {
      const store = yield* Store
      const journal = yield* Journal
      const hub = yield* Hub
      const turns = yield* Turns

      const known = Effect.fnUntraced(function* (sessionId: string) {
        if (hub.facts(sessionId) !== undefined) return
        if ((yield* store.getSession(sessionId)) === undefined) return yield* new SessionNotFound({ sessionId })
      })

      const change = (
        sessionId: string,
        what: QueueChange,
        revision: number | undefined
      ): Effect.Effect<QueueState, RuntimeError> =>
        journal.write(store.queueChange(sessionId, what, revision, (queue) => [{ payload: queueUpdate(queue) }])).pipe(
          Effect.map((committed) => committed.value),
          Effect.tap(() => Effect.sync(() => hub.touch(sessionId, "row"))),
          Effect.catchTag("OpFailed", (error) => Effect.die(error))
        )

      const changed = (sessionId: string, what: QueueChange, revision: number | undefined) =>
        Effect.map(change(sessionId, what, revision), queueList)

      return Queue.of({
        list: (sessionId) => Effect.andThen(known(sessionId), Effect.map(store.queue(sessionId), queueList)),
        remove: (sessionId, messageId, options) => changed(sessionId, { _tag: "Remove", messageId }, options?.revision),
        move: (sessionId, messageId, options) =>
          changed(sessionId, { _tag: "Move", messageId, before: options.before }, options.revision),
        reorder: (sessionId, messageIds, options) =>
          changed(sessionId, { _tag: "Reorder", messageIds }, options.revision),
        edit: (sessionId, messageId, parts, options) =>
          Effect.gen(function* () {
            const queue = yield* store.queue(sessionId)
            const entry = queue.entries.find((row) => row.messageId === messageId)
            if (parts.length === 0) return yield* new PromptInvalid({ path: "parts", expected: "at least one part" })
            const before = entry?.prompt ?? {}
            const { text: _text, ...rest } = before
            const checked = yield* checkPrompt({ ...rest, parts, messageId }, true)
            return yield* changed(
              sessionId,
              { _tag: "Edit", messageId, prompt: checked.prompt, digest: checked.digest },
              options?.revision
            )
          }),
        release: (sessionId) =>
          Effect.gen(function* () {
            const list = yield* changed(sessionId, { _tag: "Release" }, undefined)
            yield* turns.startNext(sessionId).pipe(Effect.catchTag("OpFailed", (error) => Effect.die(error)))
            return list
          })
      })
    })
  )
}
