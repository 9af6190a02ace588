/** What a driver may tell of an ACP agent: from its `initialize`, and from the options of a session that was opened. Pure. */
import type { ConfigOption } from "@tackroom/protocol/events"
import { type HarnessCapabilities, noCapabilities } from "../Capabilities.ts"
import type { ModelOption } from "../Harness.ts"
import type { AgentFacts } from "./AgentFacts.ts"
import { configOptionsOf, type OfferedOptions, optionFor } from "./AgentOptions.ts"

/** The access of every harness of this kind. */
export const access = "acp"

export const capabilitiesOf = (id: string, facts: AgentFacts, offered: OfferedOptions): HarnessCapabilities => ({
  ...noCapabilities({ id, access }),
  modelSelection: optionFor(offered, "model") === undefined ? "unsupported" : "optional",
  abort: true,
  resume: facts.reopens === undefined ? "none" : "exact",
  replay: facts.reopens === "load",
  permissions: true,
  questions: true,
  todos: true,
  commands: true,
  configOptions: configOptionsOf(offered).length > 0,
  models: optionFor(offered, "model") !== undefined,
  effortLevels: (optionFor(offered, "thought_level")?.selectOptions ?? []).map((option) => option.id),
  attachments: {
    image: facts.takes.image,
    audio: facts.takes.audio,
    pdf: facts.takes.embedded,
    file: true
  },
  instructionChannel: "prompt-prefix",
  // Every agent takes programs; the rest it says.
  mcp: facts.mcpHttp ? "stdio+http" : "stdio",
  permissionModes: optionFor(offered, "mode") !== undefined,
  processScope: "session"
})

export const modelsOf = (id: string, option: ConfigOption | undefined): ReadonlyArray<ModelOption> =>
  (option?.selectOptions ?? []).map((choice) => ({
    providerID: id,
    modelID: choice.id,
    ...(choice.name === undefined ? {} : { name: choice.name }),
    connected: true
  }))
