/**
 * The permission path of the reference runner: submit, read, deliver once, withdraw; and what every answer of the rig means.
 */
import { type Id, isRecord, type Message } from "./Agent.ts"
import { exchange, type Returned } from "./Http.ts"
import type { Settings } from "./Settings.ts"

/** What an answer of the rig comes to. Pure. */
export type Meaning =
  | { readonly _tag: "Ask"; readonly askId: string }
  | { readonly _tag: "Pending" }
  | { readonly _tag: "Option"; readonly optionId: string; readonly said: string | undefined }
  | { readonly _tag: "Cancelled"; readonly hold: boolean; readonly why: string }
  | { readonly _tag: "OwnPermit"; readonly why: string }

const cancels = new Set(["stale_generation", "activity_grant_wrong_seat", "activity_grant_stale"])

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

export const meaningOf = (returned: Returned | undefined, { broken }: Settings, reading: boolean): Meaning => {
  if (returned === undefined) return { _tag: "OwnPermit", why: "the rig did not answer" }
  const { body, code, status } = returned
  if (status === 200 && body["ok"] === true) {
    const askId = text(body["askId"])
    const optionId = text(body["optionId"])
    const state = text(body["state"])
    if (state === "pending" || (state === undefined && askId !== undefined && reading)) {
      return broken("CHK-122") ? { _tag: "Cancelled", hold: false, why: "pending" } : { _tag: "Pending" }
    }
    if ((state === "answered" || state === "permitted") && optionId !== undefined) {
      return broken("CHK-121") && !reading
        ? { _tag: "Ask", askId: "ask_none" }
        : { _tag: "Option", optionId, said: text(body["said"]) }
    }
    if (state === "refused" || state === "withdrawn" || state === "stale") {
      return { _tag: "Cancelled", hold: broken("CHK-123"), why: state }
    }
    if (state === undefined && askId !== undefined) return { _tag: "Ask", askId }
  }
  const why = code ?? `status ${status}`
  if (code === "denied_by_seat") return { _tag: "Cancelled", hold: true, why }
  if (code === "options_unsupported") {
    return broken("CHK-125") ? { _tag: "OwnPermit", why } : { _tag: "Cancelled", hold: true, why }
  }
  if (code !== undefined && cancels.has(code)) {
    return broken("CHK-126") && !reading ? { _tag: "OwnPermit", why } : { _tag: "Cancelled", hold: false, why }
  }
  const listed = code === "activity_grant_revoked" || code === "activity_grant_pending" || code === "duplicate_request"
  const wrong =
    (broken("CHK-127") && listed && !reading) ||
    (broken("CHK-128") && status === 404 && !reading) ||
    (broken("CHK-129") && status === 500 && reading)
  return wrong ? { _tag: "Cancelled", hold: false, why } : { _tag: "OwnPermit", why }
}

/** The option a runner permits with when nobody can be asked. Pure. */
export const ownPermit = (options: ReadonlyArray<Message>, { broken }: Settings): string | undefined => {
  const first = (kind: string): Message | undefined => options.find((option) => option["kind"] === kind)
  const found = broken("CHK-130")
    ? options.find((option) => String(option["kind"]).startsWith("allow"))
    : (first("allow_once") ?? first("allow_always"))
  return text(found?.["optionId"])
}

export interface Request {
  readonly id: Id
  readonly title: string
  readonly kind: string
  readonly options: ReadonlyArray<Message>
  readonly params: Message
  askId: string | undefined
  /** The agent has its answer. */
  answered: boolean
  /** The rig knows how it ended. */
  settled: boolean
}

export interface PermissionListener {
  readonly asked: (request: Request) => void
  readonly meant: (request: Request, meaning: Meaning) => void
}

export interface Permissions {
  readonly submit: (request: Request, turnId: string) => void
  readonly withdraw: (request: Request, reason: "turn_cancelled" | "turn_ended" | "exited", done?: () => void) => void
}

export const makePermissions = (
  settings: Settings,
  clock: () => number,
  nativeRef: () => string | undefined,
  listener: PermissionListener
): Permissions => {
  const { base, broken, env, token } = settings
  const url = `${base}/api/activity/permission-requests`

  /** Tries again while nothing comes back at all. */
  const insist = (
    make: (done: (returned: Returned | undefined) => void) => void,
    delays: ReadonlyArray<number>,
    done: (returned: Returned | undefined) => void
  ): void =>
    make((returned) => {
      const [delay, ...later] = delays
      if (returned !== undefined || delay === undefined) done(returned)
      else setTimeout(() => insist(make, later, done), delay)
    })

  const read = (request: Request, askId: string): void => {
    if (request.answered || token === undefined) return
    insist(
      (done) =>
        exchange(
          { url: `${url}/${encodeURIComponent(askId)}?waitSeconds=25`, token, method: "GET", limitMs: 35_000 },
          done
        ),
      [500, 1_000, 2_000, 4_000],
      (returned) => {
        const meaning = meaningOf(returned, settings, true)
        if (meaning._tag === "Pending") return read(request, askId)
        request.settled = true
        listener.meant(request, meaning)
      }
    )
  }

  return {
    submit: (request, turnId) => {
      if (base === undefined || token === undefined) {
        return listener.meant(request, { _tag: "OwnPermit", why: "no rig" })
      }
      const { options, toolCall } = request.params
      const body = {
        sessionName: env["OPENRIG_SESSION_NAME"],
        nodeId: env["OPENRIG_NODE_ID"],
        generation: env["OPENRIG_OCCUPANT_GENERATION"],
        nativeRef: nativeRef(),
        turnId,
        requestId: broken("CHK-120") ? `r-${request.id}` : request.id,
        toolCall: isRecord(toolCall) ? toolCall : {},
        options,
        occurredAt: new Date(clock()).toISOString()
      }
      insist(
        (done) => exchange({ url, token, method: "POST", body, limitMs: 10_000 }, done),
        [250, 1_000],
        (returned) => {
          const meaning = meaningOf(returned, settings, false)
          if (meaning._tag !== "Ask") return listener.meant(request, meaning)
          request.askId = meaning.askId
          listener.asked(request)
          read(request, meaning.askId)
        }
      )
    },
    withdraw: ({ askId, settled }, reason, done = () => undefined) => {
      if (askId === undefined || settled || token === undefined || broken("CHK-133")) return done()
      insist(
        (finish) =>
          exchange(
            {
              url: `${url}/${encodeURIComponent(askId)}/withdraw`,
              token,
              method: "POST",
              body: { reason },
              limitMs: 2_000
            },
            finish
          ),
        [250, 1_000],
        done
      )
    }
  }
}
