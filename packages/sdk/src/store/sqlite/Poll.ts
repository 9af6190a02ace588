/**
 * Wakeups from other processes (STO-044): while somebody listens, `PRAGMA data_version` is read every 50 ms; when another
 * connection has committed, the sessions that moved are found by their `changed`.
 */
import { fromPlainText } from "../Tables.ts"
import type { Wakeup } from "../Wakeups.ts"
import type { Connection } from "./Database.ts"
import { isBusy } from "./Failures.ts"

/** Milliseconds between looks. */
const pollMs = 50

/** Makes the poll; it runs between `start` and `stop` once it has a connection. */
export const makePoll = (publish: (wakeups: ReadonlyArray<Wakeup>) => void) => {
  let look: (() => void) | undefined
  let timer: NodeJS.Timeout | undefined
  let isWanted = false

  /** The statements are prepared once; a look starts from what is there when it is made. */
  const prepareLooks = (db: Connection): (() => () => void) => {
    const version = db.prepare<[], number>("PRAGMA data_version").pluck()
    const newest = db.prepare<[], number>("SELECT coalesce(max(changed), 0) FROM tr_session").pluck()
    const moved = db
      .prepare<[number], [string, number, number]>(
        "SELECT id, head, changed FROM tr_session WHERE changed > ? ORDER BY changed"
      )
      .raw()
    return () => {
      let seen = newest.get() ?? 0
      let last = version.get()
      return () => {
        const now = version.get()
        if (now === last) return
        const rows = moved.all(seen)
        seen = rows.at(-1)?.[2] ?? seen
        last = now
        publish(rows.map(([id, head]) => ({ sessionId: fromPlainText(id), head })))
      }
    }
  }

  const tick = (): void => {
    try {
      look?.()
    } catch (error) {
      // A busy file is looked at again; with any other trouble the readers' own calls fail and say so.
      if (!isBusy(error)) stop()
    }
  }

  const run = (): void => {
    if (!isWanted || timer !== undefined || makeLook === undefined) return
    look = makeLook()
    timer = setInterval(tick, pollMs)
    timer.unref()
  }

  const stop = (): void => {
    isWanted = false
    clearInterval(timer)
    timer = undefined
    look = undefined
  }

  let makeLook: (() => () => void) | undefined
  return {
    attach: (db: Connection): void => {
      makeLook = prepareLooks(db)
      run()
    },
    start: (): void => {
      isWanted = true
      run()
    },
    stop
  }
}
