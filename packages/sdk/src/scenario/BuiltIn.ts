/**
 * The built-in scenarios, as data. They need no key and no network; the word `scripted` is in every title and model id, so
 * that nobody takes them for a live model (HRN-280, AGT-334). The first one is the default (AGT-337).
 *
 * They are written for the harness; `forModel` makes the native agent's form of the same scenario.
 */
import type { Scenario, ScenarioStep } from "@tackroom/protocol/scenario"

/** A scenario that can be chosen by name. @since 0.1.0 */
export interface BuiltInScenario {
  /** Short name: `demo`. */
  readonly id: string
  /** What a list shows; contains `scripted`. */
  readonly title: string
  readonly description: string
  readonly scenario: Scenario
}

const usage = (input: number, output: number): ScenarioStep => ({ usage: { input, output } })

const demo: Scenario = {
  scenario: 1,
  name: "demo",
  exhausted: "echo",
  default: [
    [
      { thinking: "I should look at the project before I change anything." },
      { text: "This is a scripted demonstration: no model is asked. I will read two files first." },
      {
        plan: [
          { id: "1", content: "Read the project's description", status: "in_progress" },
          { id: "2", content: "Write a summary", status: "pending" },
          { id: "3", content: "Check the result", status: "pending" }
        ]
      },
      { delayMs: 150 },
      {
        call: {
          tool: "files.read",
          arguments: { path: "README.md" },
          runningMs: 80,
          output: { path: "README.md", content: "# Example\n\nA small project.\n", total_lines: 3, truncated: false }
        }
      },
      {
        call: {
          tool: "files.read",
          arguments: { path: "package.json" },
          runningMs: 60,
          output: { path: "package.json", content: '{ "name": "example" }\n', total_lines: 1, truncated: false }
        }
      },
      usage(1_204, 148)
    ],
    [
      { text: "I know enough to write a summary. That changes your workspace, so I ask first." },
      {
        plan: [
          { id: "1", content: "Read the project's description", status: "completed" },
          { id: "2", content: "Write a summary", status: "in_progress" },
          { id: "3", content: "Check the result", status: "pending" }
        ]
      },
      { delayMs: 150 },
      {
        call: {
          tool: "files.write",
          arguments: { path: "SUMMARY.md", content: "# Summary\n\nWritten by the scripted demonstration.\n" },
          ask: true,
          runningMs: 90,
          output: { path: "SUMMARY.md", bytes: 49, created: true }
        }
      },
      usage(1_530, 117)
    ],
    [
      { text: "Now I check it with a command." },
      {
        call: {
          tool: "shell.run",
          arguments: { command: "ls -l" },
          ask: true,
          runningMs: 200,
          output: { exit_code: 0, stdout: "README.md\nSUMMARY.md\npackage.json\n", stderr: "", timed_out: false }
        }
      },
      usage(1_702, 64)
    ],
    [
      {
        plan: [
          { id: "1", content: "Read the project's description", status: "completed" },
          { id: "2", content: "Write a summary", status: "completed" },
          { id: "3", content: "Check the result", status: "completed" }
        ]
      },
      {
        text: "That was scripted: two files, a plan, and two calls that wait for your decision unless it was given. "
      },
      { delayMs: 80 },
      { text: "With a key the same session talks to a real model." },
      usage(1_811, 58)
    ]
  ]
}

const hello: Scenario = {
  scenario: 1,
  name: "hello",
  exhausted: "echo",
  default: [[{ text: "Hello from a scripted agent." }, usage(24, 8)]]
}

const question: Scenario = {
  scenario: 1,
  name: "question",
  exhausted: "echo",
  default: [
    [
      { text: "Before I go on I need to know something." },
      {
        question: {
          question: "Which colour should the button have?",
          header: "Colour",
          options: [{ label: "Green" }, { label: "Blue", description: "The default" }]
        }
      },
      { text: "Thank you. That is the colour I will use." },
      usage(71, 33)
    ]
  ]
}

/** Words of the long answer, in a fixed order that does not repeat soon. */
const vocabulary =
  "the session keeps every event in order so that a reader who comes late sees exactly what others saw and nothing is shown that a crash could take back".split(
    " "
  )

