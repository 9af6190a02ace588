/** What a run of this family was told: the command under test, and what its agent can be made to do. */
import type { Timing } from "../Timing.ts"
import type { Tools } from "../model/Tools.ts"

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
