/**
 * One text per JSON value, for digests: members sorted by the code units of their names, no white space (RFC 8785).
 *
 * @since 0.1.0
 */

/**
 * The canonical JSON text of a value. Members that are `undefined` are left out, as JSON.stringify does; lone surrogates
 * are written as escapes.
 *
 * @throws TypeError for what is no JSON: a function, a symbol, a BigInt, a number that is not finite, a cycle
 * @since 0.1.0
 */
export const canonicalJson = (value: unknown): string => write(value, new Set())

const write = (value: unknown, parents: Set<object>): string => {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value)
    case "boolean":
      return value ? "true" : "false"
    case "number":
      if (!Number.isFinite(value)) throw new TypeError("a number that is not finite is no JSON")
      return JSON.stringify(value)
    case "object":
      break
    default:
      throw new TypeError(`a ${typeof value} is no JSON`)
  }
  if (value === null) return "null"
  if (parents.has(value)) throw new TypeError("a cycle is no JSON")
  parents.add(value)
  const text = Array.isArray(value)
    ? `[${value.map((member: unknown) => (member === undefined ? "null" : write(member, parents))).join(",")}]`
    : `{${Object.entries(value)
        .filter(([, member]) => member !== undefined)
        .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
        .map(([name, member]) => `${JSON.stringify(name)}:${write(member, parents)}`)
        .join(",")}}`
  parents.delete(value)
  return text
}
