/** What each answer of the rig must come to at the agent: the table of the permission path as data (seat contract 5.1, 8.6). */
import type { JsonObject } from "../../Json.ts"
import { answer, type Reply, refusal } from "../rig/Rig.ts"

/** What an answer of the rig must come to. */
type Meant = "cancelled" | "held" | "permitted"

export interface Row {
  readonly name: string
  readonly reply: Reply
  readonly meant: Meant
}

/** After one of these a runner may post no more: its grant speaks for nobody. Such rows come last. */
export const endsPosting = /^\d+ activity_grant_(?:wrong_seat|stale|revoked)$/u

const row = (status: number, code: string, meant: Meant): Row => ({
  name: `${status} ${code}`,
  reply: refusal(status, code),
  meant
})

export const denied = row(409, "denied_by_seat", "held")
export const unsupported = row(422, "options_unsupported", "held")
export const notCurrent = [
  row(409, "stale_generation", "cancelled"),
  row(403, "activity_grant_wrong_seat", "cancelled"),
  row(409, "activity_grant_stale", "cancelled")
]
export const revoked = row(401, "activity_grant_revoked", "permitted")
export const maybeLive = [row(409, "activity_grant_pending", "permitted"), row(409, "duplicate_request", "permitted")]
export const unlisted = [
  row(404, "not_found", "permitted"),
  row(418, "teapot", "permitted"),
  row(500, "internal", "permitted"),
  row(409, "a_code_nobody_listed", "permitted"),
  { name: "200 without sense", reply: answer(200, { ok: true, state: "thoughtful" }), meant: "permitted" } satisfies Row
]

export const refusedRow = (state: JsonObject, name: string): Row => ({
  name,
  reply: answer(200, { ok: true, askId: "ask", ...state }),
  meant: "cancelled"
})
