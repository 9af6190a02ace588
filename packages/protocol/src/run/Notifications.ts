/** The notifications of the run protocol, as data (run-protocol section 2). */
import { ApplicationEvent, ApplicationProgress, ApplicationResult } from "./Application.ts"
import type { Capability } from "./Capabilities.ts"

/**
 * Every notification: who sends it, the schema of its params, the capability that gates it, and the key under which a
 * repeat is recognised.
 */
export const notifications = {
  "application/event": {
    direction: "host_to_app",
    params: ApplicationEvent,
    capability: "applicationCallbacks",
    idempotencyKey: "invocation_id",
    summary: "Do a call of one of the app's tools, or stop one."
  },
  "application/result": {
    direction: "app_to_host",
    params: ApplicationResult,
    capability: "applicationCallbacks",
    idempotencyKey: "invocation_id",
    summary: "The end of a call: its output, or an error whose outcome is unknown."
  },
  "application/progress": {
    direction: "app_to_host",
    params: ApplicationProgress,
    capability: "applicationCallbacks",
    idempotencyKey: null,
    summary: "A call goes on: a message, and data if there are any."
  }
} as const satisfies Record<
  string,
  {
    readonly direction: "host_to_app" | "app_to_host"
    readonly params: unknown
    readonly capability: Capability
    readonly idempotencyKey: string | null
    readonly summary: string
  }
>

/** The name of a notification. */
export type NotificationName = keyof typeof notifications

/** The params of a notification. */
export type NotificationParams<N extends NotificationName> = (typeof notifications)[N]["params"]["Type"]

/** The names of all notifications. */
export const notificationNames = Object.keys(notifications) as ReadonlyArray<NotificationName>

/** Whether a string names a notification. */
export const isNotificationName = (name: string): name is NotificationName => Object.hasOwn(notifications, name)
