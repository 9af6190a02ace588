/**
 * The client for programs made of Effects: a host as a scoped service, a run as a stream. The Promise API is the whole
 * API; this only ties it to scopes and streams.
 */
import { Context, Data, Effect, Layer, type Scope, Stream } from "effect"
import type { ConnectOptions, Host } from "./Host.ts"
import type { TransportFactory } from "./HostTransport.ts"
import { connectHost, launchHost, type LaunchOptions } from "./Launch.ts"
import type { Run, RunItem } from "./Run.ts"

/** What a call of the client rejected with: `cause` is one of its typed errors. */
export class ClientFailed extends Data.TaggedError("ClientFailed")<{ readonly cause: unknown }> {
  override get message(): string {
    return this.cause instanceof Error ? this.cause.message : "a call of the host client failed"
  }
}

/** A call of the client as an Effect. */
export const attempt = <A>(call: (signal: AbortSignal) => PromiseLike<A>): Effect.Effect<A, ClientFailed> =>
  Effect.tryPromise({ try: call, catch: (cause) => new ClientFailed({ cause }) })

/** The events of a run. Interrupting the stream stops watching, not the run. */
export const runEvents = (run: Run): Stream.Stream<RunItem, ClientFailed> =>
  Stream.fromAsyncIterable(run, (cause) => new ClientFailed({ cause }))

const scoped = (open: () => Promise<Host>): Effect.Effect<Host, ClientFailed, Scope.Scope> =>
  Effect.acquireRelease(attempt(open), (host) => Effect.promise(() => host.close()))

/** A host that is closed with the scope. */
export class HostService extends Context.Service<HostService, Host>()("@tackroom/sdk/client/HostService") {
  /** A child process. */
  static readonly layer = (options: LaunchOptions): Layer.Layer<HostService, ClientFailed> =>
    Layer.effect(
      HostService,
      scoped(() => launchHost(options))
    )

  /** Whatever the factory makes. */
  static readonly layerConnect = (
    factory: TransportFactory,
    options?: ConnectOptions
  ): Layer.Layer<HostService, ClientFailed> =>
    Layer.effect(
      HostService,
      scoped(() => connectHost(factory, options))
    )
}
