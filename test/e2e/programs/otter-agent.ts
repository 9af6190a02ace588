/**
 * An agent of the Agent Client Protocol on plain lines, for tests of whole programs: it repeats what it is told, and asks
 * before it edits. Run it with Node.
 */
import { randomUUID } from "node:crypto"
import { createInterface } from "node:readline"

interface Message {
  readonly id?: number | string
  readonly method?: string
  readonly params?: { readonly sessionId?: string; readonly prompt?: ReadonlyArray<{ readonly text: string }> }
  readonly result?: { readonly outcome?: { readonly outcome: string; readonly optionId?: string } }
}

const send = (message: object): void => void process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)

/** What goes on when a permission request is answered. */
const asked = new Map<string, (outcome: string) => void>()

const say = (sessionId: string, text: string): void =>
  send({
    method: "session/update",
    params: { sessionId, update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } } }
  })

const prompt = (id: Message["id"], sessionId: string, text: string): void => {
  say(sessionId, `lines: ${text.split("\n").length}\n`)
  const end = (): void => send({ id, result: { stopReason: "end_turn" } })
  if (!text.includes("edit")) return end()
  const request = randomUUID()
  asked.set(request, (outcome) => {
    say(sessionId, `edit: ${outcome}\n`)
    end()
  })
  send({
    id: request,
    method: "session/request_permission",
    params: {
      sessionId,
      toolCall: { toolCallId: request, title: "Edit src/a.ts", kind: "edit" },
      options: [
        { optionId: "yes", name: "Allow", kind: "allow_once" },
        { optionId: "no", name: "Reject", kind: "reject_once" }
      ]
    }
  })
}

const answers: Readonly<Record<string, (params: Message["params"]) => unknown>> = {
  initialize: () => ({
    protocolVersion: 1,
    agentInfo: { name: "otter", version: "2.3" },
    agentCapabilities: { loadSession: true }
  }),
  "session/new": () => ({ sessionId: "c-81" }),
  "session/load": () => null
}

createInterface({ input: process.stdin })
  .on("line", (line) => {
    const { id, method, params, result } = JSON.parse(line) as Message
    const sessionId = params?.sessionId ?? ""
    if (method === "session/prompt") prompt(id, sessionId, params?.prompt?.[0]?.text ?? "")
    else if (method !== undefined) {
      const answer = answers[method]
      if (id !== undefined)
        send(
          answer === undefined
            ? { id, error: { code: -32601, message: "no such method" } }
            : { id, result: answer(params) }
        )
    } else asked.get(String(id))?.(result?.outcome?.optionId ?? result?.outcome?.outcome ?? "error")
  })
  .on("close", () => process.exit(0))
