/**
 * Reads a child's output as one JSON value per line (HRN-043, HRN-044): split at byte 0x0A only, at most 32 MiB per frame.
 * A line that is too large, not UTF-8 or not JSON is counted, sampled and skipped; a hundred of them in a row without a
 * good one mean that this is no peer of ours.
 */
import { isBlankFrame, type Line, makeLines, parseJson } from "@tackroom/protocol/text"
import { Data, Effect, Result, Stream } from "effect"

/** Largest frame by default: 32 MiB without its terminator (HRN-043). */
export const defaultMaxFrameBytes = 33_554_432

/** Bad lines in a row that end a session (HRN-044). */
export const defaultMaxBadLines = 100

/** Bytes of a bad line that are kept as a sample. */
const sampleBytes = 200

/** A line that was skipped. The sample has at most 200 bytes; redact it before anyone sees it. */
export interface BadLine {
  readonly reason: "too_large" | "not_utf8" | "not_json"
  readonly bytes: number
  readonly sample: string
}

/** Too many bad lines in a row: the peer does not speak the protocol (`harness_protocol`). */
export class NotAPeer extends Data.TaggedError("NotAPeer")<{ readonly badLines: number; readonly last: BadLine }> {}

/** Limits of a reader; the defaults are those of HRN-043 and HRN-044. */
export interface LineReaderOptions {
  readonly maxFrameBytes?: number
  readonly maxBadLines?: number
  /** Makes a value of a line that may be large; the whole line's JSON by default. A failure is a line that is no JSON. */
  readonly parse?: (text: string) => Result.Result<unknown, unknown>
  /** Told of every skipped line. */
  readonly onBad?: (line: BadLine) => Effect.Effect<void>
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const lenient = new TextDecoder("utf-8")

type Read = { readonly value: unknown } | BadLine | undefined

const bad = (reason: BadLine["reason"], bytes: number, head: Uint8Array): BadLine => ({
  reason,
  bytes,
  sample: lenient.decode(head.subarray(0, sampleBytes))
})

const readLine = (line: Line, parse: NonNullable<LineReaderOptions["parse"]>): Read => {
  if (line._tag === "Oversize") return bad("too_large", line.observedBytes, line.head)
  if (isBlankFrame(line.bytes)) return undefined
  let text: string
  try {
    text = strict.decode(line.bytes)
  } catch {
    return bad("not_utf8", line.bytes.length, line.bytes)
  }
  const value = parse(text)
  return Result.isSuccess(value) ? { value: value.success } : bad("not_json", line.bytes.length, line.bytes)
}

/** The JSON values of a byte stream, in order; bytes before the end without a terminator are a last frame. */
export const jsonLines = <E, R>(
  bytes: Stream.Stream<Uint8Array, E, R>,
  options?: LineReaderOptions
): Stream.Stream<unknown, E | NotAPeer, R> =>
  Stream.suspend(() => {
    const lines = makeLines({ limit: options?.maxFrameBytes ?? defaultMaxFrameBytes, headBytes: sampleBytes })
    const parse = options?.parse ?? parseJson
    const maxBad = options?.maxBadLines ?? defaultMaxBadLines
    let badInRow = 0

    const take = Effect.fnUntraced(function* (found: ReadonlyArray<Line>) {
      const values: Array<unknown> = []
      for (const line of found) {
        const read = readLine(line, parse)
        if (read === undefined) continue
        if ("value" in read) {
          badInRow = 0
          values.push(read.value)
          continue
        }
        badInRow += 1
        if (options?.onBad !== undefined) yield* options.onBad(read)
        if (badInRow >= maxBad) return { values, failure: new NotAPeer({ badLines: badInRow, last: read }) }
      }
      return { values, failure: undefined }
    })

    const rest = Stream.suspend(() => {
      const last = lines.end()
      return last === undefined ? Stream.empty : Stream.succeed([last])
    })
    return bytes.pipe(
      Stream.map((chunk) => lines.push(chunk)),
      Stream.concat(rest),
      Stream.mapEffect(take),
      Stream.flatMap(({ values, failure }) =>
        failure === undefined
          ? Stream.fromIterable(values)
          : Stream.concat(Stream.fromIterable(values), Stream.fail(failure))
      )
    )
  })
