/** What an ask gets when no driver is left to answer it: a plain no, or `Unanswered` (SRV-223). Pure. */
import type { Interaction } from "@tackroom/protocol/events"
import type { InteractionRow, PermissionSubject, QuestionSubject } from "@tackroom/sdk/effect"
import type { Resolution } from "../../runs/HostRuntime.ts"
import { unanswered } from "../lines/AskQueue.ts"

type Questions = QuestionSubject["questions"]

const noAnswers = (questions: Questions): ReadonlyArray<ReadonlyArray<string>> | null =>
  questions.every((question) => question.custom !== false || question.options.length === 0)
    ? questions.map(() => [unanswered])
    : null

const isPermission = (row: InteractionRow): row is InteractionRow & { readonly request: PermissionSubject } =>
  row.kind === "permission"

/** For one that is pending already. */
export const noDriver = (row: InteractionRow): Resolution =>
  isPermission(row) ? { decision: "deny" } : { answers: noAnswers((row.request as QuestionSubject).questions) }

/** For one that is about to be asked. */
export const refuseAlone = (interaction: Interaction): Resolution =>
  interaction.kind === "permission" ? { decision: "deny" } : { answers: noAnswers(interaction.questions) }
