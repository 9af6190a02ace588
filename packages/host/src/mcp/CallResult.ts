/**
 * What an MCP server answered to a call, as it is journaled and told to the model (AGT-036): text as text, structured
 * content as JSON, everything else as an artifact by its name.
 *
 * Servers say structured content a second time as text, for clients that do not read it; that copy is dropped. An answer
 * that is an error makes no artifacts: of its other blocks only their kind is told.
 */
import type { Attachment } from "@tackroom/protocol/events"
import { canonicalJson } from "@tackroom/protocol/text"
import { Effect, type Schema } from "effect"
import type { ToolOutput, ToolProblem } from "../native/SessionSetup.ts"

/** A block of an answer, read leniently: what a later protocol adds is named by its type. */
export interface Block {
  readonly type: string
  readonly [key: string]: unknown
}

/** The parts of an answer that count here. */
export interface Answer {
  readonly content: ReadonlyArray<Block>
  readonly structuredContent?: unknown
  readonly isError?: boolean | undefined
}

/** Bytes that are kept beside the output. */
interface Kept {
  readonly name: string
  readonly mime: string
  readonly bytes: Uint8Array
}

const member = (value: unknown, key: string): unknown =>
  typeof value === "object" && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

const octets = "application/octet-stream"

/** The bytes of a block that is neither text nor a link, undefined when it holds none that can be read. */
const keptOf = (block: Block, position: number): Kept | undefined => {
  const resource = block["resource"]
  const [holder, name] =
    block.type === "resource"
      ? [resource, textOf(member(resource, "uri")) ?? `resource ${position}`]
      : [block, `${block.type} ${position}`]
  const mime = textOf(member(holder, "mimeType"))
  const text = textOf(member(holder, "text"))
  if (text !== undefined) return { name, mime: mime ?? "text/plain", bytes: new TextEncoder().encode(text) }
  const data = textOf(member(holder, "blob")) ?? textOf(member(holder, "data"))
  return data === undefined ? undefined : { name, mime: mime ?? octets, bytes: Buffer.from(data, "base64") }
}

/** A link is told as it is: there is nothing to keep. */
const linkText = (block: Block): string => {
  const name = textOf(block["title"]) ?? textOf(block["name"])
  const uri = textOf(block["uri"]) ?? ""
  return name === undefined ? uri : `${name}: ${uri}`
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const repeats = (text: string, structured: Schema.Json): boolean => {
  const value = parsed(text)
  return value !== undefined && canonicalJson(value as Schema.Json) === canonicalJson(structured)
}

interface Read {
  readonly text: string
  readonly structured: Schema.Json | undefined
  readonly kept: ReadonlyArray<Kept>
  /** Blocks in which nothing could be read, by type. */
  readonly unread: ReadonlyArray<string>
}

const read = (answer: Answer): Read => {
  const texts: Array<string> = []
  const kept: Array<Kept> = []
  const unread: Array<string> = []
  // What came over the wire as JSON is JSON.
  const structured = answer.structuredContent as Schema.Json | undefined
  for (const [index, block] of answer.content.entries()) {
    const text = block.type === "text" ? textOf(block["text"]) : undefined
    if (text !== undefined) {
      if (structured === undefined || !repeats(text, structured)) texts.push(text)
    } else if (block.type === "resource_link") texts.push(linkText(block))
    else {
      const found = keptOf(block, index + 1)
      if (found === undefined) unread.push(block.type)
      else kept.push(found)
    }
  }
  if (unread.length > 0) texts.push(`(left out: ${unread.join(", ")})`)
  return { text: texts.join("\n"), structured, kept, unread }
}

/** Text alone is a string, structured content alone its value; both stand beside each other. */
const outputOf = ({ structured, text }: Read): Schema.Json =>
  structured === undefined ? text : text === "" ? structured : { text, structured_content: structured }

const failedText = ({ kept, structured, text }: Read): string =>
  [
    ...(text === "" ? [] : [text]),
    ...(structured === undefined ? [] : [JSON.stringify(structured)]),
    ...kept.map(({ mime, name }) => `(${name}, ${mime})`)
  ].join("\n")

/** Turns an answer into a tool's output; `keep` stores the bytes of one block. */
export const toOutput = Effect.fnUntraced(function* (
  answer: Answer,
  keep: (mime: string, bytes: Uint8Array) => Effect.Effect<string, { readonly message: string }>
): Effect.fn.Return<ToolOutput, ToolProblem> {
  const found = read(answer)
  if (answer.isError === true) {
    return yield* Effect.fail<ToolProblem>({
      outcome: "failed",
      message: failedText(found) || "the server says that the call failed"
    })
  }
  const attachments: Array<Attachment> = []
  for (const { bytes, mime, name } of found.kept) {
    const artifactId = yield* keep(mime, bytes).pipe(
      // The call has had its effect: that an image of it is lost is no reason to call it failed.
      Effect.catch((cause) =>
        Effect.as(Effect.logWarning("a part of a tool's answer could not be kept", cause.message), undefined)
      )
    )
    attachments.push(
      artifactId === undefined
        ? { type: "unretained", mime, filename: name, bytes: bytes.length }
        : { type: "inline", mime, filename: name, artifactId }
    )
  }
  return { output: outputOf(found), ...(attachments.length === 0 ? {} : { attachments }) }
})
