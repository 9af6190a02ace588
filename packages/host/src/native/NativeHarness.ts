/**
 * The harness `native`: our own model loop under the driver contract (HRN-260).
 *
 * It owns the transcripts of active sessions and the start of a turn's loop. It does not own the loop (`ModelLoop`), the
 * turn's fiber (`makeTurnFibers` of the sdk), nor sessions, approvals, models and tools: those come in as `NativeParts`.
 *
 * Invariant: a transcript is what the journal says. At the start of each turn it is brought up to date from the journal,
 * so that what the runtime wrote (closed calls, redactions) counts and not what the loop remembers. A turn that is
 * cancelled ends when its tools are gone; a turn whose runtime is closing writes nothing more.
 */
import { HarnessUnavailable, type HarnessError } from "@tackroom/protocol"
import type { ExecutionBinding, HarnessEvent } from "@tackroom/protocol/events"
import { noCapabilities } from "@tackroom/sdk/capabilities"
import type { RuntimeStore } from "@tackroom/sdk/effect"
import {
  type HarnessContext,
  type HarnessDriver,
  type HarnessFactory,
  makeTurnFibers,
  type OpenSession,
  type TurnInput,
  type TurnOutput
} from "@tackroom/sdk/adapters"
import { Effect, Stream } from "effect"
import type { SessionServers } from "../mcp/SessionServers.ts"
import { inflate } from "../runs/JournalReader.ts"
import * as ModelLoop from "./ModelLoop.ts"
import type { ExecuteTool, SessionSetup, StreamModel } from "./SessionSetup.ts"
import * as Transcript from "./Transcript.ts"
import { unsupported } from "./Unsupported.ts"

export interface NativeParts {
  readonly store: Pick<RuntimeStore, "read" | "artifactBytes">
  readonly setup: (sessionId: string) => Effect.Effect<SessionSetup, HarnessError>
  readonly streamModel: StreamModel
  readonly execute: ExecuteTool
  /** The MCP servers that sessions bring along. */
  readonly servers: Pick<SessionServers, "open" | "close">
  /** The value without known secrets, as the journal will have it (RUN-174, AGT-002). */
  readonly redact: <A>(value: A, sessionId: string) => A
}

const id = "native"
const access = "native"

/** Transcripts kept between turns; a session beyond these is read again from its journal. */
const keptTranscripts = 64
const pageSize = 1_000
const pageBytes = 4 * 1_024 * 1_024

