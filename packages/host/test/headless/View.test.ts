import { assert, describe, it } from "@effect/vitest"
import type { EventPayload } from "@tackroom/protocol/events"
import {
  emptyView,
  finishLine,
  summaryLine,
  view,
  type Piece,
  type View,
  type ViewOptions
} from "../../src/faces/headless/View.ts"
import { duration, oneLine, styleOf, type Style } from "../../src/faces/headless/Style.ts"

const plain: Style = { colour: false, unicode: true, width: 80 }
const terminal: ViewOptions = { lead: "ses_1", text: true, live: true, quiet: false, style: plain }
const piped: ViewOptions = { ...terminal, text: false, live: false }

const at = (ms: number) => new Date(1_700_000_000_000 + ms).toISOString()

type Given = readonly [ms: number, payload: EventPayload, sessionId?: string]

/** What a terminal shows of these events, stdout and stderr as one. */
const show = (
  events: ReadonlyArray<Given>,
  options: ViewOptions
): { readonly all: string; readonly answer: string } => {
  let state: View = emptyView
  const pieces: Array<Piece> = []
  for (const [index, [ms, payload, sessionId = "ses_1"]] of events.entries()) {
    const event = { cursor: index + 1, at: at(ms), payload }
    const [next, more] = view(state, { sessionId, event }, options)
    state = next
    pieces.push(...more)
  }
  pieces.push(...finishLine(state)[1])
  const join = (only: ReadonlyArray<Piece>) => only.map(({ text }) => text).join("")
  return { all: join(pieces), answer: join(pieces.filter(({ to }) => to === "answer")) }
}

const call = (id: string, qualifiedName: string, category: string, input: unknown): ReadonlyArray<Given> => [
  [
    0,
    {
      type: "tool-start",
      toolCallId: id,
      toolName: qualifiedName.replace(".", "__"),
      metadata: { qualified_name: qualifiedName, category }
    }
  ],
  [0, { type: "tool-input", toolCallId: id, input: input as never }]
]
const dispatched = (id: string, ms: number): Given => [
  ms,
  { type: "tool-status", toolCallId: id, status: "running", metadata: { dispatch: true, tool: "x" } }
]
const output = (id: string, ms: number, value: unknown): Given => [
  ms,
  { type: "tool-output", toolCallId: id, output: value as never, metadata: { tool: "x", outcome: "completed" } }
]
const text = (partId: string, delta: string): Given => [0, { type: "text-delta", delta, messageId: "m", partId }]
const textEnd = (partId: string, whole: string): Given => [
  0,
  { type: "text-end", messageId: "m", partId, channel: "text", text: whole }
]

