/** What a run of this family was told: the command under test, and what its agent can be made to do. */
import type { Tools } from "../model/Tools.ts"
import type { Timing } from "../Timing.ts"

/** The prompts of the checks. One that is not there is not declared. */
export interface Prompts {
  /** Makes the agent say a text. */
  readonly say: (text: string) => string
  /** Whether it says exactly that. */
  readonly echoes: boolean
  /** Makes it work until it is stopped, beginning with some words. */
  readonly long: string
  readonly tool: string | undefined
  readonly failing: string | undefined
  /** Makes it call something that the user has to allow. */
  readonly permission: string | undefined
  /** Its model refuses to serve it. */
  readonly refused: string | undefined
}

export interface Configuration {
  /** `{model}`, `{folder}` and `{template}` in a word are replaced for each case. */
  readonly command: ReadonlyArray<string>
  /** A file whose `{model}` and `{folder}` are replaced; its copy is `{template}`. */
  readonly template: string | undefined
  readonly tools: Tools
  readonly prompts: Prompts
  /** The method that the client logs in with after `initialize`. */
  readonly auth: string | undefined
  /** The Node that runs the kit's own programs, and the kit's MCP server. */
  readonly node: string
  readonly server: string
  readonly timing: Timing
  readonly keep: boolean
  readonly baseEnv: Readonly<Record<string, string>>
}
