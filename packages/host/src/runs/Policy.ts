/**
 * Decisions that need no person (AGT-110 to AGT-122, D-29): the mode of the agent and the grants of the session.
 *
 * It is asked by the runtime before an approval is shown, and again after a crash. It never refuses, answers no question,
 * makes no grant, and no request of a client can reach it (AGT-113). A grant holds for the binding it was given for; in
 * the modes that approve by themselves a tool whose binding changed since the session was made goes to a person (AGT-121).
 */
import type { Interaction } from "@tackroom/protocol/events"
import type { PolicyDecision } from "@tackroom/sdk/effect"
import { Effect } from "effect"
import type { SessionSetup, SessionTool } from "../native/SessionSetup.ts"
import { isNative } from "../harnesses/Harnesses.ts"
import { harnessOf } from "./HostRows.ts"
import type { HostStore } from "./HostStore.ts"
import type { Sessions } from "./Sessions.ts"

/** Modes `only` and `never` approve by themselves; the others leave it to a person. */
export const approvedByMode = (
  setup: Pick<SessionSetup, "approvals">,
  tool: Pick<SessionTool, "qualifiedName" | "source">
): boolean => {
  const { mode, tools } = setup.approvals
  // Who wrote the list could not know the tools of servers that a session brings along (ACP-219).
  return mode === "never" || (mode === "only" && tool.source !== "session" && !tools.includes(tool.qualifiedName))
}

/** The decision, or undefined when a person has to make it. A failure to read counts as undefined (AGT-112). */
export const decide = (
  sessions: Sessions,
  rows: HostStore,
  interaction: Interaction
): Effect.Effect<PolicyDecision | undefined> =>
  Effect.gen(function* () {
    if (interaction.kind !== "permission") return undefined
    const session = yield* sessions.find(interaction.sessionId)
    // What another harness asks, a person decides: its tools are not the host's.
    if (!isNative(harnessOf(session))) return undefined
    const setup = yield* sessions.setup(interaction.sessionId)
    const tool = setup.tools.find((tool) => tool.alias === interaction.tool)
    if (tool === undefined) return undefined
    const changed = sessions.bindingChanged(session, tool.qualifiedName)
    if (changed && setup.approvals.mode !== "always") return undefined
    if (approvedByMode(setup, tool)) {
      return { decision: "allow_once", origin: "app_policy" } as const
    }
    const grant = yield* rows.query("grant", { sessionId: session.sessionId, qualifiedName: tool.qualifiedName })
    return grant !== null && grant.binding === sessions.bindingOf(session.sessionId, tool.qualifiedName)
      ? ({ decision: "allow_once", origin: "grant" } as const)
      : undefined
  }).pipe(
    Effect.catch((cause) =>
      Effect.as(
        Effect.logWarning("an approval was left to a person: the policy could not be read", cause._tag),
        undefined
      )
    )
  )