describe("what a person sees of a run", () => {
  it("the lead's text comes as it is written and ends its line [HDL-010]", () => {
    const { answer } = show([text("p1", "Hel"), text("p1", "lo."), textEnd("p1", "Hello.")], terminal)
    assert.strictEqual(answer, "Hello.\n")
  })

  it("a line about a tool never starts behind open text", () => {
    const { all } = show(
      [text("p1", "One "), ...call("c1", "files.read", "read", { path: "a" }), output("c1", 4, { total_lines: 3 })],
      terminal
    )
    assert.strictEqual(all, "One \n  ✓ files.read a · 3 lines\n")
  })

  it("where the closing text differs from what was streamed, the closing text is shown", () => {
    assert.strictEqual(show([text("p1", "Hel"), textEnd("p1", "Hello.")], terminal).answer, "Hello.\n")
    assert.strictEqual(show([text("p1", "Hex"), textEnd("p1", "Hello.")], terminal).answer, "Hex\nHello.\n")
    assert.strictEqual(show([textEnd("p1", "Hello.")], terminal).answer, "Hello.\n")
  })

  it("the text of another member is not the answer", () => {
    const worker = [0, { type: "text-delta", delta: "secret", messageId: "m", partId: "p" }, "ses_2"] as const
    assert.strictEqual(show([worker], terminal).answer, "")
  })

  it("without a terminal on stdout nothing of the text is shown before the end [HDL-010]", () => {
    assert.strictEqual(show([text("p1", "Hello."), textEnd("p1", "Hello.")], piped).all, "")
  })

  it("a call has one line with its arguments, its outcome and how long it ran [HDL-012]", () => {
    const { all } = show(
      [
        ...call("c1", "shell.run", "exec", { command: "npm test\n" }),
        dispatched("c1", 1_000),
        output("c1", 3_400, { exit_code: 0, stdout: "ok\n", stderr: "" })
      ],
      piped
    )
    assert.strictEqual(all, "  ✓ shell.run npm test · exit 0, 2.4 s\n")
  })

  it("on a terminal a command is announced and the end of its output is shown", () => {
    const { all } = show(
      [
        ...call("c1", "shell.run", "exec", { command: "make" }),
        dispatched("c1", 0),
        output("c1", 10, { exit_code: 2, stdout: "building\r50%\rdone\n", stderr: "boom\n" })
      ],
      terminal
    )
    assert.strictEqual(all, "  ▸ shell.run make\n  ✗ shell.run make · exit 2, 10 ms\n    done\n    boom\n")
  })

  it("a changed file tells how many lines came and went", () => {
    const { all } = show(
      [
        ...call("c1", "files.edit", "write_local", { path: "a.ts", edits: [] }),
        dispatched("c1", 0),
        [1, { type: "file-diff", toolCallId: "c1", path: "a.ts", oldText: "a\nb\n", newText: "a\nc\nd\n" }],
        output("c1", 2, { path: "a.ts", replacements: 1 })
      ],
      piped
    )
    assert.strictEqual(all, "  ✓ files.edit a.ts · +2 −1, 1 replacement, 2 ms\n")
  })

  it("a question that nobody answered does not look answered", () => {
    const answered = (origin: "person" | "policy"): Given => [
      0,
      { type: "question-answered", requestId: "int_1", answers: [["Unanswered"]], origin }
    ]
    assert.strictEqual(show([answered("policy")], piped).all, "  ! nobody was there to answer the question\n")
    assert.strictEqual(show([answered("person")], piped).all, "  ✓ answered: Unanswered\n")
  })

  it("denied, failed and unknown ends look different", () => {
    const { all } = show(
      [
        ...call("c1", "files.write", "write_local", { path: "a" }),
        [0, { type: "tool-error", toolCallId: "c1", error: "a person denied this call.", code: "denied" }],
        ...call("c2", "files.read", "read", { path: "b" }),
        [0, { type: "tool-error", toolCallId: "c2", error: "b does not exist", code: "failed" }],
        ...call("c3", "shell.run", "exec", { command: "make" }),
        [0, { type: "tool-status", toolCallId: "c3", status: "uncertain", metadata: { reason: "the host ended" } }]
      ],
      piped
    )
    assert.strictEqual(
      all,
      "  ✗ files.write a · denied: a person denied this call.\n" +
        "  ✗ files.read b · failed: b does not exist\n" +
        "  ? shell.run make · outcome unknown: the host ended\n"
    )
  })

  it("tells who settled an approval when it was no person [HDL-012]", () => {
    const resolved = (origin: "person" | "policy", decision: "allow_once" | "deny"): Given => [
      0,
      {
        type: "permission-resolved",
        requestId: "int_1" as never,
        tool: "shell__run",
        toolCallId: "c1",
        decision,
        origin
      }
    ]
    const { all } = show(
      [
        ...call("c1", "shell.run", "exec", { command: "ls" }),
        resolved("policy", "deny"),
        resolved("person", "allow_once")
      ],
      piped
    )
    assert.strictEqual(all, "  ✗ denied by policy: shell.run ls\n  ✓ allowed once: shell.run ls\n")
  })

  it("the plan is a list on a terminal and a count elsewhere; its call has no line of its own", () => {
    const events: ReadonlyArray<Given> = [
      [
        0,
        { type: "tool-start", toolCallId: "c1", toolName: "plan__update", metadata: { qualified_name: "plan.update" } }
      ],
      [
        0,
        {
          type: "todo-update",
          todos: [
            { id: "1", content: "Read", status: "completed" },
            { id: "2", content: "Write", status: "in_progress" }
          ]
        }
      ],
      output("c1", 1, { items: [] })
    ]
    assert.strictEqual(show(events, terminal).all, "  plan\n    ✓ Read\n    ▸ Write\n")
    assert.strictEqual(show(events, piped).all, "  plan: 1 of 2 done\n")
  })

  it("retries and warnings are told; notices for information are not", () => {
    const { all } = show(
      [
        [0, { type: "session-retry", message: "rate limit", delayMs: 2_000 }],
        [0, { type: "harness-notice", code: "x", message: "mind this", severity: "warn" }],
        [0, { type: "harness-notice", code: "scripted", message: "not this", severity: "info" }]
      ],
      piped
    )
    assert.strictEqual(all, "  ! asking the model again in 2.0 s: rate limit\n  ! mind this\n")
  })

  it("that text is withdrawn is told where it was shown, and only then", () => {
    const response: Given = [0, { type: "response-start", responseId: "r" }]
    const retracted: Given = [0, { type: "response-retracted", responseIds: ["r"], reason: "the stream broke off" }]
    const spoken = [response, text("p", "Half"), textEnd("p", "Half"), retracted]
    assert.strictEqual(show(spoken, terminal).all, "Half\n  ! the text above is withdrawn: the stream broke off\n")
    assert.strictEqual(show(spoken, piped).all, "")
    assert.strictEqual(show([...spoken.slice(0, 3), response, retracted], terminal).all, "Half\n")
  })

  it("quiet shows the text and no log at all [HDL-012]", () => {
    const { all } = show(
      [text("p", "Hi"), textEnd("p", "Hi"), ...call("c1", "files.read", "read", { path: "a" }), output("c1", 4, {})],
      { ...terminal, quiet: true }
    )
    assert.strictEqual(all, "Hi\n")
  })

  it("nothing of a model or a tool reaches the terminal as a control sequence", () => {
    const evil = "\u001b]0;title\u0007\u001b[2J\r\u202eabc\u0000"
    const { all } = show(
      [
        text("p", evil),
        textEnd("p", evil),
        ...call("c1", "shell.run", "exec", { command: evil }),
        dispatched("c1", 0),
        output("c1", 1, { exit_code: 0, stdout: evil, stderr: "" }),
        [0, { type: "todo-update", todos: [{ content: evil, status: "pending" }] }],
        [0, { type: "harness-notice", code: "x", message: evil, severity: "error" }]
      ],
      terminal
    )
    // oxlint-disable-next-line no-control-regex -- the characters that must not be there
    assert.notMatch(all, /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/u)
  })

  it("long arguments are cut to the width of the terminal, on one line", () => {
    const { all } = show(
      [
        ...call("c1", "files.write", "write_local", { path: "x".repeat(300) }),
        output("c1", 1, { bytes: 3, created: true })
      ],
      piped
    )
    assert.isAtMost(all.length, 81)
    assert.include(all, "… · new file, 3 bytes\n")
  })

  it("an event of a type it does not know shows nothing [RUN-175]", () => {
    assert.deepStrictEqual(view(emptyView, { sessionId: "ses_1", event: undefined }, terminal), [emptyView, []])
  })
})

