/**
 * A client that can lose its host at any moment and goes on with the next one: it keeps what it was shown and what it
 * answered, and does after a restart what run-protocol 28 asks of a client. What must hold afterwards is in `Proof`.
 */
import { Refused, type Loose, type RawHost } from "./RawHost.ts"

/** What the client asks for, the same each time. */
export interface Plan {
  readonly agent: string
  readonly workspace: string
  readonly creationId: string
  readonly submissionId: string
  readonly text: string
  readonly answer: (interruption: Loose) => { readonly decision?: string; readonly answer?: string }
}

/** What the client knows, kept over restarts. */
export interface Known {
  session: string | undefined
  turn: string | undefined
  startCursor: number | undefined
  /** Wire events, as shown, in order. */
  readonly events: Array<Loose>
  /** Interruptions by id, as first shown. */
  readonly interruptions: Map<string, Loose>
  /** Answers that were sent, and whether the host acknowledged them. */
  readonly answers: Map<string, { readonly params: Loose; acknowledged: boolean }>
  /** The terminal RunState. */
  end: Loose
}

export const nothingKnown = (): Known => ({
  session: undefined,
  turn: undefined,
  startCursor: undefined,
  events: [],
  interruptions: new Map(),
  answers: new Map(),
  end: undefined
})

const fail = (message: string, detail?: unknown): never => {
  throw new Error(detail === undefined ? message : `${message}: ${JSON.stringify(detail)}`)
}

/** Session and run: made when they are not there, taken up when they are. */
export const begin = async (host: RawHost, plan: Plan, known: Known): Promise<string> => {
  if (known.session !== undefined) {
    const attached = await host.call("session/attach", { session_id: known.session })
    if (attached.state.session_id !== known.session) fail("attached to another session", attached)
  }
  const { session } = await host.call("agent/session", {
    agent: plan.agent,
    workspace: plan.workspace,
    creation_id: plan.creationId
  })
  const id: string = session.session_id
  if (known.session !== undefined && known.session !== id) fail("the same creation gave another session", session)
  known.session = id
  const started = await host.call("run/start", { session_id: id, submission_id: plan.submissionId, text: plan.text })
  if (known.turn !== undefined) {
    if (started.duplicate !== true) fail("a repeated start is no duplicate", started)
    if (started.turn.turn_id !== known.turn) fail("a repeated start made another turn", started)
    if (started.cursors[id] !== known.startCursor) fail("a repeated start has other cursors", started)
  }
  known.turn = started.turn.turn_id
  known.startCursor = started.cursors[id]
  return id
}

/** Streams the run to its end and answers what is asked. `onEvent` sees each event the moment it is shown. */
export const drive = async (
  host: RawHost,
  plan: Plan,
  known: Known,
  onEvent: (event: Loose) => void = () => undefined
): Promise<void> => {
  const id = await begin(host, plan, known)
  while (true) {
    const state = await host.call("run/wait", {
      session_id: id,
      submission_id: plan.submissionId,
      cursors: { [id]: known.events.at(-1)?.seq ?? 0 },
      wait_ms: 5_000
    })
    for (const entry of state.events) {
      const expected = (known.events.at(-1)?.seq ?? 0) + 1
      if (entry.event.seq !== expected) fail(`event ${expected} is missing`, entry.event)
      known.events.push(entry.event)
      onEvent(entry.event)
    }
    if (state.cursors[id] !== (known.events.at(-1)?.seq ?? 0)) fail("the cursor is not the last event", state.cursors)
    for (const interruption of state.interruptions) await settle(host, plan, known, interruption)
    if (state.status === "running" || state.status === "interrupted" || state.more_events) continue
    known.end = state
    return
  }
}

const settle = async (host: RawHost, plan: Plan, known: Known, interruption: Loose): Promise<void> => {
  const { id, session_id } = interruption
  const before = known.interruptions.get(id)
  if (before !== undefined && JSON.stringify(before) !== JSON.stringify(interruption)) {
    fail("an interruption changed", { before, interruption })
  }
  known.interruptions.set(id, interruption)
  const sent = known.answers.get(id)
  if (sent?.acknowledged === true) fail("an acknowledged answer was lost", interruption)
  const params = sent?.params ?? { session_id, interaction_id: id, ...plan.answer(interruption) }
  const answer = { params, acknowledged: false }
  known.answers.set(id, answer)
  await host.call("run/respond", params)
  answer.acknowledged = true
}

/** Every event of a session, by pages. */
export const readAll = async (host: RawHost, session: string, pageSize = 1_000): Promise<ReadonlyArray<Loose>> => {
  const events: Array<Loose> = []
  while (true) {
    const page = await host.call("event/read", {
      session_id: session,
      after: events.at(-1)?.seq ?? 0,
      max_events: pageSize
    })
    events.push(...page.events)
    if (!page.more_events) return events
  }
}

/** The refusal of a call that must not succeed. */
export const refusalOf = async (call: Promise<Loose>): Promise<Refused> => {
  try {
    const result: unknown = await call
    return fail("it was not refused", result)
  } catch (error) {
    if (error instanceof Refused) return error
    throw error
  }
}
