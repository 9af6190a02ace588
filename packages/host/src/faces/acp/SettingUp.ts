/**
 * Setting sessions up and down for a client: new, load, resume, list, close, delete (serve-mode 12.3). A session is the
 * runtime's; it is served here when it is one of the agent that this process serves.
 */
import type {
  AgentRequestContext,
  ListSessionsResponse,
  LoadSessionResponse,
  McpServer,
  NewSessionResponse,
  SessionConfigOption,
  SessionInfo,
  SessionModeState,
  SessionUpdate
} from "@agentclientprotocol/sdk"
import type { HarnessCapabilities } from "@tackroom/sdk/adapters"
import type { McpServerState } from "@tackroom/sdk/effect"
import { Effect } from "effect"
import type { Host } from "../../Host.ts"
import type { Entry } from "../../runs/Entries.ts"
import { harnessOf, type HostSession } from "../../runs/HostRows.ts"
import type { Offer } from "../../runs/Offers.ts"
import type { Setup } from "../start/Setup.ts"
import type { Client } from "./Client.ts"
import { ClientTerminals } from "./ClientTerminals.ts"
import type { OpenSession } from "./OpenSession.ts"
import type { OpenSessions } from "./OpenSessions.ts"
import { configOptions, modesOf } from "./Options.ts"
import { absoluteUpdate } from "./Paths.ts"
import { Projection } from "./Projection.ts"
import { busy, internal, invalidParams, invalidRequest, noSession, Refusal } from "./Refusals.ts"
import { Replay } from "./Replay.ts"
import { decodePage, encodePage } from "./SessionPages.ts"
import { checkServers, entriesOf, realDirectory, type Taking } from "./SetupParams.ts"

const pageSize = 50

/** Where a client wants a session. */
interface Place {
  readonly cwd: string
  readonly mcpServers?: ReadonlyArray<McpServer>
  readonly additionalDirectories?: ReadonlyArray<string>
}

type Existing = Place & { readonly sessionId: string }

/** What a client can choose in a session that was set up. */
interface Choices {
  readonly modes?: SessionModeState
  readonly configOptions?: Array<SessionConfigOption>
}

export interface SetupParts {
  readonly host: Host
  readonly setup: Setup
  /** The MCP servers that the agent takes. */
  readonly taking: Taking
  readonly open: OpenSessions
  /** A cap of rounds was asked for: a harness that reports none is not served (SRV-007). */
  readonly needsRounds: boolean
  /** Cancels the prompts of a session. */
  readonly cancelPrompts: (sessionId: string) => void
}

/** What the harness of a session offers. */
export const offerOf = (host: Host, session: HostSession, can: HarnessCapabilities) =>
  host.offers.of({ sessionId: session.sessionId, workspace: session.workspace, harness: harnessOf(session) }, can)

const choicesOf = ({ config, options }: Offer, can: HarnessCapabilities, client: Client): Choices => {
  const listed = configOptions(options, config, client)
  const modes = can.permissionModes ? modesOf(options, config) : undefined
  return { ...(modes === undefined ? {} : { modes }), ...(listed.length === 0 ? {} : { configOptions: listed }) }
}

/** How long the answer waits for servers to come up (ACP-217). */
const serverPatience = "5 seconds"

const isUnreadable = ({ payload }: Entry): boolean =>
  payload.type === "diagnostic" && payload.diagnostic.code === "event_undecodable"

const infoOf = (row: {
  readonly session: { readonly sessionId: string; readonly workspace: string }
  readonly name?: string
  readonly lastActivityAt: string
}): SessionInfo => ({
  sessionId: row.session.sessionId,
  cwd: row.session.workspace,
  updatedAt: row.lastActivityAt,
  ...(row.name === undefined ? {} : { title: row.name })
})

