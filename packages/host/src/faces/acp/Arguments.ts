/** The command line of `tackroom acp` (serve-mode 1.1). Pure: it reads words, not files and not the environment. */
import { readSeconds, readShared, readWords, type SharedArguments, sharedOptions, Usage } from "../start/Flags.ts"

/** What the face is told. Directories and sessions are the client's to name. */
export interface AcpArguments extends SharedArguments {
  /** Seconds; null when it is switched off. */
  readonly answerTimeout: number | null | undefined
  /** The agent is started once before the client is let in, to know how one signs in to it and what it takes. */
  readonly probe: boolean
  /** No client is served: this way to sign in is run in the terminal (ACP-037). */
  readonly signIn: string | undefined
}

const { events: _events, project: _project, session: _session, ...shared } = sharedOptions

const options = {
  ...shared,
  "answer-timeout": { type: "string" },
  probe: { type: "boolean" },
  "sign-in": { type: "string" }
} as const

/** Reads the arguments behind `acp`, or says why they are not understood. */
export const parseAcp = (args: ReadonlyArray<string>): AcpArguments | Usage => {
  const words = readWords(args, options)
  if (words instanceof Usage) return words
  if (words.positionals.length > 0) return new Usage("acp takes flags only; the client speaks on stdin")
  const answerTimeout = readSeconds("answer-timeout", words.values["answer-timeout"], 1)
  if (answerTimeout instanceof Usage) return answerTimeout
  const { probe, "sign-in": signIn, ...values } = words.values
  const read = readShared(values)
  return read instanceof Usage ? read : { ...read, answerTimeout, probe: probe === true, signIn }
}
