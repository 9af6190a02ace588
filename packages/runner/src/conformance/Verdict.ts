/**
 * What the kit says about each promise, and what that means for its exit code. Pure.
 */
import type { Level, SkipReason } from "./Check.ts"
import type { Evidence } from "./Evidence.ts"

export type Verdict = "pass" | "fail" | "skip"

/** `contract` leaves the levels as they are; `tackroom` makes every should a must. */
export type Profile = "contract" | "tackroom"

export interface Result {
  readonly id: string
  readonly level: Level
  readonly title: string
  readonly rules: ReadonlyArray<string>
  readonly verdict: Verdict
  /** Why it failed, or the reason of a skip. */
  readonly reason?: string
  readonly durationMs: number
  readonly evidence: ReadonlyArray<Evidence>
}

export const exitCodes = { kept: 0, broken: 1, undecided: 2, usage: 64, kit: 70 } as const

export const levelIn = (profile: Profile, level: Level): Level => (profile === "tackroom" ? "must" : level)

const harmless: ReadonlySet<SkipReason> = new Set<SkipReason>(["not_declared", "excluded"])

const isHarmless = (reason: string | undefined): boolean => [...harmless].some((one) => one === reason)

/** 1 when a must failed; 2 when a must was skipped for a reason that is not the operator's or the program's own. */
export const exitCode = (results: ReadonlyArray<Result>): number => {
  const musts = results.filter((result) => result.level === "must")
  if (musts.some((result) => result.verdict === "fail")) return exitCodes.broken
  if (musts.some((result) => result.verdict === "skip" && !isHarmless(result.reason))) return exitCodes.undecided
  return exitCodes.kept
}

export interface Summary {
  readonly pass: number
  readonly fail: number
  readonly skip: number
}

export const summarize = (results: ReadonlyArray<Result>): Summary => {
  const count = (verdict: Verdict): number => results.filter((result) => result.verdict === verdict).length
  return { pass: count("pass"), fail: count("fail"), skip: count("skip") }
}
