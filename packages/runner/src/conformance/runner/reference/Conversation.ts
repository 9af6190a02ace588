/**
 * The reference runner's conversation with its agent: one prompt at a time, a queue behind it, cancels, permission requests,
 * and the posts that tell of them. It owns the turn. Opening, the pane's bytes and the end of the process are others'.
 */
import type { Agent, Answer, Id, Message } from "./Agent.ts"
import { isRecord } from "./Agent.ts"
import type { Pane } from "./Pane.ts"
import { makePermissions, type Meaning, ownPermit, type Request } from "./Permissions.ts"
import type { Posts } from "./Posts.ts"
import type { Settings } from "./Settings.ts"

interface Turn {
  readonly id: string
  readonly requests: Array<Request>
  /** Delivered asks whose post waits until no request of the turn waits. */
  resolved: Array<Request>
  cancelRequested: boolean
  over: boolean
  lastMessagePost: number
}

export interface Conversation {
  /** The agent has opened it. */
  readonly begin: (nativeRef: string, first: string | undefined) => void
  readonly block: (text: string) => void
  readonly cancel: () => void
  readonly request: (id: Id, method: string, params: Message) => void
  readonly update: (params: Message) => void
  /** The agent's process has ended; false when this twin hangs. */
  readonly agentExited: () => boolean
  /** No prompt is started any more; an open turn is cancelled. */
  readonly close: () => void
  /** Ends when nothing is queued and no turn is open. */
  readonly whenDone: (run: () => void) => void
}

const envelope = /^From: .*\n(?:.*\n)*?---\n([\s\S]*?)\n---(?:\n|$)/u

