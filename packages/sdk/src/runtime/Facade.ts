/**
 * The runtime as an application sees it: namespaces of promises over the services (section 4). Every failure is the
 * runtime's own error; anything else is `internal`, and only logged. Calls that still wait when the runtime is closed are
 * refused then, so that no promise stays open for ever.
 *
 * Implements RT-020, RT-023 to RT-025, RT-027, RT-028, RT-380, RT-381.
 *
 * @since 0.1.0
 */
import { Internal, isRuntimeError, RuntimeDisposed, UnsupportedOperation, type RuntimeError } from "@tackroom/protocol"
import type {
  Artifact,
  Decision,
  HarnessRef,
  Interaction,
  PromptPart,
  Session,
  SessionConfigUpdate
} from "@tackroom/protocol/events"
import { Cause, Context, Deferred, Effect, Exit, Layer, Scope, Stream } from "effect"
import type { StoreInfo } from "../store/RuntimeStore.ts"
import { AgentRuntime, compose, type DisposeOptions } from "./AgentRuntime.ts"
import { Config } from "./Config.ts"
import { Events, type ChangesInput, type PageRequest } from "./Events.ts"
import type { ResponseScope } from "./Interactions.ts"
import { Minting } from "./Minting.ts"
import { resolveOptions, type AgentRuntimeOptions, type ResolvedOptions } from "./Options.ts"
import { Permissions, Questions, type ListInteractions } from "./Permissions.ts"
import { Queue } from "./Queue.ts"
import {
  Sessions,
  type CreateSession,
  type ListSessionsInput,
  type SessionPage,
  type UpdateSession
} from "./Sessions.ts"
import { Capabilities, Commands, Health, Todos } from "./Status.ts"
import type { SubscribeInput, Subscription, SubscriptionItem } from "./Subscriptions.ts"
import { Turns, type StartTurn } from "./Turns.ts"

/** Last argument of every call: stops waiting, undoes nothing (RT-027). */
export interface CallOptions {
  readonly signal?: AbortSignal
}

const disposeMs = 20_000

