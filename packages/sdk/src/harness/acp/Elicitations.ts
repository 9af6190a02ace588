/**
 * A form or a link that an agent wants a person to deal with, as questions, and the answers as its content. Pure.
 */
import type * as Acp from "@agentclientprotocol/sdk"
import type { Question, QuestionOption } from "@tackroom/protocol/events"
import { type Fields, fieldsOf, listOf, textOf, wordsOf } from "./Fields.ts"

type Content = NonNullable<Acp.ElicitationAcceptAction["content"]>

/** Questions of one ask at most. */
const questionLimit = 16

/** One field of the form and how an answer becomes its value. */
interface Field {
  readonly key: string
  readonly question: Question
  readonly value: (answers: ReadonlyArray<string>) => Content[string] | undefined
}

/** What a person is asked. */
export interface Asked {
  readonly questions: ReadonlyArray<Question>
  readonly fields: ReadonlyArray<Field>
}

interface Choice extends QuestionOption {
  readonly value: string
}

const choicesOf = (list: unknown): ReadonlyArray<Choice> =>
  listOf(list).flatMap((entry): ReadonlyArray<Choice> => {
    if (typeof entry === "string") return [{ value: entry, label: entry }]
    const item = fieldsOf(entry)
    const value = textOf(item?.["const"])
    const description = wordsOf(item?.["description"])
    return value === undefined
      ? []
      : [
          {
            value,
            label: wordsOf(item?.["title"]) ?? value,
            ...(description === undefined ? {} : { description })
          }
        ]
  })

const optionsOf = (choices: ReadonlyArray<Choice>): ReadonlyArray<QuestionOption> =>
  choices.map(({ description, label }) => ({ label, ...(description === undefined ? {} : { description }) }))

const valueOf = (choices: ReadonlyArray<Choice>, answer: string): string =>
  choices.find((choice) => choice.label === answer)?.value ?? answer

const yesOrNo: ReadonlyArray<QuestionOption> = [{ label: "Yes" }, { label: "No" }]

const numberOf = (answer: string | undefined): number | undefined => {
  const value = answer === undefined || answer.trim() === "" ? Number.NaN : Number(answer)
  return Number.isFinite(value) ? value : undefined
}

const fieldOf = (key: string, schema: Fields, message: string): Field => {
  const title = wordsOf(schema["title"]) ?? wordsOf(schema["description"])
  const base = { question: title ?? message, header: key }
  switch (schema["type"]) {
    case "boolean":
      return {
        key,
        question: { ...base, options: yesOrNo, custom: false },
        value: ([answer]) => (answer === undefined ? undefined : answer === "Yes")
      }
    case "number":
    case "integer":
      return { key, question: { ...base, options: [], custom: true }, value: ([answer]) => numberOf(answer) }
    case "array": {
      const items = fieldsOf(schema["items"])
      const choices = choicesOf(items?.["anyOf"] ?? items?.["enum"])
      return {
        key,
        question: { ...base, options: optionsOf(choices), multiple: true, custom: false },
        value: (answers) => answers.map((answer) => valueOf(choices, answer))
      }
    }
    default: {
      const choices = choicesOf(schema["oneOf"] ?? schema["enum"])
      return {
        key,
        question: { ...base, options: optionsOf(choices), custom: choices.length === 0 },
        value: ([answer]) => (answer === undefined ? undefined : valueOf(choices, answer))
      }
    }
  }
}

/** The questions of a request; `undefined` when it asks nothing that a person can be asked here. */
export const questionsOf = (request: Acp.CreateElicitationRequest): Asked | undefined => {
  const fields = fieldsOf(request)
  if (request.mode === "url") {
    const url = textOf(fields?.["url"]) ?? ""
    const question = { question: `${request.message}\n${url}`, options: [{ label: "Done" }], custom: false }
    return { questions: [question], fields: [] }
  }
  if (request.mode !== "form") return undefined
  const properties = Object.entries(fieldsOf(fieldsOf(fields?.["requestedSchema"])?.["properties"]) ?? {})
  const asked = properties.flatMap(([key, schema]) => {
    const known = fieldsOf(schema)
    return known === undefined ? [] : [fieldOf(key, known, request.message)]
  })
  if (asked.length === 0) {
    return { questions: [{ question: request.message, options: [{ label: "OK" }], custom: false }], fields: [] }
  }
  return asked.length > questionLimit ? undefined : { questions: asked.map(({ question }) => question), fields: asked }
}

/** What the agent is told: `null` = the person declined, `undefined` = nobody answered. */
export const elicitationAnswerOf = (
  asked: Asked,
  answers: ReadonlyArray<ReadonlyArray<string>> | null | undefined
): Acp.CreateElicitationResponse => {
  if (answers === undefined) return { action: "cancel" }
  if (answers === null) return { action: "decline" }
  const content: Content = {}
  for (const [index, field] of asked.fields.entries()) {
    const value = field.value(answers[index] ?? [])
    if (value !== undefined) content[field.key] = value
  }
  return { action: "accept", content }
}
