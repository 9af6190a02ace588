/**
 * File name patterns of files.list and files.search: `*`, `?`, `[abc]`, `[!a-z]`, `{a,b}` and `**` between slashes.
 *
 * A pattern is translated to a linear-time regular expression. Node's own `path.matchesGlob` backtracks (a pattern of some
 * dozen stars blocks it for minutes) and the pattern comes from a model. A pattern without a slash is matched against the
 * base name, one with a slash against the path below the folder that is walked. Names that begin with a dot are ordinary
 * here: the walk decides whether they are seen.
 */
import { RE2JS } from "re2js"
import { NotRun, named } from "./Refusal.ts"

const special = /[\\^$.|+()*?[\]{}]/

const quote = (char: string): string => (special.test(char) ? `\\${char}` : char)

/** One `[...]`, from the char after the bracket; undefined when it is not closed. */
const characterClass = (pattern: string, from: number): readonly [text: string, next: number] | undefined => {
  let index = from
  const negated = pattern[index] === "!" || pattern[index] === "^"
  if (negated) index += 1
  let body = ""
  for (let first = true; index < pattern.length; first = false) {
    const char = String.fromCodePoint(pattern.codePointAt(index) ?? 0)
    index += char.length
    if (char === "]" && !first) return [`[${negated ? "^/" : ""}${body}]`, index]
    body +=
      char === "-" && !first && pattern[index] !== "]" ? "-" : special.test(char) || char === "-" ? `\\${char}` : char
  }
  return undefined
}

const translate = (pattern: string): string => {
  let out = ""
  let braces = 0
  for (let index = 0; index < pattern.length;) {
    const char = String.fromCodePoint(pattern.codePointAt(index) ?? 0)
    if (char === "*") {
      let stars = index
      while (pattern[stars] === "*") stars += 1
      const whole = stars - index >= 2 && (index === 0 || pattern[index - 1] === "/")
      if (whole && pattern[stars] === "/") {
        out += "(?:[^/]+/)*"
        index = stars + 1
      } else {
        out += whole && stars === pattern.length ? ".*" : "[^/]*"
        index = stars
      }
      continue
    }
    index += char.length
    if (char === "?") out += "[^/]"
    else if (char === "[") {
      const found = characterClass(pattern, index)
      out += found === undefined ? "\\[" : found[0]
      index = found === undefined ? index : found[1]
    } else if (char === "{" && pattern.includes("}", index)) {
      braces += 1
      out += "(?:"
    } else if (char === "}" && braces > 0) {
      braces -= 1
      out += ")"
    } else if (char === "," && braces > 0) out += "|"
    else if (char === "\\" && index < pattern.length) {
      const next = String.fromCodePoint(pattern.codePointAt(index) ?? 0)
      out += quote(next)
      index += next.length
    } else out += quote(char)
  }
  return out + ")".repeat(braces)
}

/** Compiles a pattern to a predicate over a path below the walked folder, with `/` between its parts. */
export const compileGlob = (pattern: string): ((path: string) => boolean) => {
  const body = pattern.startsWith("./") ? pattern.slice(2) : pattern
  let compiled: RE2JS
  try {
    compiled = RE2JS.compile(translate(body), RE2JS.DOTALL)
  } catch {
    throw new NotRun(`the glob ${named(pattern)} is not a valid pattern`)
  }
  const byName = !body.includes("/")
  return (path) => compiled.matches(byName ? path.slice(path.lastIndexOf("/") + 1) : path)
}
