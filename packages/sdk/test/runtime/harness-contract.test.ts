import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { scripted } from "../../src/harness/index.ts"
import { harnessContract, type HarnessPeer } from "../../src/testing/harnessContract.ts"
import { stores } from "./Kit.ts"
import { programmable } from "./Programmable.ts"

const model = (name: string) => ({ model: { providerID: "script", modelID: `scripted-${name}` } })

const peer: HarnessPeer = {
  hello: { prompt: "say hello", session: model("hello") },
  tool: { prompt: "use tools", session: { ...model("tools"), permissionMode: "full" } },
  permission: { prompt: "use tools", session: { ...model("tools"), permissionMode: "auto" } },
  question: { prompt: "ask me", session: model("question") },
  parallel: { prompt: "both", session: model("both") },
  long: { prompt: "talk", session: model("long") }
}

const write = (path: string) => ({
  call: { tool: "files.write", arguments: { path, content: path }, ask: true, output: path }
})
const both = { scenario: 1, name: "both", default: [[write("a"), write("b")], [{ text: "done" }]] } as const

for (const kind of stores) {
  const directory = mkdtempSync(join(tmpdir(), "tackroom-kit-"))
  let count = 0
  describe(`the driver contract over ${kind.name}`, () => {
    for (const test of harnessContract(scripted({ speed: 1, scenarios: [both] }), {
      peer,
      directory,
      makeStore: () => kind.make(join(directory, `store-${count++}`))
    })) {
      it(test.title, async () => {
        const result = await test.run()
        assert.include(["pass", "skip"], result.verdict)
      })
    }
  })
}

const memory = (stores[0] as (typeof stores)[number]).make

/** Ids of the cases that a driver fails; `asks`: it declares permissions and has a scene for them. */
const failedCases = async (broken: ReturnType<typeof programmable>, peer: HarnessPeer) => {
  const directory = mkdtempSync(join(tmpdir(), "tackroom-kit-"))
  const cases = harnessContract(broken.factory, { peer, directory, makeStore: () => memory(directory) })
  const failed = new Set<string>()
  for (const test of cases) await test.run().catch(() => failed.add(test.id))
  return [...failed].toSorted()
}

const plain = { permissions: false, questions: false, abort: false } as const
const hello: HarnessPeer = { hello: { prompt: "hi" } }
const said = { type: "text-end", messageId: "x", partId: "p", channel: "text", text: "hi" } as const

/** One driver per group of rules, each wrong in one way (D-45). */
const broken: ReadonlyArray<{
  readonly what: string
  readonly fails: ReadonlyArray<string>
  readonly peer?: HarnessPeer
  readonly driver: () => ReturnType<typeof programmable>
}> = [
  {
    what: "invents an empty answer to what it does not declare",
    fails: ["HRN-001"],
    driver: () =>
      programmable({
        capabilities: plain,
        turn: (s) => s.emit(said, s.finish()),
        driver: () => ({ models: () => Effect.succeed([]) })
      })
  },
  {
    what: "declares what nothing shows",
    fails: ["HRN-002"],
    driver: () => programmable({ capabilities: { ...plain, questions: true }, turn: (s) => s.emit(said, s.finish()) })
  },
  {
    what: "makes a native session at each opening",
    fails: ["HRN-003"],
    driver: () => {
      let made = 0
      return programmable({
        capabilities: plain,
        turn: (s) => s.emit(said, s.finish()),
        driver: () => ({
          openSession: () =>
            Effect.sync(() => ({ upstreamSessionId: `up-${++made}`, upstreamState: "confirmed" as const }))
        })
      })
    }
  },
  {
    what: "resumes into another conversation",
    fails: ["HRN-004"],
    driver: () =>
      programmable({
        capabilities: plain,
        turn: (s) => s.emit(said, s.finish()),
        driver: () => ({
          resumeSession: () => Effect.succeed({ upstreamSessionId: "another", upstreamState: "confirmed" as const })
        })
      })
  },
  {
    what: "ends its turn twice",
    fails: ["HRN-009"],
    driver: () => programmable({ capabilities: plain, turn: (s) => s.emit(said, s.finish(), s.finish()) })
  },
  {
    what: "shows no call where it makes one",
    fails: ["HRN-014"],
    peer: { ...hello, tool: { prompt: "tool" } },
    driver: () => programmable({ capabilities: plain, turn: (s) => s.emit(said, s.finish()) })
  },
  {
    what: "asks nothing where it has to",
    fails: ["HRN-070"],
    peer: { ...hello, permission: { prompt: "write" } },
    driver: () => programmable({ capabilities: { ...plain, permissions: true }, turn: (s) => s.emit(said, s.finish()) })
  },
  {
    what: "keeps something of every turn",
    fails: ["HRN-042"],
    driver: () => {
      let turns = 0
      return programmable({
        capabilities: plain,
        turn: (s) => {
          turns += 1
          return s.emit(said, s.finish())
        },
        driver: () => ({ health: () => Effect.sync(() => ({ status: "ok", sessions: turns })) })
      })
    }
  },
  {
    what: "does not know how it is",
    fails: ["HRN-011"],
    driver: () =>
      programmable({
        capabilities: plain,
        turn: (s) => s.emit(said, s.finish()),
        driver: () => ({ health: () => Effect.succeed({ status: "fine" as never }) })
      })
  },
  {
    what: "runs a call again after a restart",
    fails: ["HRN-013"],
    driver: () => {
      const call = [
        { type: "tool-start", toolCallId: "a", toolName: "t" },
        { type: "tool-status", toolCallId: "a", status: "running" },
        { type: "tool-output", toolCallId: "a", output: "x" }
      ] as const
      return programmable({
        capabilities: plain,
        turn: (s) =>
          Effect.andThen(
            Effect.forEach([said, ...call], (event) => Effect.andThen(s.emit(event), Effect.sleep(5)), {
              discard: true
            }),
            s.emit(s.finish())
          ),
        recover: (s) => s.emit(said, ...call, s.finish())
      })
    }
  }
]

describe("broken drivers", () => {
  for (const { driver, fails, peer = hello, what } of broken) {
    it(`a driver that ${what} fails ${fails.join(", ")} and nothing else [HRN-071]`, async () => {
      assert.deepStrictEqual(await failedCases(driver(), peer), fails)
    })
  }
})
