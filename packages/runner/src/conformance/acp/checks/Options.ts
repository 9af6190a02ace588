/** What a client chooses in a session: options and modes, of agents that offer them. */
import { Effect } from "effect"
import { at, isList, type Json, type JsonObject } from "../../Json.ts"
import { type AcpCheck, demand, offered, type Open } from "../AcpCheck.ts"

const listIn = (value: Json | undefined): ReadonlyArray<Json> => (isList(value) ? value : [])

/** An option that has values to choose from. */
interface Select {
  readonly id: string
  readonly current: Json | undefined
  readonly values: ReadonlyArray<Json>
}

/** Values stand in a list, or in groups. */
const valuesIn = (options: Json | undefined): ReadonlyArray<Json> =>
  listIn(options).flatMap((option) => [
    ...[at(option, "value")].flatMap((value) => (value === undefined ? [] : [value])),
    ...valuesIn(at(option, "options"))
  ])

const selectsIn = (list: Json | undefined): ReadonlyArray<Select> =>
  listIn(list).flatMap((option) => {
    const id = at(option, "id")
    return at(option, "type") === "select" && typeof id === "string"
      ? [{ id, current: at(option, "currentValue"), values: valuesIn(at(option, "options")) }]
      : []
  })

/** A session and what can be chosen in it. */
const chosen = (open: Open) =>
  Effect.gen(function* () {
    const client = yield* open()
    yield* client.start
    const session: JsonObject = yield* client.setUp()
    return { client, session, sessionId: String(session["sessionId"]), selects: selectsIn(session["configOptions"]) }
  })

const modesIn = (session: JsonObject): ReadonlyArray<Json | undefined> =>
  listIn(at(session, "modes", "availableModes")).map((mode) => at(mode, "id"))

export const optionChecks: ReadonlyArray<AcpCheck> = [
  {
    id: "ACK-190",
    level: "must",
    title: "the value of an option is one of its values",
    page: "session-config-options",
    run: (open) =>
      Effect.gen(function* () {
        const { selects } = yield* chosen(open)
        yield* offered(selects.length > 0)
        for (const { current, id, values } of selects)
          yield* demand(values.includes(current ?? null), `option ${id} is ${JSON.stringify(current)}`)
      })
  },
  {
    id: "ACK-191",
    level: "must",
    title: "a value that is set is answered with all options as they are now",
    page: "session-config-options",
    run: (open) =>
      Effect.gen(function* () {
        const { client, selects, sessionId } = yield* chosen(open)
        yield* offered(selects.length > 0)
        const free = selects.find(({ values }) => values.length > 1) ?? selects[0]
        const value = free?.values.find((one) => one !== free.current) ?? free?.current ?? null
        const configId = free?.id ?? ""
        const result = yield* client.result("session/set_config_option", { sessionId, configId, value })
        const now = selectsIn(result["configOptions"])
        yield* demand(
          now.find(({ id }) => id === configId)?.current === value,
          `${configId} was set to ${JSON.stringify(value)}, and the answer is ${JSON.stringify(result).slice(0, 300)}`
        )
        yield* demand(now.length >= selects.length, "the answer does not have all options")
      })
  },
  {
    id: "ACK-192",
    level: "must",
    title: "an option or a value that does not exist is refused",
    page: "session-config-options",
    run: (open) =>
      Effect.gen(function* () {
        const { client, selects, sessionId } = yield* chosen(open)
        yield* offered(selects.length > 0)
        const configId = selects[0]?.id ?? ""
        yield* client.refusal("session/set_config_option", { sessionId, configId, value: "conformance-none" })
        yield* client.refusal("session/set_config_option", { sessionId, configId: "conformance-none", value: "on" })
      })
  },
  {
    id: "ACK-200",
    level: "must",
    title: "the mode of a session is one of its modes",
    page: "session-modes",
    run: (open) =>
      Effect.gen(function* () {
        const { session } = yield* chosen(open)
        const modes = modesIn(session)
        yield* offered(modes.length > 0)
        const current = at(session, "modes", "currentModeId")
        yield* demand(modes.includes(current), `the mode is ${JSON.stringify(current)}`)
      })
  },
  {
    id: "ACK-201",
    level: "must",
    title: "each mode of a session can be set",
    page: "session-modes",
    run: (open) =>
      Effect.gen(function* () {
        const { client, session, sessionId } = yield* chosen(open)
        const modes = modesIn(session)
        yield* offered(modes.length > 0)
        for (const modeId of modes.slice(0, 8))
          yield* client.result("session/set_mode", { sessionId, modeId: modeId ?? null })
      })
  },
  {
    id: "ACK-202",
    level: "must",
    title: "a mode that does not exist is refused",
    page: "session-modes",
    run: (open) =>
      Effect.gen(function* () {
        const { client, session, sessionId } = yield* chosen(open)
        yield* offered(modesIn(session).length > 0)
        yield* client.refusal("session/set_mode", { sessionId, modeId: "conformance-none" })
      })
  }
]
