/** What an agent says of itself in its answer to `initialize`. Pure. */
import { type Fields, fieldsOf, listOf, textOf, wordsOf } from "./Fields.ts"
import { type Profile, profileOf } from "./Profiles.ts"
import type { Takes } from "./Prompts.ts"

/** A way to sign in. */
export interface AuthMethod {
  readonly id: string
  readonly name: string
  readonly description: string | undefined
  /** It needs a terminal of its own, which a driver has not: what the agent's program is started with there. */
  readonly terminal: TerminalStart | undefined
}

/** What is added to the agent's command for a terminal. */
interface TerminalStart {
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
}

/** An agent as the driver sees it. */
export interface AgentFacts {
  readonly protocolVersion: unknown
  readonly name: string | undefined
  readonly version: string | undefined
  readonly profile: Profile
  /** The call that reopens a conversation; none when nothing does, or does it rightly. */
  readonly reopens: "resume" | "load" | undefined
  readonly lists: boolean
  readonly closes: boolean
  readonly deletes: boolean
  readonly takes: Takes
  readonly mcpHttp: boolean
  readonly authMethods: ReadonlyArray<AuthMethod>
}

const terminalStart = (method: Fields | undefined): TerminalStart => ({
  args: listOf(method?.["args"]).flatMap((word) => textOf(word) ?? []),
  env: Object.fromEntries(
    Object.entries(fieldsOf(method?.["env"]) ?? {}).flatMap(([name, value]) =>
      typeof value === "string" ? [[name, value] as const] : []
    )
  )
})

/** Reads the answer; what is absent is off. */
export const agentFactsOf = (answer: unknown): AgentFacts => {
  const fields = fieldsOf(answer)
  const info = fieldsOf(fields?.["agentInfo"])
  const capabilities = fieldsOf(fields?.["agentCapabilities"])
  const session = fieldsOf(capabilities?.["sessionCapabilities"])
  const prompt = fieldsOf(capabilities?.["promptCapabilities"])
  const profile = profileOf(textOf(info?.["name"]))
  const can = (name: string): boolean => fieldsOf(session?.[name]) !== undefined
  return {
    protocolVersion: fields?.["protocolVersion"],
    name: wordsOf(info?.["name"]),
    version: wordsOf(info?.["version"]),
    profile,
    reopens: !profile.resumes
      ? undefined
      : can("resume")
        ? "resume"
        : capabilities?.["loadSession"] === true
          ? "load"
          : undefined,
    lists: can("list"),
    closes: can("close"),
    deletes: can("delete"),
    takes: {
      image: prompt?.["image"] === true,
      audio: prompt?.["audio"] === true,
      embedded: prompt?.["embeddedContext"] === true
    },
    mcpHttp: fieldsOf(capabilities?.["mcpCapabilities"])?.["http"] === true,
    authMethods: listOf(fields?.["authMethods"]).flatMap((entry) => {
      const method = fieldsOf(entry)
      const id = wordsOf(method?.["id"])
      // Before the protocol had a field for it, it stood in `_meta`.
      const type = method?.["type"] ?? fieldsOf(method?.["_meta"])?.["type"]
      if (id === undefined) return []
      const name = wordsOf(method?.["name"]) ?? id
      const terminal = type === "terminal" ? terminalStart(method) : undefined
      return [{ id, name, description: wordsOf(method?.["description"]), terminal }]
    })
  }
}
