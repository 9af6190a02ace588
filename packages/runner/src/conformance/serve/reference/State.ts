/** The durable session of the reference program: one file in a folder, written before anybody is told. */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"

export interface EndedRun {
  readonly submissionId: string
  readonly prompt: string
  readonly answer: string
  readonly status: string
  readonly errors: ReadonlyArray<unknown>
}

interface Stored {
  readonly session: string
  readonly runs: ReadonlyArray<EndedRun>
}

export interface State {
  readonly session: string
  readonly resumed: boolean
  readonly last: () => EndedRun | undefined
  readonly find: (submissionId: string) => EndedRun | undefined
  readonly add: (run: EndedRun) => void
}

/** Opens the session in a folder: the one that was asked for, or a new one; undefined when that one does not exist. */
export const openState = (folder: string | undefined, wanted: string | undefined, fresh: string): State | undefined => {
  const file = folder === undefined ? undefined : join(folder, "reference.json")
  const stored = file !== undefined && existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Stored) : undefined
  if (wanted !== undefined && stored?.session !== wanted) return undefined
  const session = wanted ?? fresh
  const runs = [...(wanted === undefined ? [] : (stored?.runs ?? []))]
  const save = (): void => {
    if (file === undefined) return
    writeFileSync(`${file}.new`, JSON.stringify({ session, runs }))
    renameSync(`${file}.new`, file)
  }
  save()
  return {
    session,
    resumed: wanted !== undefined,
    last: () => runs.at(-1),
    find: (submissionId) => runs.find((run) => run.submissionId === submissionId),
    add: (run) => {
      runs.push(run)
      save()
    }
  }
}
