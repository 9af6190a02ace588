/**
 * Reading JSON that an agent sent and nobody validated: a field has the wanted shape, or it is not there. What the official
 * SDK validates (requests of the agent) does not come this way; results and updates do, so that one odd field costs itself
 * and not the whole frame.
 */
import type { Schema } from "effect"

/** An object's fields. */
export type Fields = Readonly<Record<string, unknown>>

export const fieldsOf = (value: unknown): Fields | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined

export const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

/** A text that says something. */
export const wordsOf = (value: unknown): string | undefined =>
  typeof value === "string" && value.trim() !== "" ? value : undefined

export const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

export const naturalOf = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined

/** What `JSON.parse` gave is JSON: the one place where that is said. */
export const jsonOf = (value: unknown): Schema.Json => (value ?? null) as Schema.Json

/** One of a few words. */
export const oneOf = <const Word extends string>(words: ReadonlyArray<Word>, value: unknown): Word | undefined =>
  words.find((word) => word === value)
