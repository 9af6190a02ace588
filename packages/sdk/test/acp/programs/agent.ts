/**
 * An ACP agent for tests: the agent side of the official SDK, its answers chosen by the words of the prompt. What it is to do
 * differently from a well-behaved agent stands in `AGENT_FLAGS` (JSON); conversations are kept in `AGENT_STATE`.
 */
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Readable, Writable } from "node:stream"
import * as acp from "@agentclientprotocol/sdk"

interface Flags {
  readonly name?: string
  readonly version?: number
  readonly load?: boolean
  readonly resume?: boolean
  readonly list?: boolean
  readonly close?: boolean
  readonly remove?: boolean
  readonly early?: number
  readonly noise?: number
  readonly auth?: boolean
  /** Where a sign-in is kept for the next process; without it each process wants its own. */
  readonly authFile?: string
  readonly refuseAuth?: boolean
  readonly modes?: "options" | "list"
  readonly missing?: { readonly code: number; readonly message: string; readonly data?: unknown }
  readonly emptyAnswer?: boolean
  readonly afterLoad?: boolean
  readonly silent?: boolean
  readonly chatty?: boolean
  readonly refuseLoad?: boolean
  readonly listedIn?: string
  readonly mcpHttp?: boolean
  /** The message of a refused session/new, which says what it was given. */
  readonly refuseServers?: boolean
}

interface Kept {
  readonly cwd: string
  readonly said: ReadonlyArray<{ readonly role: "user" | "agent"; readonly text: string }>
}

const flags: Flags = JSON.parse(process.env["AGENT_FLAGS"] ?? "{}")
if (process.argv[2] === "login") {
  // As a person has it in a terminal.
  process.stdout.write(`logged in with LOGIN=${process.env["LOGIN"] ?? ""}\n`)
  if (flags.authFile !== undefined) writeFileSync(flags.authFile, "yes")
  process.exit(flags.refuseAuth === true ? 4 : 0)
}

const state = process.env["AGENT_STATE"] ?? join(process.cwd(), ".agent")
mkdirSync(state, { recursive: true })
const log = (line: string): void => appendFileSync(join(state, "log"), `${line}\n`)
log(`start ${process.pid}`)

const fileOf = (id: string): string => join(state, `${id}.json`)
const read = (id: string): Kept => JSON.parse(readFileSync(fileOf(id), "utf8"))
const write = (id: string, kept: Kept): void => writeFileSync(fileOf(id), JSON.stringify(kept))
const cancels = new Map<string, () => void>()
const choices = new Map<string, Record<string, string>>()
let signedIn = flags.auth !== true || (flags.authFile !== undefined && existsSync(flags.authFile))

const missing = (id: string): acp.RequestError => {
  const { code, data, message } = flags.missing ?? {
    code: -32_002,
    message: "Resource not found",
    data: { sessionId: id }
  }
  return new acp.RequestError(code, message, JSON.parse(JSON.stringify(data ?? null).replace("{id}", id)))
}

const chunk = (text: string, messageId?: string): acp.SessionUpdate => ({
  sessionUpdate: "agent_message_chunk",
  content: { type: "text", text },
  ...(messageId === undefined ? {} : { messageId })
})

const offered = (id: string): { modes?: acp.SessionModeState; configOptions?: Array<acp.SessionConfigOption> } => {
  const chosen = choices.get(id) ?? {}
  const modes = ["default", "yolo"]
  if (flags.modes === undefined) return {}
  if (flags.modes === "list") {
    return {
      modes: {
        currentModeId: chosen["mode"] ?? "yolo",
        availableModes: modes.map((mode) => ({ id: mode, name: mode }))
      }
    }
  }
  const select = (name: string, values: ReadonlyArray<string>, category: string): acp.SessionConfigOption => ({
    id: name,
    name,
    category,
    type: "select",
    currentValue: chosen[name] ?? values[values.length - 1] ?? "",
    options: values.map((value) => ({ value, name: value }))
  })
  return {
    configOptions: [
      select("model", ["small", "large"], "model"),
      select("mode", modes, "mode"),
      select("effort", ["low", "high"], "thought_level")
    ]
  }
}

/** A cancel may be read before the prompt's own work begins. */
const cancelled = new Set<string>()
const wait = (id: string): Promise<void> =>
  new Promise((resolve) => (cancelled.has(id) ? resolve() : cancels.set(id, resolve)))

