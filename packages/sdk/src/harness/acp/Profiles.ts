/**
 * What is known of agents beyond what they say of themselves (HRN-106): when their answer means that a conversation is gone,
 * the mode in which they ask a person, and what they claim without doing it. Data; an agent without a row gets the defaults.
 */
import { fieldsOf, textOf } from "./Fields.ts"

/** An error answer of an agent. */
export interface AgentError {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/** What is known of one agent. */
export interface Profile {
  /** Matched against `agentInfo.name`. */
  readonly name: RegExp
  /** Whether the error says that this very conversation does not exist (HRN-005). */
  readonly isMissing: (error: AgentError, sessionId: string) => boolean
  /** The mode in which a person is asked, for agents whose own default asks a model or nobody. */
  readonly askingMode?: string
  /** False: reopening is advertised and does harm. */
  readonly resumes: boolean
}

/** Everything an error says. */
const wordsOfError = (error: AgentError): string => {
  const details = textOf(fieldsOf(error.data)?.["details"])
  return details === undefined ? error.message : `${error.message} ${details}`
}

/** The conversation an error is about, when it says so. */
const subjectOf = (error: AgentError): string | undefined => {
  const data = fieldsOf(error.data)
  return textOf(data?.["sessionId"]) ?? textOf(data?.["uri"])
}

const resourceNotFound = -32_002
const internalError = -32_603

const isNotFound = (error: AgentError, sessionId: string): boolean => {
  if (error.code !== resourceNotFound) return false
  const subject = subjectOf(error)
  // Some name it as a URI of their own: `session:ID`.
  return subject === undefined || subject.split(/[:/]/u).at(-1) === sessionId
}

const defaults: Profile = { name: /(?:)/u, isMissing: isNotFound, resumes: true }

/** The agents that need more than the defaults. */
export const profiles: ReadonlyArray<Profile> = [
  { ...defaults, name: /claude/iu, askingMode: "default" },
  {
    ...defaults,
    name: /codex/iu,
    // Its default mode lets a model answer what a person should.
    askingMode: "workspace-write",
    isMissing: (error, sessionId) =>
      isNotFound(error, sessionId) || (error.code === internalError && /no rollout found/iu.test(wordsOfError(error)))
  },
  { ...defaults, name: /qwen/iu, askingMode: "default" },
  // Its load empties the conversation before it looks for it.
  { ...defaults, name: /gemini/iu, resumes: false }
]

/** What is known of the agent of that name. */
export const profileOf = (agentName: string | undefined): Profile =>
  profiles.find(({ name }) => agentName !== undefined && name.test(agentName)) ?? defaults
