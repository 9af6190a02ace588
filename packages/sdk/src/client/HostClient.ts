/**
 * One connection to one host process: a typed call for every method of the table, and the table of open requests. It
 * knows nothing of restarts (`Launch` does) and repeats nothing.
 *
 * Reading never stops while a request is open (RUN-570), and every open request rejects with `HostExited` as soon as the
 * host is gone (RUN-573).
 */
import {
  classifyFrame,
  decodeNotification,
  decodeResult,
  encodeNotification,
  encodeParams,
  fromErrorObject,
  isNotificationName,
  type MethodName,
  methodNames,
  type NotificationName,
  type NotificationParams,
  type ParamsOf,
  type ResultOf
} from "@tackroom/protocol/run"
import { Result } from "effect"
import { HostExited, ProtocolViolation } from "./ClientErrors.ts"
import type { HostTransport, TransportClosed } from "./HostTransport.ts"

/** Options of one request. */
export interface RequestOptions {
  /** Gives the answer up: the call rejects with the signal's reason. What the host does is not undone. */
  readonly signal?: AbortSignal | undefined
}

/** The name of a method's call: `run/start` is `runStart`. */
export type CallName<M extends string> = M extends `${infer Area}/${infer Verb}` ? `${Area}${Capitalize<Verb>}` : M

/** The call of one method; params may be left out where all of them are optional. */
export type Call<M extends MethodName> =
  object extends ParamsOf<M>
    ? (params?: ParamsOf<M>, options?: RequestOptions) => Promise<ResultOf<M>>
    : (params: ParamsOf<M>, options?: RequestOptions) => Promise<ResultOf<M>>

/** A call for every method of the table. Rejects with the classes of `RunErrors`, or with `HostExited`. */
export type HostCalls = { readonly [M in MethodName as CallName<M>]: Call<M> }

/** A notification of the host. */
export interface HostNotification<N extends NotificationName = NotificationName> {
  readonly method: N
  readonly params: NotificationParams<N>
}

/** One connection to one host. */
export interface HostClient extends HostCalls {
  /** The call of a method by its name on the wire. */
  readonly request: <M extends MethodName>(
    method: M,
    params: ParamsOf<M>,
    options?: RequestOptions
  ) => Promise<ResultOf<M>>
  /** Sends a notification; one to a host that is gone is dropped. */
  readonly notify: <N extends NotificationName>(method: N, params: NotificationParams<N>) => void
  /** Listens to the host's notifications, in order. Returns the removal. A listener must not throw. */
  readonly onNotification: (listener: (notification: HostNotification) => void) => () => void
  /** Completes when the host is gone, for whatever reason. Never rejects. */
  readonly closed: Promise<TransportClosed>
  /** Ends the host (RT-357). Requests that are open reject with `HostExited`. */
  readonly close: () => Promise<TransportClosed>
  readonly pid: number | undefined
}

interface Pending {
  readonly method: MethodName
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

const callName = (method: string): string => method.replace(/\/(.)/, (_, first: string) => first.toUpperCase())

/** Opens a transport and speaks the run protocol over it. `initialize` is the caller's to send. */
export const makeHostClient = (transport: HostTransport): HostClient => {
  const pending = new Map<string | number, Pending>()
  const listeners = new Set<(notification: HostNotification) => void>()
  let nextId = 1
  let gone: HostExited | undefined
  let markClosed: (closed: TransportClosed) => void
  const closed = new Promise<TransportClosed>((resolve) => {
    markClosed = resolve
  })

  const settle = (id: string | number | null): Pending | undefined => {
    if (id === null) return undefined
    const request = pending.get(id)
    pending.delete(id)
    return request
  }

  const onMessage = (message: unknown): void => {
    const frame = classifyFrame(message)
    switch (frame._tag) {
      case "Response":
        return settle(frame.id)?.resolve(frame.result)
      case "ErrorResponse":
        return settle(frame.id)?.reject(fromErrorObject(frame.error))
      case "Notification": {
        if (!isNotificationName(frame.method)) return
        const params = decodeNotification(frame.method, frame.params)
        if (Result.isFailure(params)) return
        const notification = { method: frame.method, params: params.success }
        for (const listener of listeners) listener(notification)
        return
      }
      default:
        // A host sends no requests, and what is no frame answers nothing.
        return
    }
  }

  transport.open({
    onMessage,
    onClosed: (how) => {
      gone = new HostExited(how)
      const open = [...pending.values()]
      pending.clear()
      for (const request of open) request.reject(gone)
      markClosed(how)
    }
  })

  const request = <M extends MethodName>(
    method: M,
    params: ParamsOf<M>,
    options?: RequestOptions
  ): Promise<ResultOf<M>> =>
    new Promise<ResultOf<M>>((resolve, reject) => {
      const signal = options?.signal
      if (signal?.aborted === true) return reject(signal.reason)
      if (gone !== undefined) return reject(gone)
      const id = nextId++
      const abort = (): void => {
        pending.delete(id)
        reject(signal?.reason)
      }
      const done = (): void => signal?.removeEventListener("abort", abort)
      signal?.addEventListener("abort", abort, { once: true })
      pending.set(id, {
        method,
        resolve: (json) => {
          done()
          const result = decodeResult(method, json)
          if (Result.isSuccess(result)) return resolve(result.success)
          const { path, expected } = result.failure
          reject(new ProtocolViolation({ method, message: `${method}: result ${path}: expected ${expected}` }))
        },
        reject: (error) => {
          done()
          reject(error)
        }
      })
      const sent = transport.send({ jsonrpc: "2.0", id, method, params: encodeParams(method, params) })
      // Its exit is known within 100 ms and rejects this request with all the others.
      if (!sent && gone !== undefined) settle(id)?.reject(gone)
    })

  const calls = Object.fromEntries(
    methodNames.map((method) => [
      callName(method),
      (params: ParamsOf<typeof method> = {} as never, options?: RequestOptions) => request(method, params, options)
    ])
  ) as unknown as HostCalls

  return {
    ...calls,
    request,
    notify: (method, params) =>
      void transport.send({ jsonrpc: "2.0", method, params: encodeNotification(method, params) }),
    onNotification: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    closed,
    close: () => transport.close(),
    pid: transport.pid
  }
}
