/**
 * What the client does itself for the tools of a session, as requests of ACP (ACP-210 to ACP-213). A method is called only
 * while its capability is offered.
 *
 * Answers are looked at before they are believed: the official SDK checks requests, not responses. A client that is gone
 * answers nothing; what was asked of it then is lost, and what gives terminals back is still sent.
 */
import { RequestError } from "@agentclientprotocol/sdk"
import { utf8Length, wireJson } from "@tackroom/protocol/text"
import { Deferred, Effect } from "effect"
import { relative, sep } from "node:path"
import {
  ClientLost,
  type ClientProblem,
  ClientRefused,
  type ClientSide,
  type ClientTerminal,
  type TerminalCommand
} from "../../tools/ClientSide.ts"
import { cutChars } from "../../tools/Text.ts"
import type { Client } from "./Client.ts"
import type { ClientTerminals } from "./ClientTerminals.ts"
import { writtenFrameBytes } from "./Connection.ts"
import type { Peer } from "./Peer.ts"

export interface ClientRequestsParts {
  readonly sessionId: string
  /** The real path of the session's directory. */
  readonly workspace: string
  /** The same directory as the client named it: its open files have such names. */
  readonly cwd: string
  readonly client: () => Client
  readonly peer: () => Pick<Peer, "asked">
  readonly terminals: ClientTerminals
  /** Completes when the client is gone. */
  readonly gone: Deferred.Deferred<void>
  /** Runs work that lives as long as the connection. */
  readonly fork: (work: Effect.Effect<void>) => void
}

type Terminal = { readonly sessionId: string; readonly terminalId: string }

/** What a frame has besides the params. */
const envelopeBytes = 1_024
/** Chars of a client's own words. */
const wordsChars = 500
/** Chars of a terminal's id. */
const idChars = 200
/** How long a kill waits for its answer. */
const killPatience = "1500 millis"

const lost = new ClientLost({ message: "the client is gone", code: "failed" })

const wordsOf = ({ data, message }: RequestError): string => {
  const details = typeof data === "object" && data !== null && "details" in data ? data.details : undefined
  return cutChars(typeof details === "string" ? `${message}: ${details}` : message, wordsChars)
}

const problemOf = (cause: unknown): ClientProblem =>
  cause instanceof RequestError ? new ClientRefused({ message: wordsOf(cause) }) : lost

const malformed = (): Effect.Effect<never, ClientRefused> =>
  Effect.fail(new ClientRefused({ message: "its answer was malformed" }))

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> => (isObject(value) ? value : {})

/** Nobody knows what was done about a request that was answered in no form of its own. */
const unclear = new ClientLost({ message: "the client's answer was malformed", code: "failed" })

