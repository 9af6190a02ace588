/** How often a server that ended may be started again (RUN-257). Pure: the caller says what time it is. */

/** Restarts within the window. */
const mostRestarts = 5
const windowMs = 60_000

/** The restarts that still count, with one more at `now`; undefined when that would be one too many. */
export const withRestart = (before: ReadonlyArray<number>, now: number): ReadonlyArray<number> | undefined => {
  const counting = before.filter((at) => now - at < windowMs)
  return counting.length < mostRestarts ? [...counting, now] : undefined
}
