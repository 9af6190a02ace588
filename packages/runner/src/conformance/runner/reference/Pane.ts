/** What the reference runner writes to its pane: plain lines, one event each, without what a menu looks like. */

export interface Pane {
  readonly line: (label: string, text: string) => void
  readonly raw: (text: string) => void
}

// oxlint-disable-next-line no-control-regex -- control characters are what is taken out
const control = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/gu

/** Foreign text without control characters and without the signs of a menu. */
const harmless = (text: string): string => text.replace(control, "").replace(/[❯›]/gu, ">")

export const makePane = (write: (text: string) => void): Pane => ({
  line: (label, text) => write(`${label} > ${harmless(text).replaceAll("\n", "\r\n")}\r\n`),
  raw: write
})