/** The client's side of one session. */
export const clientRequests = (parts: ClientRequestsParts): (() => ClientSide) => {
  const { cwd, gone, peer, sessionId, terminals, workspace } = parts

  const named = (path: string): string => {
    const way = relative(workspace, path)
    return way === "" ? cwd : `${cwd.endsWith(sep) ? cwd.slice(0, -1) : cwd}${sep}${way}`
  }

  const isGone = Effect.andThen(Deferred.await(gone), Effect.fail(lost))

  /** A frame that is too large is refused by nobody: it would not be written at all (ACP-006). */
  const fits = (params: unknown): Effect.Effect<void, ClientRefused> =>
    utf8Length(wireJson(params)) + envelopeBytes <= writtenFrameBytes
      ? Effect.void
      : Effect.fail(new ClientRefused({ message: "it does not fit into one message of 1 MiB" }))

  const ask = (method: string, params: object): Effect.Effect<unknown, ClientProblem> =>
    Effect.andThen(
      fits(params),
      Effect.raceFirst(
        Effect.tryPromise({
          try: (signal) =>
            peer().asked.request<unknown>(method, params, { cancellationSignal: signal, stopWaitingOnCancel: true }),
          catch: problemOf
        }),
        isGone
      )
    )

  /** Said to a client that may be gone. */
  const tell = (method: string, params: Terminal): Promise<void> =>
    peer()
      .asked.request<unknown>(method, params)
      .then(
        () => undefined,
        () => undefined
      )

  const release = (id: string): void => {
    const send = Effect.sync(() => void tell("terminal/release", { sessionId, terminalId: id }))
    parts.fork(terminals.release(id, send, Deferred.await(gone)))
  }

  const terminalOf = (id: string): ClientTerminal => {
    const params: Terminal = { sessionId, terminalId: id }
    return {
      id,
      exit: Effect.flatMap(ask("terminal/wait_for_exit", params), (answer) => {
        const { exitCode: code = null, signal = null } = fieldsOf(answer)
        const isCode = code === null || (typeof code === "number" && Number.isInteger(code))
        return isObject(answer) && isCode && (signal === null || typeof signal === "string")
          ? Effect.succeed({ code, signal })
          : malformed()
      }),
      output: Effect.flatMap(ask("terminal/output", params), (answer) => {
        const { output, truncated } = fieldsOf(answer)
        return typeof output === "string"
          ? Effect.succeed({ text: output, truncated: truncated === true })
          : malformed()
      }),
      kill: Effect.suspend(() => {
        const told = tell("terminal/kill", params)
        return Effect.asVoid(
          Effect.timeoutOption(
            Effect.raceFirst(
              Effect.promise(() => told),
              Deferred.await(gone)
            ),
            killPatience
          )
        )
      })
    }
  }

  const openTerminal = (command: TerminalCommand) =>
    Effect.acquireRelease(
      Effect.suspend(() => {
        const { args, outputByteLimit } = command
        const params = {
          sessionId,
          command: command.command,
          args: [...args],
          env: Object.entries(command.env).map(([name, value]) => ({ name, value })),
          cwd: named(command.cwd),
          outputByteLimit
        }
        const controller = new AbortController()
        let id: string | undefined
        let isAbandoned = false
        const take = (answer: unknown): void => {
          const { terminalId } = fieldsOf(answer)
          if (typeof terminalId !== "string" || terminalId === "") return
          if (isAbandoned || terminalId.length > idChars)
            return void tell("terminal/release", { sessionId, terminalId })
          id = terminalId
          terminals.opened(id)
        }
        const create = (): Promise<void> =>
          peer().asked.request<unknown>("terminal/create", params, { cancellationSignal: controller.signal }).then(take)
        const asked = Effect.raceFirst(Effect.tryPromise({ try: create, catch: problemOf }), isGone)
        return Effect.exit(Effect.interruptible(Effect.andThen(fits(params), asked))).pipe(
          Effect.flatMap((exit) => {
            // An interruption that came together with the answer: the scope gives the terminal back.
            if (id !== undefined) return Effect.succeed(terminalOf(id))
            isAbandoned = true
            controller.abort()
            return Effect.andThen(exit, malformed())
          })
        )
      }),
      ({ id }) => Effect.sync(() => release(id))
    )

  return () => {
    const { readsFiles, terminals: hasTerminals, writesFiles } = parts.client()
    return {
      ...(readsFiles
        ? {
            readText: (path) =>
              Effect.flatMap(ask("fs/read_text_file", { sessionId, path: named(path) }), (answer) => {
                const { content } = fieldsOf(answer)
                return typeof content === "string" ? Effect.succeed(content) : malformed()
              })
          }
        : {}),
      ...(writesFiles
        ? {
            writeText: (path, content) =>
              Effect.flatMap(ask("fs/write_text_file", { sessionId, path: named(path), content }), (answer) =>
                // Early clients answer with null.
                answer === null || isObject(answer) ? Effect.void : Effect.fail(unclear)
              )
          }
        : {}),
      ...(hasTerminals ? { openTerminal } : {})
    }
  }
}
