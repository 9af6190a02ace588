/**
 * The real agents of the gated job: one pinned version each, and the program that speaks ACP in it. Everything else about an
 * agent (its home, its variables, what it is asked) is in `Homes.ts`.
 */
import { homedir } from "node:os"
import { join } from "node:path"
import type { Api, PlannedCall } from "../real-input/Vendors.ts"

/** A real agent. */
export interface Agent {
  readonly id: string
  /** Name on npm, and the one version that is tested. */
  readonly package: string
  readonly version: string
  /** The program below `node_modules`, and whether Node runs it. */
  readonly program: string
  readonly onNode: boolean
  readonly args: ReadonlyArray<string>
  /** The wire on which it asks its model. */
  readonly api: Api
  /** How its model runs a command in a way that a person is asked about. */
  readonly shell: (command: string) => Pick<PlannedCall, "name" | "arguments">
}

export const agents: ReadonlyArray<Agent> = [
  {
    id: "codex-acp",
    package: "@agentclientprotocol/codex-acp",
    version: "2.6.0",
    program: "@agentclientprotocol/codex-acp/dist/index.js",
    onNode: true,
    args: [],
    api: "responses",
    // Its sandbox lets the rest pass without a question.
    shell: (cmd) => ({
      name: "exec_command",
      arguments: { cmd, sandbox_permissions: "require_escalated", justification: "May it?" }
    })
  },
  {
    id: "claude-agent-acp",
    package: "@agentclientprotocol/claude-agent-acp",
    version: "0.101.0",
    program: "@agentclientprotocol/claude-agent-acp/dist/index.js",
    onNode: true,
    args: [],
    api: "anthropic",
    shell: (command) => ({ name: "Bash", arguments: { command, description: "Does it" } })
  },
  {
    id: "opencode",
    package: "opencode-ai",
    version: "1.18.33",
    program: `opencode-${process.platform}-${process.arch}/bin/opencode`,
    onNode: false,
    args: ["acp"],
    api: "chat-completions",
    shell: (command) => ({ name: "bash", arguments: { command, description: "Does it" } })
  },
  {
    id: "qwen-code",
    package: "@qwen-code/qwen-code",
    version: "0.24.4",
    program: "@qwen-code/qwen-code/cli-entry.js",
    onNode: true,
    args: ["--acp"],
    api: "chat-completions",
    shell: (command) => ({
      name: "run_shell_command",
      arguments: { command, is_background: false, description: "Does it" }
    })
  }
]

/** Where agents are installed: about 1.5 GB that no checkout should hold. */
export const installations = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "tackroom-agents")

/** The folder of one installed agent. Another version is another folder. */
export const installationOf = (agent: Agent): string => join(installations, `${agent.id}-${agent.version}`)

/** How an agent's program is started. */
export const commandOf = (agent: Agent): { readonly binary: string; readonly args: ReadonlyArray<string> } => {
  const program = join(installationOf(agent), "node_modules", agent.program)
  return agent.onNode
    ? { binary: process.execPath, args: [program, ...agent.args] }
    : { binary: program, args: agent.args }
}
