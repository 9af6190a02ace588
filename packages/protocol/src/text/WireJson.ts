/**
 * JSON as it is written on a line: lone surrogates and U+0000 as escapes, U+2028 and U+2029 escaped (RUN-014, RUN-016).
 *
 * @since 0.1.0
 */
import { Result } from "effect"

const separators = /[\u2028\u2029]/u
const lineSeparators = /\u2028/gu
const paragraphSeparators = /\u2029/gu

/**
 * Writes a value as one line of JSON. What reads a line as UTF-8 and splits at 0x0A gets the same value back.
 *
 * @throws TypeError for what JSON.stringify refuses: a BigInt or a cycle (see {@link tryWireJson})
 * @since 0.1.0
 */
export const wireJson = (value: unknown): string => {
  const json = JSON.stringify(value) as string | undefined
  if (json === undefined) return "null"
  return separators.test(json) ? json.replace(lineSeparators, "\\u2028").replace(paragraphSeparators, "\\u2029") : json
}

/**
 * {@link wireJson} whose failure is a value (RT-187): a BigInt, a cycle, or a function or symbol at the top.
 *
 * @since 0.1.0
 */
export const tryWireJson = (value: unknown): Result.Result<string, string> =>
  typeof value === "function" || typeof value === "symbol"
    ? Result.fail(`a ${typeof value} is no JSON`)
    : Result.try({
        try: () => wireJson(value),
        catch: (cause) => (cause instanceof Error ? cause.message : "the value is no JSON")
      })

/**
 * Parses one JSON text. Of duplicate keys the last wins; a key such as `__proto__` is plain data (RUN-013).
 *
 * @since 0.1.0
 */
export const parseJson = (text: string): Result.Result<unknown, string> =>
  Result.try({
    try: (): unknown => JSON.parse(text),
    catch: (cause) => (cause instanceof Error ? cause.message : "the text is no JSON")
  })
