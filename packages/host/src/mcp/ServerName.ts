/**
 * The name under which a session's MCP server is known to its agent: the provider of its tools' qualified names (AGT-031).
 * A client names servers as it likes; here the name is made to fit what `mcp/register` takes (ACP-214). Pure.
 */
import { reservedProviderNames } from "@tackroom/protocol/run"

const maxChars = 32

const reserved: ReadonlyArray<string> = reservedProviderNames

const base = (given: string): string => {
  const plain = given.toLowerCase().replaceAll(/[^a-z0-9_-]/gu, "_")
  const fits = /^[a-z]/.test(plain) && !reserved.includes(plain)
  return (fits ? plain : `m_${plain}`).slice(0, maxChars)
}

/** The given names in their order, each made to fit and none twice. A name that fits already stays as it is. */
export const fittedNames = (
  given: ReadonlyArray<string>,
  isTaken: (name: string) => boolean
): ReadonlyArray<string> => {
  const fitted: Array<string> = []
  for (const name of given) {
    const first = base(name)
    let candidate = first
    for (let n = 2; isTaken(candidate) || fitted.includes(candidate); n++) {
      const suffix = `_${n}`
      candidate = `${first.slice(0, maxChars - suffix.length)}${suffix}`
    }
    fitted.push(candidate)
  }
  return fitted
}