const longText = (from: number, count: number): string =>
  Array.from({ length: count }, (_, offset) => {
    const index = from + offset
    const word = vocabulary[(index * 7 + Math.floor(index / vocabulary.length)) % vocabulary.length] ?? "event"
    return index % 97 === 96 ? `${word}.\n\n` : index % 13 === 12 ? `${word}. ` : `${word} `
  }).join("")

const longTokens = 10_000
const longBatch = 100

const long: Scenario = {
  scenario: 1,
  name: "long",
  exhausted: "echo",
  default: [
    [
      { text: "This is a long scripted answer.\n\n" },
      ...Array.from({ length: longTokens / longBatch }, (_, batch): ReadonlyArray<ScenarioStep> => [
        { text: longText(batch * longBatch, longBatch) },
        { delayMs: 20 }
      ]).flat(),
      usage(12, longTokens)
    ]
  ]
}

const tools: Scenario = {
  scenario: 1,
  name: "tools",
  exhausted: "echo",
  default: [
    [
      { text: "Several calls in one scripted response, with different ends." },
      {
        call: {
          tool: "files.list",
          arguments: { path: "." },
          output: { entries: [{ path: "README.md", type: "file", bytes: 28 }], truncated: false }
        }
      },
      {
        call: {
          tool: "files.search",
          arguments: { pattern: "project" },
          runningMs: 40,
          output: { matches: [{ path: "README.md", line: 3, column: 9, text: "A small project." }], truncated: false }
        }
      },
      {
        call: { tool: "files.read", arguments: { path: "missing.txt" }, error: "missing.txt does not exist" }
      },
      {
        call: {
          tool: "web.fetch",
          arguments: { url: "https://example.com/" },
          ask: [
            { id: "once", label: "Allow this once", kind: "allow_once" },
            { id: "always", label: "Allow for this session", kind: "allow_always" },
            { id: "no", label: "Do not fetch", kind: "reject_once" }
          ],
          runningMs: 120,
          output: { url: "https://example.com/", status: 200, content: "Example Domain" }
        }
      },
      usage(310, 96)
    ],
    [{ text: "One call failed, the others gave a result." }, usage(480, 14)]
  ]
}

const unreliable: Scenario = {
  scenario: 1,
  name: "unreliable",
  exhausted: "echo",
  default: [
    [
      { fail: "rate_limit" },
      { text: "This attempt is cut " },
      { fail: "disconnect", attempts: 2 },
      { text: "off, and the third scripted attempt succeeds." },
      usage(52, 19)
    ]
  ]
}

const echo: Scenario = { scenario: 1, name: "echo", exhausted: "echo", default: [] }

/** All built-in scenarios; the first is the default (AGT-337). @since 0.1.0 */
export const builtInScenarios: ReadonlyArray<BuiltInScenario> = [
  {
    id: "demo",
    title: "Demo (scripted)",
    description: "Reads, plans, asks, writes a file and runs a command",
    scenario: demo
  },
  { id: "hello", title: "Hello (scripted)", description: "One short answer", scenario: hello },
  { id: "question", title: "Question (scripted)", description: "Asks and waits for the answer", scenario: question },
  { id: "tools", title: "Tools (scripted)", description: "Calls that succeed, fail and ask", scenario: tools },
  { id: "long", title: "Long answer (scripted)", description: "Streams about 10,000 tokens", scenario: long },
  {
    id: "unreliable",
    title: "Unreliable (scripted)",
    description: "A connection that breaks and a rate limit, then an answer",
    scenario: unreliable
  },
  { id: "echo", title: "Echo (scripted)", description: "Says what you say", scenario: echo }
]

/** The provider id under which scenarios appear as models. @since 0.1.0 */
export const scriptProvider = "script"

/** The model id of a scenario: always contains `scripted` (HRN-280). @since 0.1.0 */
export const scriptedModelId = (name: string): string => (name.includes("scripted") ? name : `scripted-${name}`)

/** The built-in scenario of a name or model id (`demo`, `scripted-demo`). @since 0.1.0 */
export const findBuiltIn = (nameOrModel: string): BuiltInScenario | undefined =>
  builtInScenarios.find((entry) => entry.id === nameOrModel || scriptedModelId(entry.id) === nameOrModel)
