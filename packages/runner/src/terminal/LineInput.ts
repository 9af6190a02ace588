/** Input that is no terminal: each line up to a line feed is a block. */
import { seatLimits } from "@tackroom/protocol/seat"
import { type Line, makeLines } from "@tackroom/protocol/text"
import { type InputEvent, readBlock } from "./Block.ts"

export interface LineInput {
  readonly push: (bytes: Uint8Array) => ReadonlyArray<InputEvent>
  /** The end of input; a last line without a line feed is a block too. */
  readonly end: () => ReadonlyArray<InputEvent>
}

const read = (line: Line): InputEvent | undefined =>
  line._tag === "Oversize" ? { _tag: "TooLarge", bytes: line.observedBytes } : readBlock(line.bytes)

const readAll = (lines: ReadonlyArray<Line>): ReadonlyArray<InputEvent> =>
  lines.map(read).filter((event) => event !== undefined)

export const makeLineInput = (limit: number = seatLimits.promptBytes): LineInput => {
  const lines = makeLines({ limit })
  return {
    push: (bytes) => readAll(lines.push(bytes)),
    end: () => {
      const last = lines.end()
      return last === undefined ? [] : readAll([last])
    }
  }
}
