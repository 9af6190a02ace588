/** Tools of the agent under test, as the kit's model calls them. */
import { Effect } from "effect"
import { Usage } from "../Family.ts"
import { isObject, type JsonObject } from "../Json.ts"

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

/** Reads a flag that names a tool and its input. */
export const toolOf = (flag: string, text: string | undefined): Effect.Effect<ToolCall | undefined, Usage> =>
  Effect.suspend(() => {
    if (text === undefined) return Effect.succeed(undefined)
    const at = text.indexOf("=")
    try {
      const input: unknown = JSON.parse(at < 0 ? "{}" : text.slice(at + 1))
      const name = at < 0 ? text : text.slice(0, at)
      if (name !== "" && isObject(input)) return Effect.succeed({ name, input })
    } catch {
      // Told below: the text is no JSON.
    }
    return Effect.fail(new Usage({ message: `--${flag} is NAME or NAME=INPUT, with the input as a JSON object` }))
  })
