/**
 * Where an MCP server over HTTP may be: one of a session on this machine, or anywhere behind TLS (ACP-215); one of the host
 * on this machine alone (RUN-252). A rule is asked for every request, a redirect's included, so it never looks at a name
 * that has come to mean something else since.
 */
import { lookup } from "node:dns/promises"
import { isIP } from "node:net"
import { isLoopback } from "../models/Endpoint.ts"

/** True for an address that a request may go to. */
export type Reach = (url: URL) => boolean | Promise<boolean>

const isHttp = ({ protocol }: URL): boolean => protocol === "http:" || protocol === "https:"

/** Servers of sessions: https, or this machine. */
export const overTls: Reach = (url) => isHttp(url) && (url.protocol === "https:" || isLoopback(url.hostname))

/** Servers of the host: 127.0.0.0/8, ::1, and `localhost` as long as that is what it means here. */
export const onThisMachine: Reach = (url) => {
  const host = url.hostname.replace(/^\[|\]$/g, "")
  if (!isHttp(url)) return false
  if (isIP(host) !== 0) return isLoopback(host)
  if (host !== "localhost") return false
  return lookup(host, { all: true }).then(
    (addresses) => addresses.length > 0 && addresses.every(({ address }) => isLoopback(address)),
    () => false
  )
}
