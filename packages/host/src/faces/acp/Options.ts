/** What a harness lets a person choose, in the two forms that ACP has for it (ACP-081 to ACP-083). Pure. */
import type { SessionConfigOption, SessionModeState } from "@agentclientprotocol/sdk"
import type { ConfigOption, SessionConfig } from "@tackroom/protocol/events"
import type { Client } from "./Client.ts"

/** The category of an option that a client knows. */
const categoryOf = (option: ConfigOption): string | undefined => {
  if (option.category !== undefined) return option.category
  switch (option.id) {
    case "model":
    case "mode":
      return option.id
    case "permissionMode":
      return "mode"
    case "effort":
      return "thought_level"
    default:
      return undefined
  }
}

export const isMode = (option: ConfigOption): boolean => categoryOf(option) === "mode"
export const isModel = (option: ConfigOption): boolean => categoryOf(option) === "model"
export const isEffort = (option: ConfigOption): boolean => categoryOf(option) === "thought_level"

/** The values of an option; a boolean one has two where the client takes no booleans. */
export const valuesOf = (option: ConfigOption): ReadonlyArray<string> =>
  option.type === "boolean"
    ? ["on", "off"]
    : (option.selectOptions ?? []).map(({ id, value }) => (typeof value === "string" ? value : id))

/** What is in force: what the session's config says, else what the harness says, else its first choice. */
const currentOf = (option: ConfigOption, config: SessionConfig): string | boolean => {
  const chosen = isMode(option)
    ? config.permissionMode
    : isModel(option)
      ? config.model?.modelID
      : isEffort(option)
        ? config.variant
        : undefined
  const values = valuesOf(option)
  const known = option.currentValue
  if (option.type === "boolean") return known === true || known === "on"
  const qualified = config.model === undefined ? undefined : `${config.model.providerID}/${config.model.modelID}`
  const candidates = [isModel(option) ? qualified : undefined, chosen, typeof known === "string" ? known : undefined]
  // The value is always one of the values (ACP-082).
  return candidates.find((value) => value !== undefined && values.includes(value)) ?? values[0] ?? ""
}

/** The options as the client takes them; one without a value to choose is left out. */
export const configOptions = (
  options: ReadonlyArray<ConfigOption>,
  config: SessionConfig,
  client: Client
): Array<SessionConfigOption> =>
  options.flatMap((option): ReadonlyArray<SessionConfigOption> => {
    const category = categoryOf(option)
    const base = {
      id: option.id,
      name: option.name ?? option.id,
      ...(option.description === undefined ? {} : { description: option.description }),
      ...(category === undefined ? {} : { category })
    }
    const current = currentOf(option, config)
    if (option.type === "boolean" && client.booleanOptions) {
      return [{ ...base, type: "boolean", currentValue: current === true }]
    }
    const choices =
      option.type === "boolean"
        ? [
            { value: "on", name: "On" },
            { value: "off", name: "Off" }
          ]
        : (option.selectOptions ?? []).map(({ description, id, name, value }) => ({
            value: typeof value === "string" ? value : id,
            name: name ?? id,
            ...(description === undefined ? {} : { description })
          }))
    if (choices.length === 0) return []
    const currentValue = typeof current === "boolean" ? (current ? "on" : "off") : current
    return [{ ...base, type: "select", currentValue, options: choices }]
  })

/** The permission modes of the harness as ACP's older list. */
export const modesOf = (options: ReadonlyArray<ConfigOption>, config: SessionConfig): SessionModeState | undefined => {
  const option = options.find(isMode)
  const modes = option?.selectOptions ?? []
  if (option === undefined || modes.length === 0) return undefined
  const current = currentOf(option, config)
  return {
    currentModeId: String(current),
    availableModes: modes.map(({ description, id, name, value }) => ({
      id: typeof value === "string" ? value : id,
      name: name ?? id,
      ...(description === undefined ? {} : { description })
    }))
  }
}
