/**
 * The times of a run of the kit.
 *
 * A deadline only says how long the kit waits for something to come; `patience` stretches it on a slow machine. A stretch of
 * observation is part of a promise (nothing happens for a minute); `scale` shortens it, and with it the times a promise
 * names, for a program that was told to live at the same scale. A report of a scaled run says so: it is no evidence for a
 * program at its ordinary pace.
 */

export interface Timing {
  readonly scale: number
  readonly patience: number
}

export const realTiming: Timing = { scale: 1, patience: 1 }

/** Milliseconds to wait for something that must come within `seconds`. */
export const deadline = (timing: Timing, seconds: number): number => seconds * 1_000 * timing.patience

/** Milliseconds of an observation of `seconds`, and of a time that a promise names. */
export const stretch = (timing: Timing, seconds: number): number => seconds * 1_000 * timing.scale
