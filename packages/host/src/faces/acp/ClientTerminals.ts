/**
 * The terminals of the client that a session's calls work in, from their opening to their release (ACP-213).
 *
 * A client goes on showing a terminal that was released when it has been told of it before. So a release waits until the
 * call's update was written, or for a moment when nothing is told of it; a terminal that was released untold is never shown.
 */
import { Deferred, Effect, Exit } from "effect"

/** How long a release waits for the update that shows the terminal. */
const tellingPatience = "5 seconds"

export class ClientTerminals {
  readonly #told = new Map<string, Deferred.Deferred<void>>()

  opened(id: string): void {
    this.#told.set(id, Deferred.makeUnsafe<void>())
  }

  /** Whether the client has it, so that it can be shown. */
  has(id: string): boolean {
    return this.#told.has(id)
  }

  /** An update that shows it was written. */
  told(id: string): void {
    const told = this.#told.get(id)
    if (told !== undefined) Deferred.doneUnsafe(told, Exit.void)
  }

  /** Releases it by `send`, as soon as that may be; `gone`: nobody is told any more. */
  release(id: string, send: Effect.Effect<void>, gone: Effect.Effect<void>): Effect.Effect<void> {
    return Effect.suspend(() => {
      const told = this.#told.get(id)
      const ready = told === undefined ? Effect.void : Effect.raceFirst(Deferred.await(told), gone)
      return Effect.timeoutOption(ready, tellingPatience).pipe(
        Effect.andThen(Effect.sync(() => this.#told.delete(id))),
        Effect.andThen(send)
      )
    })
  }
}
