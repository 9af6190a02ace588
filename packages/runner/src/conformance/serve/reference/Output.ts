/** Lines of the reference program on their way out: numbered, escaped, written whole. */
import { lineLimit, type Refusal } from "./Input.ts"
import type { Settings } from "./Settings.ts"

export type Line = Record<string, unknown>

/** U+2028, U+2029 and U+0085 as escapes; lone surrogates and U+0000 are escaped by JSON itself. */
const escaped = (text: string): string =>
  text.replace(/[\u2028\u2029\u0085]/gu, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

export const makeOutput = (settings: Settings, write: (text: string) => void) => {
  const { bare, broken } = settings

  const encoded = (line: Line): string => {
    const { protocol, ...rest } = { protocol: 1, ...line }
    const text = JSON.stringify(broken("SRV-061") && line["type"] === "pong" ? rest : { protocol, ...rest })
    const kept = broken("SRV-063") ? text.replaceAll(/\\ud[89a-f][0-9a-f]{2}/gu, "\uFFFD") : text
    return `${broken("SRV-062") ? kept : escaped(kept)}\n`
  }

  const put = (line: Line): void => {
    const { prompt } = line
    let text = encoded(line)
    if (typeof prompt === "string" && Buffer.byteLength(text) > lineLimit && !broken("SRV-064")) {
      // The one field that a driver can make as long as it likes; a character is six bytes at most.
      text = encoded({ ...line, prompt: prompt.slice(0, lineLimit / 8), prompt_truncated: true })
    }
    write(text)
  }

  return {
    put,
    error: (refusal: Refusal, opId: string | undefined): void => {
      const { detail, message, reason } = refusal
      put({
        type: "error",
        error: { code: broken("SRV-130") ? reason : "protocol", message, ...(bare ? {} : { reason, detail }) },
        message,
        ...(opId === undefined ? (broken("SRV-098") ? { op_id: null } : {}) : { op_id: opId }),
        ...(broken("SRV-065") ? { seq: 1 } : {})
      })
    }
  }
}

export type Output = ReturnType<typeof makeOutput>
