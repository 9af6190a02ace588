/**
 * An approval or a question as a person sees it on a terminal, and what their reply means. Pure.
 *
 * Everything that is decided about is shown whole: the command, the text to be written with what it changes, every other
 * argument. Escape sequences and other hidden characters in it are made visible, never obeyed.
 */
import type { Interruption } from "@tackroom/protocol/run"
import { count, oneLine, safe, signs, tint, type Style } from "./Style.ts"
import { changes, type DiffLine } from "./LineDiff.ts"

type Approval = Extract<Interruption, { readonly kind: "approval" }>
type Question = Extract<Interruption, { readonly kind: "question" }>
type Fields = { readonly [name: string]: unknown }

/** What the terminal's side found out about an approval. */
export interface Known {
  /** The whole arguments, where the interruption has only previews. */
  readonly arguments?: unknown
  /** The file's present text, for a call that replaces one. */
  readonly current?: string
  /** The file could not be shown as text: it is binary, large or unreadable. */
  readonly opaque?: boolean
}

const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {}

const block = (text: string, prefix: string): ReadonlyArray<string> =>
  safe(text)
    .replace(/\n$/u, "")
    .split("\n")
    .map((line) => `    ${prefix}${line}`.trimEnd())

const diffBlock = (style: Style, lines: ReadonlyArray<DiffLine>): ReadonlyArray<string> =>
  lines.map(({ kind, text }) => {
    const line = safe(text)
    switch (kind) {
      case "added":
        return `    ${tint(style, "green", `+ ${line}`)}`
      case "removed":
        return `    ${tint(style, "red", `- ${line}`)}`
      case "same":
        return `      ${line}`.trimEnd()
      case "gap":
        return `    ${tint(style, "dim", `  ${signs(style).ellipsis} ${line}`)}`
    }
  })

/** Arguments beside those shown above, one line each; the text of none is cut. */
const others = (style: Style, given: Fields, shown: ReadonlyArray<string>): ReadonlyArray<string> =>
  Object.entries(given)
    .filter(([name]) => !shown.includes(name))
    .flatMap(([name, value]) => argument(style, name, value))

const argument = (style: Style, name: string, value: unknown): ReadonlyArray<string> => {
  const lines = block(typeof value === "string" ? value : JSON.stringify(value, null, 2), "")
  const label = tint(style, "dim", `${oneLine(name)}:`)
  return lines.length === 1 ? [`    ${label} ${lines[0]?.trimStart() ?? ""}`] : [`    ${label}`].concat(lines)
}

const title = (style: Style, what: string, detail: string): string =>
  `${tint(style, "yellow", "?")} ${tint(style, "bold", what)}${detail === "" ? "" : tint(style, "dim", ` ${detail}`)}`

const writeLines = (style: Style, given: Fields, known: Known): ReadonlyArray<string> => {
  const content = typeof given["content"] === "string" ? given["content"] : ""
  const size = count(content === "" ? 0 : content.replace(/\n$/u, "").split("\n").length, "line")
  const rest = others(style, given, ["path", "content"])
  if (known.opaque === true) {
    const note = tint(style, "dim", "    replaces a file that cannot be shown as text; the new text is:")
    return [note, ...diffBlock(style, changes("", content)), ...rest]
  }
  const note = known.current === undefined ? `new file, ${size}` : `replaces the file, ${size}`
  const lines = changes(known.current ?? "", content)
  const body = known.current === content ? [`    ${tint(style, "dim", "nothing changes")}`] : diffBlock(style, lines)
  return [`    ${tint(style, "dim", note)}`, ...body, ...rest]
}

const editLines = (style: Style, given: Fields): ReadonlyArray<string> => {
  const edits: ReadonlyArray<unknown> = Array.isArray(given["edits"]) ? given["edits"] : []
  return [
    ...edits.flatMap((edit, index) => oneEdit(style, fieldsOf(edit), `edit ${index + 1} of ${edits.length}`)),
    ...others(style, given, ["path", "edits"])
  ]
}

