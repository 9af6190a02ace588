/** One submitted message is one prompt, byte for byte (SEAT-030 to 040, 060, 097). */
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { broken, skipped } from "../../Check.ts"
import { isObject } from "../../Json.ts"
import { demand, type RunnerCheck } from "../RunnerCheck.ts"
import { promptText } from "../agent/Frames.ts"
import type { Seat } from "../Seat.ts"

const begin = "\u001b[200~"
const end = "\u001b[201~"

/** Two messages that are sent within this time come quickly. */
const quickMs = 120

const short = (text: string | undefined): string => JSON.stringify((text ?? "nothing").slice(0, 200))

/** The next prompts, each ended at once, must be these. */
const expectPrompts = (seat: Seat, texts: ReadonlyArray<string>, seconds = 5) =>
  Effect.gen(function* () {
    for (const text of texts) {
      const number = ended(seat) + 1
      const prompt = yield* seat.prompt(number, seconds)
      const got = promptText(prompt)
      if (got !== text) {
        const lengths = `${got?.length ?? 0} instead of ${text.length} characters`
        return yield* broken(`prompt ${number} is ${short(got)}, sent was ${short(text)} (${lengths})`)
      }
      seat.agent.reply(prompt.id, { stopReason: "end_turn" })
    }
  })

/** How many prompts the agent has ended. */
const ended = (seat: Seat): number =>
  seat.seen("sent").filter(({ message }) => isObject(message?.["result"]) && "stopReason" in message["result"]).length

const cancels = (seat: Seat): number => seat.agent.received("session/cancel").length

const wide =
  "line\u2028separator, paragraph\u2029separator, \u{1F468}\u200d\u{1F469}\u200d\u{1F467}, e\u0301, \u{1F600}"

/** Sends a message during a turn and wants it as the next prompt, whole, without a cancel. */
const asText = (open: (options?: undefined) => ReturnType<Parameters<RunnerCheck["run"]>[0]>, text: string) =>
  Effect.gen(function* () {
    const seat = yield* open()
    yield* seat.opened
    const first = yield* seat.turn("a turn that could be cancelled")
    yield* seat.send(text)
    seat.say("still at it")
    // Another message behind it: when that is queued, the first was dealt with.
    yield* seat.send("behind it")
    seat.finish(first)
    yield* expectPrompts(seat, [text, "behind it"])
    yield* demand(cancels(seat) === 0, "a session/cancel was sent")
  })

