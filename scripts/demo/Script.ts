/**
 * The scenario that plays the model: it looks, plans, finds the fault with a test, mends it, tests again, and tells.
 * Behind the edit it speaks slowly: that is where the demonstration kills the host.
 */
import { faultyFile, fixed, testLog } from "./Sample.ts"

const plan = (...done: ReadonlyArray<"completed" | "in_progress" | "pending">) => ({
  call: {
    tool: "plan.update",
    arguments: {
      items: ["Read the project", "Run its tests", "Mend what is wrong", "Test again and tell"].map(
        (content, index) => ({
          id: String(index + 1),
          content,
          status: done[index] ?? "pending"
        })
      )
    }
  }
})

const runTests = { call: { tool: "shell.run", arguments: { command: "node --test" } } }

export const scenario = {
  scenario: 1,
  name: "demo-slugs",
  default: [
    [
      { text: "I look at the project first." },
      plan("in_progress"),
      { call: { tool: "files.list", arguments: { path: ".", depth: 3 } } },
      { call: { tool: "files.read", arguments: { path: faultyFile } } },
      { call: { tool: "files.read", arguments: { path: "test/slug.test.js" } } },
      { usage: { input: 812, output: 96 } }
    ],
    [
      { text: "Its test tells whether it works." },
      plan("completed", "in_progress"),
      runTests,
      { usage: { input: 1_377, output: 54 } }
    ],
    [
      { text: "Only the first space is replaced. I mend that." },
      plan("completed", "completed", "in_progress"),
      { call: { tool: "files.edit", arguments: { path: faultyFile, edits: [fixed] } } },
      { usage: { input: 1_690, output: 83 } }
    ],
    [
      { text: "The fault is mended. " },
      { delay_ms: 300 },
      { text: "Now the same test must pass, " },
      { delay_ms: 300 },
      { text: "so I run it once more." },
      { delay_ms: 300 },
      plan("completed", "completed", "completed", "in_progress"),
      runTests,
      { usage: { input: 1_911, output: 61 } }
    ],
    [
      {
        call: {
          tool: "files.write",
          arguments: {
            path: "CHANGES.md",
            content: `# Changes\n\n- \`slug\` replaces every space, not only the first one.\n- The test passes; ${testLog} has one line for each time it ran.\n`
          }
        }
      },
      { usage: { input: 2_204, output: 72 } }
    ],
    [plan("completed", "completed", "completed", "completed"), { usage: { input: 2_310, output: 20 } }],
    [
      { text: "Done: `slug` was wrong for titles with more than one space, it is mended, and the test passes. " },
      { text: "`CHANGES.md` has the account." },
      { usage: { input: 2_377, output: 41 } }
    ]
  ]
}
