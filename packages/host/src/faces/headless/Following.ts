/**
 * A run from its start to its end: events become lines, asks go to the person, a cancel goes to the host.
 *
 * It owns the order in which things are shown. While a person types, lines of the run are held back. It settles nothing
 * itself and judges no end: the host does.
 */
import { limits, type RunState } from "@tackroom/protocol/run"
import { connectHost, makeInProcessTransport, type Host, type Run } from "@tackroom/sdk/client"
import { Logger } from "effect"
import { callsOf } from "../../EmbedHost.ts"
import type { FaceSession } from "../start/FaceHost.ts"
import { exitCodes, messageOf } from "../start/NotStarted.ts"
import { makeAsking } from "./Asking.ts"
import type { Edge } from "./Edge.ts"
import { oneLine } from "./Style.ts"
import { emptyView, finishLine, log, summaryLine, view, type Piece, type View, type ViewOptions } from "./View.ts"

/** How the run ended, for a person. */
interface End {
  readonly result: Awaited<Run["result"]>
  readonly answer: string
}

/** The exit code, when the answer and the last line are written. */
const conclude = (edge: Edge, opened: FaceSession, { answer, result }: End): number => {
  if (!edge.stdoutTerminal && answer !== "") edge.writeOut(answer.endsWith("\n") ? answer : `${answer}\n`)
  if (!edge.options.quiet || result.status === "failed") {
    const summary = {
      status: result.status,
      ...(result.failure === undefined ? {} : { failure: result.failure }),
      ...(result.error === undefined ? {} : { message: result.error.message }),
      usage: result.usage,
      sessionId: opened.session.sessionId,
      scripted: opened.scripted
    }
    edge.writeErr(`${summaryLine(summary, edge.style)}\n`)
  }
  return result.status === "completed" && !edge.cancelled.aborted ? exitCodes.completed : exitCodes.ended
}

/** Shows the run to its end; the answer is the exit code. */
export const followText = async (
  edge: Edge,
  opened: FaceSession,
  admitted: { readonly submissionId: string; readonly after: number }
): Promise<number> => {
  const calls = { call: callsOf(opened.host, Logger.layer([])), close: async () => undefined }
  const client = await connectHost(async () => makeInProcessTransport(calls), { restart: false })
  try {
    return conclude(edge, opened, await follow(edge, client, opened, admitted))
  } finally {
    await client.close()
  }
}

const follow = async (
  edge: Edge,
  host: Host,
  opened: FaceSession,
  admitted: { readonly submissionId: string; readonly after: number }
): Promise<End> => {
  const { cancelled, options, style } = edge
  const session = await host.attach(opened.session.sessionId)
  const viewOptions: ViewOptions = {
    lead: session.id,
    text: edge.stdoutTerminal,
    live: edge.stderrTerminal,
    quiet: options.quiet,
    style
  }
  let current: View = emptyView
  let held: Array<Piece> | undefined
  const put = (pieces: ReadonlyArray<Piece>): void => {
    for (const piece of pieces) {
      if (piece.to === "answer") edge.writeOut(piece.text)
      else edge.writeErr(piece.text)
    }
  }
  const draw = (pieces: ReadonlyArray<Piece>): void => {
    if (held === undefined) put(pieces)
    else held.push(...pieces)
  }
  const asked = new AbortController()
  const terminal = options.approve === "ask" ? edge.openTerminal() : undefined
  const asking =
    terminal === undefined
      ? undefined
      : makeAsking({
          terminal,
          style,
          workspace: opened.session.workspace,
          signal: AbortSignal.any([cancelled, asked.signal]),
          show: (lines) => {
            const [next, pieces] = log(current, { ...viewOptions, quiet: false }, lines)
            current = next
            put(pieces)
          },
          hold: (on) => {
            if (on) held = []
            else {
              const waiting = held ?? []
              held = undefined
              put(waiting)
            }
          },
          giveUp: () => void cancel(),
          artifact: (sessionId, artifactId) => wholeArtifact(host, sessionId, artifactId)
        })
  const run = session.watch(admitted.submissionId, {
    cursors: { [session.id]: admitted.after },
    ...(asking === undefined ? {} : { onApproval: asking.onApproval, onQuestion: asking.onQuestion })
  })
  let incomplete: string | undefined
  const cancel = async (): Promise<void> => {
    try {
      await run.cancel()
    } catch (cause) {
      incomplete = messageOf(cause)
    }
  }
  const onCancel = (): void => void cancel()
  cancelled.addEventListener("abort", onCancel, { once: true })
  if (cancelled.aborted) onCancel()

  let lastText = ""
  try {
    for await (const item of run) {
      const [next, pieces] = view(current, item, viewOptions)
      current = next
      draw(pieces)
      const payload = item.event?.payload
      if (payload === undefined) continue
      if (payload.type === "text-end" && payload.channel === "text" && item.sessionId === session.id) {
        lastText = payload.text
      }
      asking?.saw(payload)
    }
    const result = await run.result
    put(finishLine(current)[1])
    // A cancel that was slow and did its work is not worth a word.
    if (incomplete !== undefined && result.status !== "cancelled") {
      edge.writeErr(`tackroom run: the cancel was not complete: ${oneLine(incomplete)}\n`)
    }
    return { result, answer: await answerOf(host, session.id, result, lastText) }
  } finally {
    cancelled.removeEventListener("abort", onCancel)
    asked.abort()
    asking?.end()
    terminal?.close()
  }
}

/** The whole final output, from its artifact when the state has a preview only. */
const answerOf = async (host: Host, sessionId: string, result: RunState, lastText: string): Promise<string> => {
  const whole = result.finalOutputArtifact
  if (whole === undefined) return result.finalOutput ?? lastText
  return wholeArtifact(host, sessionId, whole.artifactId)
}

const wholeArtifact = async (host: Host, sessionId: string, artifactId: string): Promise<string> => {
  const chunks: Array<Buffer> = []
  for (let offset = 0; ;) {
    const part = await host.request("artifact/read", {
      sessionId,
      artifactId,
      offset,
      length: limits.artifactChunkBytes
    })
    chunks.push(Buffer.from(part.data, "base64"))
    offset += part.length
    if (part.eof || part.length === 0) return Buffer.concat(chunks).toString("utf8")
  }
}
