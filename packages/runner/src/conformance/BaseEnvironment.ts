/** What of the kit's own environment a program under test is given: as much as it needs to run at all. Pure. */
import type { Place } from "./Family.ts"

const names = ["PATH", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"]

export const baseEnvironment = ({ env }: Place, more: ReadonlyArray<string> = []): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...names, ...more].flatMap((name) => {
      const value = env[name]
      return value === undefined ? [] : [[name, value]]
    })
  )