export const input: ReadonlyArray<RunnerCheck> = [
  {
    id: "CHK-070",
    level: "must",
    title: "a paste of several lines with Enter is one prompt, exactly",
    rules: ["SEAT-031", "SEAT-033"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        const texts = ["first\n\n\tindented\n  two blanks \nlast ", "\nleading line break", "  \n kept \n\n"]
        for (const text of texts) {
          yield* seat.send(text)
          yield* expectPrompts(seat, [text])
        }
        // A message split in two would have left its second half behind.
        yield* seat.send("the end")
        yield* expectPrompts(seat, ["the end"])
      })
  },
  {
    id: "CHK-071",
    level: "must",
    title: "the same for every split of the bytes",
    rules: ["SEAT-030"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        const text = "a\n\u00e9"
        const bytes = Buffer.from(`${begin}${text}${end}\r`)
        for (let cut = 1; cut < bytes.length; cut += 1) {
          yield* seat.type(bytes.subarray(0, cut))
          yield* seat.pause(15)
          yield* seat.type(bytes.subarray(cut))
          yield* expectPrompts(seat, [text])
        }
      })
  },
  {
    id: "CHK-072",
    level: "must",
    title: "two quick messages are two prompts, in order",
    rules: ["SEAT-031", "SEAT-036", "SEAT-037"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        // On a busy machine ten milliseconds become many: then nothing was quick, and it is tried again.
        let won = false
        for (let tries = 0; tries < 3 && !won; tries += 1) {
          const began = seat.timeline.now()
          yield* seat.type(`${begin}one${end}\r`)
          yield* seat.pause(10)
          yield* seat.type(`${begin}two${end}\r`)
          won = seat.timeline.now() - began < quickMs
          yield* expectPrompts(seat, ["one", "two"])
        }
        if (!won) return yield* skipped("race")
      })
  },
  {
    id: "CHK-073",
    level: "must",
    title: "a paste of 256 KiB is one prompt",
    rules: ["SEAT-031", "SEAT-035"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        const line = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n"
        const text = line.repeat(4_096)
        const bytes = Buffer.from(`${begin}${text}${end}`)
        for (let at = 0; at < bytes.length; at += 4_095) yield* seat.type(bytes.subarray(at, at + 4_095))
        yield* seat.pause(200)
        yield* seat.enter
        yield* expectPrompts(seat, [text], 20)
      })
  },
  {
    id: "CHK-074",
    level: "must",
    title: "/abort as a line of a message is text",
    rules: ["SEAT-031", "SEAT-032"],
    run: (open) => asText(open, "please do not\n/abort\nthis")
  },
  {
    id: "CHK-075",
    level: "must",
    title: "an envelope around /abort is text",
    rules: ["SEAT-031", "SEAT-032"],
    run: (open) =>
      asText(open, 'From: lead@check\nTo: case-seat@check\n---\n/abort\n---\nReply: tackroom rig send lead@check "…"')
  },
  {
    id: "CHK-076",
    level: "must",
    title: "a message during a turn is the next turn, and the pane says queued",
    rules: ["SEAT-036"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        const first = yield* seat.turn("the first")
        const since = seat.timeline.now()
        yield* seat.send("the second")
        yield* seat.until("the word queued in the pane", () =>
          /queued/iu.test(seat.shown(since)) || seat.agent.received("session/prompt").length > 1 ? true : undefined
        )
        yield* demand(seat.agent.received("session/prompt").length === 1, "the agent got a prompt during a turn")
        yield* demand(/queued/iu.test(seat.shown(since)), "the pane does not say queued")
        seat.finish(first)
        yield* expectPrompts(seat, ["the second"])
      })
  },
  {
    id: "CHK-077",
    level: "should",
    title: "a bare Enter is no prompt",
    rules: ["SEAT-033"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        yield* seat.enter
        yield* seat.enter
        yield* seat.send("a real message")
        yield* expectPrompts(seat, ["a real message"])
      })
  },
  {
    id: "CHK-078",
    level: "should",
    title: "without a terminal each line is a prompt",
    rules: ["SEAT-038"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open({ pipes: true })
        yield* seat.opened
        yield* seat.type("one\ntwo\n")
        yield* expectPrompts(seat, ["one", "two"])
      })
  },
  {
    id: "CHK-079",
    level: "must",
    title: "the first input is the first prompt, exact and once",
    rules: ["SEAT-039"],
    feature: "first_input",
    run: (open) =>
      Effect.gen(function* () {
        const text = " begin\u2028here\nwith trailing blanks \n\n"
        const seat = yield* open({
          env: (usual) => {
            const path = join(usual.launchFolder, "first-input")
            writeFileSync(path, text, { mode: 0o600 })
            return { OPENRIG_FIRST_INPUT: path }
          }
        })
        yield* seat.opened
        yield* expectPrompts(seat, [text])
        yield* seat.send("the second")
        yield* expectPrompts(seat, ["the second"])
      })
  },
  {
    id: "CHK-080",
    level: "should",
    title: "the declared model reaches the agent",
    rules: ["SEAT-097"],
    feature: "passes_model",
    run: (open) =>
      Effect.gen(function* () {
        const model = "model-of-this-case/7b"
        const seat = yield* open({ env: () => ({ OPENRIG_MODEL: model }) })
        yield* seat.opened
        const turn = yield* seat.turn("which model are you?")
        seat.finish(turn)
        const [started] = seat.seen("agent-started")
        const places = [
          ...(started?.argv ?? []),
          ...Object.values(started?.env ?? {}),
          ...seat.agent.received().map(({ params }) => JSON.stringify(params))
        ]
        yield* demand(
          places.some((place) => place.includes(model)),
          "the model is in no argument, no variable and no call"
        )
      })
  },
  {
    id: "CHK-081",
    level: "should",
    title: "a prompt is mirrored so that its first 40 characters are found in the pane",
    rules: ["SEAT-060"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        const text = "From: lead@check\nTo: case-seat@check\n---\nmirror me, please\n---"
        const needle = [...text].slice(0, 40).join("")
        const turn = yield* seat.turn(text)
        yield* seat.until(`the first 40 characters in the pane`, () => seat.shown().includes(needle) || undefined, 3)
        seat.finish(turn)
      })
  },
  {
    id: "CHK-082",
    level: "must",
    title: "line separators, emoji and combining marks pass unchanged, both ways",
    rules: ["SEAT-034", "SEAT-093", "SEAT-094"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        const turn = yield* seat.turn(wide)
        seat.ask(1, { title: wide })
        const submit = yield* seat.until("the request at the rig", () => seat.submits()[0])
        const { toolCall } = submit.body
        yield* demand(
          isObject(toolCall) && toolCall["title"] === wide,
          `the title of the tool call came as ${JSON.stringify(toolCall)}`
        )
        seat.rig.asks[0]?.settle({ state: "answered", optionId: "yes-once" })
        yield* seat.outcome(1)
        seat.say(wide)
        seat.agent.send({ id: turn.id, result: { stopReason: "end_turn", _meta: { said: wide } } })
        yield* seat.stopped(turn.at)
      })
  }
]
