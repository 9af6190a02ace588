/**
 * What a person sees of a pane: the lines after control sequences did their work. Pure, and small: it knows carriage return,
 * line feed, backspace, tab, erase in line and cursor columns; other sequences are read over. Lines are joined where the
 * terminal would wrap them, as `tmux capture-pane -J` does.
 */

/** Sequences of a terminal: CSI, OSC and strings, and the short ones. */
// oxlint-disable-next-line no-control-regex -- control characters are what this is about
const sequence = /\u001b(?:\[([0-?]*)[ -/]*([@-~])|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)|[ -/]*[0-~])/uy

interface Line {
  text: Array<string>
  column: number
}

const eraseInLine = (line: Line, how: string): void => {
  if (how === "1") line.text.fill(" ", 0, line.column + 1)
  else if (how === "2") line.text = []
  else line.text.length = Math.min(line.text.length, line.column)
}

const put = (line: Line, character: string): void => {
  while (line.text.length < line.column) line.text.push(" ")
  line.text[line.column] = character
  line.column += 1
}

/** The lines of everything that was written to a pane. */
export const screenLines = (output: string): ReadonlyArray<string> => {
  const lines: Array<Line> = [{ text: [], column: 0 }]
  let line = lines[0] ?? { text: [], column: 0 }
  let index = 0
  while (index < output.length) {
    const character = String.fromCodePoint(output.codePointAt(index) ?? 0)
    if (character === "\u001b") {
      sequence.lastIndex = index
      const match = sequence.exec(output)
      if (match === null) {
        index += 1
        continue
      }
      const [whole, parameters = "", final] = match
      if (final === "K") eraseInLine(line, parameters)
      else if (final === "G") line.column = Math.max(0, Number(parameters || "1") - 1)
      else if (final === "D") line.column = Math.max(0, line.column - Number(parameters || "1"))
      else if (final === "C") line.column += Number(parameters || "1")
      index += whole.length
      continue
    }
    index += character.length
    if (character === "\r") line.column = 0
    else if (character === "\n") {
      line = { text: [], column: 0 }
      lines.push(line)
    } else if (character === "\b") line.column = Math.max(0, line.column - 1)
    else if (character === "\t") put(line, "\t")
    else if (character >= " " && character !== "\u007f") put(line, character)
  }
  return lines.map(({ text }) => text.join("").trimEnd())
}

export const screenText = (output: string): string => screenLines(output).join("\n")
