/** What an activity post tells, by its pair of event and subtype (seat contract 6.1). Pure. */
import type { Post } from "./Seen.ts"

/**
 * The latest moment that the runner may mean by `occurredAt`: whole seconds are a time too. Its clock is the kit's own. Not a
 * number when it says no time.
 */
export const occurredAt = ({ body }: Post): number => {
  const text = String(body["occurredAt"])
  return Date.parse(text) + (/\.\d/u.test(text) ? 0 : 999)
}

export const isStop = (post: Post): boolean => post.body["hookEvent"] === "Stop"
export const isBeat = (post: Post): boolean =>
  post.body["hookEvent"] === "active" && post.body["subtype"] === "liveness"
export const isHeartbeat = (post: Post): boolean => isStop(post) && post.body["subtype"] === "idle_heartbeat"
export const isExit = (post: Post): boolean => isStop(post) && String(post.body["subtype"]).endsWith("_exited")
/** The end of a turn, as posted. */
export const isTurnStop = (post: Post): boolean => isStop(post) && !isHeartbeat(post) && !isExit(post)
export const isAttention = (post: Post): boolean =>
  post.body["hookEvent"] === "Notification" && post.body["subtype"] === "permission_prompt"
export const isAccepted = (post: Post): boolean =>
  post.body["hookEvent"] === "UserPromptSubmit" && post.body["subtype"] === "accepted"
export const isResolved = (post: Post): boolean =>
  post.body["hookEvent"] === "active" && post.body["subtype"] === "permission_resolved"
/** A post that reads working. */
export const isWorking = (post: Post): boolean =>
  isAccepted(post) || post.body["hookEvent"] === "active" || post.body["hookEvent"] === "PreToolUse"
