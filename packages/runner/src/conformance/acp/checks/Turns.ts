/** Prompt turns: what is told of them, and how they end. */
import { Effect } from "effect"
import { isAbsolute } from "node:path"
import { at, isList, type Json } from "../../Json.ts"
import { type AcpCheck, capability, demand, offered, ready } from "../AcpCheck.ts"
import { chunkKinds, type Update } from "../Client.ts"

const page = "prompt-turn"

/** What was told of the calls, by id. */
const callsIn = (updates: ReadonlyArray<Update>): ReadonlyMap<string, ReadonlyArray<Update>> => {
  const calls = new Map<string, Array<Update>>()
  for (const one of updates) {
    const id = one.update["toolCallId"]
    if ((one.kind !== "tool_call" && one.kind !== "tool_call_update") || typeof id !== "string") continue
    const known = calls.get(id)
    if (known === undefined) calls.set(id, [one])
    else known.push(one)
  }
  return calls
}

/** The status that a call came to. */
export const statusOf = (updates: ReadonlyArray<Update>, id?: Json): string =>
  String(
    updates.findLast(
      ({ kind, update }) =>
        kind.startsWith("tool_call") &&
        (id === undefined || update["toolCallId"] === id) &&
        typeof update["status"] === "string"
    )?.update["status"] ?? "none"
  )

/** The paths of files in an update of a call. */
const pathsIn = ({ update }: Update): ReadonlyArray<Json | undefined> =>
  [update["locations"], update["content"]].flatMap((list) =>
    isList(list) ? list.flatMap((one) => (at(one, "path") === undefined ? [] : [at(one, "path")])) : []
  )

export const turnChecks: ReadonlyArray<AcpCheck> = [
  {
    id: "ACK-080",
    level: "must",
    title: "a turn that comes to its end is answered with end_turn, and so is the next one",
    page,
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        for (const text of ["First.", "Second."]) {
          const { answer, stop } = yield* client.turn(sessionId, prompts.say(text))
          yield* demand(stop === "end_turn", `the answer is ${JSON.stringify(answer.fields).slice(0, 300)}`)
        }
      })
  },
  {
    id: "ACK-081",
    level: "must",
    title: "what the agent says comes as chunks of its message, before the answer",
    page,
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        const { updates } = yield* client.turn(sessionId, prompts.say("The tide is low."))
        const said = client.said(updates)
        yield* demand(
          prompts.echoes ? said.includes("The tide is low.") : said.trim() !== "",
          `before the answer it said ${JSON.stringify(said)}`
        )
      })
  },
  {
    id: "ACK-082",
    level: "should",
    title: "nothing of a turn comes after its answer",
    page,
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        const { answer } = yield* client.turn(sessionId, prompts.tool ?? prompts.say("Hello."))
        yield* client.never(
          "an update of the turn came after its answer",
          () => client.updates(sessionId).find(({ index, kind }) => index > answer.index && chunkKinds.has(kind)),
          0.4
        )
      })
  },
  {
    id: "ACK-083",
    level: "must",
    title: "a prompt may hold links to resources",
    page: "content",
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        const prompt = [
          { type: "text", text: prompts.say("Hello.") },
          { type: "resource_link", uri: `file://${client.work}/notes.txt`, name: "notes.txt", mimeType: "text/plain" }
        ]
        yield* client.result("session/prompt", { sessionId, prompt }, 20)
      })
  },
  {
    id: "ACK-084",
    level: "must",
    title: "a tool call is announced once, then updated, and has ended before the answer",
    page: "tool-calls",
    prompts: ["tool"],
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        const { updates } = yield* client.turn(sessionId, prompts.tool ?? "")
        const calls = callsIn(updates)
        yield* demand(calls.size > 0, "no tool call was told of")
        for (const [id, told] of calls) {
          yield* demand(
            told.findIndex(({ kind }) => kind === "tool_call") === 0 &&
              told.filter(({ kind }) => kind === "tool_call").length === 1,
            `call ${id} was told of as ${told.map(({ kind }) => kind).join(", ")}`
          )
          const status = statusOf(told)
          yield* demand(status === "completed" || status === "failed", `call ${id} was left ${status}`)
        }
      })
  },
  {
    id: "ACK-085",
    level: "should",
    title: "a tool call that failed says failed, and the turn goes on to its end",
    page: "tool-calls",
    prompts: ["failing"],
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        const { stop, updates } = yield* client.turn(sessionId, prompts.failing ?? "")
        yield* demand(statusOf(updates) === "failed", `the call is ${statusOf(updates)}`)
        yield* demand(stop === "end_turn", `the turn ended with ${stop || "an error"}`)
      })
  },
  {
    id: "ACK-086",
    level: "must",
    title: "no two tool calls of a session have the same id",
    page: "tool-calls",
    prompts: ["tool"],
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        const turns = [
          yield* client.turn(sessionId, prompts.tool ?? ""),
          yield* client.turn(sessionId, prompts.tool ?? "")
        ]
        const [first, second] = turns.map(({ updates }) => new Set(callsIn(updates).keys()))
        yield* demand(first !== undefined && first.size > 0, "no tool call was told of")
        const again = [...(first ?? [])].find((id) => second?.has(id))
        yield* demand(again === undefined, `call ${again} is in both turns`)
      })
  },
  {
    id: "ACK-087",
    level: "must",
    title: "paths of files are absolute",
    page: "overview",
    prompts: ["tool"],
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        yield* client.turn(sessionId, prompts.tool ?? "")
        if (prompts.permission !== undefined) yield* client.turn(sessionId, prompts.permission)
        const relative = client
          .updates(sessionId)
          .flatMap(pathsIn)
          .find((path) => typeof path !== "string" || !isAbsolute(path))
        yield* demand(relative === undefined, `a path is ${JSON.stringify(relative)}`)
      })
  },
  {
    id: "ACK-088",
    level: "must",
    title: "a turn whose model fails is answered all the same",
    page,
    prompts: ["refused"],
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        yield* client.turn(sessionId, prompts.refused ?? "", 4)
        const { stop } = yield* client.turn(sessionId, prompts.say("Hello."))
        yield* demand(stop === "end_turn", `the next turn ended with ${stop || "an error"}`)
      })
  },
  {
    id: "ACK-089",
    level: "should",
    title: "content that the agent does not offer to take is refused",
    page: "content",
    run: (open) =>
      Effect.gen(function* () {
        const { client, said, sessionId } = yield* ready(open)
        yield* offered(!capability(said, "promptCapabilities", "audio"))
        const prompt = [{ type: "audio", data: "UklGRgAAAABXQVZF", mimeType: "audio/wav" }]
        yield* client.refusal("session/prompt", { sessionId, prompt })
      })
  }
]
