/**
 * The bytes of the pane as submitted blocks and cancels. Pure but for its listener: no byte depends on how reads were cut.
 */
import type { Settings } from "./Settings.ts"

const escape = 0x1b
const endMarker = Buffer.from("\u001b[201~")

export interface InputListener {
  readonly block: (text: string) => void
  readonly cancel: () => void
}

export interface Input {
  readonly feed: (bytes: Uint8Array) => void
}

export const makeInput = ({ broken }: Settings, listener: InputListener): Input => {
  let block: Array<number> = []
  let state: "text" | "esc" | "csi" | "paste" | "tail" = "text"
  let sequence = ""
  let matched = 0

  const submit = (): void => {
    const bytes = Buffer.from(broken("CHK-073") ? block.slice(0, 65_536) : block)
    block = []
    listener.block(bytes.toString("utf8"))
  }

  const inText = (byte: number): void => {
    if (byte === 0x0d) submit()
    else if (byte === 0x03) {
      if (!broken("CHK-101")) listener.cancel()
    } else if (byte === escape) state = "esc"
    else if (byte === 0x08 || byte === 0x7f) block.pop()
    else if (byte === 0x15) block = []
    else if (byte === 0x09 || byte === 0x0a || byte >= 0x20) block.push(byte)
  }

  const inPaste = (byte: number): void => {
    if (byte === escape) {
      state = "tail"
      matched = 1
      return
    }
    if (byte === 0x03) listener.cancel()
    if (byte === 0x0a && broken("CHK-070")) submit()
    else block.push(byte)
  }

  const one = (byte: number): void => {
    switch (state) {
      case "text":
        return inText(byte)
      case "esc":
        if (byte === 0x5b) {
          state = "csi"
          sequence = ""
        } else if (byte !== escape) {
          state = "text"
          inText(byte)
        }
        return
      case "csi":
        if (byte >= 0x20 && byte < 0x40 && sequence.length < 32) sequence += String.fromCharCode(byte)
        else if (byte >= 0x40 && byte < 0x7f) state = sequence === "200" && byte === 0x7e ? "paste" : "text"
        else {
          state = "text"
          inText(byte)
        }
        return
      case "paste":
        return inPaste(byte)
      case "tail":
        if (byte === endMarker[matched]) {
          matched += 1
          if (matched === endMarker.length) state = "text"
          return
        }
        block.push(...endMarker.subarray(0, matched))
        state = "paste"
        return inPaste(byte)
    }
  }

  /** The broken reader of CHK-071 sees a marker only when one read holds all of it. */
  const forget = (): void => {
    if (state === "esc" || state === "csi") state = "text"
    if (state === "tail") {
      block.push(...endMarker.subarray(0, matched))
      state = "paste"
    }
  }

  return {
    feed: (bytes) => {
      for (const byte of bytes) one(byte)
      if (broken("CHK-071")) forget()
    }
  }
}

/** Without a terminal each line is a block. */
export const makeLines = (
  { broken }: Settings,
  listener: InputListener & { readonly end: () => void }
): Input & { readonly end: () => void } => {
  let rest = Buffer.alloc(0)
  return {
    feed: (bytes) => {
      rest = Buffer.concat([rest, bytes])
      if (broken("CHK-078")) return
      for (;;) {
        const end = rest.indexOf(0x0a)
        if (end < 0) return
        const line = rest.toString("utf8", 0, end)
        rest = rest.subarray(end + 1)
        listener.block(line.endsWith("\r") ? line.slice(0, -1) : line)
      }
    },
    end: () => {
      if (rest.length > 0) listener.block(rest.toString("utf8"))
      listener.end()
    }
  }
}
