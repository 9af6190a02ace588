/**
 * files.read, files.write and files.edit on text files that the client keeps (ACP-211, ACP-212).
 *
 * Which paths are allowed is the workspace's decision, taken again right before the client is asked, who opens them by name;
 * results are made as in the tool runner (`FileContent.ts`, `FileChange.ts`). An error of the client is the tool's, and the disk
 * is not used instead; a client that offers only one of reading and writing does its part of a change, and the tool runner the
 * other. A change fails with `ClientLost` when it was sent and nobody said what became of it; everything before
 * that fails with `Failed`, and nothing was changed. Changes of one file are taken one after another.
 */
import { Effect, Semaphore } from "effect"
import { lstat } from "node:fs/promises"
import { attempt, orFailed, within } from "./ClientCall.ts"
import type { ClientLost, ClientProblem, ClientSide } from "./ClientSide.ts"
import {
  type Changed,
  type ClientPart,
  editChange,
  type FilesEditInput,
  type FilesWriteInput,
  writeChange
} from "./FileChange.ts"
import { type FilesReadInput, readContent, sha256, tooLarge } from "./FileContent.ts"
import { limits } from "./Limits.ts"
import { Failed, fileFailure, named } from "./Refusal.ts"
import type { FilesEditResult, FilesReadResult, FilesWriteResult } from "./Results.ts"
import type { Resolved, Workspace } from "./Workspace.ts"

type ReadText = NonNullable<ClientSide["readText"]>
type WriteText = NonNullable<ClientSide["writeText"]>

/** How long a client may take to read or write a file. */
const patience = "60 seconds"

const unread = (path: Resolved, problem: ClientProblem): Failed =>
  problem._tag === "ClientRefused"
    ? new Failed(`the client could not read ${named(path.given)}: ${problem.message}`)
    : new Failed(`${named(path.given)} was not read: ${problem.message}`, problem.code)

/** A path right before the client is asked, and how much of it is on the disk. */
interface Asked extends Resolved {
  readonly size: number
}

const asked = (workspace: Workspace, path: Resolved): Effect.Effect<Asked, Failed> =>
  attempt(async () => {
    const now = await workspace.again(path)
    if (now.kind === "dir") throw new Failed(`${named(path.given)} is a directory`)
    if (now.kind === "missing") return { ...now, size: 0 }
    const { size } = await lstat(now.real).catch((cause: unknown) => {
      throw fileFailure(path.given, cause)
    })
    return { ...now, size }
  })

/** The whole text of a checked file, as bytes. Where it led meanwhile is looked at before it is given to anybody. */
const contentOf = (
  readText: ReadText,
  workspace: Workspace,
  path: Asked,
  max: number
): Effect.Effect<Buffer, Failed | ClientProblem> =>
  Effect.suspend(() => {
    if (path.size > max) return Effect.fail(tooLarge(path.given, max))
    return Effect.flatMap(within(patience, readText(path.real)), (text) =>
      attempt(async () => {
        await workspace.again(path)
        const bytes = Buffer.from(text, "utf8")
        if (bytes.length > max) throw tooLarge(path.given, max)
        return bytes
      })
    )
  })

const problemOf =
  (path: Resolved) =>
  (problem: Failed | ClientProblem): Failed =>
    problem instanceof Failed ? problem : unread(path, problem)

export const readThroughClient = (
  readText: ReadText,
  workspace: Workspace,
  path: Resolved,
  input: FilesReadInput
): Effect.Effect<FilesReadResult, Failed> =>
  Effect.gen(function* () {
    const now = yield* asked(workspace, path)
    const bytes = yield* contentOf(readText, workspace, now, limits.readFileBytes)
    return yield* attempt(() => readContent(path, bytes, input))
  }).pipe(Effect.mapError(problemOf(path)))

const changing = new Map<string, { readonly one: Semaphore.Semaphore; count: number }>()

/** Runs `change` when the changes of the same file before it are done. */
const alone = <A, E>(real: string, change: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    const turn = changing.get(real) ?? { one: Semaphore.makeUnsafe(1), count: 0 }
    changing.set(real, turn)
    turn.count += 1
    return turn.one
      .withPermits(1)(change)
      .pipe(
        Effect.ensuring(
          Effect.sync(() => {
            turn.count -= 1
            if (turn.count === 0) changing.delete(real)
          })
        )
      )
  })

