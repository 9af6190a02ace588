import { assert, describe, it } from "@effect/vitest"
import {
  isBlankFrame,
  type Line,
  type LinesOptions,
  makeIdScan,
  makeLines,
  type RequestId
} from "@tackroom/protocol/text"
import { Effect, Schema } from "effect"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const text = (frame: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(frame)

type Item = string | { readonly observed: number; readonly head: string; readonly id: unknown }

const show = (line: Line<RequestId | undefined>): Item =>
  line._tag === "Frame" ? text(line.bytes) : { observed: line.observedBytes, head: text(line.head), id: line.scan }

const split = (
  chunks: ReadonlyArray<Uint8Array>,
  options: Partial<LinesOptions<RequestId | undefined>> = {}
): ReadonlyArray<Item> => {
  const lines = makeLines({ limit: 16, headBytes: 4, scan: makeIdScan, ...options })
  const out = chunks.flatMap((chunk) => lines.push(chunk))
  const last = lines.end()
  return (last === undefined ? out : [...out, last]).map(show)
}

/** The input whole, byte by byte, and cut in two and in three at every place. */
const everySplit = (input: Uint8Array): ReadonlyArray<ReadonlyArray<Uint8Array>> => {
  const splits = [[input], [...input].map((byte) => Uint8Array.of(byte))]
  for (let i = 0; i <= input.length; i++) {
    splits.push([input.subarray(0, i), input.subarray(i)])
    for (let j = i; j <= input.length; j += 3)
      splits.push([input.subarray(0, i), input.subarray(i, j), input.subarray(j)])
  }
  return splits
}

const same = (input: string, expected: ReadonlyArray<Item>): void => {
  for (const chunks of everySplit(bytes(input))) assert.deepStrictEqual(split(chunks), expected)
}

describe("lines", () => {
  it("frames end at 0x0A and nowhere else, however they are chunked [RUN-002]", () => {
    same("a\u2028b\n\u0085c\n\rd\r\r\n\n", ["a\u2028b", "\u0085c", "\rd\r", ""])
  })

  it("one carriage return before the terminator is dropped [RUN-002]", () => {
    same("ab\r\ncd\r\r\n\r\n", ["ab", "cd\r", ""])
  })

  it("a byte order mark before the first frame is skipped, a later one is data [RUN-001]", () => {
    same("\ufeffa\n\ufeffb\n", ["a", "\ufeffb"])
    same("\ufeff", [])
    same("\ufeff\n", [""])
  })

  it("with `early` a frame over the limit is told before it ends, once, in its place [SRV-034]", () => {
    const input = `a\n${"x".repeat(16)}\n${"y".repeat(40)}\nb\n${"z".repeat(17)}\r`
    const kinds = (chunks: ReadonlyArray<Uint8Array>) =>
      split(chunks, { early: true }).map((item) => (typeof item === "string" ? item.length : "over"))
    for (const chunks of everySplit(bytes(input))) assert.deepStrictEqual(kinds(chunks), [1, 16, "over", 1, "over"])
    const lines = makeLines({ limit: 4, early: true })
    assert.deepStrictEqual(lines.push(bytes("abcd\r")), [])
    assert.lengthOf(lines.push(bytes("\nabcde")), 2)
    assert.deepStrictEqual(lines.push(bytes("more")), [])
    assert.lengthOf(lines.push(bytes("\nok\n")), 1)
  })

  it("bytes without a terminator are a last frame [RUN-015]", () => {
    same("a\nbc", ["a", "bc"])
    same("a\nbc\r", ["a", "bc\r"])
    same("a\n", ["a"])
    same("", [])
  })

  it("a frame of exactly the limit is accepted, whatever else is in the chunk [RUN-003]", () => {
    const full = "0123456789abcdef"
    same(`${full}\nx\n${full}\r\n${full}`, [full, "x", full, full])
    same(`\ufeff${full}\r\n${full}\n`, [full, full])
  })

  it("a larger frame is reported once, with its size and head, and the next is normal [RUN-004]", () => {
    const large = `{"id":7,"x":"${"y".repeat(30)}"}`
    const notice = { observed: large.length, head: '{"id', id: 7 }
    same(`${large}\nok\n${large}\r\nok\n`, [notice, "ok", notice, "ok"])
    same(`\ufeff${large}\nok`, [notice, "ok"])
    same(large, [notice])
    same("0123456789abcdefg\n", [{ observed: 17, head: "0123", id: undefined }])
    same("0123456789abcdef\r", [{ observed: 17, head: "0123", id: undefined }])
    same("0123456789abcdef\r\r\n", [{ observed: 17, head: "0123", id: undefined }])
  })

  it.effect.prop(
    "any bytes in any chunks give the frames of the whole",
    [Schema.Array(Schema.Uint8Array), Schema.Array(Schema.Literals(["\n", "\r\n", "x", "😀", "\ufeff", "0123456789"]))],
    ([chunks, words]) =>
      Effect.sync(() => {
        const pieces = [...chunks, ...words.map(bytes)]
        const whole = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, 0))
        let at = 0
        for (const piece of pieces) {
          whole.set(piece, at)
          at += piece.length
        }
        assert.deepStrictEqual(split(pieces), split([whole]))
        assert.deepStrictEqual(split([...whole].map((byte) => Uint8Array.of(byte))), split([whole]))
      })
  )

  it("a frame that never ends is held in constant memory", () => {
    const lines = makeLines({ limit: 1024 })
    const chunk = new Uint8Array(1 << 20).fill(0x61)
    for (let i = 0; i < 256; i++) assert.deepStrictEqual(lines.push(chunk), [])
    const [line] = lines.push(bytes("\n"))
    assert(line?._tag === "Oversize")
    assert.strictEqual(line.observedBytes, 256 * (1 << 20))
    assert.isAtMost(line.head.buffer.byteLength, 1024)
  })

  it("feeding byte by byte costs linear time", () => {
    const feed = (size: number): number => {
      const lines = makeLines({ limit: 1 << 24 })
      const one = Uint8Array.of(0x61)
      // Processor time: other processes on the machine must not count
      const start = process.cpuUsage()
      for (let i = 0; i < size; i++) lines.push(one)
      assert.lengthOf(lines.push(bytes("\n")), 1)
      return process.cpuUsage(start).user / 1000
    }
    feed(100_000)
    // 16 times the bytes: a quadratic splitter takes 256 times as long
    assert.isBelow(feed(1_600_000), 64 * Math.max(feed(100_000), 5))
  })

  it("a splitter starts over after its end", () => {
    const lines = makeLines({ limit: 16 })
    lines.push(bytes("\ufeffa"))
    assert.strictEqual(text((lines.end() as { readonly bytes: Uint8Array }).bytes), "a")
    assert.isUndefined(lines.end())
    assert.strictEqual(text((lines.push(bytes("\ufeffb\n"))[0] as { readonly bytes: Uint8Array }).bytes), "b")
  })

  it("a line of white space is blank [RUN-006]", () => {
    assert.isTrue(isBlankFrame(bytes("")))
    assert.isTrue(isBlankFrame(bytes(" \t\r ")))
    assert.isFalse(isBlankFrame(bytes(" x")))
  })
})
