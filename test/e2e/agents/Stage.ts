/**
 * One real agent behind the driver: its fake model, its home, a folder to work in, and runtimes that are opened over one
 * store, one after the other, as by a program that is started again.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type AgentRuntimeFacade, type CreateSession, createAgentRuntime, isEnvelope } from "@tackroom/sdk"
import type { Decision, EventPayload, Interaction, TurnOutcome } from "@tackroom/protocol/events"
import { Effect } from "effect"
import { acp, type AcpOptions } from "@tackroom/sdk/harnesses/acp"
import { createSqliteRuntimeStore } from "@tackroom/sdk/stores/sqlite"
import { type Answer, say, startVendor, type Vendor } from "../real-input/Vendors.ts"
import { type Agent, commandOf } from "./Agents.ts"
import { type Home, makeHome } from "./Homes.ts"

const tee = fileURLToPath(new URL("programs/tee.ts", import.meta.url))

type Permission = Extract<Interaction, { kind: "permission" }>
type Type = EventPayload["type"]
export type Of<T extends Type> = Extract<EventPayload, { readonly type: T }>

/** A turn that came to its end. */
export interface Played {
  readonly outcome: TurnOutcome
  readonly events: ReadonlyArray<EventPayload>
  readonly asks: ReadonlyArray<Permission>
  readonly only: <T extends Type>(type: T) => ReadonlyArray<Of<T>>
  /** What the agent said in it. */
  readonly text: string
}

export interface PlayOptions {
  /** How every permission is answered; without it nobody answers. */
  readonly decide?: Decision
  /** The turn is cancelled at the first of these events. */
  readonly abortAt?: Type
}

/** A runtime with the agent. */
export interface Opened {
  readonly runtime: AgentRuntimeFacade
  readonly session: (more?: Pick<CreateSession, "mcp">) => Promise<string>
  readonly play: (sessionId: string, text: string, options?: PlayOptions) => Promise<Played>
  readonly close: () => Promise<void>
}

export interface OpenOptions {
  /** Another home than the agent's own: there it knows of nothing. */
  readonly home?: Home
  /** The file that keeps every frame. */
  readonly record?: string
  /** Another store than the stage's own. */
  readonly store?: string
}

export interface Stage {
  readonly agent: Agent
  /** The folder in which the agent works. */
  readonly directory: string
  readonly root: string
  readonly home: Home
  readonly vendor: Vendor
  readonly strangeHome: () => Home
  readonly open: (options?: OpenOptions) => Promise<Opened>
  readonly remove: () => Promise<void>
}

/** The first words come, the others never do. */
export const endless = (text: string, silentAfter: string): Answer => ({
  ...say(text),
  options: { chunkSize: silentAfter.length, latency: 100 },
  trouble: "silent",
  silentAfter
})

/** The driver's options for an agent in a home. */
export const optionsOf = (agent: Agent, home: Pick<Home, "variables">, record?: string): AcpOptions => {
  const command = commandOf(agent)
  const env = { variables: home.variables }
  if (record === undefined) return { ...command, env }
  return { binary: process.execPath, args: [tee, record, command.binary, ...command.args], env }
}

const ends: ReadonlySet<Type> = new Set(["finish", "cancelled", "error"])

let messages = 0

const play =
  (runtime: AgentRuntimeFacade): Opened["play"] =>
  async (sessionId, text, options = {}) => {
    const messageId = `message-${process.pid}-${++messages}`
    const { cursor: after } = await runtime.events.head(sessionId)
    const events: Array<EventPayload> = []
    const asks: Array<Permission> = []
    let aborting: Promise<unknown> | undefined
    await runtime.turns.start({ sessionId, messageId, text })
    for await (const item of runtime.events.subscribe({ sessionId, after })) {
      if (!isEnvelope(item)) continue
      const { payload } = item
      events.push(payload)
      if (payload.type === options.abortAt) aborting ??= runtime.turns.abort(sessionId)
      if (payload.type === "permission-request") {
        const pending = await runtime.permissions.list({ sessionId })
        const ask = pending.find(({ id }) => id === payload.requestId)
        if (ask?.kind === "permission") asks.push(ask)
        if (options.decide !== undefined) await runtime.permissions.respond(payload.requestId, options.decide)
      }
      if (ends.has(payload.type)) break
    }
    await aborting
    const only = <T extends Type>(type: T): ReadonlyArray<Of<T>> =>
      events.filter((event): event is Of<T> => event.type === type)
    return {
      outcome: await runtime.turns.wait(sessionId, messageId),
      events,
      asks,
      only,
      text: only("text-end")
        .map((end) => end.text)
        .join("")
    }
  }

/** Sets the stage for one agent. */
export const makeStage = async (agent: Agent): Promise<Stage> => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), `tackroom-${agent.id}-`)))
  const directory = join(root, "work")
  mkdirSync(directory)
  const vendor = await startVendor({ aside: say("A title") })
  const homes = [makeHome(agent, vendor.url)]
  const [home] = homes
  if (home === undefined) throw new Error("no home")
  const opened = new Set<Opened>()
  const open: Stage["open"] = async (options = {}) => {
    const store = createSqliteRuntimeStore({ root: options.store ?? join(root, "store") })
    const factory = acp(agent.id, optionsOf(agent, options.home ?? home, options.record))
    const runtime = createAgentRuntime({ store, harnesses: [factory] })
    await runtime.ready()
    const made: Opened = {
      runtime,
      session: async (more = {}) => {
        const harness = { id: agent.id, access: "acp" } as const
        return (await runtime.sessions.create({ directory, harness, ...more })).id
      },
      play: play(runtime),
      close: async () => {
        if (!opened.delete(made)) return
        await runtime.dispose()
        await Effect.runPromise(store.close)
      }
    }
    opened.add(made)
    return made
  }
  return {
    agent,
    directory,
    root,
    home,
    vendor,
    strangeHome: () => {
      const made = makeHome(agent, vendor.url)
      homes.push(made)
      return made
    },
    open,
    remove: async () => {
      for (const each of opened) await each.close()
      await vendor.close()
      for (const each of homes) each.remove()
      rmSync(root, { recursive: true, force: true })
    }
  }
}