export const makeConversation = (
  settings: Settings,
  agent: () => Agent,
  posts: Posts,
  pane: Pane,
  clock: () => number
): Conversation => {
  const { broken, harness, idleLiveness, liveness, scale } = settings
  const queue: Array<string> = []
  const done: Array<() => void> = []
  let nativeRef: string | undefined
  let turn: Turn | undefined
  let prompts = 0
  let holding = false
  let closed = false
  let beat: NodeJS.Timeout | undefined
  let heartbeat: NodeJS.Timeout | undefined
  let late: string | undefined

  const unanswered = (): ReadonlyArray<Request> => turn?.requests.filter((request) => !request.answered) ?? []

  // The beats.

  const stopBeat = (): void => {
    if (!broken("CHK-049")) clearTimeout(beat)
  }
  const armBeat = (): void => {
    clearTimeout(beat)
    if (broken("CHK-047")) return
    const seconds = broken("CHK-048") ? (liveness * 25) / 30 : liveness / 3
    beat = setTimeout(() => {
      posts.soft("active", "liveness", { turnId: String(prompts), livenessSeconds: liveness })
      armBeat()
    }, seconds * 1_000)
  }
  const armHeartbeat = (): void => {
    clearTimeout(heartbeat)
    heartbeat = setTimeout(() => {
      const inTurn = turn !== undefined && !broken("CHK-054")
      if (!inTurn && !holding) posts.soft("Stop", "idle_heartbeat", { livenessSeconds: idleLiveness })
      armHeartbeat()
    }, idleLiveness * 500)
  }

  // Permission requests.

  const answer = (request: Request, outcome: Message): void => {
    request.answered = true
    agent().reply(request.id, { result: { outcome } })
  }

  const afterAnswer = (): void => {
    if (turn === undefined || turn.over || holding) return
    if (unanswered().length > 0 && !broken("CHK-138")) return
    const resolved = turn.resolved
    turn.resolved = []
    const { id } = turn
    if (broken("CHK-135") && resolved.length > 0) {
      posts.soft("active", "liveness", { turnId: id, livenessSeconds: liveness })
    }
    for (const { askId, kind } of resolved) {
      if (askId === undefined) posts.soft("PreToolUse", kind)
      else posts.boundary("active", "permission_resolved", { turnId: id, askId })
    }
    armBeat()
  }

  const deliver = (request: Request, optionId: string): void => {
    if (request.answered) {
      if (broken("CHK-134")) late = optionId
      pane.line("permission", `an answer that came too late was not given: ${request.title}`)
      return
    }
    const other = broken("CHK-137") ? unanswered().find((one) => one !== request) : undefined
    const target = other ?? request
    answer(target, { outcome: "selected", optionId })
    turn?.resolved.push(request)
    pane.line("permission", `answered: ${optionId}`)
    afterAnswer()
  }

  const refuse = (request: Request, hold: boolean, why: string): void => {
    if (request.answered) return
    answer(request, { outcome: "cancelled" })
    if (!hold) {
      pane.line("permission", `${why}: ${request.title}`)
      return afterAnswer()
    }
    if (!broken("CHK-143")) pane.line("permission", `REFUSED: ${request.title}: ${why}`)
    stopBeat()
    posts.dropSoft()
    posts.boundary("Notification", "permission_prompt")
    holding = true
  }

  const meant = (request: Request, meaning: Meaning): void => {
    switch (meaning._tag) {
      case "Option":
        if (meaning.said !== undefined) {
          pane.line("said", meaning.said)
          if (broken("CHK-136")) prompt(meaning.said)
          else queue.push(meaning.said)
        }
        return deliver(request, meaning.optionId)
      case "Cancelled":
        return refuse(request, meaning.hold, meaning.why)
      case "OwnPermit": {
        if (request.answered) return
        const optionId = ownPermit(request.options, settings)
        if (optionId === undefined) {
          if (!broken("CHK-131")) refuse(request, true, meaning.why)
          return
        }
        pane.line("permission", `PERMITTED BY THIS RUNNER: ${request.title}: ${optionId}: ${meaning.why}`)
        return deliver(request, optionId)
      }
    }
  }

  const permissions = makePermissions(settings, clock, () => nativeRef, {
    asked: (request) => {
      pane.line("permission", `waiting in the rig: ${request.askId}`)
      if (request.answered) return permissions.withdraw(request, turn?.over === false ? "turn_cancelled" : "turn_ended")
      if (broken("CHK-139")) posts.boundary("Notification", "permission_prompt")
      if (broken("CHK-132")) {
        setTimeout(() => meant(request, { _tag: "OwnPermit", why: "nobody answered" }), 30_000 * scale)
      }
    },
    meant
  })

  const ask = (id: Id, params: Message): void => {
    const toolCall = isRecord(params["toolCall"]) ? params["toolCall"] : {}
    const options = Array.isArray(params["options"]) ? params["options"].filter(isRecord) : []
    const request: Request = {
      id,
      title: String(toolCall["title"] ?? "a request"),
      kind: String(toolCall["kind"] ?? "other"),
      options,
      params,
      askId: undefined,
      answered: false,
      settled: false
    }
    if (turn === undefined || turn.over || turn.cancelRequested) return answer(request, { outcome: "cancelled" })
    turn.requests.push(request)
    stopBeat()
    posts.dropSoft()
    pane.line("permission", `asked: ${request.title} (${request.kind})`)
    if (broken("CHK-004")) pane.raw("\u203a 1. Allow\r\n  2. Reject\r\n")
    if (late !== undefined) return deliver(request, late)
    permissions.submit(request, turn.id)
  }

  // The turn.

  const prompt = (text: string): void => {
    prompts += 1
    const id = String(prompts)
    posts.newTurn()
    const began: Turn = {
      id,
      requests: [],
      resolved: [],
      cancelRequested: false,
      over: false,
      lastMessagePost: -Infinity
    }
    turn = began
    pane.line("you", broken("CHK-081") ? text.replaceAll("\n", "\n    ") : text)
    agent().request(
      "session/prompt",
      { sessionId: nativeRef, prompt: [{ type: "text", text }] },
      (ended) => end(began, ended),
      () => {
        if (began.over) return
        holding = false
        if (!broken("CHK-044")) posts.boundary("UserPromptSubmit", "accepted", { turnId: id })
        armBeat()
      }
    )
  }

  const next = (): void => {
    if (turn !== undefined || nativeRef === undefined || closed) return
    const text = queue.shift()
    if (text === undefined) {
      for (const run of done.splice(0)) run()
      return
    }
    if (broken("CHK-043")) posts.whenIdle(() => prompt(text))
    else prompt(text)
  }

  const withdrawAll = (reason: "turn_cancelled" | "turn_ended" | "exited", finished: () => void): void => {
    const open = unanswered()
    let waiting = open.length
    const limit = setTimeout(finished, 500)
    const one = (): void => {
      waiting -= 1
      if (waiting > 0) return
      clearTimeout(limit)
      finished()
    }
    if (waiting === 0) return one()
    for (const request of open) {
      if (reason !== "exited") answer(request, { outcome: "cancelled" })
      request.answered = true
      permissions.withdraw(request, reason, one)
    }
  }

  const end = (ended: Turn, { error, result }: Answer): void => {
    if (ended.over) return
    stopBeat()
    const said = isRecord(result) && typeof result["stopReason"] === "string" ? result["stopReason"] : "error"
    const reason = broken("CHK-045") ? "end_turn" : ended.cancelRequested && broken("CHK-103") ? "cancelled" : said
    let finished = false
    const finish = (): void => {
      if (finished) return
      finished = true
      if (error !== undefined) pane.line("error", `the prompt failed: ${error.message}`)
      pane.line("turn", `${ended.id} ended: ${said}`)
      if (!holding || broken("CHK-124")) {
        posts.boundary("Stop", reason, { turnId: ended.id, livenessSeconds: broken("CHK-046") ? 0 : idleLiveness })
      }
      if (turn === ended) turn = undefined
      armHeartbeat()
      next()
    }
    withdrawAll("turn_ended", finish)
    ended.over = true
  }

  const cancel = (): void => {
    if (turn === undefined) {
      pane.line("cancel", "nothing to cancel")
      if (broken("CHK-104")) agent().notify("session/cancel", { sessionId: nativeRef })
      return
    }
    if (turn.cancelRequested) return pane.line("cancel", "already requested")
    turn.cancelRequested = true
    for (let times = broken("CHK-100") ? 2 : 1; times > 0; times -= 1) {
      agent().notify("session/cancel", { sessionId: nativeRef })
    }
    pane.line("cancel", broken("CHK-105") ? "cancelled" : `requested at ${new Date(clock()).toISOString()}`)
    withdrawAll("turn_cancelled", () => undefined)
    if (broken("CHK-102")) posts.boundary("Stop", "cancelled", { turnId: turn.id, livenessSeconds: idleLiveness })
  }

  const submit = (text: string): void => {
    if (text === "/abort") return cancel()
    if (text.trim() === "" && !broken("CHK-077")) return
    if (broken("CHK-074") && text.split("\n").includes("/abort")) return cancel()
    if (broken("CHK-075") && envelope.exec(text)?.[1] === "/abort") return cancel()
    const [waiting] = unanswered()
    if (broken("CHK-142") && waiting !== undefined) {
      return deliver(waiting, String(waiting.options[0]?.["optionId"]))
    }
    if (broken("CHK-076") && turn !== undefined) return prompt(text)
    queue.push(text)
    if (turn === undefined && nativeRef !== undefined) {
      if (broken("CHK-044")) posts.boundary("UserPromptSubmit", "accepted", { turnId: String(prompts + 1) })
      return next()
    }
    if (broken("CHK-044")) {
      posts.boundary("UserPromptSubmit", "accepted", { turnId: String(prompts + queue.length) })
    }
    pane.line(`queued (${queue.length} waiting)`, text)
  }

  let joined: Array<string> = []
  const block = (text: string): void => {
    if (!broken("CHK-072")) return submit(text)
    joined.push(text)
    if (joined.length > 1) return
    setTimeout(() => {
      submit(joined.join("\n"))
      joined = []
    }, 150)
  }

  const update = (params: Message): void => {
    const content = isRecord(params["update"]) ? params["update"] : {}
    const kind = content["sessionUpdate"]
    if (kind === "agent_message_chunk" && isRecord(content["content"])) {
      pane.line("agent", String(content["content"]["text"]))
    } else if (kind === "tool_call") pane.line("tool", String(content["title"]))
    else return
    if (turn === undefined || turn.over || holding) return
    if (unanswered().length > 0 && !broken("CHK-141")) return
    if (kind === "tool_call") posts.soft("PreToolUse", String(content["kind"] ?? "other"))
    else {
      if (clock() - turn.lastMessagePost < 5_000 * scale || (broken("CHK-047") && turn.lastMessagePost > 0)) return
      turn.lastMessagePost = clock()
      posts.soft("active", "agent_message")
    }
    armBeat()
  }

  return {
    begin: (ref, first) => {
      nativeRef = ref
      if (first !== undefined) queue.unshift(broken("CHK-079") ? first.trim() : first)
      if (queue.length === 0) posts.boundary("Stop", "idle_heartbeat", { livenessSeconds: idleLiveness })
      armHeartbeat()
      next()
    },
    block,
    cancel,
    request: (id, method, params) => {
      if (method === "session/request_permission") ask(id, params)
      else if (!broken("CHK-140")) agent().reply(id, { error: { code: -32_601, message: "Method not found" } })
    },
    update,
    agentExited: () => {
      stopBeat()
      clearTimeout(heartbeat)
      if (broken("CHK-182") && unanswered().length > 0) return false
      withdrawAll("exited", () => undefined)
      if (turn !== undefined) turn.over = true
      closed = true
      if (broken("CHK-050")) posts.boundary("Stop", "end_turn", { livenessSeconds: idleLiveness })
      else posts.boundary("Stop", `${harness}_exited`)
      return true
    },
    close: () => {
      closed = true
      if (turn !== undefined && !turn.over) cancel()
    },
    whenDone: (run) => {
      if (turn === undefined && queue.length === 0 && nativeRef !== undefined) run()
      else done.push(run)
    }
  }
}
