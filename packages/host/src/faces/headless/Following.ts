/**
 * A run from its start to its end: events become lines, asks go to the person, a cancel goes to the host.
 *
 * It owns the order in which things are shown. While a person types, lines of the run are held back. It settles nothing
 * itself and judges no end: the host does.
 */
import { limits, type RunState } from "@tackroom/protocol/run"
import { newSubmissionId, type Host } from "@tackroom/sdk/client"
import { makeAsking } from "./Asking.ts"
import { messageOf, NotStarted, tagOf, type Edge } from "./Edge.ts"
import type { Opened } from "./Opening.ts"
import { eventLine, startLine, type End } from "./Report.ts"
import { countAsk, noAsks, type Asks } from "./Settlement.ts"
import { oneLine } from "./Style.ts"
import { emptyView, finishLine, log, view, type Piece, type View, type ViewOptions } from "./View.ts"

/** Follows the run to its end. */
export const follow = async (edge: Edge, host: Host, opened: Opened, prompt: string): Promise<End> => {
  const { cancelled, options, style } = edge
  const { session } = opened
  const viewOptions: ViewOptions = {
    lead: session.id,
    text: edge.stdoutTerminal && !options.json,
    live: edge.stderrTerminal,
    quiet: options.quiet || options.json,
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
  const submissionId = newSubmissionId()
  const asked = new AbortController()
  const terminal = options.approve === "ask" ? edge.openTerminal() : undefined
  const asking =
    terminal === undefined
      ? undefined
      : makeAsking({
          terminal,
          style,
          workspace: opened.workspace,
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
  const run = session.run(prompt, {
    submissionId,
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
  try {
    await run.started
  } catch (cause) {
    terminal?.close()
    throw new NotStarted("unknown", messageOf(cause), tagOf(cause))
  }
  if (options.json) {
    const { agent, scripted, warnings, workspace } = opened
    edge.writeOut(
      startLine(options.runId, { sessionId: session.id, submissionId, agent, project: workspace, scripted, warnings })
    )
  }
  const onCancel = (): void => void cancel()
  cancelled.addEventListener("abort", onCancel, { once: true })
  if (cancelled.aborted) onCancel()

  let asks: Asks = noAsks
  let lastText = ""
  try {
    for await (const item of run) {
      if (options.json) edge.writeOut(eventLine(options.runId, item))
      const [next, pieces] = view(current, item, viewOptions)
      current = next
      draw(pieces)
      const payload = item.event?.payload
      if (payload === undefined) continue
      asks = countAsk(asks, payload)
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
    return {
      status: result.status,
      ...(result.failure === undefined ? {} : { failure: result.failure }),
      ...(result.error === undefined ? {} : { error: { message: result.error.message } }),
      answer: await answerOf(host, session.id, result, lastText),
      usage: result.usage,
      sessionId: session.id,
      scripted: opened.scripted,
      asks
    }
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
