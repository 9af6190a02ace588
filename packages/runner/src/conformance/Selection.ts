/**
 * Which checks of a family a command line asks for: `--only` and `--skip`. Pure.
 */
import type { Check } from "./Check.ts"

export interface Wish {
  readonly only: ReadonlyArray<string>
  readonly skip: ReadonlyArray<string>
}

export interface Selection {
  readonly checks: ReadonlyArray<Check>
  /** Selected and left out by name. */
  readonly excluded: ReadonlySet<string>
}

export const idsOf = (list: string): ReadonlyArray<string> =>
  list
    .split(",")
    .map((id) => id.trim())
    .filter((id) => id !== "")

/** The selection, or the ids that no check has. */
export const select = (
  all: ReadonlyArray<Check>,
  wish: Wish
): Selection | { readonly unknown: ReadonlyArray<string> } => {
  const known = new Set(all.map((check) => check.id))
  const unknown = [...wish.only, ...wish.skip].filter((id) => !known.has(id))
  if (unknown.length > 0) return { unknown }
  const only = new Set(wish.only)
  return {
    checks: only.size === 0 ? all : all.filter((check) => only.has(check.id)),
    excluded: new Set(wish.skip)
  }
}
