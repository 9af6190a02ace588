/** One prompt turn of the reference agent: it plays what the prompt says, tells of it, and asks where it has to. */
import { setTimeout as sleep } from "node:timers/promises"
import { type Round, sceneOf } from "../../model/Script.ts"
import type { Settings } from "./Settings.ts"

export interface TurnParts {
  readonly settings: Settings
  readonly prompt: string
  readonly cwd: string
  readonly update: (update: object) => void
  /** Asks the client; undefined when it answered with an error. */
  readonly ask: (method: string, params: object) => Promise<unknown>
  readonly sessionId: string
  readonly callId: () => string
}

export interface Turn {
  readonly cancel: (how?: "closed") => void
  /** The stop reason, or undefined for a turn that failed; and what the agent said. */
  readonly end: Promise<{ readonly stop: string | undefined; readonly said: string }>
}

const options = [
  { optionId: "allow", name: "Allow", kind: "allow_once" },
  { optionId: "reject", name: "Reject", kind: "reject_once" }
]

/** What the client decided. */
type Decision = "allowed" | "ACK-111" | "ACK-114" | "ACK-115" | "ACK-116"

const decision = (answer: unknown): Decision => {
  const { outcome } = (answer ?? {}) as { readonly outcome?: { readonly outcome?: string; readonly optionId?: string } }
  if (outcome === undefined) return "ACK-115"
  if (outcome.outcome !== "selected") return "ACK-114"
  if (outcome.optionId === "allow") return "allowed"
  return outcome.optionId === "reject" ? "ACK-111" : "ACK-116"
}

export const startTurn = (parts: TurnParts): Turn => {
  const { ask, callId, cwd, prompt, sessionId, settings, update } = parts
  const { broken } = settings
  const stopped = Promise.withResolvers<"stopped">()
  let isStopped = false
  let isClosed = false
  let isAsking = false
  let said = ""

  const say = (text: string): void => {
    said += text
    if (!broken("ACK-081")) update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } })
  }

  const permission = async (toolCallId: string): Promise<boolean> => {
    const offered = [
      ...options,
      ...(broken("ACK-110") ? [options[0]] : []),
      ...(broken("ACK-023") ? [{ optionId: "later", name: "Later", kind: "later" }] : [])
    ]
    const asked = ask("session/request_permission", { sessionId, toolCall: { toolCallId }, options: offered })
    isAsking = true
    const answer = await Promise.race([
      asked,
      stopped.promise,
      ...(broken("ACK-113") ? [sleep(100, { outcome: { outcome: "selected", optionId: "allow" } })] : [])
    ])
    isAsking = false
    if (answer === "stopped") return false
    const decided = decision(answer)
    return decided === "allowed" ? !broken("ACK-112") : broken(decided)
  }

  const call = async (kind: NonNullable<Round["calls"]>): Promise<void> => {
    const toolCallId = callId()
    const path = broken("ACK-087") ? "notes.txt" : `${cwd}/notes.txt`
    const told = { toolCallId, title: `Use ${kind}`, kind: "read", status: "pending", locations: [{ path }] }
    update({ sessionUpdate: broken("ACK-084") ? "tool_call_update" : "tool_call", ...told })
    const isAllowed = kind !== "confirm" || (await permission(toolCallId))
    const isDone = isAllowed && !isStopped && (kind !== "failing" || broken("ACK-085"))
    update({ sessionUpdate: "tool_call_update", toolCallId, status: isDone ? "completed" : "failed" })
  }

  const play = async (): Promise<string | undefined> => {
    const { rounds } = sceneOf(prompt)
    for (const round of rounds) {
      await new Promise(setImmediate)
      if (isStopped) break
      if (round.refuses === true) {
        if (broken("ACK-088")) await stopped.promise
        return undefined
      }
      if (round.text !== undefined) say(round.text)
      if (round.hangs === true) await stopped.promise
      if (round.calls !== undefined) await call(round.calls)
    }
    if (!isStopped) return broken("ACK-080") ? "max_tokens" : "end_turn"
    if (broken("ACK-130")) return undefined
    return isClosed && broken("ACK-180") ? "end_turn" : "cancelled"
  }

  return {
    cancel: (how) => {
      if (said === "" && !isAsking && broken("ACK-135")) return
      isClosed = how === "closed"
      // A faulty agent takes the cancel of a request for the end of its work.
      isStopped = !(isAsking && broken("ACK-117"))
      stopped.resolve("stopped")
    },
    end: play().then((stop) => ({ stop, said }))
  }
}
