/**
 * `tackroom acp` as a client has it: the real program, the client side of the official SDK at its pipes, and every frame that
 * was written in its order. Frames are kept to be checked against the protocol's published schema.
 */
import * as acp from "@agentclientprotocol/sdk"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Readable, Writable } from "node:stream"
import { cli } from "../command/Program.ts"

/** A frame that the program wrote. */
export interface Frame {
  readonly id?: string | number | null
  readonly method?: string
  readonly params?: { readonly [name: string]: unknown }
  readonly result?: { readonly [name: string]: unknown }
  readonly error?: {
    readonly code: number
    readonly message: string
    readonly data?: { readonly [name: string]: unknown }
  }
}

/** Folders for one test: a state directory, and a project to work in. */
export const makeFolders = (): { readonly root: string; readonly state: string; readonly project: string } => {
  const root = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "tackroom-acp-face-")))
  const project = path.join(root, "project")
  fs.mkdirSync(project)
  return { root, state: path.join(root, "state"), project }
}

export interface StartOptions {
  readonly state: string
  readonly args?: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
  readonly capabilities?: acp.ClientCapabilities
  /** How the client answers; by default it allows everything once and answers no form. */
  readonly permission?: (
    request: acp.RequestPermissionRequest,
    signal: AbortSignal
  ) => Promise<acp.RequestPermissionResponse>
  readonly elicitation?: (request: acp.CreateElicitationRequest) => Promise<acp.CreateElicitationResponse>
  /** What the client can do besides. */
  readonly offer?: (app: acp.ClientApp) => void
  /** No `initialize` is sent. */
  readonly raw?: boolean
}

export const allow = (request: acp.RequestPermissionRequest): acp.RequestPermissionResponse => {
  const option = request.options.find(({ kind }) => kind === "allow_once")
  return option === undefined
    ? { outcome: { outcome: "cancelled" } }
    : { outcome: { outcome: "selected", optionId: option.optionId } }
}

/** Starts the program and lets the client in. */
export const startAcp = async (options: StartOptions) => {
  const child = spawn(process.execPath, [cli, "acp", "--state-dir", options.state, ...(options.args ?? [])], {
    env: {
      PATH: process.env["PATH"],
      HOME: process.env["HOME"],
      LANG: "C.UTF-8",
      NODE_COMPILE_CACHE: path.join(os.tmpdir(), "tackroom-test-cache"),
      ...options.env
    },
    stdio: ["pipe", "pipe", "pipe"]
  })
  const frames: Array<Frame> = []
  const watchers = new Set<() => void>()
  let rest = ""
  let stderr = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text
  })
  child.stdin.on("error", () => undefined)
  const seen = new TransformChunks((text) => {
    rest += text
    for (let end = rest.indexOf("\n"); end >= 0; end = rest.indexOf("\n")) {
      frames.push(JSON.parse(rest.slice(0, end)) as Frame)
      rest = rest.slice(end + 1)
    }
    for (const look of watchers) look()
  })
  const exit = new Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>((resolve) =>
    child.once("close", (code, signal) => {
      for (const look of watchers) look()
      resolve({ code, signal })
    })
  )
  const output = Readable.toWeb(child.stdout) as unknown as ReadableStream<Uint8Array>
  const app = acp
    .client({ name: "test" })
    .onRequest("session/request_permission", ({ params, signal }) =>
      options.permission === undefined ? allow(params) : options.permission(params, signal)
    )
    .onRequest("elicitation/create", ({ params }) => options.elicitation?.(params) ?? { action: "cancel" })
  options.offer?.(app)
  const methods = new Map<string | number | null, string>()
  const note = (text: string): void => {
    for (const line of text.split("\n")) {
      try {
        const sent = JSON.parse(line) as Frame
        if (sent.method !== undefined && sent.id !== undefined) methods.set(sent.id, sent.method)
      } catch {
        // Not everything that a test sends is a frame.
      }
    }
  }
  const sent = new TransformChunks(note)
  void sent.stream.readable
    .pipeTo(Writable.toWeb(child.stdin) as unknown as WritableStream<Uint8Array>)
    .catch(() => undefined)
  const connection = app.connect(acp.ndJsonStream(sent.stream.writable, output.pipeThrough(seen.stream)))

  /** Waits for something that the frames show, or will. */
  const until = <A>(find: (all: ReadonlyArray<Frame>) => A | undefined): Promise<A> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = find(frames)
        if (found !== undefined) {
          watchers.delete(look)
          resolve(found)
        } else if (child.exitCode !== null) reject(new Error(`the program ended: ${stderr}`))
      }
      watchers.add(look)
      look()
    })

  /** Bytes as they are, and the answer with that id. */
  const send = (text: string | Uint8Array): void => {
    if (typeof text === "string") note(text)
    child.stdin.write(text)
  }
  const answerTo = (id: string | number | null, nth = 0): Promise<Frame> =>
    until((all) => all.filter((frame) => frame.method === undefined && frame.id === id)[nth])

  const updates = (sessionId: string): ReadonlyArray<acp.SessionUpdate> =>
    frames.flatMap((frame) =>
      frame.method === "session/update" && frame.params?.["sessionId"] === sessionId
        ? [frame.params["update"] as acp.SessionUpdate]
        : []
    )

  const text = (sessionId: string): string =>
    updates(sessionId)
      .flatMap((update) =>
        update.sessionUpdate === "agent_message_chunk" && update.content.type === "text" ? [update.content.text] : []
      )
      .join("")

  const { agent } = connection
  const initialize = (): Promise<acp.InitializeResponse> =>
    agent.request("initialize", { protocolVersion: 1, clientCapabilities: options.capabilities ?? {} })
  if (options.raw !== true) await initialize()

  return {
    child,
    agent,
    connection,
    frames,
    methods,
    initialize,
    until,
    send,
    answerTo,
    updates,
    text,
    stderr: () => stderr,
    exit,
    newSession: async (cwd: string) => (await agent.request("session/new", { cwd, mcpServers: [] })).sessionId,
    prompt: (sessionId: string, words: string, meta?: Record<string, unknown>) =>
      agent.request("session/prompt", {
        sessionId,
        prompt: [{ type: "text", text: words }],
        ...(meta === undefined ? {} : { _meta: { tackroom: meta } })
      }),
    /** Ends its input and waits for its end. */
    end: () => {
      child.stdin.end()
      return exit
    },
    kill: () => {
      child.kill("SIGKILL")
      return exit
    }
  }
}

export type AcpProgram = Awaited<ReturnType<typeof startAcp>>

/** Passes bytes on and shows them as text. */
class TransformChunks {
  readonly stream: TransformStream<Uint8Array, Uint8Array>
  constructor(show: (text: string) => void) {
    const decoder = new TextDecoder()
    this.stream = new TransformStream({
      transform: (chunk, controller) => {
        show(decoder.decode(chunk, { stream: true }))
        controller.enqueue(chunk)
      }
    })
  }
}

/** The error of a call that was refused. */
export const refusal = async (call: Promise<unknown>): Promise<{ readonly code: number; readonly data: unknown }> => {
  try {
    await call
  } catch (error) {
    if (error instanceof acp.RequestError) return { code: error.code, data: error.data }
    throw error
  }
  throw new Error("it was not refused")
}

/** Code and reason of a refused call. */
export const reasonOf = async (call: Promise<unknown>): Promise<string> => {
  const { code, data } = await refusal(call)
  const reason = typeof data === "object" && data !== null && "reason" in data ? String(data.reason) : ""
  return `${code} ${reason}`.trim()
}
