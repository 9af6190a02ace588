/**
 * The operator commands as data: words, arguments, flags, summaries. The parser, the help and the completions read this
 * table; `Perform` has one function a name.
 */

export interface FlagSpec {
  readonly name: string
  /** What its value is called; absent for a switch. */
  readonly value?: string
  readonly repeat?: true
  /** Another spelling, that of the contract. */
  readonly alias?: string
  readonly summary: string
}

export interface ArgumentSpec {
  readonly name: string
  readonly optional?: true
}

export interface CommandSpec {
  readonly words: ReadonlyArray<string>
  readonly args: ReadonlyArray<ArgumentSpec>
  readonly flags: ReadonlyArray<FlagSpec>
  readonly summary: string
  /** Not a call of the running service. */
  readonly local?: true
}

const seat: ArgumentSpec = { name: "seat" }
const reason: FlagSpec = { name: "reason", value: "TEXT", summary: "Why; it is stored and shown" }
const by: FlagSpec = { name: "by", value: "PERSON", summary: "Who acts (default: primary)" }
const fresh: FlagSpec = { name: "fresh", summary: "Start a new conversation where one is stored" }
const limit: FlagSpec = { name: "limit", value: "N", summary: "At most this many" }

export const commands = {
  serve: { words: ["serve"], args: [], flags: [], summary: "Run the service in the foreground", local: true },
  status: { words: ["status"], args: [], flags: [], summary: "What the running service says of itself" },
  up: {
    words: ["up"],
    args: [{ name: "file-or-rig" }],
    flags: [
      fresh,
      { name: "seat", value: "SEAT", repeat: true, summary: "Only this seat; may be given more than once" }
    ],
    summary: "Make a rig from a file, or bring the seats of a rig up"
  },
  down: {
    words: ["down"],
    args: [{ name: "rig" }],
    flags: [{ name: "snapshot", summary: "Stop nothing unless the snapshot was written" }],
    summary: "Take a snapshot and stop every seat of a rig"
  },
  restore: {
    words: ["restore"],
    args: [{ name: "rig" }],
    flags: [{ name: "snapshot", value: "ID", summary: "This snapshot (default: the latest)" }],
    summary: "Bring a rig back from a snapshot"
  },
  ps: { words: ["ps"], args: [{ name: "rig", optional: true }], flags: [], summary: "List seats" },
  capture: {
    words: ["capture"],
    args: [seat],
    flags: [{ name: "lines", value: "N", summary: "The last N lines (default 50)" }],
    summary: "Print a seat's pane, or the end of its transcript"
  },
  send: {
    words: ["send"],
    args: [seat, { name: "text" }],
    flags: [
      { name: "from", value: "NAME", summary: "Who the envelope says it is from (default: operator)" },
      { name: "raw", summary: "Paste the text alone, without an envelope; /abort is a control then" },
      { name: "verify", summary: "Look for the text in the pane afterwards" },
      { name: "force", summary: "Send although the seat needs a person; takes --reason" },
      reason
    ],
    summary: "Paste text into a seat and press Enter; - reads it from standard input"
  },
  seatStatus: { words: ["seat", "status"], args: [seat], flags: [], summary: "Everything known of a seat" },
  seatLaunch: { words: ["seat", "launch"], args: [seat], flags: [fresh], summary: "Start one seat" },
  seatStop: {
    words: ["seat", "stop"],
    args: [seat],
    flags: [reason],
    summary: "End one seat's session, also a bad guest's"
  },
  seatRevokeGrant: {
    words: ["seat", "revoke-grant"],
    args: [seat],
    flags: [reason],
    summary: "Take a guest seat's grant away; its runner then permits by itself, and only seat stop ends it"
  },
  seatClearAttention: {
    words: ["seat", "clear-attention"],
    args: [seat],
    flags: [reason],
    summary: "Say that a person has seen what a seat needs"
  },
  seatSetPermissions: {
    words: ["seat", "set-permissions-to"],
    args: [seat],
    flags: [
      { name: "to", value: "PERSON", summary: "Ask this person" },
      { name: "deny", summary: "Refuse every request" },
      { name: "default", summary: "Ask the default person again" },
      reason
    ],
    summary: "Who is asked when the seat's agent wants something"
  },
  personAdd: {
    words: ["person", "add"],
    args: [{ name: "id" }],
    flags: [{ name: "name", value: "NAME", summary: "The name that is shown" }],
    summary: "Register a person; their token is shown this once"
  },
  personList: { words: ["person", "list"], args: [], flags: [], summary: "List people" },
  personRemove: { words: ["person", "remove"], args: [{ name: "id" }], flags: [], summary: "Remove a person" },
  personDefault: {
    words: ["person", "default"],
    args: [{ name: "id", optional: true }],
    flags: [{ name: "none", summary: "Choose nobody" }],
    summary: "Show or choose the default person"
  },
  gatewayDefault: {
    words: ["gateway", "default"],
    args: [{ name: "id" }],
    flags: [],
    summary: "Choose the default person (another spelling)"
  },
  askList: {
    words: ["ask", "list"],
    args: [],
    flags: [{ name: "all", summary: "Settled ones too" }, limit],
    summary: "List asks"
  },
  askShow: { words: ["ask", "show"], args: [{ name: "ask" }], flags: [], summary: "Everything about an ask" },
  askAnswer: {
    words: ["ask", "answer"],
    args: [{ name: "ask" }],
    flags: [
      { name: "option", value: "ID", summary: "Pick this option" },
      { name: "text", value: "TEXT", summary: "A typed answer: a yes, a no, an option's name, or words" },
      { name: "accept-default", summary: "With words: permit by default and pass the words on" },
      { name: "deny", summary: "Say no" },
      { name: "approve", summary: "Close without choosing: permits by default" },
      { name: "drop", summary: "Close without choosing: permits by default" },
      { name: "yes", summary: "Do not ask before --approve and --drop" },
      by
    ],
    summary: "Answer an ask"
  },
  askHandoff: {
    words: ["ask", "handoff"],
    args: [{ name: "ask" }],
    flags: [
      { name: "to", value: "WHO", summary: "A person's id or a seat" },
      { name: "note", value: "TEXT", summary: "What the new owner should know" },
      by
    ],
    summary: "Hand an ask to a person or a seat"
  },
  rowClose: {
    words: ["row", "close"],
    args: [{ name: "row" }],
    flags: [
      { name: "as", value: "HOW", alias: "closure-reason", summary: "done, failed, denied or canceled" },
      { name: "note", value: "TEXT", summary: "Kept with the row" },
      by
    ],
    summary: "Close a row without choosing an option"
  },
  streamList: {
    words: ["stream", "list"],
    args: [],
    flags: [
      { name: "tag", value: "TAG", summary: "Only items with this tag" },
      { name: "source", value: "SEAT", summary: "Only items from this seat" },
      { name: "since", value: "TIME", summary: "Not before this ISO time" },
      { name: "until", value: "TIME", summary: "Not after this ISO time" },
      limit
    ],
    summary: "Permits that were decided by default, newest first"
  },
  feed: {
    words: ["feed"],
    args: [],
    flags: [{ name: "after", value: "CURSOR", summary: "From this position (default: now)" }],
    summary: "Follow everything that happens as JSON lines"
  },
  presetCheck: {
    words: ["preset", "check"],
    args: [{ name: "file" }],
    flags: [],
    summary: "Check a preset file and tell all its problems",
    local: true
  },
  completions: {
    words: ["completions"],
    args: [{ name: "shell" }],
    flags: [],
    summary: "A completion script for bash, zsh or fish",
    local: true
  }
} as const satisfies Readonly<Record<string, CommandSpec>>

export type CommandName = keyof typeof commands

export const commandNames = Object.keys(commands) as ReadonlyArray<CommandName>

/** Taken by every command. */
export const commonFlags: ReadonlyArray<FlagSpec> = [
  { name: "json", summary: "Print the answer as JSON" },
  { name: "help", summary: "This text" }
]
