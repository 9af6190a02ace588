/** What somebody who mistyped a name meant: the nearest known name, when it is near enough to be worth saying. Pure. */
import { editDistance } from "@tackroom/protocol/text"

/** The nearest of the names, or undefined when none is near. */
export const suggest = (given: string, names: ReadonlyArray<string>): string | undefined => {
  const ranked = names
    .map((name) => ({ name, off: name.startsWith(given) && given.length > 1 ? 1 : editDistance(given, name) }))
    .sort((left, right) => left.off - right.off)
  const [best] = ranked
  return best !== undefined && best.off <= Math.max(1, Math.floor(best.name.length / 3)) ? best.name : undefined
}
