/**
 * The catalog of harnesses this package knows by id (11.1), and how a provider's error text is classed when nothing better is
 * known (HRN-016).
 *
 * @since 0.1.0
 */
import type { ErrorClass, HarnessAccess } from "@tackroom/protocol/events"
import type { HarnessDefinition } from "./Harness.ts"

/** Ids and accesses stand once, here (11.1). Configured connections are not in it: their ids are opaque (HRN-062). */
export const AGENT_HARNESS_DEFINITIONS = {
  host: { access: "native", definition: { label: "Run-protocol host", authEnv: null } },
  native: { access: "native", definition: { label: "Tackroom", authEnv: null } },
  serve: { access: "native", definition: { label: "Serve-mode program", authEnv: null } },
  scripted: { access: "native", definition: { label: "Scripted (no model)", authEnv: null } }
} as const satisfies Record<string, { readonly access: HarnessAccess; readonly definition: HarnessDefinition }>

/** An id of the catalog. */
export type AgentHarnessId = keyof typeof AGENT_HARNESS_DEFINITIONS

/** Whether a text is an id of the catalog. */
export const isAgentHarnessId = (id: string): id is AgentHarnessId => Object.hasOwn(AGENT_HARNESS_DEFINITIONS, id)

/** Whether a text names a way a harness is reached. */
export const isAgentHarnessAccess = (access: string): access is HarnessAccess =>
  access === "native" || access === "acp" || access === "connection"

/** The definition of a harness of the catalog. */
export const harnessDefinition = (id: AgentHarnessId): HarnessDefinition => AGENT_HARNESS_DEFINITIONS[id].definition

const patterns: ReadonlyArray<readonly [ErrorClass, RegExp]> = [
  ["usage_limit", /rate.?limit|quota|usage.?limit|too many requests|\b429\b|insufficient.?(?:credit|balance|funds)/iu],
  ["credential", /unauthori[sz]ed|forbidden|api.?key|invalid.?token|authenticat|credential|\b401\b|\b403\b|log.?in/iu],
  ["session", /session.{0,20}(?:not found|missing|expired|unknown)|no (?:such )?(?:session|conversation|rollout)/iu],
  ["harness", /process exited|spawn|broken pipe|\bEPIPE\b|protocol error|\bENOENT\b/iu],
  ["model", /\bmodel\b|overloaded|context.?(?:length|window)|max.?tokens|content.?filter/iu],
  ["workspace", /permission denied|\bEACCES\b|no such file|read-only file|worktree|directory/iu]
]

/**
 * The class of an error by its text: for errors that carry no structured data. Tested in the order usage limit, credential,
 * session, harness, model, workspace (HRN-016).
 */
export const classifyTurnError = (message: string): ErrorClass => {
  for (const [name, pattern] of patterns) if (pattern.test(message)) return name
  return "unknown"
}