describe("the last line", () => {
  const end = {
    status: "completed",
    usage: { inputTokens: 6_247, outputTokens: 387, rounds: 4 },
    sessionId: "ses_1",
    scripted: true
  } as const

  it("has status, usage and session, and says when a script played the model [HDL-012, SRV-008]", () => {
    assert.strictEqual(
      summaryLine(end, plain),
      "✓ completed · 4 rounds · 6,247 tokens in, 387 out · scripted · session ses_1"
    )
  })

  it("tells why a run failed, and leaves out what was not reported", () => {
    const usage = { inputTokens: null, outputTokens: null, rounds: 1 }
    assert.strictEqual(
      summaryLine(
        { ...end, status: "failed", failure: "model_error", message: "HTTP\n500", usage, scripted: false },
        plain
      ),
      "✗ failed (model_error: HTTP 500) · 1 round · session ses_1"
    )
  })
})

describe("style", () => {
  it("colours only on a terminal and without NO_COLOR", () => {
    assert.isTrue(styleOf({ isTTY: true }, {}).colour)
    assert.isFalse(styleOf({ isTTY: false }, {}).colour)
    assert.isFalse(styleOf({ isTTY: true }, { NO_COLOR: "1" }).colour)
    assert.isTrue(styleOf({ isTTY: true }, { NO_COLOR: "" }).colour)
    assert.isFalse(styleOf({ isTTY: true }, { TERM: "dumb" }).colour)
  })

  it("keeps to ASCII signs on a dumb terminal and in a locale without UTF-8", () => {
    assert.isFalse(styleOf({ isTTY: true }, { TERM: "dumb", LANG: "en_US.UTF-8" }).unicode)
    assert.isFalse(styleOf({ isTTY: true }, { LC_ALL: "C" }).unicode)
    assert.isTrue(styleOf({ isTTY: true }, { LANG: "de_DE.utf8" }).unicode)
  })

  it("durations read well", () => {
    assert.deepStrictEqual([0, 999, 1_000, 59_940, 61_000, -5].map(duration), [
      "0 ms",
      "999 ms",
      "1.0 s",
      "59.9 s",
      "1 min 1 s",
      "0 ms"
    ])
  })

  it("one line stays one line", () => {
    assert.strictEqual(oneLine(" a\n\tb\r\nc "), "a b c")
  })
})
