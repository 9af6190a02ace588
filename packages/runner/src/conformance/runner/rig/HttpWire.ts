/**
 * Reads HTTP/1.1 requests out of bytes, strictly: what a careful server would refuse is refused here with the reason. Pure.
 *
 * Of its own, so that every byte a runner sends is judged as it came, not as a server library mended it.
 */

export interface HttpRequest {
  readonly method: string
  readonly target: string
  /** Names in lower case; a name that came twice is joined with a comma. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
}

export type Fed =
  | { readonly _tag: "Request"; readonly request: HttpRequest }
  /** The sender waits for leave to send its body. */
  | { readonly _tag: "Continue" }
  | { readonly _tag: "Bad"; readonly reason: string }

interface Head {
  readonly method: string
  readonly target: string
  readonly headers: ReadonlyMap<string, string>
  /** Bytes of the body, or chunked. */
  readonly length: number | "chunked"
}

const headLimit = 65_536
const bodyLimit = 16 * 1024 * 1024

const parseHead = (text: string): Head | string => {
  const [requestLine = "", ...lines] = text.split("\r\n")
  const match = /^([A-Z]+) (\/\S*) HTTP\/1\.1$/u.exec(requestLine)
  if (match === null) return `not a request line: ${JSON.stringify(requestLine.slice(0, 200))}`
  const headers = new Map<string, string>()
  for (const line of lines) {
    const header = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/u.exec(line)
    if (header === null) return `not a header: ${JSON.stringify(line.slice(0, 200))}`
    const [, name = "", value = ""] = header
    const key = name.toLowerCase()
    const before = headers.get(key)
    headers.set(key, before === undefined ? value : `${before}, ${value}`)
  }
  if (!headers.has("host")) return "no host header"
  const coding = headers.get("transfer-encoding")
  const length = headers.get("content-length")
  if (coding !== undefined && (coding.toLowerCase() !== "chunked" || length !== undefined)) return "bad transfer coding"
  if (length !== undefined && !/^\d{1,9}$/u.test(length)) return "bad content length"
  const [, method = "", target = ""] = match
  return { method, target, headers, length: coding === undefined ? Number(length ?? "0") : "chunked" }
}

/** The decoded body and the bytes it took, "more" when it is not complete, or what is wrong. */
const dechunk = (bytes: Buffer): { readonly body: Buffer; readonly taken: number } | "more" | string => {
  const parts: Array<Buffer> = []
  let at = 0
  for (;;) {
    const end = bytes.indexOf("\r\n", at)
    if (end < 0) return bytes.length - at > 1_024 ? "bad chunk" : "more"
    const size = /^([0-9A-Fa-f]{1,7})(?:;.*)?$/u.exec(bytes.toString("latin1", at, end))?.[1]
    if (size === undefined) return "bad chunk"
    const length = Number.parseInt(size, 16)
    const start = end + 2
    if (length === 0) {
      // Trailers are read over: an empty line ends them.
      const done = bytes.indexOf("\r\n\r\n", end)
      if (done < 0) return "more"
      return { body: Buffer.concat(parts), taken: done + 4 }
    }
    if (bytes.length < start + length + 2) return "more"
    if (bytes.toString("latin1", start + length, start + length + 2) !== "\r\n") return "bad chunk"
    parts.push(bytes.subarray(start, start + length))
    at = start + length + 2
  }
}

export interface RequestReader {
  readonly feed: (bytes: Uint8Array) => ReadonlyArray<Fed>
}

export const requestReader = (): RequestReader => {
  let rest: Buffer = Buffer.alloc(0)
  let head: Head | undefined
  let failed = false

  const step = (): Fed | undefined => {
    if (head === undefined) {
      const end = rest.indexOf("\r\n\r\n")
      if (end < 0) return rest.length > headLimit ? { _tag: "Bad", reason: "the header block is too long" } : undefined
      const parsed = parseHead(rest.toString("latin1", 0, end))
      if (typeof parsed === "string") return { _tag: "Bad", reason: parsed }
      rest = rest.subarray(end + 4)
      head = parsed
      if (parsed.headers.get("expect")?.toLowerCase() === "100-continue") return { _tag: "Continue" }
    }
    const { length, ...request } = head
    if (length === "chunked") {
      const read = dechunk(rest)
      if (read === "more") return rest.length > bodyLimit ? { _tag: "Bad", reason: "the body is too long" } : undefined
      if (typeof read === "string") return { _tag: "Bad", reason: read }
      rest = rest.subarray(read.taken)
      head = undefined
      return { _tag: "Request", request: { ...request, body: read.body } }
    }
    if (rest.length < length) return undefined
    const body = rest.subarray(0, length)
    rest = rest.subarray(length)
    head = undefined
    return { _tag: "Request", request: { ...request, body } }
  }

  return {
    feed: (bytes) => {
      rest = Buffer.concat([rest, bytes])
      const fed: Array<Fed> = []
      while (!failed) {
        const next = step()
        if (next === undefined) break
        failed = next._tag === "Bad"
        fed.push(next)
      }
      return fed
    }
  }
}