const makeDriver = (parts: NativeParts, context: HarnessContext): HarnessDriver => {
  const turns = makeTurnFibers()
  const kept = new Map<string, { readonly cursor: number; readonly transcript: Transcript.Transcript }>()

  const keep = (sessionId: string, cursor: number, transcript: Transcript.Transcript) => {
    kept.delete(sessionId)
    kept.set(sessionId, { cursor, transcript })
    for (const oldest of kept.keys()) {
      if (kept.size <= keptTranscripts) return
      kept.delete(oldest)
    }
  }

  /** The session's transcript up to its head; what lies before `startCursor` is kept for the next turn. */
  const load = Effect.fnUntraced(function* (sessionId: string, startCursor: number) {
    const known = kept.get(sessionId)
    const usable = known !== undefined && known.cursor <= startCursor
    const transcript = usable ? copy(known.transcript) : Transcript.empty()
    let cursor = usable ? known.cursor : 0
    let marked = false
    const mark = () => {
      marked = true
      keep(sessionId, cursor, copy(transcript))
    }
    while (true) {
      const page = yield* parts.store.read(sessionId, cursor, pageSize, pageBytes)
      for (const event of page.events) {
        if (!marked && event.seq > startCursor) mark()
        const payload = event.artifacts === null ? event.payload : yield* inflate(parts.store, event)
        Transcript.apply(transcript, payload, event.turnId ?? undefined)
        cursor = event.seq
      }
      if (page.events.length === 0 || cursor >= page.head) break
      yield* Effect.yieldNow
    }
    if (!marked) mark()
    return transcript
  })

  const runLoop = Effect.fnUntraced(function* (turn: TurnInput, output: TurnOutput, resumed: boolean) {
    const sessionId = turn.binding.sessionId
    const transcript = yield* load(sessionId, turn.startCursor).pipe(
      Effect.mapError((cause) => unreadable(cause.message))
    )
    const emit = (...events: ReadonlyArray<HarnessEvent>) => {
      const kept = events.map((event) => ("delta" in event ? event : parts.redact(event, sessionId)))
      for (const event of kept) Transcript.apply(transcript, event, turn.turnId)
      return output.emit(kept)
    }
    if (resumed) {
      yield* emit({
        type: "harness-notice",
        code: "turn_resumed",
        severity: "info",
        message: "the turn goes on after a restart of the host"
      })
    }
    yield* ModelLoop.run({
      context,
      setup: parts.setup(sessionId),
      transcript,
      execute: parts.execute,
      streamModel: parts.streamModel,
      turnId: turn.turnId,
      assistantMessageId: turn.assistantMessageId,
      roundFits: turn.roundFits,
      output: {
        emit,
        redact: (value) => parts.redact(value, sessionId),
        durable: output.durable,
        cancelling: output.isCancelled
      }
    })
  })

  /** Starts the session's servers and waits for none (ACP-217). */
  const openServers = (session: Pick<OpenSession, "sessionId" | "directory">, servers: OpenSession["mcp"]) =>
    parts.servers.open(
      {
        sessionId: session.sessionId,
        directory: session.directory,
        tell: (event) => context.notice(session.sessionId, parts.redact(event, session.sessionId))
      },
      servers ?? []
    )

  const end = ({ sessionId }: Pick<ExecutionBinding, "sessionId">) =>
    Effect.suspend(() => {
      kept.delete(sessionId)
      return parts.servers.close(sessionId)
    })

  const driver: HarnessDriver = {
    capabilities: () => Effect.succeed(nativeCapabilities),
    openSession: (input) =>
      Effect.as(openServers(input, input.mcp), {
        upstreamSessionId: input.sessionId,
        upstreamState: "confirmed"
      }),
    resumeSession: (binding, servers) =>
      Effect.as(openServers(binding, servers), {
        upstreamSessionId: binding.upstreamSessionId,
        upstreamState: "confirmed"
      }),
    runTurn: (turn) => turns.run(turn, (output) => runLoop(turn, output, false)),
    recoverTurn: (turn) => turns.run(turn, (output) => runLoop(turn, output, true)),
    betweenTurns: () => Stream.empty,
    steer: () => unsupported("steer"),
    cancel: (turn) => turns.cancel(turn.turnId),
    configure: () => unsupported("configure"),
    configOptions: () => unsupported("configOptions"),
    models: () => unsupported("models"),
    commands: () => unsupported("commands"),
    closeSession: end,
    deleteSession: end,
    health: () => Effect.succeed({ status: "ok", sessions: turns.size() })
  }
  return driver
}

/** Entries of ended turns never change again, so a copy shares them. */
const copy = (transcript: Transcript.Transcript): Transcript.Transcript => ({
  entries: [...transcript.entries],
  responses: transcript.responses,
  turn: transcript.turn === undefined ? undefined : { ...transcript.turn },
  callIds: new Set(transcript.callIds)
})

const unreadable = (message: string) =>
  new HarnessUnavailable({
    harness: id,
    operation: "runTurn",
    message: `the session's journal could not be read: ${message}`
  })

/** What it can do, whatever the session. */
export const nativeCapabilities = {
  ...noCapabilities({ id, access }),
  abort: true,
  resume: "exact",
  turnRecovery: "resume",
  permissions: true,
  questions: true,
  todos: true,
  reconnect: true,
  replay: true,
  instructionChannel: "native",
  rounds: true,
  movable: true,
  mcp: "stdio+http"
} as const

/** Makes the factory that a host registers with its runtime. */
export const native = (parts: NativeParts): HarnessFactory => ({
  id,
  access,
  definition: { label: "Tackroom native agent", authEnv: null },
  make: (context) => Effect.sync(() => makeDriver(parts, context))
})
