/**
 * What a client needs of the way to a host: messages out, messages in, and how it ended. One over a child's pipes is
 * `StdioTransport`, one over a host in this process is `InProcessTransport`; a client is the same over both (D-27).
 */

/** How the other side ended. All null and empty for a host in this process. */
export interface TransportClosed {
  readonly exitCode: number | null
  readonly signal: string | null
  /** At most 4 KiB of the host's stderr. */
  readonly stderrTail: string
}

/** Who listens to a transport. `onClosed` comes once, last. */
export interface TransportListener {
  /** One JSON-RPC message, parsed. */
  readonly onMessage: (message: unknown) => void
  readonly onClosed: (closed: TransportClosed) => void
}

/** The way to one host process, for its lifetime. */
export interface HostTransport {
  /** Starts to deliver. Called once, before the first `send`. */
  readonly open: (listener: TransportListener) => void
  /** Sends one JSON-RPC message. False when the way is closed: it was not sent. */
  readonly send: (message: object) => boolean
  /** Ends the host politely, then by force (RT-357), and completes when it is gone. Safe to call often. */
  readonly close: () => Promise<TransportClosed>
  /** The host's process id, where it has one of its own. */
  readonly pid?: number
}

/** Makes the way to a fresh host: once at the launch, and again for each restart. Rejects when none can be started. */
export type TransportFactory = () => Promise<HostTransport>
