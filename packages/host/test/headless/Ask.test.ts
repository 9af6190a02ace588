import { assert, describe, it } from "@effect/vitest"
import type { Interruption } from "@tackroom/protocol/run"
import {
  approvalLines,
  approvalPrompt,
  questionLines,
  questionPrompt,
  readAnswer,
  readDecision
} from "../../src/faces/headless/Ask.ts"
import type { Style } from "../../src/faces/headless/Style.ts"

type Approval = Extract<Interruption, { readonly kind: "approval" }>
type Question = Extract<Interruption, { readonly kind: "question" }>

const plain: Style = { colour: false, unicode: true, width: 80 }

const base = {
  id: "int_1",
  sessionId: "ses_1",
  agent: "assistant",
  submissionId: "s",
  turnId: "trn_1",
  createdAt: "2026-01-01T00:00:00.000Z"
}

const approval = (qualifiedName: string, args: unknown, change: Partial<Approval> = {}): Approval => ({
  ...base,
  kind: "approval",
  tool: qualifiedName.replace(".", "__"),
  qualifiedName,
  arguments: args as never,
  category: "exec",
  callId: "c1",
  decisions: ["once", "session", "deny"],
  reason: "policy",
  ...change
})

const question = (change: Partial<Question> = {}): Question => ({
  ...base,
  kind: "question",
  question: "Which colour?",
  options: ["Green", "Blue"],
  allowText: true,
  topic: "agent",
  ...change
})

describe("an approval on the terminal", () => {
  it("shows the whole command, every line of it, and every other argument", () => {
    const command = `set -e\n${"x".repeat(500)}\nrm -rf build`
    const lines = approvalLines(approval("shell.run", { command, cwd: "sub", env: { A: "1" } }), {}, plain).join("\n")
    assert.include(lines, "shell.run wants to run")
    for (const line of command.split("\n")) assert.include(lines, `    $ ${line}`)
    assert.include(lines, "cwd: sub")
    assert.include(lines, '"A": "1"')
  })

  it("shows a new file whole and an existing one as what changes", () => {
    const fresh = approvalLines(approval("files.write", { path: "a.txt", content: "one\ntwo\n" }), {}, plain)
    assert.deepStrictEqual(fresh, [
      "? files.write wants to write a.txt assistant, exec",
      "    new file, 2 lines",
      "    + one",
      "    + two"
    ])
    const changed = approvalLines(
      approval("files.write", { path: "a.txt", content: "one\n2\n" }),
      { current: "one\ntwo\n" },
      plain
    )
    assert.deepStrictEqual(changed.slice(1), ["    replaces the file, 2 lines", "      one", "    - two", "    + 2"])
  })

  it("says so when the present file cannot be shown or nothing changes", () => {
    const write = approval("files.write", { path: "a.bin", content: "x" })
    assert.include(approvalLines(write, { opaque: true }, plain).join("\n"), "cannot be shown as text")
    assert.include(approvalLines(write, { current: "x" }, plain).join("\n"), "nothing changes")
  })

  it("shows each edit as what goes and what comes", () => {
    const edits = [
      { old: "a", new: "b" },
      { old: "c", new: "", all: true }
    ]
    assert.deepStrictEqual(approvalLines(approval("files.edit", { path: "a.ts", edits }), {}, plain).slice(1), [
      "    edit 1 of 2",
      "    - a",
      "    + b",
      "    edit 2 of 2, every occurrence",
      "    - c"
    ])
  })

  it("takes the whole arguments where the interruption has only previews", () => {
    const cut = approval("shell.run", { command: "ech…" }, { argumentsTruncated: true })
    assert.include(approvalLines(cut, { arguments: { command: "echo all of it" } }, plain).join("\n"), "echo all of it")
  })

  it("hides nothing: control characters are made visible", () => {
    const lines = approvalLines(approval("shell.run", { command: "ls\u001b[8m; rm -rf ~\u001b[0m\u202e" }), {}, plain)
    assert.strictEqual(lines[1], "    $ ls␛[8m; rm -rf ~␛[0m<U+202E>")
    const named = approvalLines(approval("x.y", { "a\u001b[2K": "b" }), {}, plain).join("\n")
    assert.notInclude(named, "\u001b")
  })

  it("y, s and n decide; what follows n is the reason; anything else is asked again", () => {
    const ask = approval("shell.run", { command: "ls" })
    assert.deepStrictEqual(readDecision("y", ask), { decision: "once" })
    assert.deepStrictEqual(readDecision(" YES ", ask), { decision: "once" })
    assert.deepStrictEqual(readDecision("s", ask), { decision: "session" })
    assert.deepStrictEqual(readDecision("n", ask), { decision: "deny" })
    assert.deepStrictEqual(readDecision("n, use npm ci, please", ask), {
      decision: "deny",
      reason: "use npm ci, please"
    })
    for (const reply of ["", "maybe", "yes please", "1"]) assert.isUndefined(readDecision(reply, ask), reply)
  })

  it("only what is offered can be chosen", () => {
    const ask = approval("shell.run", { command: "ls" }, { decisions: ["once", "deny"], reason: "binding_changed" })
    assert.isUndefined(readDecision("s", ask))
    assert.notInclude(approvalPrompt(ask, plain), "session")
    assert.include(approvalLines(ask, {}, plain).join("\n"), "has changed since")
  })
})

describe("a question on the terminal", () => {
  it("shows its text and numbered options", () => {
    assert.deepStrictEqual(questionLines(question(), plain), [
      "? assistant asks",
      "    Which colour?",
      "    [1] Green",
      "    [2] Blue"
    ])
    assert.include(questionPrompt(question(), plain), "from 1 to 2 or your own answer")
    assert.strictEqual(questionPrompt(question({ options: [] }), plain), "  your answer > ")
  })

  it("a number or a label chooses; other text is an answer where that is allowed", () => {
    assert.strictEqual(readAnswer("2", question()), "Blue")
    assert.strictEqual(readAnswer("green", question()), "Green")
    assert.strictEqual(readAnswer("Red", question()), "Red")
    assert.strictEqual(readAnswer("7", question()), "7")
    assert.isUndefined(readAnswer("Red", question({ allowText: false })))
    assert.isUndefined(readAnswer("3", question({ allowText: false })))
    assert.isUndefined(readAnswer("  ", question()))
    assert.isUndefined(readAnswer("x".repeat(16_385), question()))
  })
})
