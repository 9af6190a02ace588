/**
 * What each operator command does: its calls, the lines a person reads, its exit code (seat contract section 10). It
 * decides nothing about seats; the service does. Reading standard input and asking a person are the edge's.
 */
import {
  closures,
  type FeedFrameData,
  goodOutcomes,
  InvalidText,
  type RigBody,
  type RigFile,
  type SeatErrorCode,
  seatLimits,
  type SeatOutcome,
  UnknownRefusal
} from "@tackroom/protocol/seat"
import { decodeUtf8 } from "@tackroom/protocol/text"
import { Effect } from "effect"
import * as fs from "node:fs"
import { parse as parseYaml } from "yaml"
import { problemLine, readPresetFile } from "../Presets.ts"
import { notUtf8At } from "../SendText.ts"
import type { CommandName } from "./Commands.ts"
import type { Invocation } from "./CommandLine.ts"
import { completions, shells } from "./Help.ts"
import {
  askLines,
  askTable,
  outcomeLines,
  peopleTable,
  rigLine,
  seatLines,
  seatTable,
  statusLines,
  streamLines
} from "./Printing.ts"
import { type CallFailure, type RigClient, Unreachable } from "./RigClient.ts"

export const exitCodes = { done: 0, refused: 1, fault: 2, usage: 64 } as const

export interface Output {
  readonly code: number
  readonly json: unknown
  readonly lines: ReadonlyArray<string>
}

