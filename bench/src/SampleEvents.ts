/** Events as a turn of the native agent writes them: mostly deltas, with whole texts, tool calls and usage between. */
import type { EventPayload } from "@tackroom/protocol/events"
import type { createSqliteRuntimeStore } from "@tackroom/sdk/stores/sqlite"

export type RuntimeStore = ReturnType<typeof createSqliteRuntimeStore>

/** A journal entry before it has a cursor. */
export type NewEntry = Parameters<RuntimeStore["append"]>[2][number]

const words = "the quick brown fox jumps over the lazy dog and runs on to the next field "

const delta = (round: number): EventPayload => ({
  type: "text-delta",
  delta: words.repeat(2),
  messageId: "msg_1_r",
  partId: `part_${round}`
})

/** One round of a turn: 20 deltas of 150 bytes, their whole text, one call of a tool, the usage. */
const roundOf = (round: number): ReadonlyArray<EventPayload> => {
  const toolCallId = `call_${round}`
  return [
    ...Array.from({ length: 20 }, () => delta(round)),
    { type: "text-end", messageId: "msg_1_r", partId: `part_${round}`, channel: "text", text: words.repeat(40) },
    { type: "tool-start", toolCallId, toolName: "files__read", metadata: { qualified_name: "files.read" } },
    { type: "tool-input", toolCallId, input: { path: "src/main.ts", start_line: 1, max_lines: 200 } },
    { type: "tool-status", toolCallId, status: "running", metadata: { dispatch: true, tool: "files__read" } },
    { type: "tool-output", toolCallId, output: { content: words.repeat(10), truncated: false } },
    {
      type: "usage",
      observation: {
        kind: "delta",
        tokens: { input: 1_200, output: 420, reasoning: null, cache: { read: 1_000, write: null } }
      }
    }
  ]
}

/** That many entries of one turn. `onlyDeltas`: one long answer. */
export const entries = (count: number, turnId: string | undefined, onlyDeltas: boolean): ReadonlyArray<NewEntry> => {
  const list: Array<NewEntry> = []
  for (let round = 0; list.length < count; round++) {
    for (const payload of onlyDeltas ? [delta(0)] : roundOf(round)) {
      list.push(turnId === undefined ? { payload } : { payload, turnId })
    }
  }
  return list.slice(0, count)
}
