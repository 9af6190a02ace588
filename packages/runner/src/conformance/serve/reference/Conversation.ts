/** The ops of the reference program: what is accepted, what is refused and why, and the one run that is on. */
import type { Fields, Read, Refusal } from "./Input.ts"
import type { Output } from "./Output.ts"
import { type Run, startRun } from "./Run.ts"
import type { Settings } from "./Settings.ts"
import type { State } from "./State.ts"
import { question } from "../../model/Script.ts"

const absent = (value: unknown): boolean => value === undefined || value === null
const isMissing = (value: unknown): boolean => absent(value) || value === "" || value === 0 || value === false

const isClean = (text: string): boolean => text.isWellFormed() && !text.includes("\u0000")

const refusal = (reason: string, message: string, detail: object = {}): Refusal => ({
  reason,
  message,
  detail: { ...detail }
})
const badField = (field: string, expected: string): Refusal =>
  refusal("bad_field", `${field}: expected ${expected}`, { field, expected })

const budgetFields = ["max_rounds", "timeout", "answer_timeout", "budget", "budgets"]

export const makeConversation = (settings: Settings, state: State, output: Output, onDrained: () => void) => {
  const { bare, broken } = settings
  const used = new Set<string>()
  let run: Run | undefined
  let former = ""
  let asks = 0
  let isDraining = false

  const drain = (cause: string, opId?: string): void => {
    if (isDraining) return
    isDraining = true
    if (run === undefined) return onDrained()
    if (broken("SRV-225")) return onDrained()
    run.stop({ cause, opId })
  }

  const readOpId = (value: unknown): { readonly opId?: string; readonly refused?: Refusal } => {
    if (absent(value)) return {}
    if (typeof value === "boolean" || Number.isSafeInteger(value))
      return broken("SRV-099") ? {} : { opId: String(value) }
    if (typeof value !== "string" || value.length > 256 || !isClean(value)) {
      return broken("SRV-094") ? {} : { refused: badField("op_id", "a string, an integer or a boolean") }
    }
    return { opId: value }
  }

  const submit = (fields: Fields, opId: string | undefined): Refusal | undefined => {
    const given = fields["run_id"]
    if (isMissing(given)) return refusal("missing_field", "run_id is missing", { field: "run_id" })
    if (typeof given !== "string" && !Number.isSafeInteger(given)) return badField("run_id", "a string or an integer")
    const id = String(given)
    if (id.length > 256 || !isClean(id)) {
      if (!broken("SRV-043")) return badField("run_id", "1 to 256 characters")
    }
    const prompt = fields["prompt"]
    if (absent(prompt)) return refusal("missing_field", "prompt is missing", { field: "prompt" })
    if (typeof prompt !== "string" || prompt.trim() === "") {
      if (!broken("SRV-100")) return badField("prompt", "text that is not blank")
    }
    if (run !== undefined && !broken("SRV-101"))
      return refusal("busy", `run ${run.id} is active`, { active_run_id: run.id })
    if (!bare && used.has(id) && !broken("SRV-102")) {
      return refusal("run_id_reused", `run id ${id} was used before in this process`, { run_id: id })
    }
    const submissionId = typeof fields["submission_id"] === "string" && !bare ? fields["submission_id"] : undefined
    const known = submissionId === undefined || broken("SRV-299") ? undefined : state.find(submissionId)
    if (known !== undefined && known.prompt !== prompt) {
      return refusal("submission_conflict", `submission ${submissionId} was used before with another prompt`, {
        submission_id: submissionId
      })
    }
    used.add(id)
    if (known !== undefined) {
      const common = { run_id: id, duplicate: true, ...(opId === undefined ? {} : { op_id: opId }) }
      const { answer: said, errors, status } = known
      output.put({ type: "start", seq: 1, prompt, warnings: [], ...common })
      output.put({
        type: "result",
        seq: 2,
        answer: said,
        errors,
        error_messages: [],
        cancelled: status === "cancelled",
        status,
        ...common
      })
      return undefined
    }
    run = startRun({
      id,
      prompt: String(prompt),
      opId,
      warnings: bare
        ? []
        : budgetFields.filter((name) => Object.hasOwn(fields, name)).map((name) => `${name} is ignored`),
      settings:
        broken("SRV-260") && typeof fields["max_rounds"] === "number"
          ? { ...settings, maxRounds: fields["max_rounds"] }
          : settings,
      output,
      askId: () => `ask_${++asks}`,
      former,
      onEnd: ({ answer: said, errors, status }) => {
        run = undefined
        former = said
        state.add({ submissionId: submissionId ?? `run-${id}`, prompt: String(prompt), answer: said, errors, status })
        if (isDraining) setImmediate(onDrained)
      }
    })
    return undefined
  }

  const named = (fields: Fields): string | undefined => {
    const value = fields["run_id"]
    if (isMissing(value)) return undefined
    return typeof value === "string" || Number.isSafeInteger(value) ? String(value) : undefined
  }

  const unknownRun = (id: string | undefined): Refusal =>
    refusal("unknown_run", `there is no active run ${id ?? "(missing)"}`, {
      run_id: id ?? null,
      active_run_id: run?.id ?? null
    })

  const answer = (fields: Fields, opId: string | undefined): Refusal | undefined => {
    const values: unknown = fields["answers"]
    if (broken("SRV-190") && Array.isArray(values) && values.length === 0) {
      run?.ask()?.settle([question.options[0]], "driver", opId)
      return undefined
    }
    if (!Array.isArray(values) || values.length === 0 || values.length > 64) {
      return badField("answers", "1 to 64 values")
    }
    const at = values.findIndex(
      (value: unknown) => typeof value === "object" && value !== null && (bare || !Array.isArray(value))
    )
    if (at >= 0) return badField(`answers[${at}]`, "a string, a number, a boolean or null")
    const id = named(fields)
    if (run === undefined || id !== run.id) return unknownRun(id)
    const ask = run.ask()
    const askId = absent(fields["ask_id"]) ? undefined : String(fields["ask_id"])
    const over = run.unanswered()
    if (askId === undefined && over !== undefined && !broken("SRV-191")) {
      return refusal("ambiguous_answer", `ambiguous answer: ask ${over} is over, name the ask`, { ask_id: over })
    }
    if (askId !== undefined && ask !== undefined && askId !== ask.id && !broken("SRV-192")) {
      return refusal("stale_answer", `stale answer: ask ${askId} is over, ${ask.id} is open`, {
        ask_id: askId,
        pending_ask_id: ask.id
      })
    }
    if (ask === undefined) return broken("SRV-194") ? undefined : refusal("no_pending_ask", "no ask is open")
    const chosen: unknown = values.flat()[0]
    if (
      !bare &&
      ask.kind === "ask" &&
      !question.options.some((option) => option === String(chosen).trim()) &&
      !broken("SRV-196")
    ) {
      return refusal("not_an_option", "the answer has to be one of the options", {
        question: question.text,
        options: question.options
      })
    }
    ask.settle(broken("SRV-195") && ask.kind === "confirm" ? ["yes"] : values.flat(), "driver", opId)
    return undefined
  }

  const hello = (fields: Fields, opId: string | undefined): Refusal | undefined => {
    const listed = absent(fields["protocol_versions"]) ? fields["protocol_version"] : fields["protocol_versions"]
    const versions = (Array.isArray(listed) ? listed : [listed]).flatMap((one: unknown) => {
      const value = typeof one === "string" && /^\s*\d+(?:\.0*)?\s*$/u.test(one) ? Number(one) : one
      return typeof value === "number" && Number.isSafeInteger(value) ? [value] : []
    })
    if (versions.length > 0 && !versions.includes(1) && !broken("SRV-122")) {
      return refusal("version", `versions ${versions.join(", ")} are asked for, 1 is spoken`, {
        requested: versions,
        supported: [1]
      })
    }
    if (versions.length === 0 && broken("SRV-121")) return refusal("version", "no version is asked for")
    output.put({
      type: "hello",
      protocol_version: 1,
      capabilities: broken("SRV-123") ? settings.capabilities.toReversed() : settings.capabilities,
      pid: process.pid,
      ...(opId === undefined ? {} : { op_id: opId })
    })
    return undefined
  }

  const one = (fields: Fields, opId: string | undefined): Refusal | undefined => {
    switch (fields["op"]) {
      case "submit":
        return submit(fields, opId)
      case "answer":
        return answer(fields, opId)
      case "cancel": {
        const id = named(fields)
        if (run === undefined || id !== run.id) return broken("SRV-103") ? undefined : unknownRun(id)
        run.stop({ cause: "cancel", opId })
        return undefined
      }
      case "hello":
        if (broken("SRV-090")) {
          setTimeout(() => hello(fields, opId), 5)
          return undefined
        }
        if (run !== undefined && broken("SRV-120")) return refusal("busy", "a run is active")
        return hello(fields, opId)
      case "ping":
        if (run !== undefined && broken("SRV-092")) return undefined
        output.put({ type: "pong", ...(opId === undefined ? {} : { op_id: opId }) })
        return undefined
      case "shutdown":
        if (!broken("SRV-224")) drain("shutdown", opId)
        return undefined
      default:
        return typeof fields["op"] === "string"
          ? refusal("unknown_op", `there is no op ${JSON.stringify(fields["op"].slice(0, 64))}`, {
              op: fields["op"].slice(0, 64)
            })
          : refusal("bad_op", "op is missing or is not a string")
    }
  }

  const take = (read: Read): void => {
    if (isDraining) return
    if ("refusal" in read) {
      if (broken("SRV-039") && run !== undefined) run.stop({ cause: "gone" })
      return output.error(read.refusal, undefined)
    }
    const { fields } = read
    if (broken("SRV-042") && Object.hasOwn(fields, "unknown_field")) {
      return output.error(badField("unknown_field", "nothing"), undefined)
    }
    const { opId, refused } = readOpId(fields["op_id"])
    const wrong = refused ?? one(fields, opId)
    if (wrong !== undefined && !(broken("SRV-093") && wrong.reason === "unknown_op")) output.error(wrong, opId)
  }

  return { drain, take }
}
