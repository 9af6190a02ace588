/** Requests for a permission: only a grant is a grant. */
import { Effect, type Scope } from "effect"
import type { Stop } from "../../Check.ts"
import { at, isList } from "../../Json.ts"
import { type AcpCheck, demand, type Open, ready } from "../AcpCheck.ts"
import type { Permission } from "../Client.ts"
import type { Configuration } from "../Configuration.ts"
import { statusOf } from "./Turns.ts"

const page = "tool-calls"

/** A turn that wants a permission and gets this answer: the request, the status of its call, the end. */
const decided = (open: Open, { prompts }: Configuration, how: Permission) =>
  Effect.gen(function* () {
    const { client, sessionId } = yield* ready(open)
    client.permit(how)
    const turn = yield* client.turn(sessionId, prompts.permission ?? "")
    const params = (yield* client.asked).fields["params"]
    return { client, sessionId, params, turn, status: statusOf(turn.updates, at(params, "toolCall", "toolCallId")) }
  })

/** Every answer but a grant leaves the call undone, and the turn ends. */
const undone =
  (how: Permission): AcpCheck["run"] =>
  (open, configuration): Effect.Effect<void, Stop, Scope.Scope> =>
    Effect.gen(function* () {
      const { status } = yield* decided(open, configuration, how)
      yield* demand(status !== "completed", "the call was done")
    })

export const permissionChecks: ReadonlyArray<AcpCheck> = [
  {
    id: "ACK-110",
    level: "must",
    title: "a request for a permission names its session and its call, and no option twice",
    page,
    prompts: ["permission"],
    run: (open, configuration) =>
      Effect.gen(function* () {
        const { params, sessionId } = yield* decided(open, configuration, "allow")
        yield* demand(at(params, "sessionId") === sessionId, "it names another session")
        const call = at(params, "toolCall", "toolCallId")
        yield* demand(typeof call === "string" && call !== "", "it names no call")
        const options = at(params, "options")
        const ids = (isList(options) ? options : []).map((option) => at(option, "optionId"))
        yield* demand(
          ids.length > 0 && new Set(ids).size === ids.length,
          `the ids of its options are ${JSON.stringify(ids)}`
        )
      })
  },
  {
    id: "ACK-111",
    level: "must",
    title: "a call that was rejected is not done, and the turn ends",
    page,
    prompts: ["permission"],
    run: undone("reject")
  },
  {
    id: "ACK-112",
    level: "must",
    title: "a call that was allowed is done",
    page,
    prompts: ["permission"],
    run: (open, configuration) =>
      Effect.gen(function* () {
        const { status, turn } = yield* decided(open, configuration, "allow")
        yield* demand(status === "completed", `the call is ${status}`)
        yield* demand(turn.stop === "end_turn", `the turn ended with ${turn.stop || "an error"}`)
      })
  },
  {
    id: "ACK-113",
    level: "must",
    title: "a call waits for its permission",
    page,
    prompts: ["permission"],
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        client.permit("wait")
        const id = client.prompt(sessionId, prompts.permission ?? "")
        const call = at((yield* client.asked).fields["params"], "toolCall", "toolCallId")
        yield* client.never(
          "it went on without an answer",
          () => client.answers(id)[0] ?? (statusOf(client.updates(sessionId), call) === "completed" || undefined),
          0.7
        )
      })
  },
  {
    id: "ACK-114",
    level: "must",
    title: "a request that was cancelled is no grant",
    page,
    prompts: ["permission"],
    run: undone("cancelled")
  },
  {
    id: "ACK-115",
    level: "must",
    title: "a request that failed is no grant",
    page,
    prompts: ["permission"],
    run: undone("error")
  },
  {
    id: "ACK-116",
    level: "must",
    title: "an option that was not offered is no grant",
    page,
    prompts: ["permission"],
    run: undone("stranger")
  },
  {
    id: "ACK-117",
    level: "must",
    title: "a turn that is cancelled while it asks is answered with cancelled",
    page: "prompt-turn",
    prompts: ["permission"],
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        client.permit("wait")
        const id = client.prompt(sessionId, prompts.permission ?? "")
        const { fields } = yield* client.asked
        client.cancel(sessionId)
        client.respond(fields["id"], { outcome: { outcome: "cancelled" } })
        const { answer, stop } = yield* client.turnOf(id)
        yield* demand(stop === "cancelled", `the answer is ${JSON.stringify(answer.fields)}`)
      })
  }
]
