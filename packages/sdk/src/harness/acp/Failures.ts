/** What goes wrong with an agent, in the errors of a driver (10.6). Nothing an agent says reaches a caller uncut. */
import {
  HarnessAuthRequired,
  type HarnessError,
  HarnessProcessExited,
  HarnessProgramMissing,
  HarnessProtocol,
  HarnessRejected,
  HarnessUnavailable
} from "@tackroom/protocol"
import type { ChildExit, SpawnFailed } from "../../process/index.ts"
import type { AuthMethod } from "./AgentFacts.ts"
import { fieldsOf, textOf } from "./Fields.ts"
import type { AgentError } from "./Profiles.ts"

/** Characters of an agent's own words in an error. */
const nativeLength = 500

const authRequired = -32_000

/** The error answer behind a rejected call of the SDK, if it is one. */
export const agentErrorOf = (cause: unknown): AgentError | undefined => {
  const fields = fieldsOf(cause)
  const code = fields?.["code"]
  const message = textOf(fields?.["message"])
  return cause instanceof Error && typeof code === "number" && message !== undefined
    ? { code, message, data: fields?.["data"] }
    : undefined
}

/** An error answer of the agent. */
export const refusedBy = (
  harness: string,
  operation: string,
  error: AgentError,
  methods: ReadonlyArray<AuthMethod>
): HarnessError => {
  const native = { code: String(error.code), message: error.message.slice(0, nativeLength) }
  if (error.code === authRequired) {
    const ways = methods.map(({ id, name }) => `${name} (${id})`).join(", ")
    return new HarnessAuthRequired({
      harness,
      operation,
      native,
      detail: ways === "" ? "it names no way to sign in" : `it can be signed in by ${ways}`
    })
  }
  return new HarnessRejected({ harness, operation, native, detail: native.message })
}

/** The agent's process is gone. */
export const exitedWith = (harness: string, operation: string, exit: ChildExit): HarnessError =>
  new HarnessProcessExited({
    harness,
    operation,
    ...(exit.code === null ? {} : { exitCode: exit.code }),
    ...(exit.signal === null ? {} : { signal: exit.signal }),
    stderrTail: exit.stderrTail
  })

/** The agent said what ACP does not allow. */
export const brokeProtocol = (harness: string, operation: string, detail: string): HarnessError =>
  new HarnessProtocol({ harness, operation, detail })

/** The agent could not be started. */
export const notStarted = (harness: string, failed: SpawnFailed): HarnessError =>
  failed.code === "ENOENT" || failed.code === "EACCES"
    ? new HarnessProgramMissing({ harness, operation: "start", detail: failed.message })
    : new HarnessUnavailable({ harness, operation: "start", detail: failed.message })
