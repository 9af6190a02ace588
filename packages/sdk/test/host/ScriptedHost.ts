/**
 * A host in this process whose runs say what a test wrote down: the far end of the driver, over the real client. It keeps
 * what was called, and answers each call of a method with the next entry of that method's list, the last one again and again.
 */
import {
  type Capabilities,
  capabilityKeys,
  encodeResult,
  limits,
  type MethodName,
  type ResultOf,
  type RunState
} from "@tackroom/protocol/run"
import { connectHost, type Host, makeInProcessTransport } from "../../src/client/index.ts"

export type Answer<M extends MethodName> = ResultOf<M> | Error | ((params: never) => ResultOf<M> | Promise<ResultOf<M>>)

export type Script = { readonly [M in MethodName]?: ReadonlyArray<Answer<M>> }

export interface ScriptedHost {
  readonly host: Host
  /** Calls, in order: the method and its params on the wire. */
  readonly calls: Array<readonly [string, Record<string, unknown>]>
  readonly of: (method: MethodName) => ReadonlyArray<Record<string, unknown>>
}

export const hostSession = "ses_host"
export const journalId = "jrn_host"
const usage = { inputTokens: null, outputTokens: null, cachedInputTokens: null, rounds: 0 }

export const stateOf = (
  workspace: string,
  more: Partial<ResultOf<"session/state">> = {}
): ResultOf<"session/state"> => ({
  sessionId: hostSession,
  agent: "helper",
  workspace,
  journalId,
  state: "idle",
  phases: [],
  interactions: [],
  canAcceptMessage: true,
  turn: null,
  cursors: { [hostSession]: 1 },
  timers: null,
  capabilities: { steering: false, timers: false },
  grants: [],
  sandbox: { kind: "none", proved: true },
  usage,
  scripted: false,
  ...more
})

/** A state of a run; `events` are given as payloads in wire form and numbered from `from`. */
export const runState = (
  more: Partial<RunState> & {
    readonly from?: number
    readonly said?: ReadonlyArray<Record<string, unknown> & { readonly type: string }>
  } = {}
): RunState => {
  const { from = 1, said = [], ...rest } = more
  return {
    status: "completed",
    finalOutput: null,
    interruptions: [],
    submissionId: "m",
    cursor: from + said.length,
    usage,
    journalId,
    events: said.map((payload, index) => ({
      agent: "helper",
      sessionId: hostSession,
      event: { seq: from + index + 1, at: "2026-01-01T00:00:00.000Z", turn_id: "trn_1", ...payload },
      summary: null
    })),
    cursors: { [hostSession]: from + said.length },
    moreEvents: false,
    ...rest
  }
}

const defaults = (workspace: string): Script => ({
  initialize: [
    {
      protocolVersion: 1,
      host: { name: "scripted", version: "0" },
      capabilities: {
        ...(Object.fromEntries(capabilityKeys.map((key) => [key, false])) as Capabilities),
        agentRuns: true
      },
      limits,
      journalId,
      eventContract: 1,
      sandbox: { selected: "none", available: ["none"] },
      warnings: []
    }
  ],
  "agent/session": [{ session: { sessionId: hostSession, agent: "helper", journalId, workspace }, duplicate: false }],
  "session/attach": [
    {
      session: { sessionId: hostSession, agent: "helper", journalId, workspace },
      state: stateOf(workspace),
      runs: [],
      cursors: { [hostSession]: 1 }
    }
  ],
  "run/start": [
    {
      submissionId: "m",
      turn: { turnId: "trn_1", sessionId: hostSession },
      duplicate: false,
      cursors: { [hostSession]: 1 }
    }
  ],
  "run/wait": [runState({ finalOutput: "hi" })],
  "run/cancel": [{ cancelled: [hostSession], teamCancelled: false, errors: {} }],
  "agent/close": [{ closed: [hostSession], errors: {} }]
})

export const scriptedHost = async (workspace: string, script: Script = {}): Promise<ScriptedHost> => {
  const calls: Array<readonly [string, Record<string, unknown>]> = []
  const answers: Script = { ...defaults(workspace), ...script }
  const next = new Map<string, number>()
  const host = await connectHost(() =>
    Promise.resolve(
      makeInProcessTransport({
        call: async (method, params) => {
          calls.push([method, params as Record<string, unknown>])
          const list = answers[method as MethodName] ?? []
          const index = next.get(method) ?? 0
          next.set(method, index + 1)
          const answer = list[Math.min(index, list.length - 1)]
          if (answer === undefined) throw new Error(`nothing is written for ${method}`)
          if (answer instanceof Error) throw answer
          const result = typeof answer === "function" ? await answer(params as never) : answer
          return encodeResult(method as MethodName, result as never)
        },
        close: () => Promise.resolve()
      })
    )
  )
  return { host, calls, of: (method) => calls.flatMap(([name, params]) => (name === method ? [params] : [])) }
}
