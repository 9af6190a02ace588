/**
 * The activity posts of the reference runner: one queue, one in flight, numbered when they are queued; nobody waits for them.
 */
import { exchange } from "./Http.ts"
import type { Settings } from "./Settings.ts"

export interface PostFields {
  readonly turnId?: string
  readonly askId?: string
  readonly livenessSeconds?: number
}

export interface Posts {
  /** A post that must arrive: it is tried again. */
  readonly boundary: (hookEvent: string, subtype: string, fields?: PostFields) => void
  /** One that may be lost. */
  readonly soft: (hookEvent: string, subtype: string, fields?: PostFields) => void
  /** Soft posts that were not sent yet are not sent any more. */
  readonly dropSoft: () => void
  readonly newTurn: () => void
  readonly whenIdle: (run: () => void) => void
}

interface Queued {
  readonly body: Record<string, unknown>
  readonly soft: boolean
}

const limitMs = 1_500
const retries = [250, 1_000]

export const makePosts = (settings: Settings, clock: () => number, nativeRef: () => string | undefined): Posts => {
  const { base, broken, env, harness, token } = settings
  const queue: Array<Queued> = []
  const idle: Array<() => void> = []
  let sending = false
  let sequence = 0
  let latest = 0

  const send = (post: Queued, done: () => void, tries = 0): void => {
    if (base === undefined || token === undefined) return done()
    exchange({ url: `${base}/api/activity/hooks`, token, method: "POST", body: post.body, limitMs }, (returned) => {
      if (returned?.status === 401 && broken("CHK-052")) process.exit(1)
      const delay = retries[tries]
      const lost = returned === undefined || returned.status >= 500
      if (lost && !post.soft && delay !== undefined) setTimeout(() => send(post, done, tries + 1), delay)
      else done()
    })
  }

  const next = (): void => {
    if (sending && !broken("CHK-042")) return
    const post = queue.shift()
    if (post === undefined) {
      for (const run of idle.splice(0)) run()
      return
    }
    sending = true
    send(post, () => {
      sending = false
      next()
    })
    if (broken("CHK-042")) next()
  }

  const time = (): string => {
    latest = Math.max(latest, clock())
    const text = new Date(latest).toISOString()
    return broken("CHK-053") ? text.slice(0, -1) : text
  }

  const add = (soft: boolean, hookEvent: string, subtype: string, fields: PostFields): void => {
    sequence += 1
    const ref = nativeRef()
    queue.push({
      soft,
      body: {
        sessionName: env["OPENRIG_SESSION_NAME"],
        nodeId: env["OPENRIG_NODE_ID"],
        runtime: harness,
        ...(broken("CHK-040") ? {} : { generation: env["OPENRIG_OCCUPANT_GENERATION"] }),
        sequence,
        occurredAt: time(),
        hookEvent,
        subtype,
        ...fields,
        ...(broken("CHK-025") && ref !== undefined ? { nativeRef: ref } : {})
      }
    })
    next()
  }

  return {
    boundary: (hookEvent, subtype, fields = {}) => add(false, hookEvent, subtype, fields),
    soft: (hookEvent, subtype, fields = {}) => add(true, hookEvent, subtype, fields),
    dropSoft: () => {
      for (let index = queue.length - 1; index >= 0; index -= 1) if (queue[index]?.soft === true) queue.splice(index, 1)
    },
    newTurn: () => {
      if (broken("CHK-041")) sequence = 0
    },
    whenIdle: (run) => {
      if (!sending && queue.length === 0) run()
      else idle.push(run)
    }
  }
}
