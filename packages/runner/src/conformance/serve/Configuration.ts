/** What a run of this family was told: the command under test, and what its agent can be made to do. */
import type { Timing } from "../Timing.ts"
import type { JsonObject } from "./Seen.ts"

/** A tool that the kit's model calls. */
export interface ToolCall {
  readonly name: string
  readonly input: JsonObject
}

/** What the agent does with a tool; a check that needs one which was not named is not declared. */
export interface Tools {
  /** Does something without asking. */
  readonly tool: ToolCall | undefined
  /** Fails. */
  readonly failing: ToolCall | undefined
  /** Puts the question of the kit to the driver. */
  readonly ask: ToolCall | undefined
  /** Wants to be confirmed. */
  readonly confirm: ToolCall | undefined
}

export interface Configuration {
  /** `{model}`, `{folder}` and `{template}` in a word are replaced for each case. */
  readonly command: ReadonlyArray<string>
  /** A file whose `{model}` and `{folder}` are replaced; its copy is `{template}`. */
  readonly template: string | undefined
  readonly tools: Tools
  readonly timing: Timing
  readonly keep: boolean
  readonly baseEnv: Readonly<Record<string, string>>
}
