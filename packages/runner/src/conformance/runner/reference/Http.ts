/** One HTTP exchange with the rig; what did not come back is `undefined`. */
import { Agent, request } from "node:http"

export interface Returned {
  readonly status: number
  readonly code: string | undefined
  readonly body: Record<string, unknown>
}

// Connections are not kept: an exchange that broke must not be mistaken for one that the rig never saw.
const connections = new Agent({ keepAlive: false })

const parse = (text: string): Record<string, unknown> => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

export interface Exchange {
  readonly url: string
  readonly token: string
  readonly method: "GET" | "POST"
  readonly body?: Record<string, unknown>
  readonly limitMs: number
}

export const exchange = (
  { body, limitMs, method, token, url }: Exchange,
  done: (returned: Returned | undefined) => void
): void => {
  const text = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
  let open = true
  const finish = (returned: Returned | undefined): void => {
    if (!open) return
    open = false
    clearTimeout(limit)
    done(returned)
  }
  const call = request(
    url,
    {
      method,
      agent: connections,
      headers: {
        authorization: `Bearer ${token}`,
        ...(text === undefined ? {} : { "content-type": "application/json", "content-length": text.length })
      }
    },
    (response) => {
      let received = ""
      response.setEncoding("utf8")
      response.on("data", (chunk: string) => {
        received += chunk
      })
      response.on("error", () => finish(undefined))
      response.on("end", () => {
        const answer = parse(received)
        const { code } = answer
        finish({ status: response.statusCode ?? 0, code: typeof code === "string" ? code : undefined, body: answer })
      })
    }
  )
  const limit = setTimeout(() => {
    finish(undefined)
    call.destroy()
  }, limitMs)
  call.on("error", () => finish(undefined))
  call.end(text)
}
