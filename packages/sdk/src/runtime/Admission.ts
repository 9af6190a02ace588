/**
 * A submitted prompt on its way to admission: checked against the rules between its fields and the limits of 3.1, and given
 * the digest by which a repeat is known (5.1).
 *
 * Implements RT-089, RT-090, RT-382 and the limits of 3.1.
 *
 * @since 0.1.0
 */
import { platform } from "#platform"
import {
  assistantMessageIdOf,
  callerMessageIdProblem,
  PromptInvalid,
  PromptTooLarge,
  UnsupportedOperation,
  type RuntimeError
} from "@tackroom/protocol"
import { PromptInput, type PromptPart, type TurnOrigin } from "@tackroom/protocol/events"
import { Effect, Exit, Schema } from "effect"
import type { HarnessCapabilities } from "../harness/Capabilities.ts"
import type { TurnBudget } from "../harness/Harness.ts"
import type { ReceiptRow } from "../store/Rows.ts"
import type { AdmitOutcome, OpFailed, WriteOptions } from "../store/RuntimeStore.ts"
import { partsOf } from "../store/QueueRows.ts"
import { utf8Length } from "./Coalescer.ts"
import { problemOf } from "./Decoding.ts"
import type { Answer } from "./Options.ts"

/** Bytes of all text of a prompt. */
export const promptTextLimit = 1_048_576
/** Parts of a prompt. */
export const promptPartLimit = 64
/** Decoded bytes of inline data in one part. */
export const promptDataLimit = 20 * 1024 * 1024

/** What a caller submits (4.2). */
export interface StartTurn extends PromptInput {
  readonly sessionId: string
  readonly directory?: string
  readonly onAdmitted?: (admission: Admission) => Answer<void>
}

/** What only the embedding package may add (D-30). */
export interface EmbeddedStart {
  readonly origin?: TurnOrigin
  /** Rows that commit with the admission; called with what it is about to answer. */
  readonly ops?: WriteOptions<AdmitOutcome>["ops"]
  readonly others?: WriteOptions<AdmitOutcome>["others"]
  readonly budget?: TurnBudget
  /** The turn of a child session, or an id with a reserved prefix. */
  readonly own?: boolean
}

/** The answer of a start, given when the admission is committed. */
export interface Admission {
  readonly sessionId: string
  readonly directory: string
  readonly turnId?: string
  readonly userMessageId: string
  readonly assistantMessageId: string
  readonly delivery: "start" | "steer" | "queue"
  readonly duplicate: boolean
  readonly startCursor: number
  readonly steering?: {
    readonly ok: boolean
    readonly status?: "no_active_turn" | "declined" | "unsupported" | "unknown"
  }
}

/** What a start may fail with; `OpFailed` only where ops were given. */
export type StartFailure = RuntimeError | OpFailed

/** The answer that a receipt stands for. */
export const receiptAdmission = (receipt: ReceiptRow, directory: string, duplicate: boolean): Admission => ({
  sessionId: receipt.sessionId,
  directory,
  ...(receipt.turnId === null ? {} : { turnId: receipt.turnId }),
  userMessageId: receipt.messageId,
  assistantMessageId: assistantMessageIdOf(receipt.messageId),
  delivery:
    receipt.state === "queued" || receipt.state === "removed"
      ? "queue"
      : receipt.state === "steering" || receipt.state === "steered" || receipt.state === "uncertain"
        ? "steer"
        : "start",
  duplicate,
  startCursor: receipt.startSeq,
  ...(receipt.state === "steered" ? { steering: { ok: true } } : {}),
  ...(receipt.state === "uncertain" ? { steering: { ok: false, status: "unknown" as const } } : {})
})

/** The answer that an outcome of the store stands for. */
export const admissionOf = (outcome: AdmitOutcome, directory: string): Admission =>
  receiptAdmission(outcome.receipt, directory, outcome._tag === "Duplicate")

/** A checked prompt. */
export interface CheckedPrompt {
  readonly prompt: PromptInput
  readonly parts: ReadonlyArray<PromptPart>
  readonly digest: string
  readonly hasFiles: boolean
}

const decode = Schema.decodeUnknownExit(PromptInput)

const scheme = /^([a-zA-Z][a-zA-Z0-9+.-]+):/u

const fileProblem = (part: Extract<PromptPart, { readonly type: "file" }>): string | undefined => {
  const given = [part.url, part.artifactId, part.data].filter((value) => value !== undefined).length
  if (given !== 1) return "exactly one of url, artifactId and data"
  if (part.url === undefined) return undefined
  const url = part.url.replace(/[\t\r\n]/gu, "").replace(/^ +/u, "")
  const found = scheme.exec(url)?.[1]?.toLowerCase()
  return found === undefined || ["data", "file", "http", "https"].includes(found)
    ? undefined
    : "a URL of scheme data, file, http or https, or without one"
}

