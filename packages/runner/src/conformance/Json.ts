/**
 * Looking into JSON that came from a program under test: any member may be there, of any type. Pure.
 */

export type Json = null | boolean | number | string | ReadonlyArray<Json> | JsonObject

export interface JsonObject {
  readonly [key: string]: Json
}

/** The value of a JSON text, or undefined when it is none. */
export const parseJson = (text: string): Json | undefined => {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const parseObject = (text: string): JsonObject | undefined => {
  const value = parseJson(text)
  return isObject(value) ? value : undefined
}

export const isList = (value: Json | undefined): value is ReadonlyArray<Json> => Array.isArray(value)

/** The member at a path of names and indexes. */
export const at = (value: Json | undefined, ...path: ReadonlyArray<string | number>): Json | undefined =>
  path.reduce<Json | undefined>((inner, step) => {
    if (typeof step === "number") return isList(inner) ? inner[step] : undefined
    return isObject(inner) ? inner[step] : undefined
  }, value)

export const sameJson = (a: Json | undefined, b: Json | undefined): boolean => {
  if (a === undefined || b === undefined) return a === b
  if (isList(a)) return isList(b) && a.length === b.length && a.every((item, index) => sameJson(item, b[index]))
  if (isObject(a)) {
    if (!isObject(b)) return false
    const names = Object.keys(a)
    return names.length === Object.keys(b).length && names.every((name) => sameJson(a[name], b[name]))
  }
  return a === b
}

/** A string, or a number as its decimal string: how ids are compared on this wire. */
export const idText = (value: Json | undefined): string | undefined =>
  typeof value === "string" ? value : typeof value === "number" ? String(value) : undefined
