/**
 * Which harnesses this host has besides its own agent, and how each is made from the options that its configuration gives
 * it under `harnesses` (D-41, serve-mode 1.1). A driver is one entry of `known`, and is loaded at its first use only.
 *
 * It owns the list and the reading of keys, and knows nothing of sessions.
 */
import { HarnessUnavailable, type HarnessError } from "@tackroom/protocol"
import type { HarnessRef } from "@tackroom/protocol/events"
import type { HarnessCapabilities, HarnessDefinition, HarnessFactory } from "@tackroom/sdk/adapters"
import { harnessDefinition } from "@tackroom/sdk"
import { Effect, type Schema } from "effect"

/** The options of one harness, as the configuration has them; their names are the factory's own. */
export type HarnessOptions = { readonly [name: string]: Schema.Json }

/** The options of every configured harness, by id or by `access:id`. */
export type ConfiguredHarnesses = { readonly [key: string]: HarnessOptions }

/** Options that a harness does not take: where they stand, and what is wrong. */
export interface BadOptions {
  readonly path: string
  readonly expected: string
}

interface Known {
  readonly access: HarnessRef["access"]
  /** Undefined: every id of this access that the configuration names. */
  readonly id: string | undefined
  readonly definition: HarnessDefinition
  /** The MCP servers that every session takes, whatever it is that is driven; some takes more. */
  readonly mcp: HarnessCapabilities["mcp"]
  readonly load: (ref: HarnessRef, options: HarnessOptions) => Effect.Effect<HarnessFactory, BadOptions | HarnessError>
}

const known: ReadonlyArray<Known> = [
  {
    access: "native",
    id: "host",
    definition: harnessDefinition("host"),
    mcp: "none",
    load: (_ref, options) =>
      Effect.flatMap(
        Effect.promise(() => import("./RunHost.ts")),
        ({ load }) => load(options)
      )
  },
  {
    access: "native",
    id: "serve",
    definition: harnessDefinition("serve"),
    mcp: "none",
    load: (_ref, options) =>
      Effect.flatMap(
        Effect.promise(() => import("./ServeProgram.ts")),
        ({ load }) => load(options)
      )
  },
  {
    access: "native",
    id: "scripted",
    definition: harnessDefinition("scripted"),
    mcp: "none",
    load: (_ref, options) =>
      Effect.flatMap(
        Effect.promise(() => import("./Scripted.ts")),
        ({ load }) => load(options)
      )
  },
  {
    access: "acp",
    id: undefined,
    definition: { label: "ACP agent", authEnv: null },
    // Programs belong to the protocol; whether an agent takes more is known when it was started.
    mcp: "stdio",
    load: (ref, options) =>
      Effect.flatMap(
        Effect.promise(() => import("./Acp.ts")),
        ({ load }) => load(ref.id, options)
      )
  }
]

/** Our own agent. */
export const nativeHarness = { id: "native", access: "native" } as const satisfies HarnessRef

export const isNative = (ref: HarnessRef): boolean => ref.id === nativeHarness.id && ref.access === nativeHarness.access

/** The id of a harness, with its access in front where that is not `native`. */
export const harnessKeyOf = (ref: HarnessRef): string => (ref.access === "native" ? ref.id : `${ref.access}:${ref.id}`)

/** Where the options of a harness stand. */
const placeOf = (ref: HarnessRef, configured: ConfiguredHarnesses): string | undefined =>
  [harnessKeyOf(ref), ref.id].find((key) => Object.hasOwn(configured, key))

const find = (ref: HarnessRef, configured: ConfiguredHarnesses): Known | undefined =>
  known.find(
    ({ access, id }) =>
      access === ref.access && (id === undefined ? placeOf(ref, configured) !== undefined : id === ref.id)
  )

const accesses = ["native", "acp", "connection"] as const

const refOf = (key: string): HarnessRef => {
  const access = accesses.find((one) => key.startsWith(`${one}:`))
  return access === undefined ? { id: key, access: "native" } : { id: key.slice(access.length + 1), access }
}

/** Reads a key; a message when this host has no such harness. */
export const parseHarnessKey = (
  key: string,
  configured: ConfiguredHarnesses
): HarnessRef | { readonly refused: string } => {
  const ref = refOf(key)
  if (hasHarness(ref, configured)) return ref
  const fixed = known.flatMap(({ access, id }) => (id === undefined ? [] : [harnessKeyOf({ access, id })]))
  const named = Object.keys(configured).filter((one) => find(refOf(one), configured) !== undefined)
  return { refused: `there is no harness ${key}: there are ${[...new Set(["native", ...fixed, ...named])].join(", ")}` }
}

export const hasHarness = (ref: HarnessRef, configured: ConfiguredHarnesses): boolean =>
  isNative(ref) || find(ref, configured) !== undefined

/** The MCP servers that every session of a harness besides our own takes; known without starting anything. */
export const takesMcp = (ref: HarnessRef, configured: ConfiguredHarnesses): HarnessCapabilities["mcp"] =>
  find(ref, configured)?.mcp ?? "none"

/** The factory of a harness: what it is made of is loaded, and its options are read, when its driver is made. */
export const harnessFactory = (ref: HarnessRef, configured: ConfiguredHarnesses): HarnessFactory | undefined => {
  const found = find(ref, configured)
  if (found === undefined) return undefined
  const place = placeOf(ref, configured)
  const options = place === undefined ? {} : (configured[place] ?? {})
  const unfit = ({ expected, path }: BadOptions) => {
    const at = `harnesses.${place ?? ref.id}${path === "" ? "" : `.${path}`}`
    return new HarnessUnavailable({ harness: harnessKeyOf(ref), operation: "make", message: `${at}: ${expected}` })
  }
  return {
    id: ref.id,
    access: ref.access,
    definition: found.definition,
    make: (context) =>
      found.load(ref, options).pipe(
        Effect.mapError((error) => ("expected" in error ? unfit(error) : error)),
        Effect.flatMap((factory) => factory.make(context))
      )
  }
}
