/**
 * What the agent of a case is to do, written into the prompt: `#say`, `#tool`, `#ask` … The kit's model reads it from the
 * request that the program under test sends, the reference program reads it itself. Pure.
 */

/** One round of the played model: what it says, and what it does then. */
export interface Round {
  readonly text?: string
  /** Says the text and then nothing more, until it is stopped. */
  readonly hangs?: boolean
  /** The service refuses the request. */
  readonly refuses?: boolean
  readonly calls?: "tool" | "failing" | "ask" | "confirm"
}

export interface Scene {
  readonly rounds: ReadonlyArray<Round>
}

/** The prompts of the checks, and the words the agent is to say. */
export const prompts = {
  say: (text: string) => `#say ${text}`,
  silent: "#silent",
  tool: "#tool",
  tools: (count: number) => `#tools ${count}`,
  failing: "#failing",
  ask: "#ask",
  /** Asks, and then works until it is stopped. */
  askThenHang: "#ask-then-hang",
  confirm: "#confirm",
  hang: "#hang",
  refused: "#refused"
} as const

/** The question of `#ask`, and its options. */
export const question = { text: "Which colour?", options: ["Green", "Red"] } as const
/** What `#confirm` wants to be confirmed. */
export const confirmation = "May I go on?"

export const words = { hang: "Thinking", done: "Done.", used: "The tool was used." } as const

/** What stands behind the mark, on its line. */
const rest = (prompt: string): string => prompt.slice(prompt.indexOf(" ") + 1).split("\n")[0] ?? ""

/** What a prompt asks of its agent. One without a mark is said back. */
export const sceneOf = (prompt: string): Scene => {
  const [mark = "", argument = ""] = prompt.trim().split(/\s+/u)
  switch (mark) {
    case "#say":
      return { rounds: [{ text: rest(prompt.trim()) }] }
    case "#silent":
      return { rounds: [{}] }
    case "#tool":
      return { rounds: [{ text: "I look.", calls: "tool" }, { text: words.used }] }
    case "#tools":
      return {
        rounds: [
          ...Array.from({ length: Number(argument) }, (_, index): Round => ({
            text: `Step ${index + 1}.`,
            calls: "tool"
          })),
          { text: words.done }
        ]
      }
    case "#failing":
      return { rounds: [{ calls: "failing" }, { text: words.used }] }
    case "#ask":
      return { rounds: [{ calls: "ask" }, { text: words.done }] }
    case "#ask-then-hang":
      return { rounds: [{ calls: "ask" }, { text: words.hang, hangs: true }] }
    case "#confirm":
      return { rounds: [{ calls: "confirm" }, { text: words.done }] }
    case "#hang":
      return { rounds: [{ text: words.hang, hangs: true }] }
    case "#refused":
      return { rounds: [{ refuses: true }] }
    default:
      return { rounds: [{ text: prompt.trim() }] }
  }
}
