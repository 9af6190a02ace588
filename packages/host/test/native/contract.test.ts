/** The native agent under the driver contract of the sdk (HRN-070). */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import type { RuntimeStore } from "@tackroom/sdk/effect"
import { createMemoryRuntimeStore } from "@tackroom/sdk/stores/memory"
import { createSqliteRuntimeStore } from "@tackroom/sdk/stores/sqlite"
import { harnessContract, type HarnessPeer } from "@tackroom/sdk/testing"
import { Effect, Stream, type Schema } from "effect"
import { unreportedTokens, type ModelPart } from "../../src/models/ModelRequest.ts"
import { native } from "../../src/native/NativeHarness.ts"
import type { SessionSetup, SessionTool } from "../../src/native/SessionSetup.ts"

const tool = (qualifiedName: string, alias: string, category: SessionTool["category"]): SessionTool => ({
  qualifiedName,
  alias,
  description: "",
  schema: {},
  category,
  source: "native",
  validate: () => []
})

const setupOf = (sessionId: string): SessionSetup => ({
  sessionId,
  agentId: "agent",
  instructions: "Play.",
  workspace: "/",
  tools: [
    tool("test.look", "look", "read"),
    tool("test.change", "change", "write_local"),
    tool("ask_user", "ask_user", "read")
  ],
  model: { connection: "c", model: "m" },
  fallback: undefined,
  approvals: { mode: "always", tools: [] },
  bindingChanged: () => false
})

const call = (name: string, callId: string, args: Schema.JsonObject): ModelPart => ({
  type: "call",
  callId,
  tool: name,
  argumentsText: JSON.stringify(args),
  arguments: args
})

const question = { question: "Which colour?", options: ["Green", "Red"] }

/** What the model calls, by what it was told last. */
const callsOf: Record<string, ReadonlyArray<ModelPart>> = {
  look: [call("look", "c1", {}), call("look", "c2", {})],
  change: [call("change", "c1", {})],
  both: [call("change", "c1", {}), call("change", "c2", {})],
  ask: [call("ask_user", "c1", question)]
}

const usage: ModelPart = { type: "usage", tokens: unreportedTokens }

const peer: HarnessPeer = {
  hello: { prompt: "hello" },
  tool: { prompt: "look" },
  permission: { prompt: "change" },
  parallel: { prompt: "both" },
  question: { prompt: "ask" },
  long: { prompt: "long" }
}

const stores = [
  { name: "memory", make: () => createMemoryRuntimeStore() },
  { name: "sqlite", make: (root: string) => createSqliteRuntimeStore({ root }) }
]

for (const kind of stores) {
  describe(`the driver contract over ${kind.name}`, () => {
    const directory = mkdtempSync(join(tmpdir(), "tackroom-native-"))
    let count = 0
    let store: RuntimeStore | undefined
    const current = (): RuntimeStore => {
      if (store === undefined) throw new Error("no case runs")
      return store
    }
    const factory = native({
      store: {
        read: (...page) => Effect.suspend(() => current().read(...page)),
        artifactBytes: (...piece) => Effect.suspend(() => current().artifactBytes(...piece))
      },
      setup: (sessionId) => Effect.succeed(setupOf(sessionId)),
      redact: (value) => value,
      servers: { open: () => Effect.void, close: () => Effect.void },
      streamModel: ({ request }) => {
        const last = request.messages.at(-1)
        if (last?.role === "user" && last.text === "long") return Stream.never
        const calls = last?.role === "user" ? callsOf[last.text] : undefined
        return Stream.fromIterable<ModelPart>(
          calls === undefined
            ? [{ type: "text", part: 0, delta: "Done." }, usage, { type: "finish", reason: "stop" }]
            : [...calls, usage, { type: "finish", reason: "tool_calls" }]
        )
      },
      execute: (one) => Effect.andThen(one.beforeDispatch, Effect.succeed({ output: "seen" }))
    })
    for (const test of harnessContract(factory, {
      peer,
      directory,
      makeStore: () => {
        store = kind.make(join(directory, `store-${count++}`))
        return store
      }
    })) {
      it(test.title, async () => {
        const result = await test.run()
        assert.include(["pass", "skip"], result.verdict)
      })
    }
  })
}
