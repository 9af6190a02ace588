/**
 * A private home of an agent, with everything that makes it ask our model and nobody else. What each agent needs for that
 * was found out by running it without a network.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Agent, installations } from "./Agents.ts"

export interface Home {
  readonly path: string
  /** The variables that the agent is started with. */
  readonly variables: Readonly<Record<string, string>>
  readonly remove: () => void
}

const model = "fake-1"
const key = "key-of-the-fake"

const codexConfig = (url: string): string => `model = "${model}"
model_provider = "fake"
check_for_update_on_startup = false

[features]
plugins = false
apps = false

[model_providers.fake]
name = "Fake"
base_url = "${url}"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 1
stream_max_retries = 1
supports_websockets = false

[analytics]
enabled = false
`

/** What an agent of that name reads, and its variables. */
const prepared: Readonly<Record<string, (home: string, url: string) => Readonly<Record<string, string>>>> = {
  "codex-acp": (home, url) => {
    const folder = join(home, "codex")
    mkdirSync(folder)
    writeFileSync(join(folder, "config.toml"), codexConfig(url))
    return { CODEX_HOME: folder, FAKE_KEY: key, MODEL_PROVIDER: "fake", NO_BROWSER: "1", RUST_LOG: "error" }
  },
  "claude-agent-acp": (home, url) => ({
    CLAUDE_CONFIG_DIR: join(home, "claude"),
    // Without the version that the other wires have in their address.
    ANTHROPIC_BASE_URL: url.replace(/\/v1$/u, ""),
    ANTHROPIC_API_KEY: key,
    DISABLE_TELEMETRY: "1",
    DISABLE_ERROR_REPORTING: "1",
    DISABLE_AUTOUPDATER: "1",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1"
  }),
  opencode: (_home, url) => ({
    OPENCODE_DISABLE_AUTOUPDATE: "1",
    OPENCODE_DISABLE_MODELS_FETCH: "1",
    OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
    OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
    OPENCODE_DISABLE_SHARE: "1",
    OPENCODE_PURE: "1",
    OPENCODE_CONFIG_CONTENT: JSON.stringify({
      autoupdate: false,
      share: "disabled",
      model: `fake/${model}`,
      small_model: `fake/${model}`,
      enabled_providers: ["fake"],
      permission: { bash: "ask", edit: "ask" },
      provider: {
        fake: {
          npm: "@ai-sdk/openai-compatible",
          options: { baseURL: url, apiKey: key },
          models: { [model]: { tool_call: true, limit: { context: 128_000, output: 4_096 } } }
        }
      }
    })
  }),
  "qwen-code": (home, url) => {
    mkdirSync(join(home, ".qwen"))
    writeFileSync(
      join(home, ".qwen", "settings.json"),
      JSON.stringify({
        security: { auth: { selectedType: "openai" } },
        privacy: { usageStatisticsEnabled: false },
        general: { disableAutoUpdate: true }
      })
    )
    return { OPENAI_BASE_URL: url, OPENAI_API_KEY: key, OPENAI_MODEL: model }
  }
}

/** Makes a home; the agents' own folder holds it, since Codex refuses helpers below the temporary directory. */
export const makeHome = (agent: Agent, url: string): Home => {
  const homes = join(installations, "homes")
  mkdirSync(homes, { recursive: true })
  const path = mkdtempSync(join(homes, `${agent.id}-`))
  const own = prepared[agent.id]?.(path, url) ?? {}
  return {
    path,
    variables: {
      HOME: path,
      XDG_CONFIG_HOME: join(path, "config"),
      XDG_DATA_HOME: join(path, "data"),
      XDG_STATE_HOME: join(path, "state"),
      XDG_CACHE_HOME: join(path, "cache"),
      ...own
    },
    remove: () => rmSync(path, { recursive: true, force: true })
  }
}
