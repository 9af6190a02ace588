/** Ways to sign in, as a client of the protocol has them (serve-mode 12.2). Pure. */
import type { AuthMethod } from "@agentclientprotocol/sdk"
import type { SignInMethod } from "@tackroom/sdk/adapters"
import type { Client } from "./Client.ts"

/**
 * What a client is offered. It starts this program a second time for a method of a terminal, with the words that are added
 * here (ACP-037).
 */
export const authMethods = (methods: ReadonlyArray<SignInMethod>, client: Client): Array<AuthMethod> =>
  methods.flatMap(({ description, id, name, terminal }): ReadonlyArray<AuthMethod> => {
    const named = { id, name, ...(description === undefined ? {} : { description }) }
    if (terminal === undefined) return [named]
    return client.terminalAuth ? [{ type: "terminal", ...named, args: ["--sign-in", id] }] : []
  })

/** The method that a client may run with `authenticate` (ACP-035). */
export const runnable = (methods: ReadonlyArray<SignInMethod>, id: string): SignInMethod | undefined =>
  methods.find((method) => method.id === id && method.terminal === undefined)
