/**
 * The lines that leave: whole, in order, one write a line (SRV-060). Run lines wait for their reader, so that few of them
 * are held (SRV-320); control lines never wait and are never dropped, and it is the reading of ops that stops while too
 * many of them are untaken (SRV-321). After the reader is gone everything is dropped (SRV-018).
 */
import { encodeLine, type ControlLine, type RunLine } from "@tackroom/protocol/serve"
import type { ProtocolOutput } from "@tackroom/sdk/process"
import { Effect } from "effect"

/** Untaken bytes above which a run waits to write, and down to which it then waits. At most 8 MiB are ever held. */
const highBytes = 4 * 1_048_576
const lowBytes = 1_048_576

/** Untaken control lines above which no op is read. */
const controlBytes = 1_048_576

export interface LinesOut {
  readonly control: (line: ControlLine) => void
  /** Writes a line of a run now. */
  readonly run: (line: RunLine) => void
  /** Completes when there is room for what the journal has to tell. */
  readonly room: Effect.Effect<void>
  /** Completes when control lines are taken far enough for the next op to be read. */
  readonly ready: Effect.Effect<void>
  /** Completes when everything is with the reader, or the reader is gone. */
  readonly flushed: Effect.Effect<void>
}

export const makeLinesOut = (output: ProtocolOutput): LinesOut => {
  let written = 0
  /** Where control lines end in the stream, and their sizes, oldest first. */
  let controls: Array<{ readonly end: number; readonly bytes: number }> = []
  let untakenControl = 0

  const write = (line: ControlLine | RunLine): number => {
    const bytes = Buffer.from(`${encodeLine(line)}\n`)
    written += bytes.length
    output.write(bytes)
    return bytes.length
  }

  const settle = (): void => {
    const taken = written - output.pending()
    while (controls[0] !== undefined && controls[0].end <= taken) untakenControl -= controls.shift()?.bytes ?? 0
  }

  const below = (bytes: number): Effect.Effect<void> => Effect.ignore(output.below(bytes))

  return {
    control: (line) => {
      const bytes = write(line)
      controls.push({ end: written, bytes })
      untakenControl += bytes
    },
    run: (line) => void write(line),
    room: Effect.suspend(() => (output.pending() > highBytes && !output.isClosed() ? below(lowBytes) : Effect.void)),
    ready: Effect.suspend(() => {
      settle()
      if (untakenControl < controlBytes || output.isClosed()) return Effect.void
      const enough = controls[Math.floor(controls.length / 2)]?.end ?? written
      return Effect.map(below(Math.max(0, written - enough)), settle)
    }),
    flushed: below(0)
  }
}
