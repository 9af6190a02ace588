/**
 * Owns every child of a runtime, a host or a runner (D-17): each leads its own group, is told to the guard and recorded
 * before its first use, and is gone when its scope or the owner ends.
 *
 * It does not decide what a child is for, parses nothing a child says, and keeps no record itself: `records` is the
 * caller's, usually the store's.
 */
import { Clock, Context, Deferred, Effect, Exit, Layer, type Scope } from "effect"
import {
  type Child,
  type ChildExit,
  type Graces,
  type Launched,
  launch,
  makeOutputs,
  makeStdin,
  shutdownLeader,
  SpawnFailed,
  spawnFailed,
  type SpawnSpec,
  sweepGroup,
  terminateLeader
} from "./Child.ts"
import { childEnvironment, type EnvironmentSource } from "./ChildEnvironment.ts"
import { sleep } from "./internal/RealTime.ts"
import { type Guard, makeGuard } from "./Guard.ts"
import { endGroup, signalGroup } from "./ProcessGroup.ts"
import { isSameProcess, startTime } from "./StartTime.ts"

/** What is kept of a child while it lives (HRN-032). The command is the program only: arguments may hold secrets. */
export interface ProcessRecord {
  readonly id: string
  readonly instanceId: string
  readonly pid: number
  readonly started: string
  readonly pgid: number
  readonly role: string
  readonly command: string
  readonly sessionId: string | null
}

/** Where records are kept. `add` completes before the child is handed to anyone; its failure fails the spawn. */
export interface ProcessRecords {
  readonly add: (record: ProcessRecord) => Effect.Effect<void, unknown>
  readonly remove: (id: string) => Effect.Effect<void, unknown>
}

/** One row of `health.processes`. */
export interface ProcessInfo {
  readonly id: string
  readonly role: string
  readonly pid: number
  readonly state: "running" | "exited"
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  readonly exit?: ChildExit
}

/** What became of the records of an owner that died. */
export interface ReapResult {
  /** Records whose process was still the recorded one and was ended. */
  readonly ended: ReadonlyArray<ProcessRecord>
  /** Records whose process is gone or whose pid belongs to another process now; nothing was signalled. */
  readonly stale: ReadonlyArray<ProcessRecord>
}

/** What an owner is made of. It reads no environment of its own: the caller gives it. */
export interface ProcessOwnerOptions {
  /** Names this owner in records. */
  readonly instanceId: string
  /** The environment children inherit from, through the lists of `ChildEnvironment`. */
  readonly environment: EnvironmentSource
  readonly records?: ProcessRecords
  /** Default: 2000 each (HRN-039). */
  readonly graces?: Partial<Graces>
  readonly platform?: string
}

/** Tells the guard of groups that are no children of ours, such as those which a child of ours started for itself. */
export interface GroupGuard {
  /** From now on the guard ends this group when we die, or when the owner is disposed. */
  readonly add: (pgid: number) => Effect.Effect<void>
  readonly remove: (pgid: number) => Effect.Effect<void>
}

/** Starts, lists and ends children (D-17). */
export interface ProcessOwnerService {
  /** Starts a child that lives at most as long as the scope. */
  readonly spawn: (spec: SpawnSpec) => Effect.Effect<Child, SpawnFailed, Scope.Scope>
  /**
   * Ends the groups that an owner which died left behind: only where pid **and** start time still match (HRN-033).
   * The records are the caller's to remove afterwards.
   */
  readonly reap: (records: ReadonlyArray<ProcessRecord>) => Effect.Effect<ReapResult>
  readonly groups: GroupGuard
  /** Living children, the guard, and the last 16 that ended. */
  readonly list: Effect.Effect<ReadonlyArray<ProcessInfo>>
}

const keptExits = 16

/** Children of this process ever started: two owners of one process may write to one store. */
let count = 0

/** How long the end of a child waits for its record. */
const recordWaitMs = 2000

interface Owned {
  readonly id: string
  readonly spec: SpawnSpec
  readonly launched: Launched
  readonly startedAt: number
  readonly shutdown: Effect.Effect<ChildExit>
}

