/**
 * What an application's callback answers, as an effect: a value, a promise, or an effect. A callback that throws is a
 * defect; the caller decides what that means.
 *
 * @since 0.1.0
 */
import { Effect } from "effect"
import type { Answer } from "./Options.ts"

const isPromise = (value: unknown): value is Promise<unknown> =>
  typeof value === "object" && value !== null && "then" in value && typeof value.then === "function"

/** Runs a callback of the application. */
export const fromAnswer = <A>(call: () => Answer<A>): Effect.Effect<A> =>
  Effect.suspend(() => {
    const answer = call()
    if (Effect.isEffect(answer)) return answer as Effect.Effect<A>
    if (isPromise(answer)) return Effect.promise(() => answer as Promise<A>)
    return Effect.succeed(answer as A)
  })
