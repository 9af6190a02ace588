/** A rig in virtual time: every request waits until the test answers it, or until its limit is over. */
import { Clock, Effect } from "effect"
import { NoAnswer, type RigAnswer, type RigClient, type RigRequest } from "../../src/rig/RigClient.ts"

export interface Exchange {
  readonly request: RigRequest
  /** Virtual milliseconds since the start. */
  readonly at: number
  readonly body: Readonly<Record<string, unknown>>
  readonly answer: (status: number, body?: object) => void
  readonly fail: (reason: NoAnswer["reason"]) => void
}

export interface FakeRig {
  readonly client: RigClient
  readonly exchanges: Array<Exchange>
  /** Answers everything from now on; `undefined` leaves a request waiting. */
  respond: ((exchange: Exchange) => void) | undefined
}

export const makeFakeRig = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const rig: { -readonly [Key in keyof FakeRig]: FakeRig[Key] } = {
    exchanges: [],
    respond: undefined,
    client: {
      isReachable: () => true,
      send: (request) =>
        Effect.callback<RigAnswer, NoAnswer>((resume) => {
          const body: unknown = JSON.parse(JSON.stringify(request.body ?? {}))
          const exchange: Exchange = {
            request,
            at: clock.currentTimeMillisUnsafe(),
            body: body as Readonly<Record<string, unknown>>,
            answer: (status, answered = {}) =>
              resume(
                Effect.succeed({
                  status,
                  body: status === 200 ? { ok: true, ...answered } : { ok: false, ...answered }
                })
              ),
            fail: (reason) => resume(Effect.fail(new NoAnswer({ reason })))
          }
          rig.exchanges.push(exchange)
          rig.respond?.(exchange)
        }).pipe(
          Effect.timeoutOrElse({
            duration: request.limitMs,
            orElse: () => Effect.fail(new NoAnswer({ reason: "timeout" }))
          })
        )
    }
  }
  return rig
})