const handOver = (writeText: WriteText, path: Resolved, text: string): Effect.Effect<void, Failed | ClientLost> =>
  orFailed(`could not write ${named(path.given)}`, within(patience, writeText(path.real, text)))

/** The old content where it is needed: for the digest always, else only when it is small enough for a diff. */
const oldContent = (
  readText: ReadText,
  workspace: Workspace,
  path: Asked,
  expected: string | undefined
): Effect.Effect<Buffer | undefined, Failed> =>
  Effect.suspend(() => {
    if (expected === undefined && path.size > limits.diffOldBytes) return Effect.succeed(undefined)
    const max = expected === undefined ? Number.POSITIVE_INFINITY : limits.readFileBytes
    return contentOf(readText, workspace, path, max).pipe(
      // An editor may open an empty text under a name where nothing is.
      Effect.map((bytes) => (path.kind === "missing" && bytes.length === 0 ? undefined : bytes)),
      Effect.catchIf(
        // A file that is not there has none, and one that may be written but not read has no old text.
        (problem) =>
          "_tag" in problem && problem._tag === "ClientRefused" && (path.kind === "missing" || expected === undefined),
        () => Effect.succeed(undefined)
      ),
      Effect.mapError(problemOf(path))
    )
  })

export type Change = Changed<FilesWriteResult | FilesEditResult>

/** The client's files, as far as it offers them, and who does the rest. */
export interface ClientFiles {
  readonly readText: ReadText | undefined
  readonly writeText: WriteText | undefined
  /** The change without the client's part of it, in the tool runner. */
  readonly onDisk: (part: ClientPart) => Effect.Effect<Change, Failed | ClientLost>
}

/** A file of the disk as the client is to have it. */
const handOverFromDisk = Effect.fnUntraced(function* (files: ClientFiles, writeText: WriteText, path: Resolved) {
  const change = yield* files.onDisk({ takes: true })
  const { newText } = change.diff
  if (sha256(Buffer.from(newText, "utf8")) !== change.output.sha256) {
    return yield* Effect.fail(new Failed(`${named(path.given)} is not UTF-8 text; nothing was changed`))
  }
  yield* handOver(writeText, path, newText)
  return change
})

export const writeThroughClient = (
  files: ClientFiles,
  workspace: Workspace,
  path: Resolved,
  input: FilesWriteInput
): Effect.Effect<Change, Failed | ClientLost> =>
  alone(
    path.real,
    Effect.gen(function* () {
      const { onDisk, readText, writeText } = files
      const now = yield* asked(workspace, path)
      if (input.create_dirs === false) {
        yield* attempt(async () => (await workspace.openParent(now, false)).handle.close())
      }
      const old = readText === undefined ? undefined : yield* oldContent(readText, workspace, now, input.expect_sha256)
      if (writeText === undefined) return yield* onDisk(old === undefined ? {} : { old: old.toString("utf8") })
      if (readText === undefined) return yield* handOverFromDisk(files, writeText, now)
      const created = now.kind === "missing" && old === undefined
      const { diff, output } = yield* attempt(() => writeChange(path, input, old, created))
      yield* handOver(writeText, now, input.content)
      return { output, diff }
    })
  )

export const editThroughClient = (
  files: ClientFiles,
  workspace: Workspace,
  path: Resolved,
  input: FilesEditInput
): Effect.Effect<Change, Failed | ClientLost> =>
  alone(
    path.real,
    Effect.gen(function* () {
      const { onDisk, readText, writeText } = files
      const now = yield* asked(workspace, path)
      if (readText === undefined) {
        return yield* writeText === undefined ? onDisk({}) : handOverFromDisk(files, writeText, now)
      }
      const old = yield* Effect.mapError(contentOf(readText, workspace, now, limits.editFileBytes), problemOf(path))
      if (writeText === undefined) return yield* onDisk({ old: old.toString("utf8") })
      const { diff, output } = yield* attempt(() => editChange(path, input, old))
      yield* handOver(writeText, now, diff.newText)
      return { output, diff }
    })
  )
