/**
 * A bare ACP agent over the official SDK, both its message stream and its router: every prompt is answered with as many
 * updates as its text says, and nothing is kept. What an agent costs at least that is made of this SDK. Updates are thoughts
 * and answers by turns; `2000 chunks` are words of one answer.
 */
import * as acp from "@agentclientprotocol/sdk"
import { Readable, Writable } from "node:stream"

const textOf = (prompt: ReadonlyArray<acp.ContentBlock>): string =>
  prompt.map((block) => (block.type === "text" ? block.text : "")).join("")

const app = acp
  .agent({ name: "bare" })
  .onRequest("initialize", () => ({ protocolVersion: acp.PROTOCOL_VERSION, agentCapabilities: {} }))
  .onRequest("session/new", () => ({ sessionId: "only" }))
  .onRequest("session/prompt", async ({ client, params }) => {
    const [updates, kind] = textOf(params.prompt).split(" ")
    for (let n = 0; n < Number(updates); n++) {
      const isThought = kind !== "chunks" && n % 2 === 0
      const text = kind === "chunks" ? " word" : isThought ? " considering it" : " answering it"
      await client.notify("session/update", {
        sessionId: params.sessionId,
        update: {
          sessionUpdate: isThought ? "agent_thought_chunk" : "agent_message_chunk",
          content: { type: "text", text }
        }
      })
    }
    return { stopReason: "end_turn" }
  })

const input = Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>
const output = Writable.toWeb(process.stdout) as WritableStream<Uint8Array>
await app.connect(acp.ndJsonStream(output, input)).closed
process.exit(0)
