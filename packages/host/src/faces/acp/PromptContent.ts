/** The blocks of a prompt as what the agent is given (serve-mode 12.4). Pure: the face reads no file. */
import type { ContentBlock } from "@agentclientprotocol/sdk"
import { utf8Length } from "@tackroom/protocol/text"
import { invalidParams, type Refusal } from "./Refusals.ts"

const blockLimit = 64
const textBytes = 1_048_576
const schemes = /^(?:data|file|https?):/iu

/** Text of a link: its URI, with the name a person gave it where that says more. */
const linkText = (uri: string, name: string): string => (uri.endsWith(name) ? uri : `[${name}](${uri})`)

const textOf = (block: ContentBlock, index: number): string | Refusal => {
  switch (block.type) {
    case "text":
      return block.text
    case "resource_link":
      return schemes.test(block.uri)
        ? linkText(block.uri, block.name)
        : invalidParams("unsupported_content", "A link has one of the schemes data, file, http and https", { index })
    case "resource":
      return "text" in block.resource
        ? `${block.resource.uri}\n${block.resource.text}`
        : invalidParams("unsupported_content", "This agent takes no such file in a prompt", { index })
    default:
      return invalidParams("unsupported_content", `This agent takes no ${block.type} in a prompt`, { index })
  }
}

/** The text of a prompt; a refused block refuses the prompt, and no turn is started (ACP-110, ACP-111). */
export const promptText = (blocks: ReadonlyArray<ContentBlock>): string | Refusal => {
  if (blocks.length > blockLimit) {
    return invalidParams("prompt_too_large", `A prompt has at most ${blockLimit} blocks`, { index: blockLimit })
  }
  const texts: Array<string> = []
  let bytes = 0
  for (const [index, block] of blocks.entries()) {
    const text = textOf(block, index)
    if (typeof text !== "string") return text
    bytes += utf8Length(text) + 1
    if (bytes > textBytes) return invalidParams("prompt_too_large", "The text of a prompt has at most 1 MiB", { index })
    texts.push(text)
  }
  const whole = texts.join("\n")
  return whole.trim() === "" ? invalidParams("empty_prompt", "The prompt says nothing") : whole
}
