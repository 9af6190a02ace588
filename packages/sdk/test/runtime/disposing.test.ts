import { assert, describe, it } from "@effect/vitest"
import { isTerminalType } from "@tackroom/protocol/events"
import { Effect, Layer, Logger } from "effect"
import { scripted } from "../../src/harness/scripted/index.ts"
import { create, directory, openRuntime, programmable, start, stores } from "./Kit.ts"
import { text } from "./Programmable.ts"

const rounds = 30

/** Lets the event loop turn. */
const turnLoop: Effect.Effect<void> = Effect.callback((resume) => {
  const handle = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(handle))
})

const turnsOfLoop = (times: number): Effect.Effect<void> =>
  times <= 0
    ? Effect.void
    : Effect.andThen(
        turnLoop,
        Effect.suspend(() => turnsOfLoop(times - 1))
      )

/** What the runtime has to complain of, in place of the console. */
const complaints = () => {
  const seen: Array<string> = []
  const logger = Logger.make(({ cause, logLevel, message }) => {
    if (logLevel === "Error" || logLevel === "Fatal") seen.push(`${String(message)} ${String(cause)}`)
  })
  return { seen, layer: Logger.layer([logger]) as Layer.Layer<never> }
}

for (const kind of stores) {
  for (const how of ["cancel", "leave"] as const) {
    describe(`closing, ${kind.name}, ${how}`, () => {
      it.live(
        "a runtime closed at any moment of its turns settles or leaves each of them, and complains of nothing [RT-024] [RT-028] [RT-140]",
        () => {
          const { layer, seen } = complaints()
          const talkative = programmable({
            turn: ({ emit, finish, input }) =>
              Effect.gen(function* () {
                for (let i = 0; i < 6; i++) {
                  yield* emit(text(input, `word ${i} `))
                  yield* emit({ type: "tool-start", toolCallId: `c${i}`, toolName: "look" })
                  yield* turnLoop
                  yield* emit({ type: "tool-output", toolCallId: `c${i}`, output: "seen" })
                }
                yield* emit(finish("done"))
              })
          })
          const factories = [talkative.factory, scripted({ speed: 0 })]
          return Effect.gen(function* () {
            const root = yield* directory
            const store = kind.make(root)
            for (let round = 0; round < rounds; round++) {
              const ids: Array<string> = []
              const runtime = yield* openRuntime(store, talkative, { harnesses: factories, owner: `round-${round}` })
              yield* runtime.run(
                Effect.gen(function* () {
                  for (const id of ["test", "test", "scripted"]) {
                    const session = yield* create(root, { harness: { id, access: "native" } })
                    ids.push(session.id)
                    yield* start(session.id, `m-${session.id}`, "hello")
                    yield* start(session.id, `q-${session.id}`, "again", { delivery: "queue" })
                  }
                  yield* turnsOfLoop(round % 23)
                })
              )
              yield* runtime.close(how)
              for (const id of ids) {
                const turns = yield* store.turnsOf(id, 10)
                const { events } = yield* store.read(id, 0, 1000)
                assert.deepStrictEqual(
                  events.map((event) => event.seq),
                  events.map((_, i) => i + 1)
                )
                if (how === "cancel") assert.isTrue(turns.every((turn) => turn.outcome !== null))
                for (const turn of turns) {
                  const own = events.filter((event) => event.turnId === turn.id)
                  const ends = own.filter((event) => isTerminalType(event.type))
                  assert.strictEqual(ends.length, turn.outcome === null ? 0 : 1)
                  if (turn.outcome !== null) assert.isTrue(isTerminalType(own.at(-1)?.type ?? ""))
                }
              }
            }
            yield* store.close
            assert.deepStrictEqual(seen, [])
          }).pipe(Effect.scoped, Effect.provide(layer))
        },
        120_000
      )
    })
  }
}
