/** Cases of the driver contract about processes that end in the middle of a turn. */
import { isTerminalType } from "@tackroom/protocol/events"
import { Effect } from "effect"
import { Events } from "../runtime/Events.ts"
import { isEnvelope } from "../runtime/Subscriptions.ts"
import type { RuntimeStore } from "../store/RuntimeStore.ts"
import type { HarnessCase, HarnessPeer } from "./harnessContract.ts"
import { check, skip, type makeBench, type Recorder } from "./harnessContractKit.ts"

type Bench = ReturnType<typeof makeBench>

/** Events of a turn after which it is left; a longer turn is left at these only. */
const crashes = 24

/** Ends the runtime after each event of a turn in turn, and lets another one take the turn up. */
export const crashCases = (bench: Bench, peer: HarnessPeer): ReadonlyArray<HarnessCase> => {
  const { answering, bare, create, journal, open, start, wait } = bench

  const crash = Effect.fnUntraced(function* (store: RuntimeStore, recorder: () => Recorder, after: number) {
    const scene = peer.tool ?? peer.hello
    const id = `kit-crash-${after}`
    const first = yield* open(store, recorder())
    const reached = yield* first.run(
      Effect.gen(function* () {
        const session = yield* create(scene, id)
        const events = yield* Events
        const subscription = events.subscribe({ sessionId: session.id })
        yield* start(session.id, scene)
        let seen = 0
        let isOver = false
        while (seen < after && !isOver) {
          const item = yield* subscription.next
          if (item === undefined || !isEnvelope(item)) continue
          seen += 1
          isOver = isTerminalType(item.payload.type)
        }
        yield* subscription.close
        return !isOver
      })
    )
    yield* first.leave
    const second = yield* open(store, recorder())
    const all = yield* second.run(
      Effect.gen(function* () {
        yield* answering(id, () => ({ decision: "allow_once" }))
        yield* wait(id)
        return yield* journal(id)
      })
    )
    yield* second.leave
    const [turn] = yield* store.turnsOf(id, 1)
    const own = all.filter((event) => event.turnId === turn?.id)
    yield* check(
      own.filter((event) => isTerminalType(event.payload.type)).length === 1,
      `left after event ${after}: not exactly one terminal event`
    )
    const started = own.flatMap(({ payload }) =>
      payload.type === "tool-status" && payload.status === "running" ? [payload.toolCallId] : []
    )
    yield* check(new Set(started).size === started.length, `left after event ${after}: a call was run twice`)
    const ended = new Set(
      own.flatMap(({ payload }) =>
        payload.type === "tool-output" ||
        payload.type === "tool-error" ||
        (payload.type === "tool-status" && payload.status === "uncertain")
          ? [payload.toolCallId]
          : []
      )
    )
    yield* check(
      own.every(({ payload }) => payload.type !== "tool-start" || ended.has(payload.toolCallId)),
      `left after event ${after}: a call has no end`
    )
    return reached
  })

  return [
    bare("HRN-013", "a turn that is left after any of its events ends once, and repeats no call", (store, recorder) =>
      Effect.gen(function* () {
        let last = 0
        for (let after = 1; after <= crashes; after++) {
          const reached = yield* crash(store, recorder, after)
          if (!reached) break
          last = after
        }
        return last === 0 ? skip("the turn was over before it could be left") : undefined
      })
    )
  ]
}
