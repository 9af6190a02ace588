/** The seat's first prompt from its private file, byte for byte (SEAT-039). */
import * as fs from "node:fs"
import { seatLimits } from "@tackroom/protocol/seat"
import { decodeUtf8 } from "@tackroom/protocol/text"
import { Result } from "effect"

/** The text of the file, or why it cannot be a prompt. */
export const readFirstInput = (path: string): Result.Result<string, string> => {
  const bytes = Result.getOrUndefined(
    Result.try(() => {
      const { size } = fs.statSync(path)
      return size > seatLimits.promptBytes ? undefined : fs.readFileSync(path)
    })
  )
  if (bytes === undefined) return Result.fail("the first input cannot be read, or is too large")
  if (bytes.length === 0) return Result.fail("the first input is empty")
  const text = decodeUtf8(bytes)
  return text === undefined ? Result.fail("the first input is not UTF-8") : Result.succeed(text)
}
