/** The command line of `tackroom serve` (serve-mode 1.1, SRV-001). Pure. */
import {
  readChoice,
  readSeconds,
  readShared,
  readWords,
  sharedOptions,
  Usage,
  type SharedArguments
} from "../start/Flags.ts"

export interface ServeArguments extends SharedArguments {
  /** Seconds. */
  readonly answerTimeout: number | null | undefined
  readonly eof: "cancel" | "finish" | undefined
}

const text = { type: "string" } as const

/** Reads the arguments behind `serve`. */
export const parseServe = (args: ReadonlyArray<string>): ServeArguments | Usage => {
  const words = readWords(args, { ...sharedOptions, "answer-timeout": text, eof: text })
  if (words instanceof Usage) return words
  const { positionals, values } = words
  if (positionals.length > 0) return new Usage(`serve takes no ${JSON.stringify(positionals[0])}, only flags`)
  const shared = readShared(values)
  if (shared instanceof Usage) return shared
  const answerTimeout = readSeconds("answer-timeout", values["answer-timeout"], 1)
  if (answerTimeout instanceof Usage) return answerTimeout
  const eof = readChoice("eof", values.eof, ["cancel", "finish"])
  return eof instanceof Usage ? eof : { ...shared, answerTimeout, eof }
}
