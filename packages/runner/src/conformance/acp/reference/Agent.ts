/** The methods of the reference agent: what is taken, what is refused and why, and the turns that are on. */
import { randomUUID } from "node:crypto"
import { basename, isAbsolute } from "node:path"
import type { Read } from "./Input.ts"
import type { Servers } from "./Servers.ts"
import type { Settings } from "./Settings.ts"
import type { State, Stored } from "./State.ts"
import { startTurn, type Turn } from "./Turn.ts"

type Fields = Readonly<Record<string, unknown>>

/** A request that is refused. */
class Refused {
  readonly code: number
  readonly message: string
  constructor(code: number, message: string) {
    this.code = code
    this.message = message
  }
}

interface Session extends Stored {
  readonly id: string
  turn: Turn | undefined
  mode: string
  colour: string
  calls: number
  /** The next turn is cancelled before it begins: a fault. */
  doomed: boolean
  /** It takes no prompts: a fault. */
  deaf: boolean
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const colours = ["green", "red"]
const modes = ["ask", "code"]

const noSession = (): Refused => new Refused(-32_002, "There is no such session")

export const makeAgent = (
  settings: Settings,
  servers: Servers,
  state: State,
  put: (message: object) => void,
  exit: (code: number) => void
) => {
  const { bare, broken } = settings
  const open = new Map<string, Session>()
  const asked = new Map<unknown, (answer: unknown) => void>()
  const waiting: Array<() => void> = []
  let asks = 0

  const wrong = (message: string): Refused => new Refused(broken("ACK-052") ? -32_603 : -32_602, message)

  const update = (session: Session, content: object): void => {
    const sessionId = broken("ACK-072") ? [...open.keys()][0] : session.id
    put({ jsonrpc: "2.0", method: "session/update", params: { sessionId, update: content } })
  }
  const chunk = (session: Session, sessionUpdate: string, text: string): void =>
    update(session, { sessionUpdate, content: { type: "text", text } })

  const ask = (method: string, params: object): Promise<unknown> =>
    new Promise((resolve) => {
      const id = `ask-${++asks}`
      asked.set(id, resolve)
      put({ jsonrpc: "2.0", id, method, params })
    })

  const register = (id: string, stored: Stored): Session => {
    const session: Session = {
      id,
      cwd: stored.cwd,
      turns: stored.turns,
      turn: undefined,
      mode: broken("ACK-200") ? "none" : "ask",
      colour: broken("ACK-190") ? "none" : "green",
      calls: 0,
      doomed: false,
      deaf: false
    }
    open.set(id, session)
    return session
  }

  const configOptions = (colour: string) => [
    {
      id: "colour",
      name: "Colour",
      type: "select",
      currentValue: colour,
      options: colours.map((value) => ({ value, name: value }))
    }
  ]
  const choices = (session: Session) =>
    bare
      ? {}
      : {
          configOptions: broken("ACK-021") ? "none" : configOptions(session.colour),
          modes: { currentModeId: session.mode, availableModes: modes.map((id) => ({ id, name: id })) }
        }

  const directory = (params: Fields): string => {
    const { cwd, mcpServers } = params
    if (typeof cwd !== "string" || !Array.isArray(mcpServers)) throw wrong("cwd and mcpServers are missing")
    if (!isAbsolute(cwd) && !broken("ACK-071")) throw wrong("cwd is no absolute path")
    return cwd
  }

  const found = (params: Fields): Session => {
    const { sessionId } = params
    if (typeof sessionId !== "string") throw wrong("sessionId is missing")
    const session = open.get(sessionId)
    if (session !== undefined) return session
    if (broken("ACK-073")) return register(sessionId, { cwd: "/", turns: [] })
    throw noSession()
  }

  const initialize = (params: Fields): object => {
    const { clientCapabilities, protocolVersion } = params
    if (!Number.isInteger(protocolVersion)) throw wrong("protocolVersion is missing")
    if (protocolVersion !== 1 && broken("ACK-011")) throw wrong("the version is unknown")
    if (broken("ACK-014") && isFields(clientCapabilities) && Object.keys(clientCapabilities).length > 0)
      throw wrong("a capability is unknown")
    return {
      protocolVersion: broken("ACK-010") ? 2 : 1,
      ...(broken("ACK-012") ? {} : { agentInfo: { name: "reference", version: "1" } }),
      ...(broken("ACK-020") ? { authMethods: "none" } : {}),
      agentCapabilities: bare
        ? {}
        : { loadSession: true, sessionCapabilities: { resume: {}, list: {}, close: {}, delete: {} } }
    }
  }

  const startServers = (params: Fields, cwd: string): Promise<void> => {
    const { mcpServers } = params
    const given = Array.isArray(mcpServers) ? mcpServers : []
    if (given.length > 0 && broken("ACK-220")) throw wrong("MCP servers are not taken")
    return servers.start(given, cwd)
  }

  const create = async (params: Fields): Promise<object> => {
    const cwd = directory(params)
    await startServers(params, cwd)
    const id = broken("ACK-070") ? "session" : randomUUID()
    const session = register(id, { cwd, turns: [] })
    state.sessions.set(id, session)
    return { sessionId: id, ...choices(session) }
  }

  /** A session of a process before. */
  const restore = async (params: Fields, method: "load" | "resume"): Promise<object> => {
    const cwd = directory(params)
    const id = String(params["sessionId"])
    const stored = state.sessions.get(id)
    if (stored === undefined && !broken(method === "load" ? "ACK-152" : "ACK-162")) throw noSession()
    await startServers(params, cwd)
    const session = register(id, stored ?? { cwd, turns: [] })
    session.deaf = broken(method === "load" ? "ACK-153" : "ACK-161")
    const tell = (): void => {
      for (const { prompt, said } of session.turns) {
        chunk(session, "user_message_chunk", prompt)
        chunk(session, "agent_message_chunk", said)
      }
    }
    if (method === "load" ? !broken("ACK-150") : broken("ACK-160")) tell()
    if (method === "load" && broken("ACK-151")) setTimeout(tell, 50)
    return choices(session)
  }

  const listed = ({ cursor, cwd }: Fields): object => {
    if (typeof cursor === "string" && !broken("ACK-172")) throw wrong("the cursor is none of this list")
    const sessions = [...state.sessions]
      .filter(([, stored]) => typeof cwd !== "string" || stored.cwd === cwd || broken("ACK-171"))
      .map(([sessionId, stored]) => ({ sessionId, cwd: broken("ACK-170") ? basename(stored.cwd) : stored.cwd }))
    if (sessions.length === 0 && broken("ACK-173")) throw noSession()
    return { sessions }
  }

  const close = (params: Fields): object => {
    const session = found(params)
    session.turn?.cancel("closed")
    if (!broken("ACK-181")) open.delete(session.id)
    return {}
  }

  const remove = (params: Fields): object => {
    const id = String(params["sessionId"])
    open.get(id)?.turn?.cancel("closed")
    open.delete(id)
    if (!broken("ACK-185")) state.sessions.delete(id)
    state.save()
    return {}
  }

  const textOf = (prompt: ReadonlyArray<unknown>): string =>
    prompt
      .filter(isFields)
      .map(({ text, type }) => {
        if (type === "text") return String(text)
        if (type === "resource_link" && !broken("ACK-083")) return ""
        if (type === "audio" && broken("ACK-089")) return ""
        throw wrong(`content of type ${String(type)} is not taken`)
      })
      .join("")

  const prompted = async (params: Fields): Promise<object> => {
    const { prompt } = params
    if (!Array.isArray(prompt)) throw wrong("prompt is missing")
    const session = found(params)
    if (session.deaf) throw noSession()
    const text = textOf(prompt)
    if (session.turn !== undefined) throw new Refused(-32_600, "A turn is on")
    if (broken("ACK-074")) for (const other of open.values()) if (other.turn !== undefined) await other.turn.end
    const turn = startTurn({
      settings,
      prompt: text,
      cwd: session.cwd,
      sessionId: session.id,
      update: (content) => update(session, content),
      ask,
      callId: () => (broken("ACK-086") ? "call" : `call-${++session.calls}`)
    })
    session.turn = turn
    if (broken("ACK-013")) void ask("fs/read_text_file", { sessionId: session.id, path: `${session.cwd}/a` })
    if (broken("ACK-022")) update(session, { sessionUpdate: "plan", entries: "none" })
    if (session.doomed) turn.cancel()
    session.doomed = false
    const { said, stop } = await turn.end
    session.turn = undefined
    session.turns.push({ prompt: text, said })
    state.save()
    if (broken("ACK-132") && stop === "cancelled") session.doomed = true
    if (broken(stop === "cancelled" ? "ACK-131" : "ACK-082"))
      setTimeout(() => chunk(session, "agent_message_chunk", "And more."), 50)
    for (const next of waiting.splice(0)) setImmediate(next)
    if (stop === undefined) throw new Refused(-32_603, "The turn failed")
    return { stopReason: stop, ...(broken("ACK-025") ? { costs: 1 } : {}) }
  }

  const configure = (params: Fields): object => {
    const session = found(params)
    const { configId, value } = params
    if ((configId !== "colour" || !colours.includes(String(value))) && !broken("ACK-192"))
      throw wrong("there is no such option")
    const former = session.colour
    session.colour = String(value)
    return { configOptions: configOptions(broken("ACK-191") ? former : session.colour) }
  }

  const setMode = (params: Fields): object => {
    const session = found(params)
    const mode = String(params["modeId"])
    if (broken("ACK-201") || (!modes.includes(mode) && !broken("ACK-202"))) throw wrong("there is no such mode")
    session.mode = mode
    return {}
  }

  const methods: Readonly<Record<string, (params: Fields) => object | Promise<object>>> = {
    initialize,
    "session/new": create,
    "session/prompt": prompted,
    ...(bare
      ? {}
      : {
          "session/load": (params) => restore(params, "load"),
          "session/resume": (params) => restore(params, "resume"),
          "session/list": listed,
          "session/close": close,
          "session/delete": remove,
          "session/set_config_option": configure,
          "session/set_mode": setMode
        }),
    ...(broken("ACK-015") ? { logout: () => ({}) } : {})
  }

  const cancel = (params: Fields): void => {
    const session = open.get(String(params["sessionId"]))
    if (session === undefined) return
    if (session.turn === undefined && broken("ACK-133")) session.doomed = true
    for (const one of broken("ACK-134") ? open.values() : [session]) one.turn?.cancel()
  }

  const notified = (method: string, params: Fields): void => {
    if (method === "session/cancel") return cancel(params)
    if (broken("ACK-212") && method.startsWith("_")) return exit(1)
    if (broken("ACK-054")) put({ jsonrpc: "2.0", id: null, error: { code: -32_601, message: "Method not found" } })
  }

  const served = async (method: string, params: Fields): Promise<object> => {
    const serve = methods[method]
    if (serve === undefined) {
      const fault = method.startsWith("_") ? "ACK-211" : "ACK-051"
      throw new Refused(broken(fault) ? -32_603 : -32_601, "Method not found")
    }
    if (broken("ACK-210") && method.startsWith("session/") && "_meta" in params) throw wrong("_meta is unknown")
    return serve(params)
  }

  const respond = async (given: unknown, method: string, params: Fields): Promise<void> => {
    const id = broken("ACK-050") && typeof given === "string" && /^\d+$/u.test(given) ? Number(given) : given
    const [answer] = await Promise.allSettled([served(method, params)])
    if (answer.status === "fulfilled") {
      put({ jsonrpc: "2.0", id, result: answer.value })
      if (broken("ACK-055") && method === "session/prompt") put({ jsonrpc: "2.0", id, result: answer.value })
      return
    }
    const reason: unknown = answer.reason
    const { code, message } = reason instanceof Refused ? reason : new Refused(-32_603, "Internal error")
    put({ jsonrpc: "2.0", id, error: { code, ...(broken("ACK-024") ? {} : { message }) } })
  }

  const refuse = (code: number, message: string): void => put({ jsonrpc: "2.0", id: null, error: { code, message } })

  return (read: Read): void => {
    if ("bad" in read) return broken("ACK-053") ? undefined : refuse(-32_700, "Parse error")
    const message = read.value
    const { id, method, params } = isFields(message) ? message : {}
    const given = isFields(params) ? params : {}
    if (typeof method === "string") {
      if (id === undefined) return notified(method, given)
      const answer = (): void => void respond(id, method, given)
      if (broken("ACK-058") && [...open.values()].some(({ turn }) => turn !== undefined)) waiting.push(answer)
      else answer()
      return
    }
    if (isFields(message) && id !== undefined && ("result" in message || "error" in message)) {
      const settle = asked.get(id)
      asked.delete(id)
      if (settle === undefined) return broken("ACK-057") ? exit(1) : undefined
      return settle(message["result"])
    }
    if (!broken("ACK-056")) refuse(-32_600, "Invalid request")
  }
}
