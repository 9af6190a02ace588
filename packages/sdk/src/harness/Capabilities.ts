/**
 * What a harness can do, declared by its driver (10.4). A call for something not declared fails `unsupported_operation`
 * (HRN-001); a declared capability holds and has a case in the contract kit (HRN-002).
 *
 * @since 0.1.0
 */

/** How the working instructions reach the model. @since 0.1.0 */
export type InstructionChannel =
  | "none"
  | "turn-system-prompt"
  | "thread-start"
  | "prompt-prefix"
  | "append-system-prompt"
  | "native"

/** @since 0.1.0 */
export interface HarnessCapabilities {
  readonly harness: string
  readonly access: "native" | "acp" | "connection"
  readonly modelSelection: "required" | "optional" | "unsupported"
  readonly abort: boolean
  readonly reconnect: boolean
  readonly replay: boolean
  readonly steer: boolean
  readonly resume: "exact" | "none"
  /** What becomes of a turn that was handed over when its runtime died. */
  readonly turnRecovery: "none" | "reattach" | "resume"
  readonly permissions: boolean
  readonly questions: boolean
  readonly todos: boolean
  readonly commands: boolean
  readonly fork: boolean
  readonly revert: boolean
  readonly unrevert: boolean
  readonly configOptions: boolean
  readonly models: boolean
  readonly effortLevels: ReadonlyArray<string>
  readonly attachments: {
    readonly image: boolean
    readonly pdf: boolean
    readonly audio: boolean
    readonly file: boolean
  }
  readonly instructionChannel: InstructionChannel
  readonly mcp: "none" | "stdio" | "stdio+http"
  readonly permissionModes: boolean
  readonly subagents: boolean
  readonly goals: boolean
  readonly handoff: boolean
  /** Every model request shows as `response-start`. */
  readonly rounds: boolean
  readonly processScope: "session" | "shared" | "none"
  readonly movable: boolean
}

/** Everything off: the base that a driver switches on from. @since 0.1.0 */
export const noCapabilities = (harness: {
  readonly id: string
  readonly access: HarnessCapabilities["access"]
}): HarnessCapabilities => ({
  harness: harness.id,
  access: harness.access,
  modelSelection: "unsupported",
  abort: false,
  reconnect: false,
  replay: false,
  steer: false,
  resume: "none",
  turnRecovery: "none",
  permissions: false,
  questions: false,
  todos: false,
  commands: false,
  fork: false,
  revert: false,
  unrevert: false,
  configOptions: false,
  models: false,
  effortLevels: [],
  attachments: { image: false, pdf: false, audio: false, file: false },
  instructionChannel: "none",
  mcp: "none",
  permissionModes: false,
  subagents: false,
  goals: false,
  handoff: false,
  rounds: false,
  processScope: "none",
  movable: false
})
