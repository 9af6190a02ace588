import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import type { Interruption } from "@tackroom/protocol/run"
import * as fs from "node:fs"
import * as path from "node:path"
import { PassThrough } from "node:stream"
import { currentText, makeAsking, type AskingConfig } from "../../src/faces/headless/Asking.ts"
import { openTerminal } from "../../src/faces/headless/Terminal.ts"
import { temporary } from "../command/Program.ts"

type Approval = Extract<Interruption, { readonly kind: "approval" }>
type Question = Extract<Interruption, { readonly kind: "question" }>

const base = (id: string) => ({
  id,
  sessionId: "ses_1",
  agent: "assistant",
  submissionId: "s",
  turnId: "trn_1",
  createdAt: "2026-01-01T00:00:00.000Z"
})
const approval = (id: string, change: Partial<Approval> = {}): Approval => ({
  ...base(id),
  kind: "approval",
  tool: "shell__run",
  qualifiedName: "shell.run",
  arguments: { command: `do ${id}` },
  category: "exec",
  callId: id,
  decisions: ["once", "session", "deny"],
  reason: "policy",
  ...change
})
const question = (id: string, change: Partial<Question> = {}): Question => ({
  ...base(id),
  kind: "question",
  question: `what of ${id}?`,
  options: [],
  allowText: true,
  topic: "agent",
  ...change
})

/** A person made of a stream: `shown` is what they saw, `prompted(n)` waits for the n-th prompt. */
const person = (change: Partial<AskingConfig> = {}) => {
  const input = new PassThrough()
  let shown = ""
  let prompts = 0
  const waiting = new Map<number, Deferred.Deferred<void>>()
  const prompted = (number: number): Effect.Effect<void> => {
    if (prompts >= number) return Effect.void
    const deferred = waiting.get(number) ?? Deferred.makeUnsafe<void>()
    waiting.set(number, deferred)
    return Deferred.await(deferred)
  }
  const terminal = openTerminal(input, (text) => {
    shown += text
    if (!text.endsWith("> ")) return
    prompts += 1
    const deferred = waiting.get(prompts)
    if (deferred !== undefined) Deferred.doneUnsafe(deferred, Effect.void)
  })
  const held: Array<boolean> = []
  const cancel = new AbortController()
  const asking = makeAsking({
    terminal,
    style: { colour: false, unicode: true, width: 80 },
    workspace: "/nonexistent",
    signal: cancel.signal,
    show: (lines) => {
      shown += lines.map((line) => `${line}\n`).join("")
    },
    hold: (on) => void held.push(on),
    giveUp: () => void cancel.abort(),
    artifact: () => Promise.resolve("{}"),
    ...change
  })
  const requested = (id: string) =>
    asking.saw({ type: "permission-request", requestId: id as never, tool: "t", paths: [], options: [] })
  return { asking, cancel, held, input, prompted, requested, shown: () => shown, terminal }
}

