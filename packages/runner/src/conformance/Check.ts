/**
 * What a check is: one promise of a wire, and the effect that finds out whether a program keeps it.
 *
 * It owns how a check ends before its time: the promise is broken, the check says nothing here, or the kit itself failed.
 * It does not own what is checked (the families) nor how many run at once (`Schedule`).
 */
import { Data, type Effect, type Scope } from "effect"
import type { Evidence } from "./Evidence.ts"

export type Level = "must" | "should"

/** Why a check says nothing. */
export type SkipReason = "not_declared" | `needs:${string}` | "race" | "platform" | "excluded"

/** The promise is not kept. The message says what was expected and what was seen. */
export class Broken extends Data.TaggedError("Broken")<{ readonly message: string }> {}

/** The check does not apply to this program here. */
export class Skipped extends Data.TaggedError("Skipped")<{ readonly reason: SkipReason }> {}

/** The kit could not do its own part: nothing is said about the program. */
export class KitFailed extends Data.TaggedError("KitFailed")<{ readonly message: string }> {}

export type Stop = Broken | Skipped | KitFailed

/** Where a running check leaves what it saw: once for each program that it ran. */
export interface Witness {
  readonly saw: (evidence: ReadonlyArray<Evidence>) => void
  /** The program did something that its wire knows: it is not silent. */
  readonly heard: () => void
}

export interface Check {
  readonly id: string
  readonly level: Level
  readonly title: string
  /** The rules of the specification that the promise comes from. */
  readonly rules: ReadonlyArray<string>
  /** Checks that must have passed before this one can say anything. */
  readonly needs: ReadonlyArray<string>
  /** It watches for long and does little: it runs beside the others and takes nobody's place. */
  readonly quiet: boolean
  readonly run: (witness: Witness) => Effect.Effect<void, Stop, Scope.Scope>
}

export const broken = (message: string): Broken => new Broken({ message })
export const skipped = (reason: SkipReason): Skipped => new Skipped({ reason })
export const kitFailed = (message: string): KitFailed => new KitFailed({ message })
