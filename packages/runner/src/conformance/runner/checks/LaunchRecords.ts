/** The launch record of a new launch (seat contract 4, SEAT-220 to 222), and that identity goes nowhere else. */
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { broken } from "../../Check.ts"
import { deadline } from "../../Timing.ts"
import { parseObject, type JsonObject } from "../../Json.ts"
import { demand, type RunnerCheck } from "../RunnerCheck.ts"
import type { Seat } from "../Seat.ts"

/** What is wrong with a record that should name the seat's conversation. */
const faults = (seat: Seat, record: JsonObject, nativeRef: string): ReadonlyArray<string> => [
  ...(record["format"] === 1 ? [] : ["format is not 1"]),
  ...(record["attempt"] === seat.attempt ? [] : ["attempt is not the one of this launch"]),
  ...(record["harness"] === seat.configuration.harness ? [] : ["harness is not the preset's name"]),
  ...(record["nativeRef"] === nativeRef ? [] : ["nativeRef is not the agent's conversation"]),
  ...(record["error"] === undefined ? [] : ["there is an error beside the conversation"]),
  ...(typeof record["producer"] === "string" && record["producer"] !== "" && record["producer"].length <= 500
    ? []
    : ["producer does not name versions"])
]

export const launchRecords: ReadonlyArray<RunnerCheck> = [
  {
    id: "CHK-020",
    level: "must",
    title: "after the open there is one valid launch record",
    rules: ["SEAT-220", "SEAT-221"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        const record = yield* seat.until("the launch record", () => seat.record())
        const wrong = faults(seat, record, seat.nativeRef)
        yield* demand(wrong.length === 0, `the launch record: ${wrong.join("; ")}`)
        // Through a turn it stays as it is.
        const turn = yield* seat.turn("the record stays")
        seat.finish(turn)
        yield* seat.stopped(turn.at)
        yield* demand(seat.seen("record").length === 1, "the launch record was written more than once")
      })
  },
  {
    id: "CHK-021",
    level: "must",
    title: "there is no record before the agent opened the conversation",
    rules: ["SEAT-220"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open({ agent: { "session/new": () => undefined } })
        yield* seat.called
        yield* seat.never("a launch record was there before the conversation", () => seat.record(), 2)
        const [asked] = seat.agent.received("session/new")
        seat.agent.reply(asked?.id, { sessionId: seat.nativeRef })
        yield* seat.until("the launch record", () => seat.record())
      })
  },
  {
    id: "CHK-022",
    level: "must",
    title: "a failed open names no conversation",
    rules: ["SEAT-222"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open({
          agent: { "session/new": (received, agent) => agent.fail(received.id, -32_000, "no room for a conversation") }
        })
        yield* seat.called
        // A runner may end or stay; either way it has had its time to write.
        yield* seat.until("the runner's end", () => seat.record()?.["nativeRef"] ?? seat.ended(), 3).pipe(Effect.ignore)
        yield* demand(seat.record()?.["nativeRef"] === undefined, "the record names a conversation that never was")
      })
  },
  {
    id: "CHK-023",
    level: "must",
    title: "it works without a place for the launch record",
    rules: ["SEAT-220"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open({ env: () => ({ OPENRIG_LAUNCH_RESULT: undefined }) })
        yield* seat.opened
        const turn = yield* seat.turn("no record today")
        seat.finish(turn)
        yield* seat.stopped(turn.at)
      })
  },
  {
    id: "CHK-024",
    level: "should",
    title: "the launch record appears whole",
    rules: ["SEAT-220"],
    run: (open, { timing }) =>
      Effect.gen(function* () {
        const seat = yield* open({ agent: { "session/new": () => undefined } })
        yield* seat.called
        const path = join(seat.launchFolder, "result.json")
        const [asked] = seat.agent.received("session/new")
        seat.agent.reply(asked?.id, { sessionId: seat.nativeRef })
        // A reader that looks as often as it can, until the record is whole: a half of it would be seen before.
        const torn = yield* Effect.callback<string | undefined>((resume) => {
          let timer: NodeJS.Immediate
          const look = (): void => {
            let text: string | undefined
            try {
              text = readFileSync(path, "utf8")
            } catch {
              // Not there yet.
            }
            if (text === undefined) {
              timer = setImmediate(look)
              return
            }
            resume(Effect.succeed(parseObject(text) === undefined ? text : undefined))
          }
          look()
          return Effect.sync(() => clearImmediate(timer))
        }).pipe(
          Effect.timeoutOrElse({
            duration: deadline(timing, 5),
            orElse: () => broken("the launch record: not seen within 5 s")
          })
        )
        if (torn !== undefined) return yield* broken(`half a record was there: ${JSON.stringify(torn)}`)
        yield* seat.until("the launch record", () => seat.record())
      })
  },
  {
    id: "CHK-025",
    level: "must",
    title: "activity posts carry no identity of the conversation",
    rules: ["SEAT-123"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        const turn = yield* seat.turn("who are you?")
        seat.say("an agent")
        seat.tool("t1", "read")
        seat.finish(turn)
        yield* seat.stopped(turn.at)
        for (const { body } of seat.posts()) {
          yield* demand(body["nativeRef"] === undefined, "a post has a nativeRef")
          yield* demand(!JSON.stringify(body).includes(seat.nativeRef), "a post holds the conversation's id")
        }
      })
  }
]
