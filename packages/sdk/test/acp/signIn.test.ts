import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { createMemoryRuntimeStore } from "../../src/store/memory/index.ts"
import { type AgentFlags, open, type Place, place, testAgent } from "./Kit.ts"

const within = <A, E>(
  flags: (at: Place) => AgentFlags,
  program: (
    at: Place,
    runtime: Effect.Success<ReturnType<typeof open>>,
    signIn: NonNullable<Effect.Success<Effect.Success<ReturnType<typeof open>>["driver"]>["signIn"]>
  ) => Effect.Effect<A, E>
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const at = yield* place
      const store = createMemoryRuntimeStore()
      yield* Effect.addFinalizer(() => store.close)
      const runtime = yield* open(testAgent(at, { auth: true, ...flags(at) }), store)
      const { signIn } = yield* runtime.driver
      if (signIn === undefined) return yield* Effect.die("the driver has no way to sign in")
      return yield* program(at, runtime, signIn)
    })
  )

const words = (at: Place): ReadonlyArray<string> =>
  at.log().flatMap((line) => {
    const [word = ""] = line.split(" ")
    return ["authenticate", "new"].includes(word) ? [word] : []
  })

describe("signing in to an ACP agent", () => {
  it.live("its ways are known when it was started, those of a terminal with the program to run", () =>
    within(
      () => ({}),
      (at, runtime, signIn) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(signIn.known(), [])
          assert.isFalse(existsSync(at.state), "nothing was started")
          assert.strictEqual((yield* Effect.flip(runtime.create(at.directory))).code, "harness_auth_required")
          assert.deepStrictEqual(signIn.known(), [{ id: "key", name: "API key", description: "Reads it" }])
          const [key, login] = yield* signIn.methods(at.directory)
          assert.strictEqual(key?.id, "key")
          assert.strictEqual(login?.terminal?.command, process.execPath)
          assert.strictEqual(login?.terminal?.args.at(-1), "login")
          assert.deepInclude(login?.terminal?.env.variables, { LOGIN: "1", AGENT_STATE: at.state })
          assert.deepStrictEqual(
            signIn.known().map(({ id }) => id),
            ["key", "login"]
          )
        })
    )
  )

  it.live("a way that was used is used again where the next process wants it, and not where it does not", () =>
    Effect.gen(function* () {
      yield* within(
        () => ({}),
        (at, runtime, signIn) =>
          Effect.gen(function* () {
            yield* signIn.use("key", at.directory)
            const session = yield* runtime.create(at.directory)
            assert.strictEqual((yield* runtime.run(session.id, "hello")).status, "completed")
            assert.deepStrictEqual(words(at), ["authenticate", "authenticate", "new"])
          })
      )
      yield* within(
        (at) => ({ authFile: join(at.directory, "signed-in") }),
        (at, runtime, signIn) =>
          Effect.gen(function* () {
            yield* signIn.use("key", at.directory)
            yield* runtime.create(at.directory)
            assert.deepStrictEqual(words(at), ["authenticate", "new"])
          })
      )
    })
  )

  it.live("what the agent refuses, and a way that is none or needs a terminal, fails and is not used later", () =>
    within(
      () => ({ refuseAuth: true }),
      (at, runtime, signIn) =>
        Effect.gen(function* () {
          const refused = yield* Effect.flip(signIn.use("key", at.directory))
          assert.strictEqual(refused.native?.message, "the key is not right")
          for (const id of ["login", "none"]) {
            assert.strictEqual((yield* Effect.flip(signIn.use(id, at.directory))).code, "harness_rejected")
          }
          assert.strictEqual((yield* Effect.flip(runtime.create(at.directory))).code, "harness_auth_required")
          assert.deepStrictEqual(words(at), ["authenticate"])
        })
    )
  )
})