const dataBytes = (data: string): number => Math.floor((data.replace(/=+$/u, "").length * 3) / 4)

/** Canonical JSON: keys in order, absent ones left out. */
const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null"
  const members = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`)
  return `{${members.join(",")}}`
}

/** What makes two submissions the same (5.1): neither delivery, author nor metadata. */
export const digestOf = (prompt: PromptInput, parts: ReadonlyArray<PromptPart>): Effect.Effect<string> =>
  platform.sha256(
    canonical({
      parts,
      agent: prompt.agent,
      model: prompt.model,
      variant: prompt.variant,
      system: prompt.system,
      tools: prompt.tools,
      format: prompt.format,
      permissionMode: prompt.permissionMode
    })
  )

const invalid = (path: string, expected: string) => Effect.fail(new PromptInvalid({ path, expected }))

/** Checks a prompt. `own`: the producer may use reserved message ids (D-30). */
export const checkPrompt = Effect.fnUntraced(function* (input: unknown, own: boolean) {
  const decoded = decode(input)
  if (Exit.isFailure(decoded)) {
    const problem = problemOf(decoded)
    return yield* invalid(problem?.path || "prompt", problem?.expected ?? "a prompt")
  }
  const prompt = decoded.value
  if (prompt.messageId !== undefined) {
    const problem = callerMessageIdProblem(prompt.messageId)
    if (problem !== undefined && !(own && /reserved/u.test(problem))) return yield* invalid("messageId", problem)
  }
  if ((prompt.actorId === undefined) !== (prompt.actorKind === undefined)) {
    return yield* invalid("actorId", "actorId and actorKind together, or neither")
  }
  if (prompt.text !== undefined && prompt.parts !== undefined) return yield* invalid("parts", "text or parts, not both")
  const parts = partsOf(prompt)
  if (parts.length === 0) return yield* invalid("text", "text or at least one part")
  if (parts.length > promptPartLimit) {
    return yield* new PromptInvalid({
      path: "parts",
      expected: `at most ${promptPartLimit} parts`,
      limit: promptPartLimit
    })
  }
  let text = 0
  let hasFiles = false
  for (const [i, part] of parts.entries()) {
    if (part.type === "text") text += utf8Length(part.text)
    if (part.type !== "file") continue
    hasFiles = true
    const problem = fileProblem(part)
    if (problem !== undefined) return yield* invalid(`parts/${i}`, problem)
    if (part.data !== undefined && dataBytes(part.data) > promptDataLimit) {
      return yield* new PromptTooLarge({ path: `parts/${i}/data`, limit: promptDataLimit })
    }
  }
  if (text > promptTextLimit) return yield* new PromptTooLarge({ path: "text", limit: promptTextLimit })
  const digest = yield* digestOf(prompt, parts)
  return { prompt, parts, digest, hasFiles } satisfies CheckedPrompt
})

const kindOf = (mime: string): keyof HarnessCapabilities["attachments"] =>
  mime.startsWith("image/")
    ? "image"
    : mime.startsWith("audio/")
      ? "audio"
      : mime === "application/pdf"
        ? "pdf"
        : "file"

/** A file whose kind the harness does not take is refused (3.1). */
export const checkAttachments = (
  parts: ReadonlyArray<PromptPart>,
  capabilities: HarnessCapabilities
): Effect.Effect<void, UnsupportedOperation> => {
  for (const part of parts) {
    if (part.type !== "file" || part.url !== undefined) continue
    const kind = kindOf(part.mime)
    if (!capabilities.attachments[kind]) {
      return Effect.fail(
        new UnsupportedOperation({
          harness: `${capabilities.access}:${capabilities.harness}`,
          operation: `attachments.${kind}`
        })
      )
    }
  }
  return Effect.void
}

/** The title that a first prompt gives its session: its first line, at most 80 characters (RT-150). */
export const titleOf = (parts: ReadonlyArray<PromptPart>): string | undefined => {
  for (const part of parts) {
    if (part.type !== "text") continue
    const line = part.text.trim().split(/\r?\n/u, 1)[0]?.trim() ?? ""
    if (line.length > 0)
      return Array.from(line.slice(0, 200)).slice(0, 80).join("").toWellFormed().replaceAll("\u0000", "")
  }
  return undefined
}