const makeFacade = (options: ResolvedOptions) => {
  const scope = Scope.makeUnsafe()
  const services = Effect.runSync(Layer.buildWithScope(compose(options), scope))
  const get = <I, S>(service: Context.Key<I, S>): S => Context.get(services as Context.Context<I>, service)
  const life = get(AgentRuntime)
  const sessions = get(Sessions)
  const turns = get(Turns)
  const queue = get(Queue)
  const events = get(Events)
  const permissions = get(Permissions)
  const questions = get(Questions)
  const todos = get(Todos)
  const commands = get(Commands)
  const config = get(Config)
  const health = get(Health)
  const capabilities = get(Capabilities)
  let disposal: Promise<void> | undefined
  let isClosing = false

  /** A failure as the caller gets it: the runtime's own error; anything else is `internal` and only logged (RT-380). */
  const failure = (cause: Cause.Cause<unknown>): unknown => {
    const found = Cause.findErrorOption(cause)
    if (found._tag === "Some" && isRuntimeError(found.value)) return found.value
    if (Cause.hasInterruptsOnly(cause)) {
      return !isClosing ? new DOMException("The call was aborted", "AbortError") : new RuntimeDisposed({})
    }
    const traceId = get(Minting).uuid()
    Effect.runFork(Effect.logError("A call failed inside", { traceId }, cause))
    return new Internal({ traceId })
  }

  /** Calls that have not answered yet. */
  const open = new Set<{ readonly interruptUnsafe: () => void }>()

  const call = <A, E>(effect: Effect.Effect<A, E>, callOptions?: CallOptions): Promise<A> => {
    if (isClosing) return Promise.reject(new RuntimeDisposed({}))
    const signal = callOptions?.signal
    return new Promise((resolve, reject) => {
      const fiber = Effect.runFork(effect, signal === undefined ? {} : { signal })
      open.add(fiber)
      fiber.addObserver((exit) => {
        open.delete(fiber)
        if (Exit.isSuccess(exit)) resolve(exit.value)
        else
          reject(signal?.aborted === true && Cause.hasInterruptsOnly(exit.cause) ? signal.reason : failure(exit.cause))
      })
    })
  }

  const unsupported = (operation: string): Promise<never> =>
    Promise.reject(isClosing ? new RuntimeDisposed({}) : new UnsupportedOperation({ operation }))

  const iterate = ({ close, next, poll }: Subscription): AsyncIterableIterator<SubscriptionItem> => {
    let waiting = 0
    const awaited = async (): Promise<IteratorResult<SubscriptionItem, undefined>> => {
      waiting += 1
      const exit = await Effect.runPromiseExit(next)
      waiting -= 1
      if (Exit.isFailure(exit)) throw failure(exit.cause)
      return exit.value === undefined ? { done: true, value: undefined } : { done: false, value: exit.value }
    }
    const iterator: AsyncIterableIterator<SubscriptionItem> = {
      [Symbol.asyncIterator]: () => iterator,
      next: () => {
        // An event that is here needs no fiber.
        const value = waiting === 0 ? poll() : undefined
        return value === undefined ? awaited() : Promise.resolve({ done: false, value })
      },
      return: async () => {
        await Effect.runPromise(close)
        return { done: true, value: undefined }
      }
    }
    return iterator
  }

  const iterateStream = <A>(stream: Stream.Stream<A, RuntimeError>): AsyncIterable<A> => ({
    [Symbol.asyncIterator]: () => {
      const over = Deferred.makeUnsafe<void>()
      const ending = { interruptUnsafe: () => Deferred.doneUnsafe(over, Exit.void) }
      open.add(ending)
      const bounded = Stream.ensuring(
        Stream.interruptWhen(stream, Deferred.await(over)),
        Effect.sync(() => open.delete(ending))
      )
      const inner = Stream.toAsyncIterable(bounded)[Symbol.asyncIterator]()
      return {
        next: () => inner.next(),
        return: async () => {
          await inner.return?.()
          return { done: true, value: undefined }
        }
      }
    }
  })

  const dispose = (how: DisposeOptions = {}): Promise<void> => {
    isClosing = true
    disposal ??= Effect.runPromise(
      Effect.gen(function* () {
        const from = get(Minting).now()
        yield* life.shutdown(how)
        // What waits for turns has its answer by now; nobody will answer the rest.
        for (const waiting of open) waiting.interruptUnsafe()
        // Drivers end their children here; one that does not in time is left to the guard (HRN-034).
        const bound = how.turns === "leave" ? 5_000 : disposeMs
        yield* Effect.timeoutOption(Scope.close(scope, Exit.void), Math.max(500, bound - (get(Minting).now() - from)))
      })
    )
    return disposal
  }

  function list(directory: string, options?: CallOptions): Promise<ReadonlyArray<Session>>
  function list(input: ListSessionsInput, options?: CallOptions): Promise<SessionPage>
  function list(
    input: string | ListSessionsInput,
    options?: CallOptions
  ): Promise<ReadonlyArray<Session> | SessionPage> {
    return typeof input === "string"
      ? call(
          Effect.map(listAll(input), (items) => items),
          options
        )
      : call(sessions.list(input), options)
  }

  const listAll = Effect.fnUntraced(function* (directory: string) {
    const out: Array<Session> = []
    let cursor: string | undefined
    do {
      const page: SessionPage = yield* sessions.list({
        directory,
        limit: 500,
        ...(cursor === undefined ? {} : { cursor })
      })
      out.push(...page.items)
      cursor = page.nextCursor
    } while (cursor !== undefined)
    return out
  })

  return {
    sessions: {
      create: (input: CreateSession, options?: CallOptions) => call(sessions.create(input), options),
      get: (id: string, directory?: string, options?: CallOptions) => call(sessions.get(id, directory), options),
      list,
      update: (id: string, update: UpdateSession, directory?: string, options?: CallOptions) =>
        call(sessions.update(id, update, directory === undefined ? {} : { directory }), options),
      updateConfig: (id: string, update: SessionConfigUpdate, directory?: string, options?: CallOptions) =>
        call(config.update(id, update, directory), options),
      close: (id: string, options?: CallOptions) => call(sessions.close(id), options),
      delete: (id: string, directory?: string, options?: CallOptions) =>
        call(sessions.remove(id, directory === undefined ? {} : { directory }), options),
      receipt: (id: string, messageId: string, options?: CallOptions) => call(sessions.receipt(id, messageId), options),
      fork: (_id: string) => unsupported("sessions.fork"),
      revert: (_id: string, _messageId: string) => unsupported("sessions.revert"),
      unrevert: (_id: string) => unsupported("sessions.unrevert"),
      export: (_id: string) => unsupported("sessions.export")
    },
    turns: {
      start: (input: StartTurn, options?: CallOptions) => call(turns.start(input), options),
      abort: (sessionId: string, directory?: string, how?: { readonly turnId?: string }, options?: CallOptions) =>
        call(
          turns.abort(sessionId, {
            ...(directory === undefined ? {} : { directory }),
            ...(how?.turnId === undefined ? {} : { turnId: how.turnId })
          }),
          options
        ),
      wait: (sessionId: string, messageId: string, options?: CallOptions) =>
        call(turns.wait(sessionId, messageId), options),
      whenIdle: (sessionId: string, options?: CallOptions) => call(turns.whenIdle(sessionId), options),
      queue: {
        list: (sessionId: string, options?: CallOptions) => call(queue.list(sessionId), options),
        remove: (sessionId: string, messageId: string, how?: { readonly revision?: number }, options?: CallOptions) =>
          call(queue.remove(sessionId, messageId, how), options),
        move: (
          sessionId: string,
          messageId: string,
          how: { readonly before: string | null; readonly revision?: number },
          options?: CallOptions
        ) => call(queue.move(sessionId, messageId, how), options),
        reorder: (
          sessionId: string,
          messageIds: ReadonlyArray<string>,
          how: { readonly revision: number },
          options?: CallOptions
        ) => call(queue.reorder(sessionId, messageIds, how), options),
        edit: (
          sessionId: string,
          messageId: string,
          parts: ReadonlyArray<PromptPart>,
          how?: { readonly revision?: number },
          options?: CallOptions
        ) => call(queue.edit(sessionId, messageId, parts, how), options),
        release: (sessionId: string, options?: CallOptions) => call(queue.release(sessionId), options)
      }
    },
    goals: {
      capabilities: (_sessionId: string) => unsupported("goals"),
      read: (_sessionId: string) => unsupported("goals"),
      start: (_input: { readonly sessionId: string; readonly objective: string }) => unsupported("goals"),
      pause: (_sessionId: string) => unsupported("goals"),
      resume: (_sessionId: string) => unsupported("goals"),
      stop: (_sessionId: string) => unsupported("goals"),
      delete: (_sessionId: string) => unsupported("goals")
    },
    permissions: {
      list: (input: string | ListInteractions, options?: CallOptions): Promise<ReadonlyArray<Interaction>> =>
        call(permissions.list(typeof input === "string" ? { directory: input } : input), options),
      respond: (
        id: string,
        decision: Decision,
        directory?: string,
        optionId?: string,
        options?: CallOptions & ResponseExtras
      ) =>
        call(
          permissions.respond(id, decision, {
            ...scopeOf(directory, options),
            ...(optionId === undefined ? {} : { optionId })
          }),
          options
        )
    },
    questions: {
      list: (input: string | ListInteractions, options?: CallOptions): Promise<ReadonlyArray<Interaction>> =>
        call(questions.list(typeof input === "string" ? { directory: input } : input), options),
      answer: (
        id: string,
        answers: ReadonlyArray<ReadonlyArray<string>>,
        directory?: string,
        options?: CallOptions & ResponseExtras
      ) => call(questions.answer(id, answers, scopeOf(directory, options)), options),
      reject: (id: string, directory?: string, options?: CallOptions & ResponseExtras) =>
        call(questions.reject(id, scopeOf(directory, options)), options)
    },
    todos: {
      list: (sessionId: string, directory?: string, options?: CallOptions) =>
        call(todos.list(sessionId, directory), options)
    },
    commands: {
      list: (directory: string, filter?: { readonly sessionId?: string }, options?: CallOptions) =>
        call(commands.list(directory, filter), options),
      execute: (
        sessionId: string,
        command: { readonly name: string; readonly arguments?: string; readonly messageId?: string },
        directory?: string,
        options?: CallOptions
      ) => call(commands.execute(sessionId, command, directory), options)
    },
    config: {
      read: (sessionId: string, options?: CallOptions) => call(config.read(sessionId), options),
      options: (
        directory: string,
        filter?: { readonly harness?: string; readonly sessionId?: string },
        options?: CallOptions
      ) => call(config.options(directory, filter), options),
      models: (directory: string, harness: HarnessRef, options?: CallOptions) =>
        call(config.models(directory, harness), options),
      permissionModes: (sessionId: string, options?: CallOptions) => call(config.permissionModes(sessionId), options),
      setPermissionMode: (sessionId: string, modeId: string, options?: CallOptions) =>
        call(config.setPermissionMode(sessionId, modeId), options),
      update: (sessionId: string, update: SessionConfigUpdate, directory?: string, options?: CallOptions) =>
        call(config.update(sessionId, update, directory), options)
    },
    health: { read: (directory?: string, options?: CallOptions) => call(health.read(directory), options) },
    capabilities: {
      read: (sessionId: string, directory?: string, options?: CallOptions) =>
        call(capabilities.read(sessionId, directory), options),
      list: (directory?: string, options?: CallOptions) => call(capabilities.list(directory), options)
    },
    events: {
      /** Attached when this returns (RT-220). */
      subscribe: (input: SubscribeInput): AsyncIterableIterator<SubscriptionItem> => iterate(events.subscribe(input)),
      read: (sessionId: string, how?: { readonly after?: number; readonly limit?: number }, options?: CallOptions) =>
        call(events.read(sessionId, how), options),
      list: (sessionId: string, directory?: string, options?: CallOptions) =>
        call(events.list(sessionId, directory), options),
      page: (sessionId: string, request: PageRequest, options?: CallOptions) =>
        call(events.page(sessionId, request), options),
      head: (sessionId: string, options?: CallOptions) => call(events.head(sessionId), options),
      changes: (input?: ChangesInput) => iterateStream(events.changes(input)),
      artifact: (
        sessionId: string,
        artifactId: string,
        options?: CallOptions
      ): Promise<{ readonly artifact: Artifact; readonly bytes: AsyncIterable<Uint8Array> }> =>
        call(
          Effect.map(events.artifact(sessionId, artifactId), ({ artifact, bytes }) => ({
            artifact,
            bytes: iterateStream(bytes)
          })),
          options
        )
    },
    /** Store open, migrated, recovery pass done. */
    ready: (options?: CallOptions): Promise<StoreInfo> => call(life.ready, options),
    dispose,
    [Symbol.asyncDispose]: () => dispose()
  }
}

