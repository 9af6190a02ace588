/**
 * The sessions that one connection has set up, and who is at its other end (ACP-061). It ends with the connection; what a
 * session is, the runtime knows.
 */
import type { SessionUpdate } from "@agentclientprotocol/sdk"
import type { HarnessCapabilities } from "@tackroom/sdk/adapters"
import { Deferred, Effect, Exit, FiberSet, type Scope } from "effect"
import type { Runs } from "../../runs/Runs.ts"
import type { ClientSides } from "../../tools/ClientSide.ts"
import { type Client, clientOf } from "./Client.ts"
import { clientRequests } from "./ClientRequests.ts"
import type { ClientTerminals } from "./ClientTerminals.ts"
import { OpenSession } from "./OpenSession.ts"
import type { Peer } from "./Peer.ts"
import type { Projection } from "./Projection.ts"
import { invalidRequest, noSession, type Refusal } from "./Refusals.ts"

/** Sessions that a connection has open at once. */
const openLimit = 64

/** A response that has to be written before a session says anything (ACP-062). */
interface Waiting {
  readonly id: string | number | null
  readonly session: OpenSession
}

interface Opened {
  readonly session: OpenSession
  /** What its harness can do. */
  readonly can: HarnessCapabilities
}

export class OpenSessions {
  readonly #runs: Runs
  readonly #sides: ClientSides
  readonly #fork: (work: Effect.Effect<void>) => void
  readonly #open = new Map<string, Opened>()
  readonly #waiting: Array<Waiting> = []
  #peer: Peer | undefined
  /** What the client can do; a second `initialize` replaces it (ACP-033). */
  client: Client = clientOf(undefined)

  /** Done when the client reads and says no more. */
  readonly #gone = Deferred.makeUnsafe<void>()

  private constructor(runs: Runs, sides: ClientSides, fork: (work: Effect.Effect<void>) => void) {
    this.#runs = runs
    this.#sides = sides
    this.#fork = fork
  }

  static readonly make = (runs: Runs, sides: ClientSides): Effect.Effect<OpenSessions, never, Scope.Scope> =>
    Effect.gen(function* () {
      const fibers = yield* FiberSet.make<void>()
      const fork = yield* FiberSet.runtime(fibers)()
      return new OpenSessions(runs, sides, (work) => void fork(work))
    })

  /** Work that lives as long as the connection. */
  fork(work: Effect.Effect<void>): void {
    this.#fork(work)
  }

  connected(peer: Peer): void {
    this.#peer = peer
  }

  get peer(): Peer {
    if (this.#peer === undefined) throw new Error("no client is connected")
    return this.#peer
  }

  /** The client is gone: what it was asked is lost. Its sessions stay its own, and nothing is done in its place. */
  left(): void {
    Deferred.doneUnsafe(this.#gone, Exit.void)
  }

  find(sessionId: string): OpenSession | undefined {
    return this.#open.get(sessionId)?.session
  }

  /** The session, if this connection has set it up. */
  active(sessionId: string): Effect.Effect<Opened, Refusal> {
    return Effect.suspend(() => {
      const opened = this.#open.get(sessionId)
      return opened === undefined ? Effect.fail(noSession(sessionId)) : Effect.succeed(opened)
    })
  }

  /** One more may be opened. */
  get room(): Effect.Effect<void, Refusal> {
    return Effect.suspend(() =>
      this.#open.size < openLimit
        ? Effect.void
        : Effect.fail(invalidRequest("too_many_sessions", `A connection has at most ${openLimit} sessions open`))
    )
  }

  /** From now on the session is followed, beginning when the response to that request was written. */
  register(
    requestId: string | number | null,
    sessionId: string,
    known: {
      readonly workspace: string
      /** The workspace as the client named it. */
      readonly cwd: string
      readonly terminals: ClientTerminals
      readonly cursor: number
      readonly projection: Projection
      readonly first: ReadonlyArray<SessionUpdate>
      readonly can: HarnessCapabilities
    }
  ): void {
    const { cwd, terminals, workspace } = known
    const shared = {
      sessionId,
      workspace,
      terminals,
      client: () => this.client,
      peer: () => this.peer,
      fork: this.#fork
    }
    const session = new OpenSession({
      ...shared,
      runs: this.#runs,
      projection: known.projection,
      cursor: known.cursor,
      first: known.first
    })
    this.find(sessionId)?.close()
    this.#open.set(sessionId, { session, can: known.can })
    this.#sides.set(sessionId, clientRequests({ ...shared, cwd, gone: this.#gone }))
    this.#waiting.push({ id: requestId, session })
    this.#fork(session.follow)
  }

  /** A response was written. */
  written(id: string | number | null): void {
    const index = this.#waiting.findIndex((waiting) => waiting.id === id)
    if (index >= 0) this.#waiting.splice(index, 1)[0]?.session.begin()
  }

  close(session: OpenSession): void {
    session.close()
    this.#open.delete(session.sessionId)
    this.#sides.delete(session.sessionId)
  }
}
