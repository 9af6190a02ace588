/**
 * What the client of a face does itself for the tools of a session: reads and writes of text files, which it may hold unsaved,
 * and terminals, which a person sees (ACP-210, ACP-211, ACP-213).
 *
 * Owns: which sessions have such a client, and the words in which it fails. A face fills the registry while it has a session
 * open; who uses it is the native agent (`native/ClientTools.ts`), who also sees to it that a client that never answers is not
 * waited for.
 */
import { Data, type Effect, type Scope } from "effect"

/** The client answered with an error: what was asked did not happen (ACP-212). */
export class ClientRefused extends Data.TaggedError("ClientRefused")<{ readonly message: string }> {}

/** There is no answer and will be none: what was asked may have happened. */
export class ClientLost extends Data.TaggedError("ClientLost")<{
  readonly message: string
  readonly code: "failed" | "timeout"
}> {}

export type ClientProblem = ClientRefused | ClientLost

/** A command for a terminal; `cwd` is a real path. */
export interface TerminalCommand {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** The client forgets the beginning of longer output. */
  readonly outputByteLimit: number
}

export interface ClientTerminal {
  readonly id: string
  /** Waits for the command's end. */
  readonly exit: Effect.Effect<{ readonly code: number | null; readonly signal: string | null }, ClientProblem>
  /** The output so far. */
  readonly output: Effect.Effect<{ readonly text: string; readonly truncated: boolean }, ClientProblem>
  /** Ends the command; a client that does not answer is not waited for long. */
  readonly kill: Effect.Effect<void>
}

/** Paths are real ones. What is not offered is not there. */
export interface ClientSide {
  readonly readText?: (path: string) => Effect.Effect<string, ClientProblem>
  readonly writeText?: (path: string, text: string) => Effect.Effect<void, ClientProblem>
  /** The terminal is released with the scope, and one that comes after an interruption or a time-out at once. */
  readonly openTerminal?: (command: TerminalCommand) => Effect.Effect<ClientTerminal, ClientProblem, Scope.Scope>
}

/** The sessions whose client does something itself. */
export class ClientSides {
  readonly #sides = new Map<string, () => ClientSide>()

  /** `side` is asked at each call: a client may come to offer something else. */
  set(sessionId: string, side: () => ClientSide): void {
    this.#sides.set(sessionId, side)
  }

  delete(sessionId: string): void {
    this.#sides.delete(sessionId)
  }

  find(sessionId: string): ClientSide | undefined {
    return this.#sides.get(sessionId)?.()
  }
}
