/** Nothing outlives a seat that ends, however it ends (SEAT-250 to 252, 132, 170). */
import { Effect } from "effect"
import { performance } from "node:perf_hooks"
import { broken } from "../../Check.ts"
import { isLiving } from "../../peer/Living.ts"
import { demand, type RunnerCheck } from "../RunnerCheck.ts"
import { isExit } from "../PostKinds.ts"
import type { Seat } from "../Seat.ts"

/** Waits until a process that is not the kit's child is gone. The system tells nobody about its end, so this looks. */
const gone = (name: string, pid: number, seconds: number) =>
  Effect.gen(function* () {
    const until = performance.now() + seconds * 1_000
    while (isLiving(pid)) {
      if (performance.now() > until) return yield* broken(`${name} (process ${pid}) is still there`)
      yield* Effect.sleep(20)
    }
  })

const within = 5

/** A seat in a turn, whose agent has a child that ignores all but SIGKILL. */
const withChild = (seat: Seat) =>
  Effect.gen(function* () {
    yield* seat.opened
    seat.agent.startChild()
    const child = yield* seat.until("the agent's child", () => seat.seen("agent-child")[0])
    const agent = yield* seat.until("the agent's process", () => seat.seen("agent-started")[0])
    const turn = yield* seat.turn("work that is never finished")
    return { turn, child: child.pid, agent: agent.pid }
  })

const ends: ReadonlyArray<readonly [string, (seat: Seat) => void]> = [
  ["HUP", (seat) => seat.program.signal("SIGHUP")],
  ["TERM", (seat) => seat.program.signal("SIGTERM")],
  ["a closed pane", (seat) => seat.pty?.closePane()]
]

export const endings: ReadonlyArray<RunnerCheck> = [
  {
    id: "CHK-180",
    level: "should",
    title: "on HUP, TERM and a closed pane a cancel is tried, and agent, child and runner are gone in 5 s",
    rules: ["SEAT-250"],
    run: (open, { timing }) =>
      Effect.forEach(
        ends,
        ([name, end]) =>
          Effect.gen(function* () {
            const seat = yield* open()
            const { agent, child } = yield* withChild(seat)
            end(seat)
            const limit = within * timing.patience
            const all = Effect.all(
              [
                seat.until("session/cancel at the agent", () => seat.agent.received("session/cancel")[0], within),
                gone("the runner", seat.program.pid, limit),
                gone("the agent", agent, limit),
                gone("the agent's child", child, limit)
              ],
              { concurrency: 4 }
            )
            yield* all.pipe(Effect.mapError((stop) => broken(`after ${name}: ${stop.message}`)))
          }),
        { concurrency: 3, discard: true }
      )
  },
  {
    id: "CHK-181",
    level: "should",
    title: "when the runner is killed, its agent is gone in 5 s",
    rules: ["SEAT-251"],
    run: (open, { timing }) =>
      Effect.gen(function* () {
        const seat = yield* open()
        const { agent } = yield* withChild(seat)
        seat.program.signal("SIGKILL")
        yield* seat.until("the runner's end", () => seat.ended())
        yield* gone("the agent", agent, within * timing.patience)
      })
  },
  {
    id: "CHK-182",
    level: "must",
    title: "an agent that crashes with a request waiting: the ask is withdrawn as exited, and the exit posted",
    rules: ["SEAT-132", "SEAT-170"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        yield* seat.turn("ask and crash")
        seat.ask(1)
        const ask = yield* seat.until("the ask at the rig", () => seat.rig.asks[0])
        yield* seat.until("a read of the ask", () => seat.seen("read")[0])
        seat.agent.exit(1)
        const withdraw = yield* seat.until("the withdraw", () => seat.seen("withdraw")[0])
        yield* demand(withdraw.askId === ask.askId && withdraw.reason === "exited", `the withdraw was ${withdraw.text}`)
        yield* seat.until("the exit post", () => seat.posts().find(isExit))
      })
  }
]
