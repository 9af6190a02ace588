/** The pane's terminal: taken at once, given back at the end, never looking like a menu (SEAT-001, 002, 061). */
import { Effect } from "effect"
import { broken, skipped } from "../../Check.ts"
import type { TerminalMode } from "../../peer/Pty.ts"
import { demand, type RunnerCheck } from "../RunnerCheck.ts"
import type { Seat } from "../Seat.ts"

const mode = (seat: Seat): TerminalMode | undefined => seat.pty?.mode()

const isRaw = ({ canonical, crToLf, echo, signals }: TerminalMode): boolean =>
  !canonical && !echo && !signals && !crToLf

const menus: ReadonlyArray<readonly [string, RegExp]> = [
  ["a line that begins with a number and a dot", /^\s*\d+\./mu],
  ["a pointer", /[❯›]/u],
  ["a spinner", /[\u2800-\u28ff]/u],
  ["esc to interrupt", /esc to interrupt/iu],
  ["a question of a menu", /do you want to/iu]
]

const restored = (seat: Seat, how: string) =>
  Effect.gen(function* () {
    yield* seat.until(`the runner's end after ${how}`, () => seat.ended(), 15)
    yield* demand(seat.output().includes("\u001b[?2004l"), `bracketed paste was not turned off after ${how}`)
    const now = mode(seat)
    if (now === undefined) return yield* skipped("platform")
    yield* demand(now.canonical && now.echo && now.signals && now.crToLf, `the terminal is still raw after ${how}`)
  })

export const terminal: ReadonlyArray<RunnerCheck> = [
  {
    id: "CHK-002",
    level: "must",
    title: "the terminal is raw with bracketed paste within 2 s, before the agent answers anything",
    rules: ["SEAT-001"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open({ agent: { initialize: () => undefined } })
        yield* seat.until("ESC[?2004h in the pane", () => seat.output().includes("\u001b[?2004h") || undefined, 2)
        const now = mode(seat)
        if (now === undefined) return yield* skipped("platform")
        yield* demand(isRaw(now), `the terminal is not raw: ${JSON.stringify(now)}`)
      })
  },
  {
    id: "CHK-003",
    level: "should",
    title: "the terminal is restored on exit and on TERM",
    rules: ["SEAT-002"],
    run: (open) =>
      Effect.gen(function* () {
        const [leaving, terminated] = yield* Effect.all([open(), open()], { concurrency: 2 })
        yield* leaving.opened
        yield* terminated.opened
        leaving.agent.exit(0)
        terminated.program.signal("SIGTERM")
        yield* restored(leaving, "the agent's exit")
        yield* restored(terminated, "TERM")
      })
  },
  {
    id: "CHK-004",
    level: "should",
    title: "the pane never looks like a menu while a permission waits",
    rules: ["SEAT-061"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        const turn = yield* seat.turn("a permission, please")
        const since = seat.timeline.now()
        seat.ask(1)
        const ask = yield* seat.until("the ask at the rig", () => seat.rig.asks[0])
        // The read shows that the runner went past what it prints about the request.
        yield* seat.until("a read of the ask", () => seat.seen("read")[0])
        ask.settle({ state: "answered", optionId: "yes-once" })
        yield* seat.outcome(1)
        seat.finish(turn)
        yield* seat.stopped(since)
        const shown = seat.shown(since)
        for (const [name, pattern] of menus) {
          const found = pattern.exec(shown)
          if (found !== null) return yield* broken(`the pane shows ${name}: ${JSON.stringify(found[0])}`)
        }
      })
  }
]
