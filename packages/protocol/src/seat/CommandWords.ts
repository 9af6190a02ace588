/**
 * A command line as a preset and `--agent-command` write it: split on blanks, with POSIX quotes, and without any of a
 * shell's expansions.
 *
 * @since 0.1.0
 */
import { Result } from "effect"

/**
 * The words of a command line, or what is wrong with it. Single quotes keep everything; in double quotes a backslash
 * escapes `"`, `\`, `$` and `` ` ``; outside of quotes it escapes the next character.
 *
 * @since 0.1.0
 */
export const splitCommand = (text: string): Result.Result<ReadonlyArray<string>, string> => {
  const words: Array<string> = []
  let word: string | undefined
  let quote: "'" | '"' | undefined
  for (let i = 0; i < text.length; i++) {
    const c = text.charAt(i)
    if (quote === "'") {
      if (c === "'") quote = undefined
      else word += c
    } else if (c === "\\") {
      const next = text.charAt(i + 1)
      if (next === "") return Result.fail("a backslash at the end escapes nothing")
      word = (word ?? "") + (quote === undefined || '"\\$`'.includes(next) ? next : c + next)
      i++
    } else if (quote === '"') {
      if (c === '"') quote = undefined
      else word += c
    } else if (c === "'" || c === '"') {
      quote = c
      word ??= ""
    } else if (c === " " || c === "\t" || c === "\n") {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = (word ?? "") + c
  }
  if (quote !== undefined) return Result.fail(`a ${quote} is not closed`)
  if (word !== undefined) words.push(word)
  return words.length === 0 || words[0] === "" ? Result.fail("there is no program") : Result.succeed(words)
}
