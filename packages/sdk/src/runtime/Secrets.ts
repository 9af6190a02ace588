/**
 * The secrets this process knows, so that none of them is journaled (RT-320, RT-321). A value becomes known when a driver
 * asks for it or a person answers a secret question; values under 8 characters are not replaced.
 *
 * @since 0.1.0
 */
import {
  makeRedactor,
  minSecretLength,
  noRedaction,
  type OpenText,
  type Redactor,
  type Secret
} from "@tackroom/protocol/text"
import { Context, Effect, Layer } from "effect"
import { isSessionSecret } from "../mcp/SessionEntries.ts"
import { fromAnswer } from "./Answers.ts"
import { Options } from "./Options.ts"

/** Told of what becomes known, and of what is forgotten. */
export type SecretFollower = (secret: Secret, news: "known" | "forgotten") => void

const keyOf = ({ name, scope, value }: Secret): string => JSON.stringify([name, value, scope])

/** Known values, their names, and what stands for them. A name with a scope is said in texts of that scope alone. */
export class KnownSecrets {
  readonly #secrets = new Map<string, Secret>()
  /** Made when it is asked for: values come in groups. */
  #redactor: Redactor | undefined
  readonly #followers: Array<SecretFollower> = []

  get #now(): Redactor {
    if (this.#secrets.size === 0) return noRedaction
    return (this.#redactor ??= makeRedactor(this.#secrets.values()))
  }

  add(name: string, value: string, scope?: string): void {
    this.#tell({ name, value, scope }, "known")
  }

  /** The value was this name's, and is not any more. What other names it has stays known. */
  forget(name: string, value: string, scope?: string): void {
    this.#tell({ name, value, scope }, "forgotten")
  }

  /** Follows another's. */
  readonly take: SecretFollower = (secret, news) => this.#tell(secret, news)

  #tell(secret: Secret, news: "known" | "forgotten"): void {
    const key = keyOf(secret)
    if (secret.value.length < minSecretLength || this.#secrets.has(key) === (news === "known")) return
    if (news === "known") this.#secrets.set(key, secret)
    else this.#secrets.delete(key)
    this.#redactor = undefined
    for (const follower of this.#followers) follower(secret, news)
  }

  /** Told of every value from the moment that it is known: for what is written beside the journal. */
  follow(follower: SecretFollower): void {
    this.#followers.push(follower)
    for (const secret of this.#secrets.values()) follower(secret, "known")
  }

  text(text: string, scope?: string): string {
    return this.#now.text(text, scope)
  }

  /** A text that goes on, as far as it is certain that no secret is in it. */
  open(text: string, scope?: string): OpenText {
    return this.#now.open(text, scope)
  }

  bytes(bytes: Uint8Array, scope?: string): Uint8Array {
    return this.#now.bytes(bytes, scope)
  }

  /** A copy in which every string and key is redacted; the value itself when nothing was found. */
  value<A>(value: A, scope?: string): A {
    return this.#secrets.size === 0 ? value : this.#now.json(value, scope)
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
