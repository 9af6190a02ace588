/**
 * What an agent lets a client choose, in its two forms: config options, and the older list of modes. Pure.
 *
 * Config options are preferred; the list of modes is used only where no option is a mode (HRN-102).
 */
import type { ConfigOption } from "@tackroom/protocol/events"
import { type Fields, fieldsOf, listOf, textOf, wordsOf } from "./Fields.ts"

/** What an agent offers, as it said it. */
export interface OfferedOptions {
  readonly options: ReadonlyArray<unknown>
  readonly modes: Fields | undefined
}

/** What a session's answer offers; null and absent mean nothing (HRN-103). */
export const offeredBy = (answer: unknown): OfferedOptions => {
  const fields = fieldsOf(answer)
  return { options: listOf(fields?.["configOptions"]), modes: fieldsOf(fields?.["modes"]) }
}

/** One choice of an option. */
interface Choice {
  readonly value: string
  readonly name: string | undefined
  readonly description: string | undefined
}

const choicesOf = (value: unknown): ReadonlyArray<Choice> =>
  listOf(value).flatMap((entry): ReadonlyArray<Choice> => {
    const item = fieldsOf(entry)
    if (item === undefined) return []
    if (Array.isArray(item["options"])) return choicesOf(item["options"])
    const id = textOf(item["value"])
    return id === undefined
      ? []
      : [{ value: id, name: wordsOf(item["name"]), description: wordsOf(item["description"]) }]
  })

const selectOption = (choice: Choice) => ({
  id: choice.value,
  value: choice.value,
  ...(choice.name === undefined ? {} : { name: choice.name }),
  ...(choice.description === undefined ? {} : { description: choice.description })
})

const optionOf = (entry: unknown): ConfigOption | undefined => {
  const item = fieldsOf(entry)
  const id = wordsOf(item?.["id"])
  if (item === undefined || id === undefined) return undefined
  const name = wordsOf(item["name"])
  const description = wordsOf(item["description"])
  const category = wordsOf(item["category"])
  const current = item["currentValue"]
  const isBoolean = item["type"] === "boolean"
  return {
    id,
    type: isBoolean ? "boolean" : "select",
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description }),
    ...(category === undefined ? {} : { category }),
    ...(typeof current === "string" || typeof current === "boolean" ? { currentValue: current } : {}),
    ...(isBoolean ? {} : { selectOptions: choicesOf(item["options"]).map(selectOption) })
  }
}

const modeOption = (modes: Fields): ConfigOption | undefined => {
  const choices = listOf(modes["availableModes"]).flatMap((entry) => {
    const item = fieldsOf(entry)
    const value = wordsOf(item?.["id"])
    return value === undefined
      ? []
      : [selectOption({ value, name: wordsOf(item?.["name"]), description: wordsOf(item?.["description"]) })]
  })
  if (choices.length === 0) return undefined
  const current = textOf(modes["currentModeId"])
  return {
    id: "mode",
    category: "mode",
    type: "select",
    selectOptions: choices,
    ...(current === undefined ? {} : { currentValue: current })
  }
}

/** The options as a client of the runtime sees them. */
export const configOptionsOf = (offered: OfferedOptions): ReadonlyArray<ConfigOption> => {
  const options = offered.options.flatMap((entry) => optionOf(entry) ?? [])
  if (offered.modes === undefined || options.some(isMode)) return options
  const mode = modeOption(offered.modes)
  return mode === undefined ? options : [...options, mode]
}

/** The offered options after the agent changed its mode by itself. */
export const withMode = (offered: OfferedOptions, mode: string): OfferedOptions => ({
  options: offered.options.map((entry) => {
    const option = optionOf(entry)
    return option !== undefined && isMode(option) ? { ...fieldsOf(entry), currentValue: mode } : entry
  }),
  modes: offered.modes === undefined ? undefined : { ...offered.modes, currentModeId: mode }
})

const isMode = (option: ConfigOption): boolean => option.category === "mode"

/** The option that holds what a session's config calls a model, an effort or a permission mode. */
export const optionFor = (
  offered: OfferedOptions,
  category: "model" | "mode" | "thought_level"
): ConfigOption | undefined => configOptionsOf(offered).find((option) => option.category === category)

/** How a value is set: as an option, or by the call of the older list. */
export const setsByModes = (offered: OfferedOptions, category: "model" | "mode" | "thought_level"): boolean =>
  category === "mode" && !offered.options.some((entry) => fieldsOf(entry)?.["category"] === "mode")
