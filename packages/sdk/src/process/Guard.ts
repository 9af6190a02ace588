/**
 * The guard: one `/bin/sh` in a session of its own that outlives us, however we die (HRN-034, RUN-090, D-22). It is told
 * over a pipe which groups live (`+ PGID`, `- PGID`); at end of file it ends what is left: TERM, 2 s, KILL.
 *
 * It holds neither our stdout nor our stderr, ignores the signals a terminal sends, and is started again if it dies while
 * groups live. Not on Windows: there the records of the next start do the work (HRN-033).
 */
import { type ChildProcess, spawn } from "node:child_process"
import { Deferred, Effect, Exit } from "effect"

/** What the guard runs. POSIX sh only: dash on Linux, bash 3.2 in posix mode on macOS. */
export const guardScript = `trap '' HUP INT QUIT TERM PIPE USR1 USR2 TSTP TTIN TTOU
cd /
g=
while IFS= read -r l; do
  p=\${l#? }
  case "$p" in ''|0|1|*[!0-9]*) continue;; esac
  case "$l" in
    '+ '*) g="$g $p";;
    '- '*) n=; for q in $g; do [ "$q" = "$p" ] || n="$n $q"; done; g=$n;;
  esac
done
[ -n "$g" ] || exit 0
for q in $g; do kill -s TERM -- "-$q"; done 2>/dev/null
i=0
while [ $i -lt 2 ]; do
  a=
  for q in $g; do kill -s 0 -- "-$q" && a=1; done 2>/dev/null
  [ -n "$a" ] || exit 0
  sleep 1
  i=$((i+1))
done
for q in $g; do kill -s KILL -- "-$q"; done 2>/dev/null
exit 0`

/** How often a guard that dies is started again before we go on without one. */
const maxRestarts = 16

/** The guard's process as health shows it. */
export interface GuardInfo {
  readonly pid: number | undefined
  readonly running: boolean
  readonly restarts: number
}

/** The guard of one owner (HRN-034). */
export interface Guard {
  /** Starts the guard when none runs, before the first group is known. */
  readonly start: () => void
  /** Tells the guard of a group; starts the guard when none runs. */
  readonly add: (pgid: number) => void
  /** Completes when a guard has the group on its pipe; also when it is no longer on the list, or no guard can run. */
  readonly told: (pgid: number) => Effect.Effect<void>
  readonly remove: (pgid: number) => void
  readonly info: () => GuardInfo
  /** Ends the guard by closing its pipe and waits until it is gone; groups it still knows are ended by it. */
  readonly close: Effect.Effect<void>
}

/** Makes a guard; no process is started before `start` or the first `add`. `environment` needs no more than PATH. */
export const makeGuard = (options: {
  readonly path: string | undefined
  readonly platform: string
  /** Told when a guard died that was still needed, after the next one was started. */
  readonly onRestart?: () => void
}): Guard => {
  const groups = new Map<number, Deferred.Deferred<void>>()
  let shell: ChildProcess | undefined
  let restarts = 0
  let closed = false

  const settle = (told: Deferred.Deferred<void>): void => void Deferred.doneUnsafe(told, Exit.void)

  const tell = (guard: ChildProcess, pgid: number, told: Deferred.Deferred<void>): void => {
    // A guard that is gone: the next one is told of every group.
    guard.stdin?.write(`+ ${pgid}\n`, (error) => {
      if (closed || error === undefined || error === null) settle(told)
    })
  }

  const start = (): void => {
    if (options.platform === "win32" || closed || restarts > maxRestarts) {
      for (const told of groups.values()) settle(told)
      return
    }
    const started = spawn("/bin/sh", ["-c", guardScript, "tackroom-guard"], {
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
      cwd: "/",
      env: { PATH: options.path ?? "/usr/bin:/bin" }
    })
    shell = started
    const gone = (): void => {
      if (shell !== started) return
      shell = undefined
      restarts += 1
      if (closed || groups.size === 0) return
      start()
      options.onRestart?.()
    }
    started.once("exit", gone)
    started.once("error", gone)
    // A write to a guard that just died: `exit` follows and starts the next one with every group.
    started.stdin?.on("error", () => undefined)
    started.unref()
    const stdin: unknown = started.stdin
    if (typeof stdin === "object" && stdin !== null && "unref" in stdin && typeof stdin.unref === "function") {
      stdin.unref()
    }
    for (const [pgid, told] of groups) tell(started, pgid, told)
  }

  return {
    start: () => {
      if (shell === undefined) start()
    },
    add: (pgid) => {
      const told = groups.get(pgid) ?? Deferred.makeUnsafe<void>()
      groups.set(pgid, told)
      if (shell === undefined) start()
      else tell(shell, pgid, told)
    },
    told: (pgid) =>
      Effect.suspend(() => {
        const told = groups.get(pgid)
        return told === undefined ? Effect.void : Deferred.await(told)
      }),
    remove: (pgid) => {
      const told = groups.get(pgid)
      if (told === undefined) return
      groups.delete(pgid)
      settle(told)
      shell?.stdin?.write(`- ${pgid}\n`)
    },
    info: () => ({ pid: shell?.pid, running: shell !== undefined, restarts }),
    close: Effect.callback<void>((resume) => {
      closed = true
      const last = shell
      const gone = last === undefined || last.pid === undefined || last.exitCode !== null || last.signalCode !== null
      if (gone) return resume(Effect.void)
      last.ref()
      last.once("exit", () => resume(Effect.void))
      last.stdin?.end()
    })
  }
}