/** Who answered, for the record. */
export interface ResponseExtras {
  readonly by?: string
  readonly sessionId?: string
}

const scopeOf = (directory: string | undefined, extras: ResponseExtras | undefined): ResponseScope => ({
  ...(directory === undefined ? {} : { directory }),
  ...(extras?.sessionId === undefined ? {} : { sessionId: extras.sessionId }),
  ...(extras?.by === undefined ? {} : { by: extras.by })
})

/** A runtime as an application sees it: namespaces of promises (section 4). */
export type AgentRuntimeFacade = ReturnType<typeof makeFacade>

/**
 * Makes a runtime. Returns at once; `ready()` and every call wait for the store (RT-020).
 *
 * The store stays the caller's: close it after every runtime on it is disposed.
 *
 * @example
 * ```ts
 * const runtime = createAgentRuntime({ store: createMemoryRuntimeStore(), harnesses: [scripted()] })
 * const session = await runtime.sessions.create({ directory: "/srv/app", harness: { id: "scripted", access: "native" } })
 * await runtime.turns.start({ sessionId: session.id, text: "hello" })
 * ```
 *
 * @throws RuntimeOptionInvalid when an option is not valid, HarnessDuplicate when two harnesses have one key
 * @since 0.1.0
 */
export const createAgentRuntime = (options: AgentRuntimeOptions): AgentRuntimeFacade =>
  makeFacade(resolveOptions(options))
