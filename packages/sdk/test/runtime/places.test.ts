import { assert, describe, it } from "@effect/vitest"
import type { HarnessEvent } from "@tackroom/protocol/events"
import { Effect } from "effect"
import { Positioned } from "../../src/harness/Harness.ts"
import type { RuntimeStore } from "../../src/store/RuntimeStore.ts"
import { create, openRuntime, outcome, programmable, scene, start, stores, until } from "./Kit.ts"
import type { TurnScript } from "./Programmable.ts"

const at = (event: HarnessEvent, place: number): Positioned => new Positioned({ event, peerCursor: String(place) })

const notice = (n: number): HarnessEvent => ({ type: "harness-notice", code: "n", message: `notice ${n}` })
const delta = (s: TurnScript, n: number): HarnessEvent => ({
  type: "text-delta",
  delta: `word ${n} `,
  messageId: s.input.assistantMessageId,
  partId: "p"
})

/** How many of the driver's events an entry stands for, by what they say. */
const numberOf = (payload: { readonly type: string }): number | undefined => {
  const said = "delta" in payload ? payload.delta : "message" in payload ? payload.message : undefined
  const found = typeof said === "string" ? /\d+/u.exec(said) : null
  return found === null ? undefined : Number(found[0])
}

const ask = (s: TurnScript) =>
  Effect.ignore(
    s.context.ask.permission({
      sessionId: s.input.binding.sessionId,
      turnId: s.input.turnId,
      nativeRequestId: "1",
      tool: "shell",
      options: []
    })
  )

for (const kind of stores) {
  describe(`the places of a harness's own record over ${kind.name}`, () => {
    it.live("each commit holds the place of its last event, whatever else is written in between [HRN-241]", () =>
      scene(kind, (root, store) =>
        Effect.gen(function* () {
          const commits: Array<readonly [number, number]> = []
          const watched: RuntimeStore = {
            ...store,
            append: (sessionId, fence, entries, options) => {
              const told = entries.flatMap((entry) => numberOf(entry.payload) ?? [])
              const place = options?.turn?.patch.peerCursor
              if (told.length > 0) commits.push([Math.max(...told), Number(place)])
              return store.append(sessionId, fence, entries, options)
            },
            openInteraction: (row, fence, entries, options) => {
              assert.isFalse(
                entries.some((entry) => numberOf(entry.payload) !== undefined),
                "an ask carries no event whose place it cannot keep"
              )
              return store.openInteraction(row, fence, entries, options)
            }
          }
          const driver = programmable({
            turn: (s) =>
              Effect.gen(function* () {
                for (let n = 1; n <= 1_200; n++) {
                  yield* s.emit(at(n % 3 === 0 ? notice(n) : delta(s, n), n))
                  if (n === 700) yield* ask(s)
                  if (n % 50 === 0) yield* Effect.yieldNow
                }
                yield* s.emit(s.finish())
              })
          })
          const first = yield* openRuntime(watched, driver, {
            decide: () => ({ decision: "allow_once", origin: "policy" })
          })
          const session = yield* first.run(create(root))
          yield* first.run(start(session.id, "m"))
          yield* first.run(outcome(session.id, "m"))
          assert.isAbove(commits.length, 1)
          for (const [last, place] of commits) assert.strictEqual(place, last)
          yield* first.close()
        })
      )
    )

    it.live("a turn that is taken up gets the place of its last journaled event [HRN-241]", () =>
      scene(kind, (root, store) =>
        Effect.gen(function* () {
          const first = yield* openRuntime(
            store,
            programmable({ turn: (s) => Effect.andThen(s.emit(at(notice(1), 41), at(notice(2), 42)), Effect.never) })
          )
          const session = yield* first.run(create(root))
          const second = yield* first.run(
            until(session.id, (payload) => payload.type === "harness-notice" && payload.message === "notice 2")
          )
          yield* first.run(start(session.id, "m"))
          yield* second
          yield* first.close("leave")
          const driver = programmable({ recover: (s) => s.emit(s.finish("done")) })
          const next = yield* openRuntime(store, driver)
          yield* next.life.ready
          yield* next.run(outcome(session.id, "m"))
          assert.deepStrictEqual(
            driver.recovered.map((turn) => turn.peerCursor),
            ["42"]
          )
          yield* next.close()
        })
      )
    )
  })
}