/** The command line does not say what it must. */
export class UsageMistake {
  readonly _tag = "UsageMistake"
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

/** What the edge does for a command. */
export interface Surroundings {
  readonly readInput: Effect.Effect<Uint8Array>
  /** Asks a person yes or no; `undefined` when there is nobody to ask. */
  readonly confirm: ((question: string) => Effect.Effect<boolean>) | undefined
  /** Where the reader is behind, when it will have caught up. */
  readonly write: (line: string) => Promise<void> | undefined
  /** A word beside the answer, where it is in nobody's way. */
  readonly note: (line: string) => void
  readonly fileExists: (path: string) => boolean
}

export type Failure = CallFailure | UsageMistake

const done = (json: object, lines: ReadonlyArray<string>, code: number = exitCodes.done): Output => ({
  code,
  json: { ok: true, ...json },
  lines
})

const good: ReadonlySet<string> = new Set(goodOutcomes)

/** All seats at work: 0; something is left behind: 2; else 1. */
const upCode = (outcomes: ReadonlyArray<SeatOutcome>): number =>
  outcomes.every(({ outcome }) => good.has(outcome)) ? exitCodes.done : exitCodes.refused

const downCode = (outcomes: ReadonlyArray<SeatOutcome>): number =>
  outcomes.some(({ outcome, leftovers }) => outcome === "left_running" || (leftovers?.length ?? 0) > 0)
    ? exitCodes.fault
    : exitCodes.done

const first = (invocation: Invocation, flag: string): string | undefined => invocation.values[flag]?.[0]

const arg = (invocation: Invocation, name: string): string => invocation.args[name] ?? ""

const mistake = (message: string) => Effect.fail(new UsageMistake(message))

const needed = (invocation: Invocation, flag: string): Effect.Effect<string, UsageMistake> => {
  const value = first(invocation, flag)
  return value === undefined ? mistake(`--${flag} is missing`) : Effect.succeed(value)
}

const wholeNumber = (invocation: Invocation, flag: string): Effect.Effect<string | undefined, UsageMistake> => {
  const value = first(invocation, flag)
  return value === undefined || (/^\d{1,6}$/u.test(value) && Number(value) >= 1 && Number(value) <= seatLimits.listMax)
    ? Effect.succeed(value)
    : mistake(`--${flag} takes a whole number from 1 to ${seatLimits.listMax}`)
}

/** Standard input as text, without the line feed that ends it. */
const inputText = (around: Surroundings): Effect.Effect<string, InvalidText> =>
  Effect.flatMap(around.readInput, (bytes) => {
    const text = decodeUtf8(bytes)
    return text === undefined
      ? Effect.fail(new InvalidText({ offset: notUtf8At(bytes), reason: "it is not UTF-8" }))
      : Effect.succeed(text.replace(/\n$/u, ""))
  })

const optionalReason = (invocation: Invocation): { readonly reason?: string } => {
  const value = first(invocation, "reason")
  return value === undefined ? {} : { reason: value }
}

const readRigFile = (file: string): Effect.Effect<unknown, UsageMistake> =>
  Effect.try({
    // As JSON it is sent; what holds itself by an alias is found out here.
    try: (): unknown =>
      JSON.parse(JSON.stringify(parseYaml(fs.readFileSync(file, "utf8"), { version: "1.2", schema: "core" }) ?? null)),
    catch: (cause) => {
      const message = cause instanceof Error ? (cause.message.split("\n")[0] ?? "") : "unreadable"
      return new UsageMistake(
        `${file}: ${/multiple documents/u.test(message) ? "a rig is one YAML document, and this has more" : message}`
      )
    }
  })

/** Whether a word names a file and not a rig. */
const isFile = (word: string, exists: (path: string) => boolean): boolean =>
  word.includes("/") || /\.(?:ya?ml|json)$/u.test(word) || exists(word)

const resetNote = ({ head, oldest, reason }: FeedFrameData<"tackroom.reset">): string =>
  `feed: the position is not to be had (${reason}); it goes on from ${oldest ?? 1}, the head is ${head}`

type Perform = (invocation: Invocation, client: RigClient, around: Surroundings) => Effect.Effect<Output, Failure>

const performers: Readonly<Record<Exclude<CommandName, "serve" | "presetCheck" | "completions">, Perform>> = {
  status: (_, client) => Effect.map(client.call("status", {}), (status) => done(status, statusLines(status))),

  up: (invocation, client, around) =>
    Effect.gen(function* () {
      const word = arg(invocation, "file-or-rig")
      let rig = word
      const lines: Array<string> = []
      if (isFile(word, around.fileExists)) {
        // The service checks the file; what it names beyond its schema is the service's to judge, too.
        const made = yield* client.call("createRig", (yield* readRigFile(word)) as RigFile)
        ;({ rig } = made.rig)
        lines.push(rigLine(made.rig), ...made.warnings.map((warning) => `warning: ${warning}`))
      }
      const seats = invocation.values["seat"]
      const body: RigBody<"upRig"> = {
        ...(invocation.switches.has("fresh") ? { fresh: true } : {}),
        ...(seats === undefined ? {} : { seats: [...seats] })
      }
      const result = yield* client.call("upRig", body, { params: { rig } })
      return done(result, [...lines, ...outcomeLines(result.outcomes)], upCode(result.outcomes))
    }),

  down: (invocation, client) =>
    Effect.map(
      client.call("downRig", invocation.switches.has("snapshot") ? { snapshot: true } : {}, {
        params: { rig: arg(invocation, "rig") }
      }),
      (result) =>
        done(
          result,
          [
            result.snapshot === null ? "no snapshot was written" : `snapshot ${result.snapshot.snapshotId}`,
            ...outcomeLines(result.outcomes)
          ],
          downCode(result.outcomes)
        )
    ),

  restore: (invocation, client) => {
    const snapshotId = first(invocation, "snapshot")
    return Effect.map(
      client.call("restoreRig", snapshotId === undefined ? {} : { snapshotId }, {
        params: { rig: arg(invocation, "rig") }
      }),
      (result) => done(result, outcomeLines(result.outcomes), upCode(result.outcomes))
    )
  },

  ps: (invocation, client) =>
    Effect.map(client.call("listSeats", {}, { query: { rig: invocation.args["rig"], limit: "500" } }), (result) =>
      done(result, seatTable(result.items))
    ),

  capture: (invocation, client) =>
    Effect.gen(function* () {
      const lines = yield* wholeNumber(invocation, "lines")
      const result = yield* client.call(
        "captureSeat",
        {},
        { params: { seat: arg(invocation, "seat") }, query: { lines } }
      )
      return done(result, result.lines)
    }),

  send: (invocation, client, around) =>
    Effect.gen(function* () {
      const word = arg(invocation, "text")
      const text = word === "-" ? yield* inputText(around) : word
      const from = first(invocation, "from")
      const force = invocation.switches.has("force")
      if (force && first(invocation, "reason") === undefined) return yield* mistake("--force takes --reason")
      const body: RigBody<"sendSeat"> = {
        text,
        ...(from === undefined ? {} : { from }),
        ...(invocation.switches.has("raw") ? { raw: true } : {}),
        ...(invocation.switches.has("verify") ? { verify: true } : {}),
        ...(force ? { force: true } : {}),
        ...optionalReason(invocation)
      }
      const result = yield* client.call("sendSeat", body, { params: { seat: arg(invocation, "seat") } })
      return done(result, [
        result.outcome,
        ...(result.advisory === undefined ? [] : [result.advisory]),
        result.evidence
      ])
    }),

  seatStatus: (invocation, client) =>
    Effect.map(client.call("getSeat", {}, { params: { seat: arg(invocation, "seat") } }), (result) =>
      done(result, seatLines(result.seat))
    ),

  seatLaunch: (invocation, client) =>
    Effect.map(
      client.call("launchSeat", invocation.switches.has("fresh") ? { fresh: true } : {}, {
        params: { seat: arg(invocation, "seat") }
      }),
      (result) => done(result, outcomeLines([result.outcome]), upCode([result.outcome]))
    ),

  seatStop: (invocation, client) =>
    Effect.map(
      client.call("stopSeat", optionalReason(invocation), { params: { seat: arg(invocation, "seat") } }),
      (result) => done(result, outcomeLines([result.outcome]), downCode([result.outcome]))
    ),

  seatRevokeGrant: (invocation, client) =>
    Effect.map(
      client.call("revokeGrant", optionalReason(invocation), { params: { seat: arg(invocation, "seat") } }),
      (result) =>
        result.revoked === false
          ? done(
              { ...result, ok: false },
              [`${result.seat.seat} has no grant in force; nothing was done`],
              exitCodes.refused
            )
          : done(result, [
              `${result.seat.seat}: its grant is revoked; what it asks is now permitted by its own runner`,
              ...(result.seat.session === "present"
                ? [`it still runs; to end it: tackroom rig seat stop ${result.seat.seat}`]
                : [])
            ])
    ),

  seatClearAttention: (invocation, client) =>
    Effect.gen(function* () {
      const reason = yield* needed(invocation, "reason")
      const result = yield* client.call("clearAttention", { reason }, { params: { seat: arg(invocation, "seat") } })
      return done(result, [`${result.seat.seat}: attention cleared; it reads ${result.seat.activity.value}`])
    }),

  seatSetPermissions: (invocation, client) =>
    Effect.gen(function* () {
      const reason = yield* needed(invocation, "reason")
      const to = first(invocation, "to")
      const deny = invocation.switches.has("deny")
      const back = invocation.switches.has("default")
      if ([to !== undefined, deny, back].filter(Boolean).length !== 1) {
        return yield* mistake("exactly one of --to, --deny and --default is needed")
      }
      const body: RigBody<"setPermissions"> = {
        reason,
        ...(to === undefined ? {} : { to }),
        ...(deny ? { deny: true } : {}),
        ...(back ? { default: true } : {})
      }
      const result = yield* client.call("setPermissions", body, { params: { seat: arg(invocation, "seat") } })
      return done(result, [
        `${result.seat.seat}: ${result.seat.permissions.mode}${to === undefined ? "" : ` ${to}`}, from the next request on`
      ])
    }),

  personAdd: (invocation, client) =>
    Effect.gen(function* () {
      const name = yield* needed(invocation, "name")
      const result = yield* client.call("addPerson", { id: arg(invocation, "id"), name })
      return done(result, [`${result.person.id} is registered`, `token, shown this once: ${result.token}`])
    }),

  personList: (_, client) =>
    Effect.map(client.call("listPeople", {}, { query: { limit: "500" } }), (result) =>
      done(result, peopleTable(result.items))
    ),

  personRemove: (invocation, client) =>
    Effect.map(client.call("removePerson", {}, { params: { person: arg(invocation, "id") } }), (result) =>
      done(result, [`${result.person.id} is removed; asks that wait for them stay open`])
    ),

  personDefault: (invocation, client) => {
    const { id } = invocation.args
    if (id === undefined && !invocation.switches.has("none")) {
      return Effect.map(client.call("listPeople", {}, { query: { limit: "500" } }), (result) =>
        done(result, [result.items.find(({ isDefault }) => isDefault)?.id ?? "nobody is chosen"])
      )
    }
    return Effect.map(client.call("setDefaultPerson", { id: id ?? null }), (result) =>
      done(result, peopleTable(result.items))
    )
  },

  gatewayDefault: (invocation, client) =>
    Effect.map(client.call("setDefaultPerson", { id: arg(invocation, "id") }), (result) =>
      done(result, peopleTable(result.items))
    ),

  askList: (invocation, client) =>
    Effect.gen(function* () {
      const limit = yield* wholeNumber(invocation, "limit")
      const state = invocation.switches.has("all") ? undefined : "pending"
      const result = yield* client.call("listAsks", {}, { query: { state, limit } })
      return done(result, askTable(result.items))
    }),

  askShow: (invocation, client) =>
    Effect.map(client.call("getAsk", {}, { params: { ask: arg(invocation, "ask") } }), (result) =>
      done(result, askLines(result.ask))
    ),

  askAnswer: (invocation, client, around) =>
    Effect.gen(function* () {
      const ask = arg(invocation, "ask")
      const by = first(invocation, "by") ?? "primary"
      const option = first(invocation, "option")
      const text = first(invocation, "text")
      const verbs = (["deny", "approve", "drop"] as const).filter((verb) => invocation.switches.has(verb))
      if ([option, text].filter((one) => one !== undefined).length + verbs.length !== 1) {
        return yield* mistake("exactly one of --option, --text, --deny, --approve and --drop is needed")
      }
      const [verb] = verbs
      if (verb === "approve" || verb === "drop") {
        const { ask: view } = yield* client.call("getAsk", {}, { params: { ask } })
        const effect =
          view.default === null
            ? "This refuses the request: no option allows it."
            : `This permits ${view.default.name} (${view.default.kind}).`
        around.write(effect)
        if (!invocation.switches.has("yes")) {
          if (around.confirm === undefined) return yield* mistake(`--${verb} needs --yes where nobody can be asked`)
          if (!(yield* around.confirm("Go on?")))
            return done({ ok: false }, ["nothing was answered"], exitCodes.refused)
        }
      }
      const body: RigBody<"answerAsk"> =
        option !== undefined
          ? { by, option }
          : verb !== undefined
            ? { by, verb }
            : { by, text: text ?? "", ...(invocation.switches.has("accept-default") ? { acceptDefault: true } : {}) }
      const result = yield* client.call("answerAsk", body, { params: { ask } })
      return done(result, [
        `${result.ask.askId}: ${result.ask.state}${result.repeated === true ? " (before)" : ""}${
          result.ask.result?.optionId === undefined ? "" : `, option ${result.ask.result.optionId}`
        }`
      ])
    }),

  askHandoff: (invocation, client) =>
    Effect.gen(function* () {
      const to = yield* needed(invocation, "to")
      const note = first(invocation, "note")
      const result = yield* client.call(
        "handoffAsk",
        {
          by: first(invocation, "by") ?? "primary",
          to: to.includes("@") || to.startsWith("nod_") ? { seat: to } : { person: to },
          ...(note === undefined ? {} : { note })
        },
        { params: { ask: arg(invocation, "ask") } }
      )
      const row = result.ask.rows.at(-1)
      return done(result, [
        `${result.ask.askId} is with ${to}${row?.note === null || row?.note === undefined ? "" : `: ${row.note}`}`
      ])
    }),

  rowClose: (invocation, client) =>
    Effect.gen(function* () {
      const as = yield* needed(invocation, "as")
      const closure = closures.find((one) => one === as)
      if (closure === undefined) return yield* mistake(`--as is one of ${closures.join(", ")}`)
      const note = first(invocation, "note")
      const result = yield* client.call(
        "closeRow",
        { by: first(invocation, "by") ?? "primary", closure, ...(note === undefined ? {} : { note }) },
        { params: { row: arg(invocation, "row") } }
      )
      return done(result, [`${result.ask.askId}: ${result.ask.state}`])
    }),

  streamList: (invocation, client) =>
    Effect.gen(function* () {
      const limit = yield* wholeNumber(invocation, "limit")
      const result = yield* client.call(
        "listStream",
        {},
        {
          query: {
            limit,
            tag: first(invocation, "tag"),
            source: first(invocation, "source"),
            since: first(invocation, "since"),
            until: first(invocation, "until")
          }
        }
      )
      return done(result, streamLines(result.items))
    }),

  feed: (invocation, client, around) =>
    Effect.gen(function* () {
      const after = first(invocation, "after")
      if (after !== undefined && !/^\d{1,15}$/u.test(after))
        return yield* mistake("--after takes a cursor, a whole number")
      let position = after
      let given = after !== undefined
      // A stream that ends is taken up where it ended, for as long as the service is there.
      for (;;) {
        let reset: FeedFrameData<"tackroom.reset"> | undefined
        yield* client.feed(
          // Where an operator's own position is not to be had, they are told before anything else is shown as it.
          { after: position, onReset: given ? "close" : "replay" },
          (data, cursor) => {
            position = cursor
            given = false
            return around.write(data)
          },
          (name, data) => {
            if (name === "tackroom.open" && position === undefined) {
              position = String((JSON.parse(data) as FeedFrameData<"tackroom.open">).head)
            } else if (name === "tackroom.overflow") {
              around.note("feed: it was not read fast enough; it goes on where it stopped")
            } else if (name === "tackroom.reset") {
              reset = JSON.parse(data) as FeedFrameData<"tackroom.reset">
              if (!given || reset.reason === "trimmed") around.note(resetNote(reset))
            }
          }
        )
        if (given && reset !== undefined) {
          if (reset.reason !== "trimmed") {
            return done(
              { ok: false, code: reset.reason, head: reset.head },
              [`--after ${after ?? ""} is ahead of the feed, which is at ${reset.head}`, "next: tackroom rig feed"],
              exitCodes.refused
            )
          }
          position = String(Math.max((reset.oldest ?? 1) - 1, 0))
        }
        given = false
        yield* Effect.sleep(1_000)
      }
    })
}

const local: Readonly<
  Record<"presetCheck" | "completions", (invocation: Invocation) => Effect.Effect<Output, UsageMistake>>
> = {
  presetCheck: (invocation) =>
    Effect.sync(() => {
      const { preset, problems } = readPresetFile(arg(invocation, "file"))
      const lines = problems.map((problem) => `${problem.severity} ${problemLine(problem)}`)
      const json = {
        ok: preset !== undefined,
        problems: problems.map(({ file, line, column, severity, code, path, expected, got, message }) => ({
          file,
          line,
          column,
          severity,
          code,
          path: path.join("."),
          expected,
          got,
          message
        }))
      }
      return preset === undefined
        ? done(json, lines, exitCodes.refused)
        : done(json, [...lines, `preset ${preset.name} is usable`])
    }),
  completions: (invocation) => {
    const shell = shells.find((one) => one === arg(invocation, "shell"))
    return shell === undefined
      ? mistake(`a shell is one of ${shells.join(", ")}`)
      : Effect.succeed(done({ ok: true, script: completions(shell) }, completions(shell).trimEnd().split("\n")))
  }
}

/** The command to type next, after some refusals. */
const nextCommand: Partial<Readonly<Record<SeatErrorCode, string>>> = {
  seat_not_found: "tackroom rig ps",
  seat_ambiguous: "tackroom rig ps",
  rig_not_found: "tackroom rig ps",
  ask_not_found: "tackroom rig ask list --all",
  unknown_person: "tackroom rig person list",
  seat_running: "tackroom rig seat status SEAT",
  seat_stopped: "tackroom rig seat launch SEAT",
  seat_not_ready: "tackroom rig seat status SEAT",
  seat_needs_attention: "tackroom rig seat status SEAT; or send with --force --reason TEXT",
  target_needs_input: "tackroom rig ask list; or send with --force --reason TEXT",
  launch_in_progress: "tackroom rig seat status SEAT",
  words_not_an_answer: "the same with --accept-default, or with --option or --deny",
  row_held_by_seat: "tackroom rig row close ROW --as done|failed|denied|canceled",
  unknown_option: "tackroom rig ask show ASK",
  no_such_option: "tackroom rig ask show ASK",
  snapshot_not_found: "tackroom rig up RIG",
  preset_invalid: "tackroom rig preset check FILE",
  preset_not_found: "put the preset into community-harnesses of the service home",
  rig_exists: "tackroom rig up RIG, or give the rig another name",
  idempotency_conflict: "use another key"
}

/** What a failure prints: what is so, what was not done, and the next command. */
export const failureOutput = (failure: Failure): Output => {
  if (failure instanceof UsageMistake) {
    return {
      code: exitCodes.usage,
      json: { ok: false, code: "usage", error: failure.message },
      lines: [failure.message]
    }
  }
  if (failure instanceof Unreachable) {
    return {
      code: exitCodes.fault,
      json: { ok: false, code: "unreachable", error: failure.detail },
      lines: [
        ...(failure.unknown === true
          ? [
              `the service went away before it answered: ${failure.detail}`,
              "whether it was done is unknown; look before you do it again"
            ]
          : [`the service does not answer: ${failure.detail}`]),
        "next: tackroom rig serve"
      ]
    }
  }
  if (failure instanceof UnknownRefusal) {
    return {
      code: failure.status >= 500 ? exitCodes.fault : exitCodes.refused,
      json: { ok: false, code: failure.code ?? "unknown", error: failure.message },
      lines: [failure.message]
    }
  }
  const seat = "seat" in failure ? failure.seat : undefined
  const next = nextCommand[failure.code]?.replace(/\bSEAT\b/u, () => seat ?? "SEAT")
  const problems = "problems" in failure ? (failure.problems ?? []) : []
  return {
    code: faults.has(failure.code) ? exitCodes.fault : exitCodes.refused,
    json: { ok: false, code: failure.code, error: failure.message },
    lines: [
      `${failure.message} (${failure.code})`,
      ...problems.map((problem) => `  ${problem}`),
      "nothing was done",
      ...(next === undefined ? [] : [`next: ${next}`])
    ]
  }
}

const faults: ReadonlySet<string> = new Set([
  "internal",
  "snapshot_failed",
  "first_input_failed",
  "launch_failed",
  "send_failed",
  "tmux_unavailable",
  "activity_hook_unconfigured"
])

/** Runs a command that needs no service. */
export const performLocal = (name: "presetCheck" | "completions", invocation: Invocation) => local[name](invocation)

/** Runs a command of the running service. */
export const perform = (
  name: Exclude<CommandName, "serve" | "presetCheck" | "completions">,
  invocation: Invocation,
  client: RigClient,
  around: Surroundings
): Effect.Effect<Output, Failure> => performers[name](invocation, client, around)
