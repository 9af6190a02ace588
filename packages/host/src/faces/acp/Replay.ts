/**
 * The transcript of a session, told again (ACP-063 to ACP-067): its messages whole and in order, each call once with its last
 * state, then what is known of the session. Pure; it is fed the journal and gives the updates at its end.
 *
 * What was withdrawn is left out. A call whose request was withdrawn by a restart says so. Turns that failed or were
 * cancelled are told like others, because their text was said.
 */
import type { ContentBlock, SessionUpdate } from "@agentclientprotocol/sdk"
import type { EventOf, PromptPart } from "@tackroom/protocol/events"
import { chunksOf, textBlock } from "./Bounds.ts"
import { Calls, type CallView, diffCall, toolCall } from "./Calls.ts"
import type { Client } from "./Client.ts"
import type { Entry } from "../../runs/Entries.ts"
import { commandsUpdate, planUpdate, Projection, usageUpdate } from "./Projection.ts"

type Item =
  | { readonly _tag: "Update"; readonly update: SessionUpdate }
  | {
      readonly _tag: "Part"
      readonly partId: string
      readonly response: string | undefined
      readonly updates: ReadonlyArray<SessionUpdate>
    }
  | { readonly _tag: "Call"; readonly call: CallView }

const userBlock = (part: PromptPart): ReadonlyArray<ContentBlock> => {
  switch (part.type) {
    case "text":
      return chunksOf(part.text).map(textBlock)
    case "agent":
      return [textBlock(`@${part.name}`)]
    case "file": {
      const name = part.filename ?? part.url ?? "file"
      if (part.url === undefined || part.url.startsWith("data:")) return [textBlock(`[${part.mime} ${name}]`)]
      return [{ type: "resource_link", uri: part.url, name, mimeType: part.mime }]
    }
  }
}

const interrupted = "The program that ran this call ended before anybody answered its request."

export class Replay {
  readonly #calls = new Calls()
  readonly #items: Array<Item> = []
  readonly #shown = new Set<string>()
  readonly #retracted = new Set<string>()
  readonly #media: Projection
  #response: string | undefined
  #plan: EventOf<"todo-update"> | undefined
  #commands: EventOf<"available-commands-update"> | undefined
  #title: string | undefined
  #usage: EventOf<"usage"> | undefined
  readonly #lost = new Set<string>()
  readonly #asked = new Map<string, string>()

  constructor(client: () => Client) {
    this.#media = new Projection(client, { options: [] })
  }

  /** The calls as the replay leaves them: what follows changes them (ACP-118). */
  get calls(): Calls {
    return this.#calls
  }

  push(entry: Entry): void {
    const { payload } = entry
    switch (payload.type) {
      case "user-message":
        for (const content of payload.parts.flatMap(userBlock)) {
          this.#update({ sessionUpdate: "user_message_chunk", messageId: payload.messageId, content })
        }
        return
      case "response-start":
        this.#response = payload.responseId
        return
      case "response-retracted":
        for (const id of payload.responseIds) this.#retracted.add(id)
        return
      case "text-end":
        return this.#part(payload)
      case "proposed-plan-complete":
        for (const piece of chunksOf(payload.planMarkdown)) {
          this.#update({ sessionUpdate: "agent_message_chunk", content: textBlock(piece) })
        }
        return
      case "image-delta":
      case "audio-delta":
      case "thinking-audio-delta":
      case "resource-link-delta":
      case "thinking-resource-link-delta":
      case "resource-delta":
        for (const { update } of this.#media.push(entry)) this.#update(update)
        return
      case "todo-update":
        this.#plan = payload
        return
      case "available-commands-update":
        this.#commands = payload
        return
      case "session-title":
        this.#title = payload.title
        return
      case "session-info":
        this.#title = payload.title ?? this.#title
        return
      case "session-created":
        this.#title = payload.title ?? this.#title
        return
      case "usage":
        if (usageUpdate(payload) !== undefined) this.#usage = payload
        return
      case "permission-request":
        if (payload.toolCallId !== undefined) this.#asked.set(payload.requestId, payload.toolCallId)
        return
      case "interaction-withdrawn": {
        const call = this.#asked.get(payload.requestId)
        if (call !== undefined && payload.reason === "restart") this.#lost.add(call)
        return
      }
      case "file-diff":
        if (payload.toolCallId === undefined) {
          this.#update({ sessionUpdate: "tool_call", ...diffCall(payload, entry.cursor) })
          return
        }
        this.#call(entry)
        return
      // The client that had it is gone, or has released it.
      case "tool-terminal":
        return
      default:
        this.#call(entry)
    }
  }

  /** Everything, in order. */
  end(): ReadonlyArray<SessionUpdate> {
    const told = this.#items.flatMap((item): ReadonlyArray<SessionUpdate> => {
      switch (item._tag) {
        case "Update":
          return [item.update]
        case "Part":
          return item.response !== undefined && this.#retracted.has(item.response) ? [] : item.updates
        case "Call": {
          if (this.#lost.has(item.call.id)) {
            item.call.status = "failed"
            item.call.end = interrupted
          }
          return [{ sessionUpdate: "tool_call", ...toolCall(item.call) }]
        }
      }
    })
    const usage = this.#usage === undefined ? undefined : usageUpdate(this.#usage)
    return [
      ...told,
      ...(this.#plan === undefined ? [] : [planUpdate(this.#plan)]),
      ...(this.#commands === undefined ? [] : [commandsUpdate(this.#commands)]),
      ...(this.#title === undefined ? [] : [{ sessionUpdate: "session_info_update" as const, title: this.#title }]),
      ...(usage === undefined ? [] : [usage])
    ]
  }

  #update(update: SessionUpdate): void {
    this.#items.push({ _tag: "Update", update })
  }

  #part(event: EventOf<"text-end">): void {
    const sessionUpdate = event.channel === "text" ? "agent_message_chunk" : "agent_thought_chunk"
    this.#items.push({
      _tag: "Part",
      partId: event.partId,
      response: this.#response,
      updates: chunksOf(event.text).map((piece) => ({
        sessionUpdate,
        messageId: event.partId,
        content: textBlock(piece)
      }))
    })
  }

  #call(entry: Entry): void {
    const change = this.#calls.take(entry.payload)
    if (change === undefined || this.#shown.has(change.call.id)) return
    this.#shown.add(change.call.id)
    this.#items.push({ _tag: "Call", call: change.call })
  }
}
