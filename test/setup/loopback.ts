/**
 * No test talks to another machine. Every connection and every look-up of a name that is not loopback throws where it is
 * made, and fails the test that was running even when the code under test swallowed the exception.
 *
 * It holds for the test's own process. Child processes are programs of their own: what they may reach is theirs to prove.
 */
import dns from "node:dns"
import { syncBuiltinESMExports } from "node:module"
import { BlockList, Socket, isIP } from "node:net"
import { afterEach } from "vitest"

const loopback = new BlockList()
loopback.addSubnet("127.0.0.0", 8, "ipv4")
loopback.addAddress("::1", "ipv6")
loopback.addSubnet("::ffff:127.0.0.0", 104, "ipv6")

const isLoopback = (host: string): boolean => {
  const name = host.replace(/^\[|\]$/g, "").toLowerCase()
  const version = isIP(name)
  if (version !== 0) return loopback.check(name, version === 4 ? "ipv4" : "ipv6")
  return name === "" || name === "localhost" || name.endsWith(".localhost")
}

const attempts: Array<string> = []

const guard = (what: string, host: unknown): void => {
  if (typeof host !== "string" || isLoopback(host)) return
  const attempt = `${what} ${host}: tests reach loopback addresses only`
  attempts.push(attempt)
  throw new Error(attempt)
}

/** The host named by the arguments of `connect`; a path of a Unix socket has none. */
const hostOf = (args: ReadonlyArray<unknown>): unknown => {
  const first = args[0]
  if (Array.isArray(first)) return hostOf(first)
  if (typeof first === "object" && first !== null) return "host" in first ? first.host : undefined
  return typeof args[1] === "string" ? args[1] : undefined
}

/** Puts `around` before `owner[key]`, once a process however often this file is loaded. */
const patch = (owner: object, key: string, around: (args: ReadonlyArray<unknown>) => void): void => {
  const original: unknown = Reflect.get(owner, key)
  if (typeof original !== "function" || "guarded" in original) return
  const replacement = function (this: unknown, ...args: ReadonlyArray<unknown>): unknown {
    around(args)
    return Reflect.apply(original, this, args)
  }
  Object.defineProperties(replacement, Object.getOwnPropertyDescriptors(original))
  Reflect.set(owner, key, Object.assign(replacement, { guarded: true }))
}

patch(Socket.prototype, "connect", (args) => guard("A connection to", hostOf(args)))
patch(dns, "lookup", (args) => guard("A look-up of", args[0]))
patch(dns.promises, "lookup", (args) => guard("A look-up of", args[0]))
for (const method of ["resolve", "resolve4", "resolve6"] as const) {
  patch(dns, method, (args) => guard("A look-up of", args[0]))
  patch(dns.promises, method, (args) => guard("A look-up of", args[0]))
}
syncBuiltinESMExports()

afterEach(() => {
  const made = attempts.splice(0)
  if (made.length > 0) throw new Error(made.join("\n"))
})

/** What was refused since the last test, taken out of the account: for the test of this guard alone. */
export const takeAttempts = (): ReadonlyArray<string> => attempts.splice(0)