export const makeSetup = (parts: SetupParts) => {
  const { cancelPrompts, host, needsRounds, open, setup } = parts
  const { clientServers: servers, runs, sessions } = host

  const place = Effect.fnUntraced(function* (params: Place) {
    const found = realDirectory(params.cwd)
    if (found instanceof Refusal) return yield* Effect.fail(found)
    if ((params.additionalDirectories ?? []).length > 0) {
      return yield* Effect.fail(invalidParams("directories_unsupported", "This agent works in one directory"))
    }
    const given = params.mcpServers ?? []
    const refused = checkServers(given, parts.taking)
    return refused === undefined ? { workspace: found.directory, mcp: entriesOf(given) } : yield* Effect.fail(refused)
  })

  /** What is known of the session's servers, when all are up or failed, or enough time has passed. */
  const told = Effect.fnUntraced(function* (sessionId: string) {
    yield* Effect.timeoutOption(servers.settled(sessionId), serverPatience)
    return servers.states(sessionId)
  })

  const metaOf = (mcp: ReadonlyArray<McpServerState>) => (mcp.length === 0 ? {} : { _meta: { tackroom: { mcp } } })

  /** What was journaled while the servers came up lies behind the client's cursor, so it is said again (ACP-124). */
  const firstOf = (projection: Projection, mcp: ReadonlyArray<McpServerState>): ReadonlyArray<SessionUpdate> =>
    mcp.flatMap(({ leftOut, name }) =>
      leftOut === undefined
        ? []
        : (projection.tell("warning", `${leftOut} tools of the MCP server ${name} are left out`) ?? [])
    )

  /** Opens the harness of a session; a cap that it could not keep is never dropped. */
  const opened = (sessionId: string) =>
    Effect.flatMap(runs.open(sessionId), (can) =>
      needsRounds && !can.rounds
        ? Effect.fail(internal("harness_unavailable", "--max-rounds: this agent does not report its rounds"))
        : Effect.succeed(can)
    )

  /** A session of the agent that is served (ACP-074). */
  const served = (sessionId: string) =>
    Effect.flatMap(sessions.find(sessionId), (session) =>
      session.agentId === setup.agent && session.role === "lead"
        ? Effect.succeed(session)
        : Effect.fail(noSession(sessionId))
    )

  /** Nobody works on the session: what a dead process left is settled, and a turn that is left then has an owner. */
  const unowned = Effect.fnUntraced(function* (sessionId: string) {
    yield* runs.recover(sessionId)
    const last = yield* runs.lastTurn(sessionId)
    if (last !== undefined && last.turn.state !== "settled") return yield* Effect.fail(busy())
  })

  const create = Effect.fnUntraced(function* ({ params, requestId }: AgentRequestContext<Place>) {
    yield* open.room
    const { mcp: given, workspace } = yield* place(params)
    const { session } = yield* sessions.create(
      { agent: setup.agent, workspace, ...(setup.model === undefined ? {} : { model: setup.model }) },
      { mcp: given }
    )
    const { sessionId } = session
    const can = yield* opened(sessionId)
    const mcp = yield* told(sessionId)
    const offer = yield* offerOf(host, yield* sessions.find(sessionId), can)
    const cursor = yield* runs.head(sessionId)
    const terminals = new ClientTerminals()
    const projection = new Projection(() => open.client, { ...offer, terminals })
    const first = firstOf(projection, mcp)
    open.register(requestId, sessionId, { workspace, cwd: params.cwd, terminals, cursor, can, projection, first })
    return { sessionId, ...choicesOf(offer, can, open.client), ...metaOf(mcp) } satisfies NewSessionResponse
  })

  /** The session as it stands, its harness open, nobody working on it (ACP-070, ACP-072). */
  const reopened = Effect.fnUntraced(function* (params: Existing) {
    const { sessionId } = params
    const session = yield* served(sessionId)
    if (session.closedAt !== null) return yield* Effect.fail(invalidRequest("session_closed", "The session is closed"))
    const { mcp: given, workspace } = yield* place(params)
    if (workspace !== session.workspace) {
      return yield* Effect.fail(invalidParams("cwd_mismatch", "The session works in another directory"))
    }
    const known = open.find(sessionId)
    if (known === undefined) yield* open.room
    if (known?.isWorking === true || runs.isWorking(sessionId)) return yield* Effect.fail(busy())
    yield* unowned(sessionId)
    yield* servers.replace(sessionId, given)
    const can = yield* opened(sessionId)
    const mcp = yield* told(sessionId)
    return { can, mcp, workspace, offer: yield* offerOf(host, session, can) }
  })

  const load = Effect.fnUntraced(function* ({ params, requestId }: AgentRequestContext<Existing>) {
    const { sessionId } = params
    const { can, mcp, offer, workspace } = yield* reopened(params)
    const replay = new Replay(() => open.client)
    let cursor = 0
    while (true) {
      const page = yield* runs.entries(sessionId, cursor)
      for (const entry of page.entries) {
        cursor = entry.cursor
        // A transcript with a hole is none (ACP-066).
        if (isUnreadable(entry)) return yield* Effect.fail(internal("store", "A part of the transcript cannot be read"))
        replay.push(entry)
      }
      if (page.entries.length === 0 || cursor >= page.head) break
    }
    for (const update of replay.end()) {
      open.peer.tell(sessionId, absoluteUpdate(workspace, update))
      yield* open.peer.room
    }
    const terminals = new ClientTerminals()
    const projection = new Projection(() => open.client, { ...offer, calls: replay.calls, terminals })
    const first = firstOf(projection, mcp)
    open.register(requestId, sessionId, { workspace, cwd: params.cwd, terminals, cursor, can, projection, first })
    return { ...choicesOf(offer, can, open.client), ...metaOf(mcp) } satisfies LoadSessionResponse
  })

  const resume = Effect.fnUntraced(function* ({ params, requestId }: AgentRequestContext<Existing>) {
    const { sessionId } = params
    const { can, mcp, offer, workspace } = yield* reopened(params)
    const cursor = yield* runs.head(sessionId)
    const terminals = new ClientTerminals()
    const projection = new Projection(() => open.client, { ...offer, terminals })
    const first = firstOf(projection, mcp)
    open.register(requestId, sessionId, { workspace, cwd: params.cwd, terminals, cursor, can, projection, first })
    return { ...choicesOf(offer, can, open.client), ...metaOf(mcp) }
  })

  const list = Effect.fnUntraced(function* (params: { readonly cwd?: string | null; readonly cursor?: string | null }) {
    const { cursor, cwd } = params
    const found = cwd == null ? undefined : realDirectory(cwd)
    if (found instanceof Refusal && "reason" in found.data && found.data.reason === "cwd_not_absolute") {
      return yield* Effect.fail(found)
    }
    const isNowhere = found instanceof Refusal
    const directory = found === undefined || isNowhere ? undefined : found.directory
    const filter = `${setup.agent}\n${directory ?? cwd ?? ""}`
    const after = cursor == null ? undefined : decodePage(cursor, filter)
    if (cursor != null && after === undefined) {
      return yield* Effect.fail(invalidParams("bad_cursor", "The cursor is none that this list gave"))
    }
    const infos: Array<SessionInfo> = []
    let next: string | undefined = after
    // A directory that is not there has no sessions.
    if (isNowhere) return { sessions: [] } satisfies ListSessionsResponse
    // A page ends where one of the host's ends, so that nothing is skipped.
    while (infos.length < pageSize) {
      const limit = pageSize - infos.length
      const page = yield* runs.list({ agent: setup.agent, limit, ...(next === undefined ? {} : { after: next }) })
      const here = page.sessions.filter((row) => directory === undefined || row.session.workspace === directory)
      infos.push(...here.map(infoOf))
      next = "next" in page ? page.next : undefined
      if (next === undefined) break
    }
    return {
      sessions: infos,
      ...(next === undefined ? {} : { nextCursor: encodePage(next, filter) })
    } satisfies ListSessionsResponse
  })

  const release = Effect.fnUntraced(function* (session: OpenSession) {
    const { sessionId } = session
    cancelPrompts(sessionId)
    if (runs.isWorking(sessionId)) yield* runs.cancel({ sessionId })
    yield* runs.release(sessionId)
    open.close(session)
  })

  const close = (sessionId: string) => Effect.flatMap(open.active(sessionId), ({ session }) => release(session))

  const remove = Effect.fnUntraced(function* (sessionId: string) {
    yield* served(sessionId)
    const session = open.find(sessionId)
    yield* session === undefined ? unowned(sessionId) : release(session)
    yield* runs.remove(sessionId)
  })

  return { create, load, resume, list, close, remove }
}
