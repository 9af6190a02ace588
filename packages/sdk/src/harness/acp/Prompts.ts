/** What a person submits as the content blocks of a prompt. Pure. */
import type * as Acp from "@agentclientprotocol/sdk"
import type { FilePromptPart, PromptInput, PromptPart } from "@tackroom/protocol/events"

/** Content of a prompt that this agent takes no part of. */
export interface Refused {
  readonly refused: string
}

/** What an agent takes besides text and links. */
export interface Takes {
  readonly image: boolean
  readonly audio: boolean
  readonly embedded: boolean
}

const nameOf = (part: FilePromptPart): string =>
  part.filename ?? part.url?.split(/[/\\]/u).findLast((piece) => piece !== "") ?? "file"

const scheme = /^[a-z][a-z0-9+.-]*:/iu

/** A link as ACP wants it: an absolute URI. */
const uriOf = (url: string, directory: string): string => {
  if (scheme.test(url)) return url
  const path = url.startsWith("/") ? url : `${directory}/${url}`
  return `file://${path.split("/").map(encodeURIComponent).join("/")}`
}

const dataUrl = /^data:([^;,]*)(?:;[^,]*)?;base64,(.*)$/su

const fileBlock = (part: FilePromptPart, takes: Takes, directory: string): Acp.ContentBlock | Refused => {
  const inline = part.data ?? (part.url === undefined ? undefined : dataUrl.exec(part.url)?.[2])
  if (inline !== undefined) {
    if (part.mime.startsWith("image/") && takes.image) return { type: "image", mimeType: part.mime, data: inline }
    if (part.mime.startsWith("audio/") && takes.audio) return { type: "audio", mimeType: part.mime, data: inline }
    if (takes.embedded) {
      return {
        type: "resource",
        resource: { uri: uriOf(nameOf(part), directory), mimeType: part.mime, blob: inline }
      }
    }
    return { refused: `This agent takes no ${part.mime} in a prompt` }
  }
  if (part.url === undefined) return { refused: "A kept file cannot be given to this agent; give its data or its path" }
  return { type: "resource_link", uri: uriOf(part.url, directory), name: nameOf(part), mimeType: part.mime }
}

const blockOf = (part: PromptPart, takes: Takes, directory: string): Acp.ContentBlock | Refused => {
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text }
    case "agent":
      return { type: "text", text: `@${part.name}` }
    case "file":
      return fileBlock(part, takes, directory)
  }
}

/** The blocks of a prompt, working instructions in front where they are given (`prompt-prefix`). */
export const promptBlocks = (
  prompt: PromptInput,
  how: { readonly takes: Takes; readonly directory: string; readonly instructions: string | undefined }
): ReadonlyArray<Acp.ContentBlock> | Refused => {
  const parts: ReadonlyArray<PromptPart> = prompt.parts ?? [{ type: "text", text: prompt.text ?? "" }]
  const prefix = [how.instructions, prompt.system].flatMap((text): ReadonlyArray<Acp.ContentBlock> =>
    text === undefined || text === "" ? [] : [{ type: "text", text }]
  )
  const blocks: Array<Acp.ContentBlock> = [...prefix]
  for (const part of parts) {
    const block = blockOf(part, how.takes, how.directory)
    if ("refused" in block) return block
    blocks.push(block)
  }
  return blocks
}
