/**
 * What the seat's pane shows. Writing never waits: lines go into a buffer of 4 MiB, one write to the terminal is in
 * flight, and when nobody reads the pane the oldest of the agent's text gives way first, lines about permissions, cancels
 * and the exit never (SEAT-063, SEAT-064).
 *
 * It owns the draft line and the order of what is seen. It decides nothing and holds up nobody.
 */
import { utf8Length } from "@tackroom/protocol/text"
import { foreignText, lastColumns } from "./PaneText.ts"

/** Where the bytes go; `written` is called when they are taken or can never be. */
export type PaneSink = (text: string, written: () => void) => void

/** Whose running text is shown. */
export type Voice = "agent" | "thought"

/** How long a line stays when the pane is not read. */
export type Keep = "always" | "while-room"

export interface Pane {
  /** A line of the seat's own, such as `seat > ready`; text after a line feed stands on lines of its own. */
  readonly line: (text: string, keep?: Keep) => void
  /** A piece of the agent's running text. */
  readonly say: (voice: Voice, delta: string) => void
  /** What is typed and not yet submitted; empty when there is nothing. */
  readonly draft: (text: string) => void
  /** Calls back when everything is written, at once if it is. */
  readonly whenWritten: (done: () => void) => void
}

/** The running text's redaction, which may hold the start of a secret back. */
export interface PaneRedaction {
  readonly text: (text: string) => string
  readonly stream: () => { readonly push: (delta: string) => string; readonly end: () => string }
}

const bufferBytes = 4_194_304
const draftColumns = 60
const eraseLine = "\r\u001b[K"

type Entry =
  | { readonly _tag: "Line"; readonly text: string; readonly bytes: number; readonly keep: Keep }
  | { readonly _tag: "Say"; readonly voice: Voice; readonly text: string; readonly bytes: number }
  | { readonly _tag: "Gap"; bytesLost: number }

export const makePane = (options: {
  readonly sink: PaneSink
  readonly redaction: PaneRedaction
  /** A draft is shown on terminals only. */
  readonly showsDraft: boolean
  readonly limitBytes?: number
}): Pane => {
  const limit = options.limitBytes ?? bufferBytes
  const { redaction, sink } = options

  let entries: Array<Entry> = []
  let buffered = 0
  let inFlight = false
  let waiting: Array<() => void> = []
  // What the terminal shows at the cursor, as of the last write.
  let midLine = false
  let run: Voice | undefined
  let rest = ""
  let draft = ""
  let drawn = ""
  // Where the redaction of the running text stands.
  let speaking: { readonly voice: Voice; readonly stream: ReturnType<PaneRedaction["stream"]> } | undefined

  const newLine = (text: string): string => text.replaceAll("\n", "\r\n")

  const renderSay = (voice: Voice, text: string): string => {
    let out = ""
    if (run !== voice) {
      out += (midLine ? "\r\n" : "") + `${voice} > `
      run = voice
      midLine = true
    }
    // Under a draft only whole lines can be shown: the cursor is never moved up.
    const whole = rest + text
    const cut = draft === "" ? whole.length : whole.lastIndexOf("\n") + 1
    rest = whole.slice(cut)
    const shown = whole.slice(0, cut)
    if (shown !== "") {
      out += newLine(shown)
      midLine = !shown.endsWith("\n")
    }
    return out
  }

  const endRun = (): string => {
    const out = newLine(rest) + (midLine || rest !== "" ? "\r\n" : "")
    rest = ""
    run = undefined
    midLine = false
    return out
  }

  const render = (entry: Entry): string => {
    switch (entry._tag) {
      case "Line":
        return `${endRun()}${newLine(entry.text)}\r\n`
      case "Say":
        return renderSay(entry.voice, entry.text)
      case "Gap":
        return `${endRun()}\u2026 (${entry.bytesLost} bytes not shown)\r\n`
    }
  }

  const written = (): void => {
    inFlight = false
    pump()
  }

  const pump = (): void => {
    if (inFlight) return
    if (entries.length === 0 && draft === drawn) {
      const done = waiting
      waiting = []
      for (const resume of done) resume()
      return
    }
    const batch = entries
    entries = []
    buffered = 0
    let out = drawn === "" ? "" : eraseLine
    drawn = ""
    if (draft === "" && rest !== "") out += renderSay(run ?? "agent", "")
    for (const entry of batch) out += render(entry)
    if (draft !== "") {
      if (midLine) {
        out += "\r\n"
        midLine = false
      }
      out += draft
      drawn = draft
    }
    inFlight = true
    sink(out, written)
  }

  /** Frees room, the agent's oldest text first; neighbouring gaps become one. */
  const makeRoom = (): void => {
    const giveWay = (wanted: (entry: Entry) => boolean): void => {
      for (let i = 0; i < entries.length && buffered > limit; i++) {
        const entry = entries[i]
        if (entry === undefined || entry._tag === "Gap" || !wanted(entry)) continue
        buffered -= entry.bytes
        const before = entries[i - 1]
        if (before?._tag === "Gap") {
          before.bytesLost += entry.bytes
          entries.splice(i, 1)
          i -= 1
        } else entries[i] = { _tag: "Gap", bytesLost: entry.bytes }
      }
    }
    giveWay((entry) => entry._tag === "Say")
    if (buffered > limit) giveWay((entry) => entry._tag === "Line" && entry.keep === "while-room")
  }

  const add = (entry: Exclude<Entry, { readonly _tag: "Gap" }>): void => {
    entries.push(entry)
    buffered += entry.bytes
    if (buffered > limit) makeRoom()
    pump()
  }

  const addSaid = (voice: Voice, text: string): void => {
    if (text !== "") add({ _tag: "Say", voice, text, bytes: utf8Length(text) })
  }

  const stopSpeaking = (): void => {
    if (speaking === undefined) return
    const { voice, stream } = speaking
    speaking = undefined
    addSaid(voice, stream.end())
  }

  return {
    line: (text, keep = "while-room") => {
      stopSpeaking()
      const shown = redaction.text(text)
      add({ _tag: "Line", text: shown, bytes: utf8Length(shown), keep })
    },
    say: (voice, delta) => {
      if (speaking?.voice !== voice) {
        stopSpeaking()
        speaking = { voice, stream: redaction.stream() }
      }
      addSaid(voice, speaking.stream.push(foreignText(delta)))
    },
    draft: (text) => {
      if (!options.showsDraft) return
      draft =
        text === ""
          ? ""
          : `draft > ${lastColumns(redaction.text(foreignText(text)).replaceAll("\n", " "), draftColumns)}`
      pump()
    },
    whenWritten: (done) => {
      waiting.push(done)
      pump()
    }
  }
}
