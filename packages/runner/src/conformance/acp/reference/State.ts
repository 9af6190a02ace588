/** The sessions of the reference agent, in a file that the next process finds. */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** A turn as it is told again. */
export interface Told {
  readonly prompt: string
  readonly said: string
}

export interface Stored {
  readonly cwd: string
  readonly turns: Array<Told>
}

export interface State {
  readonly sessions: Map<string, Stored>
  readonly save: () => void
}

export const openState = (folder: string | undefined): State => {
  const file = folder === undefined ? undefined : join(folder, "sessions.json")
  const found =
    file !== undefined && existsSync(file)
      ? (JSON.parse(readFileSync(file, "utf8")) as ReadonlyArray<[string, Stored]>)
      : []
  const sessions = new Map(found)
  return {
    sessions,
    save: () => {
      if (file !== undefined) writeFileSync(file, JSON.stringify([...sessions]))
    }
  }
}
