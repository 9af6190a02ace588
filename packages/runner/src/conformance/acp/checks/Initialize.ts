/** The start of a connection: version, capabilities, and what was not offered. */
import { Effect } from "effect"
import { at, isObject } from "../../Json.ts"
import { type AcpCheck, capability, demand, offered, ready } from "../AcpCheck.ts"

const page = "initialization"

/** Methods of the protocol that an agent may leave out, and what says that it has them. */
const optional: ReadonlyArray<readonly [method: string, ...path: ReadonlyArray<string>]> = [
  ["session/load", "loadSession"],
  ["session/resume", "sessionCapabilities", "resume"],
  ["session/list", "sessionCapabilities", "list"],
  ["session/close", "sessionCapabilities", "close"],
  ["session/delete", "sessionCapabilities", "delete"],
  ["logout", "auth", "logout"]
]

export const initializeChecks: ReadonlyArray<AcpCheck> = [
  {
    id: "ACK-010",
    level: "must",
    title: "a client that asks for version 1 gets version 1",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const client = yield* open()
        const { protocolVersion } = yield* client.start
        yield* demand(protocolVersion === 1, `the version is ${JSON.stringify(protocolVersion)}`)
      })
  },
  {
    id: "ACK-011",
    level: "must",
    title: "a version that the agent does not speak is answered with one that it speaks",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const client = yield* open()
        const { protocolVersion } = yield* client.result(
          "initialize",
          { protocolVersion: 65_000, clientCapabilities: {} },
          30
        )
        yield* demand(
          typeof protocolVersion === "number" && Number.isInteger(protocolVersion) && protocolVersion < 65_000,
          `the version is ${JSON.stringify(protocolVersion)}`
        )
      })
  },
  {
    id: "ACK-012",
    level: "should",
    title: "the agent says its name and version",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const client = yield* open()
        const { agentInfo } = yield* client.start
        yield* demand(
          isObject(agentInfo) && Boolean(agentInfo["name"]) && Boolean(agentInfo["version"]),
          `agentInfo is ${JSON.stringify(agentInfo)}`
        )
      })
  },
  {
    id: "ACK-013",
    level: "must",
    title: "no method of the client is called that it did not offer",
    page,
    prompts: ["tool"],
    run: (open, { prompts }) =>
      Effect.gen(function* () {
        const { client, sessionId } = yield* ready(open)
        yield* client.turn(sessionId, prompts.say("Hello."))
        yield* client.turn(sessionId, prompts.tool ?? "")
        const called = client
          .frames()
          .flatMap(({ fields }) => (typeof fields["method"] === "string" && "id" in fields ? [fields["method"]] : []))
          .find((method) => method !== "session/request_permission" && !method.startsWith("_"))
        yield* demand(called === undefined, `${called} was called`)
      })
  },
  {
    id: "ACK-014",
    level: "must",
    title: "capabilities and fields that the agent does not know are no reason to refuse a client",
    page: "extensibility",
    run: (open) =>
      Effect.gen(function* () {
        const client = yield* open()
        yield* client.result(
          "initialize",
          {
            protocolVersion: 1,
            clientCapabilities: { _meta: { "conformance.test/new": { deep: [1, 2] } }, newerCapability: {} },
            clientInfo: { name: "conformance", title: "Conformance", version: "1", _meta: {} },
            _meta: { traceparent: "00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01" }
          },
          30
        )
      })
  },
  {
    id: "ACK-015",
    level: "must",
    title: "a method that the agent does not offer is refused",
    page,
    run: (open) =>
      Effect.gen(function* () {
        const { client, said, sessionId } = yield* ready(open)
        const missing = optional.filter(([, ...path]) => !capability(said, ...path))
        yield* offered(missing.length > 0)
        for (const [method] of missing) {
          const error = yield* client.refusal(method, { sessionId, cwd: client.work, mcpServers: [] })
          yield* demand(typeof at(error, "code") === "number", `${method} was refused with ${JSON.stringify(error)}`)
        }
      })
  }
]
