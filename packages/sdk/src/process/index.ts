/**
 * `@tackroom/sdk/process`: children in groups of their own, their guard, the stdout guard and byte streams. Needs `effect`
 * and Node built-ins only, so that a program that starts often stays light (D-21).
 */
export * from "./ByteStreams.ts"
export {
  type Child,
  type ChildExit,
  type ChildStdin,
  type Graces,
  SpawnFailed,
  type SpawnSpec,
  StdinClosed
} from "./Child.ts"
export * from "./ChildEnvironment.ts"
export { type CommandQuery, type ResolvedCommand, resolveCommand } from "./CommandResolution.ts"
export * from "./NodeVersion.ts"
export * from "./PackageVersion.ts"
export { awaitGroupGone, endGroup, isGroupAlive, type Signal, signalGroup } from "./ProcessGroup.ts"
export * from "./Instance.ts"
export * from "./LineReader.ts"
export * from "./PrivateFolder.ts"
export * from "./ProcessOwner.ts"
export * from "./ProgramSearch.ts"
export {
  isSameProcess,
  type LinuxStat,
  parseLinuxStat,
  type ProcessIdentity,
  readLinuxStat,
  startTime
} from "./StartTime.ts"
export { type Machine, stateHome } from "./StateHome.ts"
export { stderrKeptBytes, stderrTailBytes } from "./StderrTail.ts"
export * from "./StdoutGuard.ts"
