/** The test agent behind the driver, in a real runtime. */
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { EventPayload } from "@tackroom/protocol/events"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import {
  AgentRuntime,
  type AgentRuntimeOptions,
  Config,
  Events,
  HarnessRegistry,
  Interactions,
  isEnvelope,
  type RuntimeStore,
  Sessions,
  Turns
} from "../../src/effect.ts"
import type { HarnessFactory } from "../../src/harness/Harness.ts"
import { acp, type AcpOptions } from "../../src/harness/acp/index.ts"

const program = fileURLToPath(new URL("programs/agent.ts", import.meta.url))

/** What the agent does differently; see `programs/agent.ts`. */
export type AgentFlags = Readonly<Record<string, unknown>>

export interface Place {
  readonly directory: string
  readonly state: string
  /** What the agent was told, line by line. */
  readonly log: () => ReadonlyArray<string>
}

export const makePlace = (): Place => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "tackroom-acp-")))
  const state = join(root, ".agent")
  return {
    directory: root,
    state,
    log: () => {
      try {
        return readFileSync(join(state, "log"), "utf8").trim().split("\n")
      } catch {
        return []
      }
    }
  }
}

/** A directory that is gone when the scope ends. */
export const place: Effect.Effect<Place, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(makePlace),
  ({ directory }) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
)

/** The driver of the test agent. */
export const testAgent = (at: Place, flags: AgentFlags = {}, more: Partial<AcpOptions> = {}) =>
  acp("test", {
    binary: process.execPath,
    args: [program],
    ...more,
    env: {
      variables: {
        NODE_COMPILE_CACHE: join(tmpdir(), "tackroom-test-cache"),
        AGENT_STATE: at.state,
        AGENT_FLAGS: JSON.stringify(flags),
        ...more.env?.variables
      }
    }
  })

/** Messages have ids of their own, whichever runtime takes them. */
let count = 0

/** The agent's driver in a runtime, with the calls that tests make. */
export const open = Effect.fnUntraced(function* (
  factory: HarnessFactory,
  store: RuntimeStore,
  options: Partial<AgentRuntimeOptions> = {}
) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const services = yield* Layer.buildWithScope(AgentRuntime.layer({ store, harnesses: [factory], ...options }), scope)
  const sessions = Context.get(services, Sessions)
  const turns = Context.get(services, Turns)
  const events = Context.get(services, Events)
  yield* Context.get(services, AgentRuntime).ready
  return {
    sessions,
    turns,
    events,
    interactions: Context.get(services, Interactions),
    config: Context.get(services, Config),
    driver: Context.get(services, HarnessRegistry).driver(factory),
    create: (directory: string, more: Record<string, unknown> = {}) =>
      sessions.create({ directory, harness: { id: factory.id, access: "acp" }, ...more }),
    /** Runs a prompt to its end. */
    run: (sessionId: string, text: string, more: Record<string, unknown> = {}) => {
      const messageId = `m${++count}`
      return Effect.andThen(turns.start({ sessionId, messageId, text, ...more }), turns.wait(sessionId, messageId))
    },
    start: (sessionId: string, text: string) => turns.start({ sessionId, messageId: `m${++count}`, text }),
    journal: (sessionId: string) =>
      Effect.map(events.read(sessionId, { limit: 1000 }), (page) => page.events.map(({ payload }) => payload)),
    /** Waits for an event that is there or will come. */
    until: (sessionId: string, wanted: (payload: EventPayload) => boolean, after = 0) =>
      Effect.gen(function* () {
        const subscription = events.subscribe({ sessionId, after })
        while (true) {
          const item = yield* subscription.next
          if (item === undefined || !isEnvelope(item) || !wanted(item.payload)) continue
          yield* subscription.close
          return item.payload
        }
      }),
    close: Effect.suspend(() => Scope.close(scope, Exit.void))
  }
})

/** All that was said in a journal. */
export const textIn = (payloads: ReadonlyArray<EventPayload>): string =>
  payloads.flatMap((event) => (event.type === "text-end" && event.channel === "text" ? [event.text] : [])).join("|")