const options: Array<acp.PermissionOption> = [
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" }
]

const call = (id: string, title: string, more: Partial<acp.ToolCall> = {}): acp.SessionUpdate => ({
  sessionUpdate: "tool_call",
  toolCallId: id,
  title,
  kind: "execute",
  status: "pending",
  ...more
})

type Client = acp.AgentContext

const play = async (client: Client, sessionId: string, text: string): Promise<acp.StopReason> => {
  const update = (body: acp.SessionUpdate) => client.notify("session/update", { sessionId, update: body })
  const ask = (toolCallId: string, more: Partial<acp.RequestPermissionRequest> = {}) =>
    client.request("session/request_permission", {
      sessionId,
      toolCall: { toolCallId, title: `run ${toolCallId}`, kind: "execute", rawInput: { command: `run ${toolCallId}` } },
      options,
      ...more
    })
  const asked = async (toolCallId: string, more: Partial<acp.RequestPermissionRequest> = {}): Promise<boolean> => {
    const { outcome } = await ask(toolCallId, more)
    if (outcome.outcome === "cancelled") return false
    const isAllowed = outcome.optionId === "yes" || outcome.optionId === "always"
    await update({
      sessionUpdate: "tool_call_update",
      toolCallId,
      status: isAllowed ? "completed" : "failed",
      rawOutput: isAllowed ? "done" : "refused"
    })
    return true
  }
  switch (text.split(" ")[0]) {
    case "hello":
      await update({ sessionUpdate: "user_message_chunk", content: { type: "text", text } })
      await update({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "hm" } })
      await update(chunk("Hello, "))
      await update(chunk("world."))
      return "end_turn"
    case "tool":
      await update(chunk("Let me see. "))
      await update(call("c1", "ls", { rawInput: { command: "ls" } }))
      await update(call("c1", "ls", { rawInput: { command: "ls" } }))
      await update({ sessionUpdate: "tool_call_update", toolCallId: "c1", status: "in_progress" })
      await update({
        sessionUpdate: "tool_call_update",
        toolCallId: "c1",
        content: [{ type: "diff", path: "/a", oldText: "x", newText: "y" }]
      })
      await update({
        sessionUpdate: "tool_call_update",
        toolCallId: "c1",
        status: "completed",
        rawOutput: { files: ["a"] }
      })
      await update(chunk("Done."))
      return "end_turn"
    case "permission": {
      await update(call("p1", "run p1"))
      return (await asked("p1")) ? "end_turn" : "cancelled"
    }
    case "titleonly":
      await client.request("session/request_permission", {
        sessionId,
        toolCall: { toolCallId: "t1", title: "Only a title" },
        options
      })
      return "end_turn"
    case "always": {
      const kinds: ReadonlyArray<acp.PermissionOption["kind"]> = [
        "allow_always",
        "allow_once",
        "allow_once",
        "reject_once",
        "reject_always"
      ]
      const five = kinds.map((kind, i) => ({
        optionId: i === 0 ? "always" : kind === "allow_once" ? "yes" : `o${i}`,
        name: `${kind} ${i}`,
        kind
      }))
      await asked("a1", { options: five })
      return "end_turn"
    }
    case "parallel": {
      await update(call("q1", "run q1"))
      await update(call("q2", "run q2"))
      const both = await Promise.all([asked("q1"), asked("q2")])
      return both.every(Boolean) ? "end_turn" : "cancelled"
    }
    case "question": {
      const answer = await client.request("elicitation/create", {
        sessionId,
        mode: "form",
        message: "Which colour?",
        requestedSchema: {
          type: "object",
          properties: {
            colour: {
              type: "string",
              oneOf: [
                { const: "r", title: "Red" },
                { const: "g", title: "Green" }
              ]
            }
          }
        }
      })
      await update(chunk(JSON.stringify(answer)))
      return answer.action === "cancel" ? "cancelled" : "end_turn"
    }
    case "long":
      await update(chunk("working"))
      await wait(sessionId)
      return "cancelled"
    case "deaf":
      await update(chunk("working"))
      await new Promise(() => undefined)
      return "end_turn"
    case "late":
      setImmediate(() => void update(chunk("one more thing")))
      return "end_turn"
    case "open":
      await update(call("o1", "a long job", { status: "in_progress" }))
      return "end_turn"
    case "files": {
      const codes: Array<number> = []
      const calls = [
        () => client.request("fs/read_text_file", { sessionId, path: "/etc/hosts" }),
        () => client.request("terminal/create", { sessionId, command: "true" }),
        () => client.request("made/up", {})
      ]
      for (const each of calls)
        await each().catch((error: unknown) => codes.push(error instanceof acp.RequestError ? error.code : 0))
      await update(chunk(codes.join(" ")))
      return "end_turn"
    }
    case "fail":
      throw new acp.RequestError(-32_603, "Internal error", { details: "401 Unauthorized" })
    case "gone":
      throw missing(sessionId)
    case "stop":
      return (text.split(" ")[1] ?? "end_turn") as acp.StopReason
    case "crash":
      await update(call("x1", "run x1", { status: "in_progress" }))
      process.stderr.write("the agent falls over\n")
      process.exit(3)
    // falls through
    case "everything":
      await update({ sessionUpdate: "plan", entries: [{ content: "one", priority: "high", status: "in_progress" }] })
      await update({ sessionUpdate: "usage_update", used: 10, size: 100, cost: { amount: 0.5, currency: "USD" } })
      await update({ sessionUpdate: "session_info_update", title: "A title" })
      await update({
        sessionUpdate: "available_commands_update",
        availableCommands: [{ name: "go", description: "Goes" }]
      })
      await update({
        sessionUpdate: "agent_message_chunk",
        content: { type: "image", mimeType: "image/png", data: "AAAA" }
      })
      await update({
        sessionUpdate: "agent_message_chunk",
        content: { type: "resource_link", uri: "file:///a", name: "a" }
      })
      await update({ sessionUpdate: "notice", severity: "warning", title: "Careful" })
      await client.notify("session/update", { sessionId, update: { sessionUpdate: "from_the_future", x: 1 } })
      await client.notify("session/update", { sessionId, update: { sessionUpdate: "agent_message_chunk" } })
      return "end_turn"
    case "burst": {
      const count = Number(text.split(" ")[1] ?? 1000)
      for (let i = 0; i < count; i++) void update(chunk("x"))
      return "end_turn"
    }
    default:
      await update(chunk(`You said: ${text}`))
      return "end_turn"
  }
}

