/**
 * Whether an agent really reopened the conversation that a session is bound to, and what its refusal means (HRN-004 to
 * HRN-007, 11.2). The conversation is gone only on the agent's own word, as its profile reads it; everything else is doubt.
 */
import { platform } from "#platform"
import { type HarnessError, ResumeUnconfirmed, SessionMissing } from "@tackroom/protocol"
import { Effect } from "effect"
import type { AcpMcpServer } from "../../mcp/Conversions.ts"
import { type AgentConnection, type AgentRefused, orFail } from "./AgentConnection.ts"
import { type OfferedOptions, offeredBy } from "./AgentOptions.ts"
import type { Conversation } from "./Conversation.ts"
import { fieldsOf, listOf, textOf } from "./Fields.ts"

/** Pages of an agent's list that are looked through. */
const listPages = 10

type Listed = { readonly cwd: string | undefined } | "absent" | "unknown"

/** What the agent's own list says of a conversation; a list that fails says nothing. */
const listed = (agent: AgentConnection, upstream: string): Effect.Effect<Listed> =>
  Effect.gen(function* () {
    if (!agent.facts.lists) return "unknown"
    let cursor: string | undefined
    for (let page = 0; page < listPages; page++) {
      const answer = fieldsOf(yield* orFail(agent.request("session/list", cursor === undefined ? {} : { cursor })))
      for (const entry of listOf(answer?.["sessions"])) {
        const session = fieldsOf(entry)
        if (session?.["sessionId"] === upstream) return { cwd: textOf(session["cwd"]) }
      }
      cursor = textOf(answer?.["nextCursor"])
      if (cursor === undefined) return "absent"
    }
    return "unknown"
  }).pipe(Effect.catch(() => Effect.succeed<Listed>("unknown")))

const realPathOf = (path: string): Effect.Effect<string | undefined> =>
  platform.realPath(path).pipe(Effect.catch(() => Effect.succeed(undefined)))

/** Reopens a conversation; the caller has checked that the agent can (`facts.reopens`). */
export const reopen = Effect.fnUntraced(function* (
  harness: string,
  agent: AgentConnection,
  conversation: Conversation,
  upstream: string,
  mcpServers: Array<AcpMcpServer>
): Effect.fn.Return<OfferedOptions, SessionMissing | ResumeUnconfirmed | HarnessError> {
  const operation = "resumeSession"
  const { directory } = conversation
  const mismatch = (): ResumeUnconfirmed =>
    new ResumeUnconfirmed({ harness, operation, reason: "directory_mismatch", retryable: false })
  if ((yield* realPathOf(directory)) !== directory) return yield* mismatch()
  const before = yield* listed(agent, upstream)
  if (typeof before === "object" && before.cwd !== undefined && (yield* realPathOf(before.cwd)) !== directory) {
    return yield* mismatch()
  }
  const past = (on: boolean): Effect.Effect<void> => Effect.sync(() => conversation.suppress(on))
  const call =
    agent.facts.reopens === "resume"
      ? agent.request("session/resume", { sessionId: upstream, cwd: directory, mcpServers })
      : Effect.andThen(
          past(true),
          // What follows the answer is not the past any more, even in the same chunk of bytes.
          agent.request("session/load", { sessionId: upstream, cwd: directory, mcpServers }, past(false))
        )
  const answer = yield* Effect.ensuring(call, past(false)).pipe(
    Effect.catchIf(
      (error): error is AgentRefused => error._tag === "AgentRefused",
      (refused): Effect.Effect<never, SessionMissing | ResumeUnconfirmed | HarnessError> => {
        const { native } = refused.failure
        const extra = native === undefined ? {} : { native }
        if (refused.failure._tag === "HarnessAuthRequired") return Effect.fail(refused.failure)
        const isGone = agent.facts.profile.isMissing(refused, upstream) && typeof before !== "object"
        return Effect.fail(
          isGone
            ? new SessionMissing({ harness, operation, ...extra })
            : new ResumeUnconfirmed({ harness, operation, ...extra })
        )
      }
    )
  )
  conversation.named(upstream)
  return offeredBy(answer)
})
