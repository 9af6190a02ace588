/**
 * What the reference agent was told on its command line, and the fault that is switched on. Pure.
 *
 * A fault is named by the check it breaks, so that a broken twin is this program with one flag. The reference shares no code
 * with `tackroom acp`: it is small on purpose and stands beside the checks as their own proof.
 */
import { parseArgs } from "node:util"

export interface Settings {
  /** Only what every agent has to have. */
  readonly bare: boolean
  /** Where sessions are kept. */
  readonly state: string | undefined
  readonly broken: (id: string) => boolean
}

export const readSettings = (argv: ReadonlyArray<string>): Settings => {
  const { values } = parseArgs({
    args: [...argv],
    options: { bare: { type: "boolean" }, fault: { type: "string" }, state: { type: "string" } }
  })
  return { bare: values.bare === true, state: values.state, broken: (id) => values.fault === id }
}
