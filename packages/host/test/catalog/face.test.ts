import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { agent, folder, openHost } from "../runs/Kit.ts"

const first = "http://127.0.0.1:9/v1"
const second = "http://127.0.0.1:10/v1"

describe("a command-line face beside the host of a state directory", () => {
  it.effect("reads the catalogs, names its own providers and agents anew, and writes neither [RUN-231, RUN-327]", () =>
    Effect.gen(function* () {
      const { stateDir } = yield* folder
      const config = (baseUrl: string, instructions: string) => ({
        stateDir,
        providers: [{ name: "near", api: "chat-completions" as const, baseUrl }],
        agents: [agent({ instructions })]
      })
      const host = yield* openHost(config(first, "one"))
      const beside = yield* openHost(config(second, "two"), { lock: false })
      assert.strictEqual(beside.host.providers.find("near")?.baseUrl, second)
      yield* beside.close
      yield* host.close

      const again = yield* openHost({ stateDir })
      assert.strictEqual(again.host.providers.find("near")?.baseUrl, first)
    })
  )
})
