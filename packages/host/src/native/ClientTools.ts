/**
 * Which calls of a session its client carries out: files.read, files.write and files.edit on text files, and shell.run in its
 * terminal (ACP-211, ACP-213). Every other call is the tool runner's: a client without the capability, bytes, lists and
 * searches, and a command with an input, which a terminal could get on its command line only.
 *
 * It owns the two phases of such a call, as the tool runner has them: checked by the same workspace, in the same words, before
 * its dispatch record; then carried out. How that is done is `tools/ClientFiles.ts` and `tools/ClientShell.ts`.
 */
import { Effect, type Schema } from "effect"
import { type ClientFiles, editThroughClient, readThroughClient, writeThroughClient } from "../tools/ClientFiles.ts"
import { fitsTerminal, runInTerminal } from "../tools/ClientShell.ts"
import { ClientLost, type ClientSides } from "../tools/ClientSide.ts"
import { checkEdit, checkWrite, type FilesEditInput, type FilesWriteInput } from "../tools/FileChange.ts"
import type { FilesReadInput } from "../tools/FileContent.ts"
import { Failed, NotRun } from "../tools/Refusal.ts"
import type { FileDiff } from "../tools/Results.ts"
import { prepareShell, type ShellInput } from "../tools/Shell.ts"
import type { ToolRunnerService } from "../tools/ToolRunner.ts"
import { Workspace } from "../tools/Workspace.ts"
import type { ExecuteTool, ToolOutput, ToolProblem } from "./SessionSetup.ts"

export interface ClientToolsParts {
  readonly sides: Pick<ClientSides, "find">
  /** Never open to a tool (AGT-061). */
  readonly stateDir: string
  readonly shellSecondsMax: number
  readonly runner: Pick<ToolRunnerService, "call">
}

type Call = Parameters<ExecuteTool>[0]

/** A checked call. */
type Step = Effect.Effect<{ readonly output: object; readonly diff?: FileDiff }, Failed | ClientLost>

const problemOf = (problem: Failed | ClientLost): ToolProblem =>
  problem instanceof Failed
    ? { outcome: "failed", message: problem.message, code: problem.code }
    : { outcome: "unknown", message: problem.message }

const refusalOf = (cause: unknown): ToolProblem => ({
  outcome: "not_run",
  message: cause instanceof NotRun ? cause.message : "the call could not be prepared"
})

export const clientTools = ({ runner, shellSecondsMax, sides, stateDir }: ClientToolsParts) => {
  const run = (call: Call, check: (workspace: Workspace) => Promise<Step>): Effect.Effect<ToolOutput, ToolProblem> =>
    Effect.gen(function* () {
      const step = yield* Effect.tryPromise({
        try: async (): Promise<Step> => {
          const workspace = await Workspace.make(call.workspace, stateDir).catch((cause: unknown) => {
            // A workspace that is lost is no refusal: the call is dispatched and fails (RUN-351).
            if (cause instanceof Failed) return cause
            throw cause
          })
          return workspace instanceof Failed ? Effect.fail(workspace) : check(workspace)
        },
        catch: refusalOf
      })
      yield* call.beforeDispatch
      const { diff, output } = yield* Effect.mapError(step, problemOf)
      return { output: output as Schema.JsonObject, ...(diff === undefined ? {} : { diff }) }
    })

  /** The tool runner's part of a change, which is dispatched already. */
  const onDisk =
    ({ arguments: args, tool, workspace }: Call): ClientFiles["onDisk"] =>
    (client) =>
      runner.call({ tool, arguments: args, workspace, client }).pipe(
        Effect.mapError((problem) => {
          if (problem._tag === "ToolFailed") return new Failed(problem.message, problem.code)
          return problem._tag === "ToolNotRun" || client.takes === true
            ? new Failed(problem.message)
            : new ClientLost({ message: problem.message, code: "failed" })
        }),
        Effect.flatMap((result) =>
          (result.tool === "files.write" || result.tool === "files.edit") && result.diff !== undefined
            ? Effect.succeed({ output: result.output, diff: result.diff })
            : Effect.fail(new Failed("the tool failed in an unexpected way"))
        )
      )

  /** What was sent when the turn was cancelled may be written or not (ACP-212). */
  const uncertain = (call: Call, message: string): void => call.ifInterrupted({ outcome: "unknown", message })

  /** The call's end, or nothing when it is not the client's. The arguments fit the tool's schema. */
  const execute = (call: Call): Effect.Effect<ToolOutput, ToolProblem> | undefined => {
    const side = sides.find(call.sessionId)
    if (side === undefined) return undefined
    const { openTerminal, readText, writeText: send } = side
    const given: unknown = call.arguments
    const writeText: typeof send =
      send === undefined
        ? undefined
        : (path, text) =>
            Effect.onInterrupt(send(path, text), () =>
              Effect.sync(() => uncertain(call, "it was cancelled before the client had answered"))
            )
    const files: ClientFiles = { readText, writeText, onDisk: onDisk(call) }
    switch (call.tool) {
      case "files.read": {
        const input = given as FilesReadInput
        if (readText === undefined || input.encoding === "base64") return undefined
        return run(call, async (workspace) => {
          const path = await workspace.resolve(input.path)
          return Effect.map(readThroughClient(readText, workspace, path, input), (output) => ({ output }))
        })
      }
      case "files.write": {
        const input = given as FilesWriteInput
        if (readText === undefined && writeText === undefined) return undefined
        return run(call, async (workspace) => {
          checkWrite(input)
          return writeThroughClient(files, workspace, await workspace.resolve(input.path), input)
        })
      }
      case "files.edit": {
        const input = given as FilesEditInput
        if (readText === undefined && writeText === undefined) return undefined
        return run(call, async (workspace) => {
          checkEdit(input)
          return editThroughClient(files, workspace, await workspace.resolve(input.path), input)
        })
      }
      case "shell.run": {
        const input = given as ShellInput
        if (openTerminal === undefined || !fitsTerminal(input)) return undefined
        return run(call, async (workspace) => {
          const prepared = await prepareShell(workspace, input, shellSecondsMax)
          const hooks = {
            opened: call.onTerminal,
            output: (text: string) => call.onDelta("combined", text),
            lost: (message: string) => uncertain(call, message)
          }
          return Effect.map(runInTerminal(openTerminal, workspace, prepared, hooks), (output) => ({ output }))
        })
      }
      default:
        return undefined
    }
  }

  return { execute }
}
