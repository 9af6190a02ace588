/**
 * The asks of a serve-mode run, asked here and answered there. At most one is open in a program (SRV-180), so the next one,
 * or the run's end, says that the one before is over.
 *
 * An ask is a question here, a confirmation one with two answers: what stands behind it, the contract does not tell. Who
 * rejects says no, or `Unanswered`; nothing is decided by this module.
 */
import type { HarnessError } from "@tackroom/protocol"
import type { Question } from "@tackroom/protocol/events"
import type { Ask, AskQuestion, ErrorLine, ServeOp } from "@tackroom/protocol/serve"
import { Effect, FiberHandle, type Scope } from "effect"
import type { HarnessContext, TurnInput } from "../Harness.ts"
import { unnamedAsk } from "./ServeProcess.ts"

type Answers = ReadonlyArray<ReadonlyArray<string>>
type Values = Extract<ServeOp, { readonly op: "answer" }>["answers"]

const yes = "Yes"
const no = "No"
const unanswered = "Unanswered"

const named = (options: Extract<Ask, { readonly kind: "confirm" }>["options"], hasOptions: boolean) =>
  hasOptions && options !== undefined && options.length > 0 ? options : undefined

const questionOf = (asked: AskQuestion): Question => ({
  question: asked.question,
  ...(asked.header === undefined ? {} : { header: asked.header }),
  options:
    asked.optionDetails !== undefined && asked.optionDetails.length === asked.options.length
      ? asked.optionDetails
      : asked.options.map((label) => ({ label })),
  multiple: asked.multiple,
  custom: asked.custom || asked.options.length === 0,
  ...(asked.secret === undefined ? {} : { secret: asked.secret })
})

/** What a person is asked. `hasOptions`: the program takes an option's id as an answer to a confirmation. */
export const questionsOf = (ask: Ask, hasOptions: boolean): ReadonlyArray<Question> => {
  if (ask.kind === "ask") return ask.questions.map(questionOf)
  const options = named(ask.options, hasOptions)
  return [
    {
      question: ask.prompt,
      ...(ask.tool === undefined ? {} : { header: ask.tool.name }),
      options: options === undefined ? [{ label: yes }, { label: no }] : options.map(({ label }) => ({ label })),
      multiple: false,
      custom: false,
      topic: ask.about ?? "permission"
    }
  ]
}

/** The values of an `answer` (serve-mode 5.3); null = rejected. `hasGroups`: a list of values per question is understood. */
export const valuesOf = (ask: Ask, answers: Answers | null, hasOptions: boolean, hasGroups: boolean): Values => {
  if (ask.kind === "confirm") {
    const label = answers?.[0]?.[0]
    const options = named(ask.options, hasOptions)
    if (options === undefined) return [label === yes ? "yes" : "no"]
    return [options.find((option) => option.label === label)?.id ?? "no"]
  }
  const lists = ask.questions
    .map((_, index) => answers?.[index] ?? [])
    .map((list) => (list.length === 0 ? [unanswered] : list))
  const [first = [unanswered]] = lists
  if (lists.length === 1) return first
  if (lists.every((list) => list.length === 1)) return lists.flat()
  return hasGroups ? lists : lists.map((list) => list.join(", "))
}

export interface ServeAsks {
  /** Puts an ask; the one before is over. */
  readonly put: (ask: Ask) => Effect.Effect<void>
  /** The program says that an ask is over. */
  readonly over: (askId: string, byUs: boolean) => Effect.Effect<void>
}

export interface ServeAsksInput {
  readonly turn: TurnInput
  readonly context: HarnessContext
  readonly has: (capability: string) => boolean
  /** Completes when everything emitted before is committed. */
  readonly durable: Effect.Effect<void>
  /** Sends the answer; gives the refusal. */
  readonly answer: (
    op: Extract<ServeOp, { readonly op: "answer" }>
  ) => Effect.Effect<ErrorLine | undefined, HarnessError>
  /** An answer that the program refuses although its ask is open: the run cannot go on. */
  readonly refused: (line: ErrorLine) => Effect.Effect<void>
}

/** Refusals of an answer that came too late: somebody else, or time, was first. */
const isLate = (line: ErrorLine): boolean =>
  ["no_pending_ask", "stale_answer", "ambiguous_answer", "unknown_run"].includes(line.error.reason ?? "")

/** Makes the asks of one run; they end with the scope. */
export const makeServeAsks = (input: ServeAsksInput): Effect.Effect<ServeAsks, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { context, turn } = input
    const waiting = yield* FiberHandle.make()
    const run = yield* FiberHandle.runtime(waiting)()
    let open: string | undefined
    let unnamed = 0

    const settle = Effect.fnUntraced(function* (ask: Ask) {
      const hasOptions = input.has("confirm_options")
      const answers = yield* context.ask
        .question({
          sessionId: turn.binding.sessionId,
          turnId: turn.turnId,
          nativeRequestId: ask.askId === unnamedAsk ? `${turn.turnId}.ask${++unnamed}` : ask.askId,
          questions: questionsOf(ask, hasOptions),
          ...(ask.kind === "confirm" && ask.tool !== undefined ? { toolCallId: ask.tool.id } : {})
        })
        .pipe(
          Effect.map((answer) => answer.answers),
          Effect.catch((refused) =>
            // Expired, or one too many: nobody answered. What ended with its turn is not told.
            Effect.succeed(refused._tag !== "Withdrawn" || refused.reason === "expired" ? null : undefined)
          )
        )
      if (answers === undefined) return
      const line = yield* (
        input
          .answer({
            op: "answer",
            runId: turn.turnId,
            answers: valuesOf(ask, answers, hasOptions, input.has("answer_groups")),
            ...(ask.askId === unnamedAsk ? {} : { askId: ask.askId })
          })
          // A program that is gone ends the run by itself.
          .pipe(Effect.catch(() => Effect.succeed(undefined)))
      )
      if (line !== undefined && !isLate(line)) yield* input.refused(line)
    })

    return {
      put: (ask) =>
        Effect.andThen(
          input.durable,
          Effect.sync(() => {
            open = ask.askId
            run(settle(ask))
          })
        ),
      over: (askId, byUs) =>
        Effect.suspend(() => {
          if (open !== askId) return Effect.void
          open = undefined
          return byUs ? Effect.void : FiberHandle.clear(waiting)
        })
    }
  })
