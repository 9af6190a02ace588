/** The cancel of a turn. */
import { Effect } from "effect"
import { type AcpCheck, demand, ready } from "../AcpCheck.ts"
import { chunkKinds, type Turn } from "../Client.ts"

const page = "prompt-turn"

const cancelled = ({ answer, stop }: Turn) =>
  demand(stop === "cancelled", `the answer is ${JSON.stringify(answer.fields).slice(0, 300)}`)

export const cancelChecks: ReadonlyArray<AcpCheck> = [
  {
    id: "ACK-130",
    level: "must",
    title: "a cancelled turn is answered with cancelled, and not with an error",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        const id = yield* client.working(sessionId)
        client.cancel(sessionId)
        yield* cancelled(yield* client.turnOf(id))
      })
  },
  {
    id: "ACK-131",
    level: "must",
    title: "nothing of a cancelled turn comes after its answer",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        const id = yield* client.working(sessionId)
        client.cancel(sessionId)
        const { answer } = yield* client.turnOf(id)
        yield* client.never(
          "an update of the turn came after its answer",
          () => client.updates(sessionId).find(({ index, kind }) => index > answer.index && chunkKinds.has(kind)),
          0.4
        )
      })
  },
  {
    id: "ACK-132",
    level: "must",
    title: "the turn after a cancelled one is a turn like others",
    page,
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        const id = yield* client.working(sessionId)
        client.cancel(sessionId)
        client.cancel(sessionId)
        yield* client.turnOf(id)
        const { stop } = yield* client.turn(sessionId, prompts.say("Hello."))
        yield* demand(stop === "end_turn", `the next turn ended with ${stop || "an error"}`)
      })
  },
  {
    id: "ACK-133",
    level: "must",
    title: "a cancel without a turn is nothing, also to the next turn",
    page,
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        client.cancel(sessionId)
        const { stop } = yield* client.turn(sessionId, prompts.say("Hello."))
        yield* demand(stop === "end_turn", `the turn ended with ${stop || "an error"}`)
      })
  },
  {
    id: "ACK-134",
    level: "must",
    title: "a cancel leaves the turns of other sessions alone",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        const other = yield* client.session()
        const first = yield* client.working(sessionId)
        const second = yield* client.working(other)
        client.cancel(sessionId)
        yield* cancelled(yield* client.turnOf(first))
        yield* client.never("the turn of another session ended", () => client.answers(second)[0], 0.3)
        client.cancel(other)
        yield* cancelled(yield* client.turnOf(second))
      })
  },
  {
    id: "ACK-135",
    level: "must",
    title: "a cancel that comes right behind its prompt is no less",
    page,
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        const id = client.prompt(sessionId, prompts.long)
        client.cancel(sessionId)
        yield* cancelled(yield* client.turnOf(id, 5))
      })
  }
]