const oneEdit = (style: Style, edit: Fields, name: string): ReadonlyArray<string> => {
  const { all, new: after, old: before } = edit
  const where = `    ${tint(style, "dim", `${name}${all === true ? ", every occurrence" : ""}`)}`
  const text = (value: unknown): string => (typeof value === "string" ? value : "")
  return [where].concat(diffBlock(style, changes(text(before), text(after), 1_000)))
}

/** The lines that show an approval. */
export const approvalLines = (approval: Approval, known: Known, style: Style): ReadonlyArray<string> => {
  const given = fieldsOf(known.arguments ?? approval.arguments)
  const who = `${oneLine(approval.agent)}, ${approval.category}`
  const name = oneLine(approval.qualifiedName)
  const path = typeof given["path"] === "string" ? oneLine(given["path"]) : ""
  const again = approval.reason === "binding_changed" ? ["    the tool has changed since it was allowed"] : []
  switch (approval.qualifiedName) {
    case "shell.run":
      return [
        title(style, `${name} wants to run`, who),
        ...block(String(given["command"] ?? ""), "$ "),
        ...others(style, given, ["command"]),
        ...again
      ]
    case "files.write":
      return [title(style, `${name} wants to write ${path}`, who), ...writeLines(style, given, known), ...again]
    case "files.edit":
      return [title(style, `${name} wants to change ${path}`, who), ...editLines(style, given), ...again]
    default:
      return [title(style, `${name} wants to work`, who), ...others(style, given, []), ...again]
  }
}

const offered = { once: "[y] once", session: "[s] for this session", deny: "[n] no" } as const

/** The line before the reply. */
export const approvalPrompt = (approval: Approval, style: Style): string =>
  `  ${approval.decisions.map((decision) => tint(style, "bold", offered[decision])).join("  ")} > `

export type Decision = {
  readonly decision: "once" | "session" | "deny"
  readonly reason?: string
}

const words: ReadonlyMap<string, Decision["decision"]> = new Map([
  ["y", "once"],
  ["yes", "once"],
  ["once", "once"],
  ["s", "session"],
  ["session", "session"],
  ["n", "deny"],
  ["no", "deny"],
  ["deny", "deny"]
])

const longestReason = 2_000

/** What a reply decides; undefined when it is none of what is offered. What follows a no is told to the agent. */
export const readDecision = (reply: string, approval: Approval): Decision | undefined => {
  const [word = "", ...rest] = reply.trim().split(/[\s,:]+/u)
  const decision = words.get(word.toLowerCase())
  if (decision === undefined || !approval.decisions.includes(decision)) return undefined
  if (rest.length === 0) return { decision }
  if (decision !== "deny") return undefined
  const reason = reply
    .trim()
    .slice(word.length)
    .replace(/^[\s,:]+/u, "")
  return { decision, reason: [...reason].slice(0, longestReason).join("") }
}

/** The lines that show a question. */
export const questionLines = (question: Question, style: Style): ReadonlyArray<string> => [
  title(style, `${oneLine(question.agent)} asks`, ""),
  ...block(question.question, ""),
  ...question.options.map((option, index) => `    ${tint(style, "bold", `[${index + 1}]`)} ${oneLine(option)}`)
]

export const questionPrompt = (question: Question, style: Style): string => {
  const number = question.options.length === 0 ? "" : `a number from 1 to ${question.options.length}`
  const text = question.allowText ? (number === "" ? "your answer" : " or your own answer") : ""
  return `  ${tint(style, "bold", number + text)} > `
}

const largestAnswer = 16_384

/** The answer a reply gives; undefined when it is none. */
export const readAnswer = (reply: string, question: Question): string | undefined => {
  const given = reply.trim()
  if (given === "" || Buffer.byteLength(given) > largestAnswer) return undefined
  const option = /^\d{1,3}$/u.test(given) ? question.options[Number(given) - 1] : undefined
  if (option !== undefined) return option
  const same = question.options.find((each) => each.toLowerCase() === given.toLowerCase())
  return same ?? (question.allowText ? given : undefined)
}
