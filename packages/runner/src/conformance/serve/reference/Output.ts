/** Lines of the reference program on their way out: numbered, escaped, written whole. */
import type { Refusal } from "./Input.ts"
import type { Settings } from "./Settings.ts"

export type Line = Record<string, unknown>

/** U+2028, U+2029 and U+0085 as escapes; lone surrogates and U+0000 are escaped by JSON itself. */
const escaped = (text: string): string =>
  text.replace(/[\u2028\u2029\u0085]/gu, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

export const makeOutput = (settings: Settings, write: (text: string) => void) => {
  const { bare, broken } = settings

  const put = (line: Line): void => {
    const { protocol, ...rest } = { protocol: 1, ...line }
    const text = JSON.stringify(broken("SRV-061") && line["type"] === "pong" ? rest : { protocol, ...rest })
    write(`${broken("SRV-062") ? text : escaped(text)}\n`)
  }

  return {
    put,
    error: (refusal: Refusal, opId: string | undefined): void => {
      const { detail, message, reason } = refusal
      put({
        type: "error",
        error: { code: broken("SRV-130") ? reason : "protocol", message, ...(bare ? {} : { reason, detail }) },
        message,
        ...(opId === undefined || broken("SRV-098") ? (broken("SRV-098") ? { op_id: null } : {}) : { op_id: opId }),
        ...(broken("SRV-065") ? { seq: 1 } : {})
      })
    }
  }
}

export type Output = ReturnType<typeof makeOutput>
