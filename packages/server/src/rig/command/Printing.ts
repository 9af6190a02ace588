/** What a person reads: seats, asks, outcomes and items as lines. Pure. Foreign text is made safe for a terminal. */
import type {
  AskView,
  Person,
  RigView,
  SeatOutcome,
  SeatView,
  ServiceStatus,
  StreamItem
} from "@tackroom/protocol/seat"
import { headCodePoints, terminalSafe } from "@tackroom/protocol/text"

const safe = (text: string): string => terminalSafe(text).replaceAll("\n", " ")

const pieceCharacters = 200

/** A name or a title of an agent: as much as helps to know it. */
const piece = (text: string): string => {
  const head = headCodePoints(text, pieceCharacters)
  return head.length < text.length ? `${safe(head)}\u2026` : safe(head)
}

const columns = (rows: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const widths = rows.reduce<ReadonlyArray<number>>(
    (known, row) => row.map((cell, at) => Math.max(cell.length, known[at] ?? 0)),
    []
  )
  return rows.map((row) =>
    row
      .map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at] ?? 0)))
      .join("  ")
      .trimEnd()
  )
}

const permissions = ({ permissions: setting }: SeatView): string =>
  setting.mode === "person" ? `asks ${setting.person ?? ""}` : setting.mode === "deny" ? "refuses" : "asks the default"

export const seatTable = (seats: ReadonlyArray<SeatView>): ReadonlyArray<string> =>
  seats.length === 0
    ? ["no seats"]
    : columns([
        ["SEAT", "ACTIVITY", "LAUNCH", "ASKS", "HARNESS", "CONVERSATION"],
        ...seats.map((seat) => [
          seat.seat,
          seat.activity.value.replace("_", " "),
          seat.launch.state,
          String(seat.openAsks),
          seat.harness,
          safe(seat.nativeRef ?? "-")
        ])
      ])

export const seatLines = (seat: SeatView): ReadonlyArray<string> =>
  columns([
    ["seat", seat.seat],
    ["node", seat.nodeId],
    ["harness", `${seat.harness}${seat.declaration?.runner === true ? " (runner)" : ""}`],
    ["folder", safe(seat.cwd)],
    [
      "launch",
      `${seat.launch.state}${seat.launch.late ? ", late" : ""}${seat.launch.reason === null ? "" : `: ${safe(seat.launch.reason)}`}`
    ],
    ["session", seat.session],
    [
      "activity",
      `${seat.activity.value.replace("_", " ")} (${seat.activity.source}) since ${seat.activity.since}${
        seat.activity.until === null ? "" : `, until ${seat.activity.until}`
      }`
    ],
    ["attention", seat.attention.length === 0 ? "none" : seat.attention.join(", ")],
    ["open asks", String(seat.openAsks)],
    ...(seat.draft === undefined
      ? []
      : [["draft", `${seat.draft.sendId} from ${safe(seat.draft.from)} was cut off; its text may stand in the pane`]]),
    [
      "conversation",
      seat.nativeRef === null
        ? "none"
        : `${safe(seat.nativeRef)} (launcher-reported${seat.conversationMissing ? ", missing" : ""})`
    ],
    ...(seat.launch.otherRef === null ? [] : [["opened instead", safe(seat.launch.otherRef)]]),
    ["model", `${safe(seat.model.declared ?? "not declared")}; effective: ${seat.model.effective}`],
    ["permissions", permissions(seat)],
    ...seat.launch.warnings.map((warning) => ["warning", safe(warning)])
  ])

export const outcomeLines = (outcomes: ReadonlyArray<SeatOutcome>): ReadonlyArray<string> =>
  outcomes.flatMap((one) => [
    `${one.seat}: ${one.outcome.replace("_", " ")}${one.reason === undefined ? "" : ` (${safe(one.reason)})`}${
      one.detail === undefined ? "" : `: ${safe(one.detail)}`
    }`,
    ...(one.warnings ?? []).map((warning) => `  warning: ${safe(warning)}`),
    ...(one.leftovers ?? []).map(({ pid, command }) => `  left running: ${pid} ${safe(command)}`)
  ])

