/**
 * What is measured over the Agent Client Protocol: `tackroom acp` and a bare agent of the official SDK, and the editor that
 * drives any agent, the same over all of them.
 */
import * as sdk from "@agentclientprotocol/sdk"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { start, type MeasuredProcess } from "./MeasuredProcess.ts"
import { RawClient } from "./RawClient.ts"
import type { Bench } from "./Report.ts"
import { environment, type HostOptions } from "./TackroomHost.ts"

export const measure = "acp"
export const bareAgent = "bare agent of the SDK"
export const bareProgram = fileURLToPath(new URL("echo/acp.ts", import.meta.url))

/** Both agents have a warm code cache, as an installed program has after its first start. */
export const variables = (bench: Bench): Record<string, string> =>
  environment(bench, { NODE_COMPILE_CACHE: join(bench.folder, "code-cache") })

export const startBare = (bench: Bench): MeasuredProcess =>
  start({ command: process.execPath, args: [bareProgram], env: variables(bench) })

/** `folder` holds the state and the configuration; it is there. */
export const startOurs = (
  bench: Bench,
  folder: string,
  config: HostOptions["config"],
  agent: string
): MeasuredProcess => {
  const file = join(folder, "config.json")
  writeFileSync(file, JSON.stringify(config))
  return start({
    command: process.execPath,
    args: [bench.tackroom, "acp", "--state-dir", join(folder, "state"), "--config", file, "--agent", agent],
    env: variables(bench)
  })
}

interface ContentUpdate {
  readonly update?: { readonly content?: { readonly text?: string } }
}

/** A client that reads lines and counts the text it is told. */
export class Editor {
  readonly #client: RawClient
  #session = ""
  /** Characters of text and thinking, of all prompts. */
  characters = 0

  constructor(program: MeasuredProcess) {
    this.#client = new RawClient(program)
    this.#client.each("session/update", (params: ContentUpdate) => {
      this.characters += params.update?.content?.text?.length ?? 0
    })
  }

  async open(): Promise<void> {
    await this.#client.request("initialize", { protocolVersion: sdk.PROTOCOL_VERSION, clientCapabilities: {} })
  }

  async session(cwd: string): Promise<void> {
    const { sessionId } = await this.#client.request<{ readonly sessionId: string }>("session/new", {
      cwd,
      mcpServers: []
    })
    this.#session = sessionId
  }

  async prompt(text: string): Promise<void> {
    const { stopReason } = await this.#client.request<{ readonly stopReason: string }>("session/prompt", {
      sessionId: this.#session,
      prompt: [{ type: "text", text }]
    })
    if (stopReason !== "end_turn") throw new Error(`the turn ended with ${stopReason}`)
  }
}