describe("asking the person at the terminal [HDL-030]", () => {
  it.live("one thing at a time, in order, each after what came before it was shown", () =>
    Effect.gen(function* () {
      const { asking, held, input, prompted, requested, shown } = person()
      const first = asking.onApproval(approval("int_1"))
      const second = asking.onApproval(approval("int_2"))
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      assert.strictEqual(shown(), "")
      requested("int_1")
      requested("int_2")
      yield* prompted(1)
      assert.include(shown(), "do int_1")
      assert.notInclude(shown(), "do int_2")
      input.write("y\n")
      assert.deepStrictEqual(yield* Effect.promise(() => first), { decision: "once" })
      yield* prompted(2)
      assert.include(shown(), "do int_2")
      input.write("n not now\n")
      assert.deepStrictEqual(yield* Effect.promise(() => second), { decision: "deny", reason: "not now" })
      assert.deepStrictEqual(held, [true, false, true, false])
    })
  )

  it.live("what was typed before something was asked answers nothing", () =>
    Effect.gen(function* () {
      const { asking, input, prompted, requested } = person()
      input.write("y\ny\ny\n")
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      requested("int_1")
      const answer = asking.onApproval(approval("int_1"))
      yield* prompted(1)
      input.write("n\n")
      assert.deepStrictEqual(yield* Effect.promise(() => answer), { decision: "deny" })
    })
  )

  it.live("a reply that is none is asked again", () =>
    Effect.gen(function* () {
      const { asking, input, prompted, requested, shown } = person()
      requested("int_1")
      const answer = asking.onApproval(approval("int_1"))
      yield* prompted(1)
      input.write("hm\n")
      yield* prompted(2)
      assert.include(shown(), "n refuses")
      input.write("s\n")
      assert.deepStrictEqual(yield* Effect.promise(() => answer), { decision: "session" })
    })
  )

  it.live("what a grant settled meanwhile is not asked", () =>
    Effect.gen(function* () {
      const { asking, input, prompted, requested, shown } = person()
      requested("int_1")
      requested("int_2")
      const first = asking.onApproval(approval("int_1"))
      const second = asking.onApproval(approval("int_2"))
      yield* prompted(1)
      asking.saw({
        type: "permission-resolved",
        requestId: "int_2" as never,
        tool: "t",
        decision: "allow_once",
        origin: "grant"
      })
      input.write("s\n")
      yield* Effect.promise(() => first)
      assert.isUndefined(yield* Effect.promise(() => second))
      assert.notInclude(shown(), "do int_2")
    })
  )

  it.live("the end of input refuses, and leaves a question unanswered", () =>
    Effect.gen(function* () {
      const { asking, input, prompted, requested } = person()
      requested("int_1")
      requested("int_2")
      const first = asking.onApproval(approval("int_1"))
      yield* prompted(1)
      input.end()
      const decision = yield* Effect.promise(() => first)
      assert.strictEqual(decision?.decision, "deny")
      assert.strictEqual(yield* Effect.promise(() => asking.onQuestion(question("int_2"))), "Unanswered")
    })
  )

  it.live("nobody is left to choose: a question that takes only its options ends the run", () =>
    Effect.gen(function* () {
      const { asking, cancel, input, requested } = person()
      requested("int_1")
      input.end()
      const closed = question("int_1", { allowText: false, options: ["a", "b"] })
      assert.isUndefined(yield* Effect.promise(() => asking.onQuestion(closed)))
      assert.isTrue(cancel.signal.aborted)
    })
  )

  it.live("a cancel withdraws what is being asked and asks nothing more", () =>
    Effect.gen(function* () {
      const { asking, cancel, prompted, requested, shown } = person()
      requested("int_1")
      requested("int_2")
      const first = asking.onApproval(approval("int_1"))
      const second = asking.onQuestion(question("int_2"))
      yield* prompted(1)
      cancel.abort()
      assert.isUndefined(yield* Effect.promise(() => first))
      assert.isUndefined(yield* Effect.promise(() => second))
      assert.notInclude(shown(), "what of int_2")
    })
  )

  it.live("long arguments are shown whole, from their artifact", () =>
    Effect.gen(function* () {
      const { asking, input, prompted, requested, shown } = person({
        artifact: (sessionId, artifactId) => Promise.resolve(JSON.stringify({ command: `${sessionId} ${artifactId}` }))
      })
      requested("int_1")
      const cut = { argumentsTruncated: true, argumentsArtifactId: "art_1", arguments: { command: "ses…" } }
      const answer = asking.onApproval(approval("int_1", cut))
      yield* prompted(1)
      assert.include(shown(), "$ ses_1 art_1")
      input.write("y\n")
      yield* Effect.promise(() => answer)
    })
  )
})

describe("the present text of a file", () => {
  it.live("is read inside the workspace only, and as text only", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const workspace = path.join(directory, "work")
      fs.mkdirSync(workspace)
      fs.writeFileSync(path.join(directory, "outside"), "secret")
      fs.writeFileSync(path.join(workspace, "text"), "hello ü")
      fs.writeFileSync(path.join(workspace, "binary"), Uint8Array.of(1, 0, 2))
      fs.writeFileSync(path.join(workspace, "latin"), Uint8Array.of(0x66, 0xff))
      fs.symlinkSync("../outside", path.join(workspace, "link"))
      assert.deepStrictEqual(currentText(workspace, { path: "text" }), { current: "hello ü" })
      assert.deepStrictEqual(currentText(workspace, { path: "new" }), {})
      assert.deepStrictEqual(currentText(workspace, { command: "x" }), {})
      for (const name of ["binary", "latin", "link", "../outside", ".", path.join(directory, "outside")]) {
        assert.deepStrictEqual(currentText(workspace, { path: name }), { opaque: true }, name)
      }
    })
  )
})
