/**
 * The secrets this process knows, so that none of them is journaled (RT-320, RT-321). A value becomes known when a driver
 * asks for it or a person answers a secret question; values under 8 characters are not replaced.
 *
 * @since 0.1.0
 */
import { Context, Effect, Layer } from "effect"
import { isSessionSecret } from "../mcp/SessionEntries.ts"
import { fromAnswer } from "./Answers.ts"
import { Options } from "./Options.ts"

const shortest = 8

/** Known values, by name, and their replacement. */
export class KnownSecrets {
  readonly #values = new Map<string, string>()
  #sorted: ReadonlyArray<readonly [value: string, name: string]> = []
  readonly #followers: Array<(name: string, value: string) => void> = []

  get any(): boolean {
    return this.#sorted.length > 0
  }

  add(name: string, value: string): void {
    if (value.length < shortest || this.#values.get(value) === name) return
    this.#values.set(value, name)
    this.#sorted = [...this.#values].toSorted((a, b) => b[0].length - a[0].length)
    for (const follower of this.#followers) follower(name, value)
  }

  /** Told of every value from the moment that it is known: for what is written beside the journal. */
  follow(follower: (name: string, value: string) => void): void {
    this.#followers.push(follower)
    for (const [value, name] of this.#values) follower(name, value)
  }

  text(text: string): string {
    let out = text
    for (const [value, name] of this.#sorted) {
      if (out.includes(value)) out = out.replaceAll(value, `[redacted:${name}]`)
    }
    return out
  }

  /** How many units at the end of a text may be the beginning of a secret. */
  hold(text: string): number {
    let held = 0
    for (const [value] of this.#sorted) {
      for (let size = Math.min(value.length - 1, text.length); size > held; size--) {
        if (text.endsWith(value.slice(0, size))) {
          held = size
          break
        }
      }
    }
    return held
  }

  /** A copy in which every string is redacted; the value itself when nothing was found. */
  value<A>(value: A): A {
    if (!this.any) return value
    return this.#deep(value) as A
  }

  #deep(value: unknown): unknown {
    if (typeof value === "string") return this.text(value)
    if (typeof value !== "object" || value === null) return value
    if (Array.isArray(value)) {
      let copy: Array<unknown> | undefined
      for (let i = 0; i < value.length; i++) {
        const item = this.#deep(value[i])
        if (item !== value[i]) copy ??= value.slice()
        if (copy !== undefined) copy[i] = item
      }
      return copy ?? value
    }
    let copy: Record<string, unknown> | undefined
    for (const [key, item] of Object.entries(value)) {
      const next = this.#deep(item)
      if (next === item) continue
      copy ??= { ...value }
      copy[key] = next
    }
    return copy ?? value
  }
}

/** The source of named secrets, and what is known of them. */
export class Secrets extends Context.Service<
  Secrets,
  {
    readonly known: KnownSecrets
    readonly get: (name: string) => Effect.Effect<string | undefined>
    /** Keeps a value of this process alone, under a name that no application is asked for. */
    readonly keep: (name: string, value: string) => void
    readonly kept: (name: string) => string | undefined
    readonly drop: (name: string) => void
  }
>()("@tackroom/sdk/runtime/Secrets") {
  static readonly layer = Layer.effect(
    Secrets,
    Effect.gen(function* () {
      const options = yield* Options
      const known = new KnownSecrets()
      const source = options.secrets
      const own = new Map<string, string>()
      return Secrets.of({
        known,
        get: (name) =>
          own.has(name) || isSessionSecret(name) || source === undefined
            ? Effect.succeed(own.get(name))
            : Effect.map(
                fromAnswer(() => source.get(name)),
                (value) => {
                  if (value !== undefined) known.add(name, value)
                  return value
                }
              ),
        keep: (name, value) => void own.set(name, value),
        kept: (name) => own.get(name),
        drop: (name) => void own.delete(name)
      })
    })
  )
}
