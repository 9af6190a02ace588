/**
 * The way to a host in this process: the same messages as over a pipe, without bytes. The object it takes comes from the
 * host package (`embedHost`), which the sdk never imports (D-27, RUN-590).
 */
import { type ErrorObject, InternalFailure, isRunError, toErrorObject } from "@tackroom/protocol/run"
import type { HostTransport, TransportListener } from "./HostTransport.ts"

/** A host in this process, as a client sees it. Params, results and notifications are JSON values in wire form. */
export interface EmbeddedHost {
  /** One request. Rejects with an error of the run protocol, or with something whose `error` is an error object. */
  readonly call: (method: string, params: unknown) => Promise<unknown>
  /** A notification to the host; absent when it takes none. */
  readonly notify?: (method: string, params: unknown) => void
  /** Notifications from the host, when it has any. Returns the removal of the listener. */
  readonly onNotification?: (listener: (method: string, params: unknown) => void) => () => void
  /** Disposes the host (RUN-592). Safe to call often. */
  readonly close: () => Promise<void>
}

interface Message {
  readonly id?: string | number
  readonly method?: string
  readonly params?: unknown
}

const isErrorObject = (value: unknown): value is ErrorObject =>
  typeof value === "object" && value !== null && "code" in value && "message" in value && "data" in value

const errorObject = (failure: unknown): ErrorObject => {
  if (isRunError(failure)) return toErrorObject(failure)
  if (failure instanceof Error && "error" in failure && isErrorObject(failure.error)) return failure.error
  return toErrorObject(new InternalFailure({ ref: "in-process" }))
}

/** Makes the way to an embedded host. Closing it closes the host. */
export const makeInProcessTransport = (host: EmbeddedHost): HostTransport => {
  const gone = { exitCode: null, signal: null, stderrTail: "" } as const
  let listener: TransportListener | undefined
  let remove: (() => void) | undefined
  let closing: Promise<typeof gone> | undefined

  return {
    open: (given) => {
      listener = given
      remove = host.onNotification?.((method, params) => listener?.onMessage({ jsonrpc: "2.0", method, params }))
    },
    send: (sent) => {
      if (closing !== undefined) return false
      const { id, method, params }: Message = sent
      if (method === undefined) return true
      if (id === undefined) {
        host.notify?.(method, params)
        return true
      }
      host.call(method, params).then(
        (result) => listener?.onMessage({ jsonrpc: "2.0", id, result }),
        (error: unknown) => listener?.onMessage({ jsonrpc: "2.0", id, error: errorObject(error) })
      )
      return true
    },
    close: () => {
      closing ??= host.close().then(() => {
        remove?.()
        listener?.onClosed(gone)
        listener = undefined
        return gone
      })
      return closing
    }
  }
}
