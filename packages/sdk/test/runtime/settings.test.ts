import { assert, describe, it } from "@effect/vitest"
import { HarnessUnavailable } from "@tackroom/protocol"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Config, Turns } from "../../src/effect.ts"
import { scripted } from "../../src/harness/scripted/index.ts"
import { create, failing, journal, outcome, programmable, start, stores, types, until, within } from "./Kit.ts"

const memory = stores.filter((kind) => kind.name === "memory")

for (const kind of memory) {
  describe(`what sessions run with, ${kind.name}`, () => {
    it.effect(
      "live options are kept for a minute per directory; an error is passed on and never kept [RT-066] [RT-067]",
      () => {
        let asked = 0
        let broken = true
        const driver = programmable({
          capabilities: { configOptions: true },
          driver: () => ({
            configOptions: () =>
              Effect.suspend(() => {
                asked += 1
                return broken
                  ? Effect.fail(new HarnessUnavailable({ harness: "test", operation: "configOptions" }))
                  : Effect.succeed([])
              })
          })
        })
        return within(kind, driver, ({ root }) =>
          Effect.gen(function* () {
            const config = yield* Config
            const first = (yield* config.options(root))[0]
            assert.isTrue(first?.ok === false && first.error._tag === "HarnessUnavailable")
            broken = false
            assert.deepStrictEqual(yield* config.options(root), [{ harness: "native:test", ok: true, options: [] }])
            yield* config.options(root)
            assert.strictEqual(asked, 2)
            yield* config.options(`${root}/elsewhere`)
            assert.strictEqual(asked, 3)
            yield* TestClock.adjust(60_001)
            yield* config.options(root)
            assert.strictEqual(asked, 4)
          })
        )
      }
    )

    it.live("a permission above the ceiling is asked although the mode would allow it [RT-262]", () =>
      within(
        kind,
        programmable(),
        ({ root }) =>
          Effect.gen(function* () {
            const session = yield* create(root, {
              harness: { id: "scripted", access: "native" },
              permissionMode: "full"
            })
            assert.strictEqual(session.config.permissionCeiling, "ask")
            const asked = yield* until(session.id, (payload) => payload.type === "permission-request")
            yield* start(session.id, "m")
            yield* asked
            yield* Effect.flatMap(Turns, (turns) => turns.abort(session.id))
            yield* outcome(session.id, "m")
            assert.notInclude(types(yield* journal(session.id)), "file-diff")
          }),
        { permissionCeiling: "ask", harnesses: [scripted({ speed: 0 })] }
      )
    )

    it.live("what does not decode is named by path and expectation, never by its value [RT-322] [RT-382]", () =>
      within(kind, programmable(), ({ root }) =>
        Effect.gen(function* () {
          const canary = "sk-canary-7f3a"
          const session = yield* create(root)
          const config = yield* Config
          const turns = yield* Turns
          const prompt = yield* Effect.flip(
            turns.start({ sessionId: session.id, parts: [{ type: "text", text: { secret: canary } as never }] })
          )
          assert.deepInclude(prompt, { code: "prompt_invalid", path: "parts.0.text", expected: "string" })
          const update = yield* Effect.flip(config.update(session.id, { model: { providerID: canary } } as never))
          assert.deepInclude(update, { code: "config_invalid" })
          for (const error of [prompt, update]) assert.notInclude(JSON.stringify(error) + String(error), canary)
          assert.strictEqual(
            yield* failing(config.update(session.id, { permissionCeiling: "full" } as never)),
            "session_invalid"
          )
        })
      )
    )
  })
}
