/** Secrets stay where they belong, and an agent may be noisy (SEAT-091, 093, 280). */
import { Effect } from "effect"
import { broken } from "../../Check.ts"
import { demand, type RunnerCheck } from "../RunnerCheck.ts"

export const robustness: ReadonlyArray<RunnerCheck> = [
  {
    id: "CHK-200",
    level: "should",
    title: "the token is not in the agent's environment, the pane or the record",
    rules: ["SEAT-091", "SEAT-280"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open()
        yield* seat.opened
        const started = yield* seat.until("the agent's process", () => seat.seen("agent-started")[0])
        const turn = yield* seat.turn("keep a secret")
        seat.finish(turn)
        yield* seat.stopped(turn.at)
        for (const [name, value] of Object.entries(started.env)) {
          if (value.includes(seat.token)) return yield* broken(`the agent has the token in ${name}`)
        }
        yield* demand(!started.argv.join(" ").includes(seat.token), "the agent has the token in its arguments")
        yield* demand(!seat.output().includes(seat.token), "the pane shows the token")
        yield* demand(!JSON.stringify(seat.record() ?? {}).includes(seat.token), "the launch record holds the token")
      })
  },
  {
    id: "CHK-201",
    level: "should",
    title: "banners, blank lines and a line of 1 MiB on the agent's output do not end the work",
    rules: ["SEAT-093"],
    run: (open) =>
      Effect.gen(function* () {
        const seat = yield* open({
          agent: {
            initialize: (received, agent) => {
              agent.raw("Welcome to the agent!\n\n")
              agent.reply(received.id, { protocolVersion: 1, agentCapabilities: {}, authMethods: [] })
            }
          }
        })
        yield* seat.opened
        const turn = yield* seat.turn("make some noise")
        seat.agent.raw("\n")
        seat.agent.raw("{ not json }\n")
        seat.agent.raw("[1, 2]\n")
        seat.agent.raw(`${"z".repeat(1_048_576)}\n`)
        seat.say("and still here")
        seat.finish(turn)
        yield* seat.stopped(turn.at, 10)
        yield* demand(seat.ended() === undefined, "the runner ended")
      })
  }
]
