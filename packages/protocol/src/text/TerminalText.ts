/**
 * Makes text safe to print on a terminal: what came from a model, a tool or a file must not move the cursor, change the
 * title, write the clipboard or reorder what a person reads.
 *
 * @since 0.1.0
 */

/** How {@link terminalSafe} treats what it finds. @since 0.1.0 */
export interface TerminalTextOptions {
  /**
   * `show` (default) writes each control character visibly and hides nothing, as a prompt for a decision needs it;
   * `strip` leaves whole escape sequences out, for output that may be coloured.
   */
  readonly sequences?: "show" | "strip"
  /** Keep line feeds; default true. Otherwise they are shown like other control characters. */
  readonly lines?: boolean
}

// Joiners (U+200C, U+200D) stay: scripts and emoji are written with them. What is of no width and joins nothing is shown.
const unsafe = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/u
const unsafeAll = new RegExp(unsafe.source, "gu")

// ESC sequences and their one-character forms: strings (DCS, SOS, OSC, PM, APC) up to ST or BEL, CSI, two-character
const sequence = new RegExp(
  [
    "(?:\\u001b[P^_X\\]]|[\\u0090\\u0098\\u009d-\\u009f])[^\\u0007\\u001b\\u009c]*(?:\\u0007|\\u001b\\\\|\\u009c)",
    "(?:\\u001b\\[|\\u009b)[\\u0030-\\u003f]*[\\u0020-\\u002f]*[\\u0040-\\u007e]",
    "\\u001b[\\u0020-\\u002f]*[\\u0030-\\u007e]"
  ].join("|"),
  "gu"
)

const visible = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  if (code === 0x09) return character
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  if (code === 0x7f) return "\u2421"
  if (code >= 0xd800 && code < 0xe000) return "\ufffd"
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`
}

/**
 * Makes a text safe to print. Tabs stay, CR LF becomes LF, lone surrogates become U+FFFD; other control characters,
 * escape sequences, line separators, spaces of no width and bidirectional controls are shown or left out.
 *
 * @since 0.1.0
 */
export const terminalSafe = (text: string, options: TerminalTextOptions = {}): string => {
  if (!unsafe.test(text)) return text
  const stripped = options.sequences === "strip" ? text.replace(sequence, "") : text
  const lines = options.lines ?? true
  return stripped
    .replaceAll("\r\n", "\n")
    .replace(unsafeAll, (character) => (character === "\n" && lines ? character : visible(character)))
}
