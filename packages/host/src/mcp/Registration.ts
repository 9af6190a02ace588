/**
 * What a registration of an MCP server is: the content that never changes, the tools it selects, and how it is shown
 * (RUN-251, RUN-253, RUN-254, RUN-255). Pure. Values of `env` and `headers` are kept and compared as keyed digests only.
 */
import type { Category } from "@tackroom/protocol/events"
import type { McpRegisterParams, McpServer as ShownServer, McpTools } from "@tackroom/protocol/run"
import type { McpServer } from "@tackroom/sdk/adapters"
import { canonicalJson } from "@tackroom/protocol/text"

type Values = Readonly<Record<string, string>>

/** A registration as it is kept: every value is a digest. */
export interface Registration {
  readonly name: string
  readonly transport: McpRegisterParams["transport"]
  readonly tools?: McpTools
}

const digested = (values: Values, digest: (value: string) => string): Values =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, digest(value)]))

const sorted = (names: ReadonlyArray<string> | undefined) =>
  names === undefined ? undefined : [...new Set(names)].toSorted()

/** The registration without its values. Lists of tools are sets, and nothing is the same as an empty map or list. */
export const withoutValues = (given: McpRegisterParams, digest: (value: string) => string): Registration => {
  const { name, tools, transport } = given
  const include = sorted(tools?.include)
  const exclude = sorted(tools?.exclude)
  const selection = {
    ...(include === undefined ? {} : { include }),
    ...(exclude === undefined || exclude.length === 0 ? {} : { exclude }),
    ...(Object.keys(tools?.categories ?? {}).length === 0 ? {} : { categories: tools?.categories ?? {} })
  }
  return {
    name,
    transport:
      transport.type === "stdio"
        ? {
            type: "stdio",
            command: transport.command,
            ...((transport.args ?? []).length === 0 ? {} : { args: transport.args ?? [] }),
            ...(Object.keys(transport.env ?? {}).length === 0 ? {} : { env: digested(transport.env ?? {}, digest) }),
            ...(transport.cwd === undefined ? {} : { cwd: transport.cwd })
          }
        : {
            type: "http",
            url: new URL(transport.url).href,
            ...(Object.keys(transport.headers ?? {}).length === 0
              ? {}
              : { headers: digested(transport.headers ?? {}, digest) })
          },
    ...(Object.keys(selection).length === 0 ? {} : { tools: selection })
  }
}

/** A field that no server can be started with, and what is expected there; never what stood there. */
export interface Problem {
  readonly path: string
  readonly expected: string
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/u
const headerValue = /^[\t\u0020-\u007e\u0080-\u00ff]*$/u
const variableName = /^[^=\0]+$/u

/** The first thing in a transport that the system or the protocol underneath cannot take. */
export const transportProblem = ({ transport }: McpRegisterParams): Problem | undefined => {
  if (transport.type === "stdio") {
    const { args = [], command, env = {} } = transport
    if (command.includes("\0")) return { path: "transport.command", expected: "a path without NUL" }
    if (args.some((arg) => arg.includes("\0"))) return { path: "transport.args", expected: "arguments without NUL" }
    const isFit = Object.entries(env).every(([name, value]) => variableName.test(name) && !value.includes("\0"))
    return isFit ? undefined : { path: "transport.env", expected: "variables that a process can have" }
  }
  const url = URL.parse(transport.url)
  if (url === null || url.username !== "" || url.password !== "") {
    return { path: "transport.url", expected: "an http or https URL without user info" }
  }
  const isFit = Object.entries(transport.headers ?? {}).every(
    ([name, value]) => headerName.test(name) && headerValue.test(value)
  )
  return isFit ? undefined : { path: "transport.headers", expected: "headers that a request can have" }
}

/** Two registrations of the same content (RUN-251). */
export const isSame = (one: Registration, other: Registration): boolean => canonicalJson(one) === canonicalJson(other)

const valuesOf = (transport: McpRegisterParams["transport"]): Values =>
  (transport.type === "stdio" ? transport.env : transport.headers) ?? {}

/** It cannot be started from what is kept: its values have to be given again (RUN-255). */
export const hasValues = ({ transport }: Registration): boolean => Object.keys(valuesOf(transport)).length > 0

/** The values of a registration, each under a name that may stand where it was (RUN-174). */
export const secretsOf = ({ name, transport }: McpRegisterParams) =>
  Object.entries(valuesOf(transport)).map(([key, value]) => ({ name: `mcp/${name}/${key}`, value }))

/** The server to connect to. */
export const serverOf = ({ name, transport }: McpRegisterParams): McpServer =>
  transport.type === "stdio"
    ? {
        name,
        transport: "stdio",
        command: transport.command,
        args: transport.args ?? [],
        env: transport.env ?? {}
      }
    : { name, transport: "remote", url: transport.url, headers: transport.headers ?? {} }

/** True for a tool that the registration selects. */
export const selects = ({ tools }: Registration, name: string): boolean =>
  (tools?.include === undefined || tools.include.includes(name)) && tools?.exclude?.includes(name) !== true

export const categoryOf = ({ tools }: Registration, name: string): Category => {
  const categories = tools?.categories ?? {}
  return Object.hasOwn(categories, name) ? (categories[name] ?? "external") : "external"
}

/** Where the registration names a tool that the server does not have; undefined when it names none such (RUN-253). */
export const unknownTool = ({ tools }: McpRegisterParams, listed: ReadonlySet<string>): Problem | undefined => {
  const expected = "the name of a tool that the server has"
  const at = (field: string, names: ReadonlyArray<string>) =>
    names.flatMap((name, index) => (listed.has(name) ? [] : [{ path: `tools.${field}[${index}]`, expected }]))
  return [
    ...at("include", tools?.include ?? []),
    ...at("exclude", tools?.exclude ?? []),
    ...Object.keys(tools?.categories ?? {}).flatMap((name) =>
      listed.has(name) ? [] : [{ path: "tools.categories", expected }]
    )
  ][0]
}

/** How a transport is shown: of its values, the names. */
export const shownTransport = ({ transport }: Registration): ShownServer["transport"] => {
  const names = Object.keys(valuesOf(transport))
  if (transport.type === "http") {
    return { type: "http", url: transport.url, ...(names.length === 0 ? {} : { headers: names }) }
  }
  const { env: _env, ...rest } = transport
  return { ...rest, ...(names.length === 0 ? {} : { env: names }) }
}