const who = (owner: AskView["rows"][number]["owner"]): string => ("person" in owner ? owner.person : owner.seat)

export const askTable = (asks: ReadonlyArray<AskView>): ReadonlyArray<string> =>
  asks.length === 0
    ? ["no asks"]
    : columns([
        ["ASK", "STATE", "SEAT", "WITH", "TOOL CALL"],
        ...asks.map((ask) => [
          ask.askId,
          ask.state,
          ask.seat,
          ask.rows.at(-1) === undefined ? "-" : who(ask.rows.at(-1)?.owner ?? { person: "-" }),
          headCodePoints(piece(String(ask.toolCall["title"] ?? "")), 60)
        ])
      ])

export const askLines = (ask: AskView): ReadonlyArray<string> => [
  ...columns([
    ["ask", ask.askId],
    ["state", ask.state],
    ["seat", ask.seat],
    ["conversation", safe(ask.nativeRef === "" ? "unknown" : ask.nativeRef)],
    ["turn, request", `${safe(ask.turnId)}, ${safe(ask.requestId)}`],
    ["tool call", `${piece(String(ask.toolCall["title"] ?? ""))} (${piece(String(ask.toolCall["kind"] ?? "other"))})`],
    ["asked because", safe(ask.why)],
    ["opened", ask.openedAt]
  ]),
  "options:",
  ...ask.options.flatMap((option) => [
    `  ${safe(option.optionId)}  ${piece(option.name)} (${piece(option.kind)})`,
    ...(option.note === null ? [] : [`    ${option.note}`])
  ]),
  ask.default === null
    ? "Closing it without a choice refuses it: no option allows it."
    : `Closing it without a choice permits ${piece(ask.default.name)} (${safe(ask.default.kind)}).`,
  ...(ask.result === null
    ? []
    : [
        `settled: ${ask.result.how.replace("_", " ")} by ${safe(ask.result.by)}${
          ask.result.optionId === undefined ? "" : `, option ${safe(ask.result.optionId)}`
        }${ask.result.reason === undefined ? "" : `, ${safe(ask.result.reason)}`}${
          ask.result.said === undefined ? "" : `, said: ${safe(ask.result.said)}`
        }`
      ]),
  "rows:",
  ...ask.rows.map(
    (row) => `  ${row.rowId}  ${safe(who(row.owner))}  ${row.state}${row.note === null ? "" : `: ${safe(row.note)}`}`
  )
]

export const peopleTable = (people: ReadonlyArray<Person>): ReadonlyArray<string> =>
  people.length === 0
    ? ["no people: requests are permitted by default, and recorded in the stream"]
    : columns([
        ["ID", "NAME", ""],
        ...people.map(({ id, name, isDefault }) => [id, safe(name), isDefault ? "default" : ""])
      ])

export const streamLines = (items: ReadonlyArray<StreamItem>): ReadonlyArray<string> =>
  items.length === 0
    ? ["no items"]
    : items.map((item) => `${item.tsEmitted}  ${item.sourceSession}  ${item.hintTags.join(",")}\n  ${safe(item.body)}`)

export const statusLines = (status: ServiceStatus): ReadonlyArray<string> =>
  columns([
    ["version", `${status.version} (contract ${status.contract})`],
    ["home", status.home],
    ["listens on", status.listeners.main],
    ["guests", status.listeners.guest ?? "off"],
    ...(status.cutOff ?? []).map(({ seat, url }) => [
      "cut off",
      `${seat} knows ${url} and reaches nobody there; stop it and launch it again`
    ]),
    ["tmux", `${status.tmux}${status.tmuxVersion === null ? "" : `, ${status.tmuxVersion}`}`],
    [
      "counts",
      `${status.counts.rigs} rigs, ${status.counts.seats} seats (${status.counts.running} running), ${status.counts.pendingAsks} open asks, ${status.counts.people} people`
    ]
  ])

export const rigLine = ({ rig, seats }: RigView): string =>
  `rig ${rig}: ${seats.length === 1 ? "1 seat" : `${seats.length} seats`}`
