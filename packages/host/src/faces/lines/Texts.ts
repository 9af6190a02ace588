/** Texts at the bounds of their fields: cut or split at code points, and said to be cut. Pure. */
import { headBytes, utf8Length, wireJson } from "@tackroom/protocol/text"

/** The field, and `<field>Truncated` beside it when it was cut. */
export const bounded = <Name extends string>(
  name: Name,
  text: string,
  maxBytes: number
): { readonly [K in Name]: string } & { readonly [K in `${Name}Truncated`]?: boolean } => {
  const head = headBytes(text, maxBytes)
  const fields = head.length === text.length ? { [name]: head } : { [name]: head, [`${name}Truncated`]: true }
  return fields as { readonly [K in Name]: string } & { readonly [K in `${Name}Truncated`]?: boolean }
}

/** The text in pieces of at most `maxBytes`; none for an empty text. */
export const pieces = (text: string, maxBytes: number): ReadonlyArray<string> => {
  if (text === "") return []
  if (text.length * 3 <= maxBytes || utf8Length(text) <= maxBytes) return [text]
  const out: Array<string> = []
  for (let rest = text; rest !== "";) {
    const head = headBytes(rest, maxBytes)
    out.push(head)
    rest = rest.slice(head.length)
  }
  return out
}

/** A value on one line. */
export const oneLineJson = (value: unknown): string => wireJson(value)

/** What a tool gave, as text. */
export const textOfOutput = (output: unknown): string => (typeof output === "string" ? output : wireJson(output))