const noRecords: ProcessRecords = { add: () => Effect.void, remove: () => Effect.void }

/** An owner without a scope: whoever makes it must run `dispose`. */
export interface DisposableProcessOwner extends ProcessOwnerService {
  /** Ends all children at once, then the guard; from its first instruction on no start succeeds (HRN-041). */
  readonly dispose: Effect.Effect<void>
}

/**
 * The plain constructor. Starts nothing before the first `spawn`.
 *
 * @see ProcessOwner.layer for use as a service
 */
export const makeProcessOwner = (options: ProcessOwnerOptions): DisposableProcessOwner => {
  const platform = options.platform ?? process.platform
  const records = options.records ?? noRecords
  const graces: Graces = { stdinMs: options.graces?.stdinMs ?? 2000, termMs: options.graces?.termMs ?? 2000 }
  const guard: Guard = makeGuard({ path: options.environment["PATH"], platform })
  const children = new Map<string, Owned>()
  const ended: Array<ProcessInfo> = []
  let disposed = false
  let guardStartedAt = 0

  const ownerClosed = (spec: SpawnSpec): SpawnFailed =>
    new SpawnFailed({
      command: spec.command,
      code: "owner_closed",
      message: `cannot start ${spec.command}: the owner of its processes is disposed`
    })

  const infoOf = (owned: Owned): ProcessInfo => {
    const exit = owned.launched.exited()
    return {
      id: owned.id,
      role: owned.spec.role,
      pid: owned.launched.pid,
      state: exit === undefined ? "running" : "exited",
      startedAt: owned.startedAt,
      ...(exit === undefined ? {} : { exit })
    }
  }

  /** Removes a record after its own adding; a store that does not answer holds up no shutdown. */
  const forget = (id: string, recorded: Deferred.Deferred<void>): Effect.Effect<void> =>
    Deferred.await(recorded).pipe(
      Effect.andThen(records.remove(id)),
      Effect.catchCause((cause) => Effect.logWarning("a process record could not be removed", cause)),
      Effect.raceFirst(sleep(recordWaitMs))
    )

  const acquire = Effect.fnUntraced(function* (spec: SpawnSpec) {
    if (disposed) return yield* ownerClosed(spec)
    const environment = childEnvironment(options.environment, spec.env ?? {}, platform)
    // The guard starts while the gate does, and is told of the group before any other code of ours can run.
    const launched = yield* launch({
      spec,
      environment,
      platform,
      onUngated: guard.start,
      onStarted: guard.add
    })
    const started = startTime(launched.pid, platform) ?? ""
    const startedAt = yield* Clock.currentTimeMillis
    if (guardStartedAt === 0) guardStartedAt = startedAt
    const id = `${options.instanceId}.${++count}`
    const recorded = Deferred.makeUnsafe<void>()
    const closed = Deferred.makeUnsafe<ChildExit>()
    const stdin = makeStdin(launched.process)
    const awaitClosed = Deferred.await(closed)
    const shutdown = Effect.andThen(shutdownLeader(launched, stdin, graces), awaitClosed)
    const owned: Owned = { id, spec, launched, startedAt, shutdown }
    children.set(id, owned)

    const finish = Effect.gen(function* () {
      const exit = yield* Deferred.await(launched.exit)
      const gone = yield* sweepGroup(launched, graces)
      if (gone) guard.remove(launched.pid)
      yield* forget(id, recorded)
      children.delete(id)
      ended.push(infoOf(owned))
      if (ended.length > keptExits) ended.shift()
      Deferred.doneUnsafe(closed, Exit.succeed(exit))
    })
    yield* Effect.forkDetach(finish)

    const record: ProcessRecord = {
      id,
      instanceId: options.instanceId,
      pid: launched.pid,
      started,
      pgid: launched.pid,
      role: spec.role,
      command: spec.command,
      sessionId: spec.sessionId ?? null
    }
    const written = yield* Effect.exit(records.add(record))
    Deferred.doneUnsafe(recorded, Exit.void)
    if (Exit.isFailure(written)) {
      yield* Effect.andThen(terminateLeader(launched, graces), awaitClosed)
      return yield* new SpawnFailed({
        command: spec.command,
        code: "record_failed",
        message: `cannot start ${spec.command}: the process could not be recorded`
      })
    }
    // Known to the guard and to the records: from here on the program may run.
    yield* guard.told(launched.pid)
    if (disposed) {
      yield* shutdown
      return yield* ownerClosed(spec)
    }
    const refused = launched.gate === undefined ? undefined : yield* launched.gate.open
    if (refused !== undefined) {
      yield* awaitClosed
      return yield* spawnFailed(spec, refused)
    }
    if (disposed) {
      yield* shutdown
      return yield* ownerClosed(spec)
    }
    const child: Child = {
      id,
      role: spec.role,
      command: spec.command,
      pid: launched.pid,
      pgid: launched.pid,
      started,
      stdin,
      ...makeOutputs(launched, spec, awaitClosed),
      stderrText: launched.stderr.text,
      exit: Deferred.await(launched.exit),
      closed: awaitClosed,
      exited: launched.exited,
      signal: (signal) => Effect.sync(() => signalGroup(launched.pid, signal)),
      terminate: Effect.andThen(terminateLeader(launched, graces), awaitClosed),
      shutdown
    }
    return { child, launched }
  })

  const spawn = (spec: SpawnSpec): Effect.Effect<Child, SpawnFailed, Scope.Scope> =>
    Effect.map(
      Effect.acquireRelease(acquire(spec), ({ child, launched }) =>
        Effect.andThen(
          child.shutdown,
          Effect.sync(() => {
            launched.process.stdin?.destroy()
            launched.process.stdout?.destroy()
            launched.stderrPipe?.destroy()
          })
        )
      ),
      ({ child }) => child
    )

  const reap = Effect.fnUntraced(function* (found: ReadonlyArray<ProcessRecord>) {
    const matching = found.filter(isSameProcess)
    yield* Effect.forEach(matching, (record) => endGroup(record.pgid, graces.termMs), {
      concurrency: "unbounded",
      discard: true
    })
    return { ended: matching, stale: found.filter((record) => !matching.includes(record)) }
  })

  return {
    spawn,
    reap,
    groups: {
      add: (pgid) =>
        Effect.andThen(
          Effect.sync(() => guard.add(pgid)),
          guard.told(pgid)
        ),
      remove: (pgid) => Effect.sync(() => guard.remove(pgid))
    },
    list: Effect.sync(() => {
      const info = guard.info()
      const running = [...children.values()].map(infoOf)
      return info.running && info.pid !== undefined
        ? [
            ...running,
            {
              id: `${options.instanceId}.guard`,
              role: "guard",
              pid: info.pid,
              state: "running" as const,
              startedAt: guardStartedAt
            },
            ...ended
          ]
        : [...running, ...ended]
    }),
    dispose: Effect.uninterruptible(
      Effect.gen(function* () {
        disposed = true
        yield* Effect.forEach([...children.values()], (owned) => owned.shutdown, {
          concurrency: "unbounded",
          discard: true
        })
        yield* guard.close
      })
    )
  }
}

/** The owner as a service; one per runtime. */
export class ProcessOwner extends Context.Service<ProcessOwner, ProcessOwnerService>()(
  "@tackroom/sdk/process/ProcessOwner"
) {
  /** An owner that ends its children when the scope closes. */
  static readonly make = (options: ProcessOwnerOptions): Effect.Effect<ProcessOwnerService, never, Scope.Scope> =>
    Effect.acquireRelease(
      Effect.sync(() => makeProcessOwner(options)),
      (owner) => owner.dispose
    )

  static readonly layer = (options: ProcessOwnerOptions): Layer.Layer<ProcessOwner> =>
    Layer.effect(ProcessOwner, ProcessOwner.make(options))
}
