/** Which options a person can be shown, and how (seat contract 7.3). Pure. */
import { rememberedNote, type SeatOption, seatLimits, type ShownOption } from "@tackroom/protocol/seat"
import { headCodePoints } from "@tackroom/protocol/text"

/** Control, format, surrogate and separator characters: what a person cannot see, or a terminal would act on. */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/u
const allUnseen = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu

const goodId = (id: string): boolean => {
  const characters = [...id].length
  return (
    characters >= 1 &&
    characters <= seatLimits.optionIdCharacters &&
    !unseen.test(id) &&
    !/^\s/u.test(id) &&
    !/\s$/u.test(id)
  )
}

/** Whether a person can be shown these options. */
export const showable = (options: ReadonlyArray<SeatOption>, most: number): boolean =>
  options.length >= seatLimits.optionsMin &&
  options.length <= most &&
  options.every(({ optionId }) => goodId(optionId)) &&
  new Set(options.map(({ optionId }) => optionId)).size === options.length

/** The name as it is shown: without what cannot be seen, at most 200 characters, and the id when nothing is left. */
export const shownName = ({ name, optionId }: SeatOption): string => {
  const seen = [...name.replaceAll(allUnseen, "")].slice(0, seatLimits.optionIdCharacters).join("").trim()
  return seen === "" ? optionId : seen
}

const short = (text: string): string => headCodePoints(text, seatLimits.optionIdCharacters)

/** An option with what a person should know about it. */
export const shown = (option: SeatOption): ShownOption => ({
  optionId: option.optionId,
  name: shownName(option),
  kind: short(option.kind),
  note: option.kind === "allow_always" ? rememberedNote : null
})

/** An option as it is recorded: whatever the agent made of it, no larger than one that a person is shown. */
export const recorded = (option: SeatOption): SeatOption => ({
  optionId: short(option.optionId),
  name: shownName({ ...option, optionId: short(option.optionId) }),
  kind: short(option.kind)
})

/** Options as an ask keeps them. Nobody types a longer name than this, and nobody is shown one. */
export const kept = (options: ReadonlyArray<SeatOption>): ReadonlyArray<SeatOption> =>
  options.map(({ kind, name, optionId }) => ({
    optionId,
    name: headCodePoints(name, seatLimits.textCharacters),
    kind: short(kind)
  }))
