/** The client's cases over a host in this process: the handlers of the wire tests, embedded (D-27). */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, it } from "@effect/vitest"
import { connectHost, type EmbeddedHost, makeInProcessTransport } from "@tackroom/sdk/client"
import { Cause, Effect, Exit } from "effect"
import { clientCases } from "../../../sdk/test/client/clientSuite.ts"
import { makeCounters, snapshot } from "../../src/faces/stdio/Counters.ts"
import { embed, makePrepare } from "../../src/faces/stdio/Dispatch.ts"
import { makeToyHost } from "./fixtures/ToyHost.ts"

const embedded = (stateDir: string): EmbeddedHost => {
  const toy = makeToyHost({ stateDir, info: () => ({ counters: snapshot(makeCounters()), draining: false }) })
  const call = embed(makePrepare(toy))
  return {
    call: async (method, params) => {
      const exit = await Effect.runPromiseExit(call(method, params))
      if (Exit.isSuccess(exit)) return exit.value
      throw Cause.squash(exit.cause)
    },
    notify: () => undefined,
    onNotification: () => () => undefined,
    close: () => Promise.resolve()
  }
}

describe("the client over a host in this process", () => {
  for (const one of clientCases) {
    it(one.name, async () => {
      const stateDir = mkdtempSync(join(tmpdir(), "tackroom-embedded-"))
      try {
        await one.run({
          workspace: stateDir,
          connect: (options) => connectHost(() => Promise.resolve(makeInProcessTransport(embedded(stateDir))), options)
        })
      } finally {
        rmSync(stateDir, { recursive: true, force: true })
      }
    })
  }
})
