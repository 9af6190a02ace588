/** How a played tool call looks: its kind, what it can do to the world, and what a person sees of it. */
import type { Category, ToolDisplay, ToolKind } from "@tackroom/protocol/events"
import type { Schema } from "effect"

interface Face {
  readonly kind: ToolKind
  readonly category: Category
}

const faces: Readonly<Record<string, Face>> = {
  "files.read": { kind: "read", category: "read" },
  "files.list": { kind: "list", category: "read" },
  "files.search": { kind: "search", category: "read" },
  "files.write": { kind: "edit", category: "write_local" },
  "files.edit": { kind: "edit", category: "write_local" },
  "shell.run": { kind: "shell", category: "exec" },
  "web.fetch": { kind: "fetch", category: "network" },
  "web.search": { kind: "search", category: "network" }
}

const other: Face = { kind: "generic", category: "external" }

export const faceOf = (tool: string): Face => (Object.hasOwn(faces, tool) ? (faces[tool] ?? other) : other)

/** A text member of a JSON object. */
export const textOf = (value: Schema.Json | undefined, key: string): string | undefined => {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined
  const member: unknown = Reflect.get(value, key)
  return typeof member === "string" ? member : undefined
}

export const displayOf = (tool: string, input: Schema.Json): ToolDisplay => {
  const fields = (["command", "path", "pattern", "query", "url"] as const).flatMap((key) => {
    const value = textOf(input, key)
    return value === undefined ? [] : [[key, value] as const]
  })
  return { kind: faceOf(tool).kind, ...Object.fromEntries(fields) }
}

/** `files.write SUMMARY.md`, `shell.run ls -l`: what a permission is asked for, in one line of at most 200 characters. */
export const titleOf = (tool: string, input: Schema.Json): string => {
  const subject = textOf(input, "command") ?? textOf(input, "path") ?? textOf(input, "url") ?? textOf(input, "query")
  const line = subject === undefined ? tool : `${tool} ${subject.split("\n")[0] ?? ""}`
  return Array.from(line).slice(0, 200).join("")
}
