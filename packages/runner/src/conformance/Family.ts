/**
 * A wire that can be checked, as the command sees it: its own flags, and the checks they come to.
 */
import { Data, type Effect, type Scope } from "effect"
import type { Check, KitFailed } from "./Check.ts"
import type { SelfTest } from "./SelfTest.ts"
import type { Timing } from "./Timing.ts"

/** A command line that is not understood. */
export class Usage extends Data.TaggedError("Usage")<{ readonly message: string }> {}

/** What the kit knows of the machine and of itself. */
export interface Place {
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** The Node that runs the kit's own programs. */
  readonly node: string
  /** The path of one of the kit's own programs. */
  readonly program: (name: ProgramName) => string
}

/** Programs that are started beside the kit, by the folder of their `main.ts`. */
export type ProgramName = "runner/agent" | "runner/reference" | "serve/reference" | "acp/reference" | "acp/server"

export interface FamilyRun {
  /** The words after `--`. */
  readonly command: ReadonlyArray<string>
  /** The family's own flags. */
  readonly flags: Readonly<Record<string, string | undefined>>
  readonly timing: Timing
  readonly keep: boolean
}

export interface Family {
  readonly name: string
  readonly summary: string
  /** The family's own flags, each of which takes a value, with a line of help. */
  readonly flags: Readonly<Record<string, string>>
  /** More help, one paragraph a line. */
  readonly help: ReadonlyArray<string>
  readonly prepare: (run: FamilyRun, place: Place) => Effect.Effect<Prepared, Usage | KitFailed, Scope.Scope>
  /** The checks against the reference program and its broken twins, with times scaled. */
  readonly selfTest: (place: Place, scale: number) => SelfTest
}

export interface Prepared {
  readonly checks: ReadonlyArray<Check>
  /** After so many failed musts in which the program was not heard at all, the rest is not run. */
  readonly silentCases?: number
  /** What a report ends with: what only a person can look at. */
  readonly closing: ReadonlyArray<string>
}