const open = (id: string) => ({ sessionId: id, ...offered(id) })

const app = acp
  .agent({ name: "test" })
  .onRequest("initialize", ({ params }) => {
    log(`initialize ${JSON.stringify(params.clientCapabilities)}`)
    if (flags.silent === true) return new Promise<acp.InitializeResponse>(() => undefined)
    return {
      protocolVersion: flags.version ?? 1,
      agentInfo: { name: flags.name ?? "test-agent", version: "1.0.0" },
      agentCapabilities: {
        loadSession: flags.load ?? true,
        ...(flags.mcpHttp === undefined ? {} : { mcpCapabilities: { http: flags.mcpHttp } }),
        promptCapabilities: { image: true, embeddedContext: true },
        sessionCapabilities: {
          ...(flags.resume === true ? { resume: {} } : {}),
          ...(flags.list === true ? { list: {} } : {}),
          ...(flags.close === false ? {} : { close: {} }),
          ...(flags.remove === true ? { delete: {} } : {})
        }
      },
      authMethods:
        flags.auth === true
          ? [
              { id: "key", name: "API key", description: "Reads it" },
              ...(params.clientCapabilities?.auth?.terminal === true
                ? [{ type: "terminal" as const, id: "login", name: "Log in", args: ["login"], env: { LOGIN: "1" } }]
                : [])
            ]
          : []
    }
  })
  .onRequest("authenticate", ({ params }) => {
    log(`authenticate ${params.methodId}`)
    if (flags.refuseAuth === true) throw new acp.RequestError(-32_000, "the key is not right")
    signedIn = true
    if (flags.authFile !== undefined) writeFileSync(flags.authFile, "yes")
    return {}
  })
  .onRequest("session/new", async ({ client, params }) => {
    if (!signedIn) throw acp.RequestError.authRequired()
    if (flags.refuseServers === true && params.mcpServers.length > 0) {
      process.stderr.write(`${JSON.stringify(params.mcpServers)}\n`)
      throw new acp.RequestError(-32_603, `it could not start ${JSON.stringify(params.mcpServers)}`)
    }
    const id = `up-${process.pid}-${Date.now()}-${Math.floor(Math.random() * 1e6)}`
    log(`new ${id} ${params.cwd} ${JSON.stringify(params.mcpServers)}`)
    write(id, { cwd: params.cwd, said: [] })
    for (let i = 0; i < (flags.early ?? 0); i++)
      await client.notify("session/update", { sessionId: id, update: chunk(`early ${i} `) })
    return open(id)
  })
  .onRequest("session/load", async ({ client, params }) => {
    log(`load ${params.sessionId} ${JSON.stringify(params.mcpServers)}`)
    if (flags.refuseLoad === true || !existsSync(fileOf(params.sessionId))) throw missing(params.sessionId)
    for (const { role, text } of read(params.sessionId).said) {
      const kind = role === "user" ? "user_message_chunk" : "agent_message_chunk"
      await client.notify("session/update", {
        sessionId: params.sessionId,
        update: { sessionUpdate: kind, content: { type: "text", text } }
      })
    }
    if (flags.afterLoad === true) {
      setImmediate(
        () =>
          void client.notify("session/update", {
            sessionId: params.sessionId,
            update: { sessionUpdate: "session_info_update", title: "after the load" }
          })
      )
    }
    return flags.emptyAnswer === true ? (null as never) : offered(params.sessionId)
  })
  .onRequest("session/resume", ({ params }) => {
    log(`resume ${params.sessionId} ${JSON.stringify(params.mcpServers ?? [])}`)
    if (!existsSync(fileOf(params.sessionId))) throw missing(params.sessionId)
    return flags.emptyAnswer === true ? (null as never) : offered(params.sessionId)
  })
  .onRequest("session/list", () => ({
    sessions: readdirSync(state)
      .filter((name) => name.endsWith(".json"))
      .map((name) => ({ sessionId: name.slice(0, -5), cwd: flags.listedIn ?? read(name.slice(0, -5)).cwd }))
  }))
  .onRequest("session/close", ({ params }) => {
    log(`close ${params.sessionId}`)
    return {}
  })
  .onRequest("session/delete", ({ params }) => {
    log(`delete ${params.sessionId}`)
    rmSync(fileOf(params.sessionId), { force: true })
    return {}
  })
  .onRequest("session/set_mode", ({ params }) => {
    log(`set_mode ${params.modeId}`)
    choices.set(params.sessionId, { ...choices.get(params.sessionId), mode: params.modeId })
    return {}
  })
  .onRequest("session/set_config_option", async ({ client, params }) => {
    const { sessionId } = params
    if (flags.chatty === true) await client.notify("session/update", { sessionId, update: chunk("one more thing") })
    log(`set ${params.configId} ${String(params.value)}`)
    choices.set(params.sessionId, { ...choices.get(params.sessionId), [params.configId]: String(params.value) })
    return { configOptions: offered(params.sessionId).configOptions ?? [] }
  })
  .onRequest("session/prompt", async ({ client, params }) => {
    cancelled.delete(params.sessionId)
    if (!existsSync(fileOf(params.sessionId))) throw missing(params.sessionId)
    const texts = params.prompt.flatMap((block) => (block.type === "text" ? [block.text] : [`<${block.type}>`]))
    log(`prompt ${JSON.stringify(texts)}`)
    const text = texts[texts.length - 1] ?? ""
    for (let i = 0; i < (flags.noise ?? 0); i++) process.stdout.write(`noise ${i}\n`)
    const kept = read(params.sessionId)
    write(params.sessionId, {
      ...kept,
      said: [...kept.said, { role: "user", text }, { role: "agent", text: `past ${text}` }]
    })
    return { stopReason: await play(client, params.sessionId, text) }
  })
  .onNotification("session/cancel", ({ params }) => {
    log(`cancel ${params.sessionId}`)
    cancelled.add(params.sessionId)
    cancels.get(params.sessionId)?.()
  })

const input = Readable.toWeb(process.stdin) as unknown as ReadableStream<Uint8Array>
const output = Writable.toWeb(process.stdout) as unknown as WritableStream<Uint8Array>
const connection = app.connect(acp.ndJsonStream(output, input))
void connection.closed.then(() => {
  log(`end ${process.pid}`)
  process.exit(0)
})
