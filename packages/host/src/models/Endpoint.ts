/**
 * Where a connection points and whether a key may travel there (RUN-222, RUN-223).
 *
 * Pure. It does not own the catalog of providers: that one refuses a bad combination when it is set, the request path
 * refuses it again.
 */
export type LiveApi = "responses" | "chat-completions" | "anthropic"

const vendorEndpoints: { readonly [api in LiveApi]: string | null } = {
  responses: "https://api.openai.com/v1",
  anthropic: "https://api.anthropic.com/v1",
  "chat-completions": null
}

/** The URL requests go to, without a trailing slash; null when the api has no vendor's endpoint and none is given. */
export const endpointOf = (api: LiveApi, baseUrl: string | null): string | null =>
  (baseUrl ?? vendorEndpoints[api])?.replace(/\/+$/, "") ?? null

/** 127.0.0.0/8, ::1, and `localhost` with its subdomains. */
export const isLoopback = (hostname: string): boolean => {
  const host = hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "")
  return (
    host === "localhost" ||
    host.endsWith(".localhost") ||
    host === "::1" ||
    /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host)
  )
}

/** A key goes over TLS, or to this machine. */
export const mayCarryKey = (url: URL): boolean =>
  url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname))
