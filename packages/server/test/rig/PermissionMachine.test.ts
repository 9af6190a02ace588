import { assert, describe, it } from "@effect/vitest"
import { askStates, type SeatOption } from "@tackroom/protocol/seat"
import { Effect, Schema } from "effect"
import {
  answer,
  type Answer,
  type AskFacts,
  closeRow,
  handoff,
  submit,
  type Submitted,
  type SubmitFacts
} from "../../src/rig/PermissionMachine.ts"
import { showable, shown, shownName } from "../../src/rig/ShownOptions.ts"
import { storedToolCall, titleOf } from "../../src/rig/ToolCallText.ts"
import { classify, normalise } from "../../src/rig/Words.ts"

const option = (optionId: string, kind: string, name = optionId): SeatOption => ({ optionId, name, kind })
const usual = [option("allow", "allow_once", "Allow"), option("reject", "reject_once", "Reject")]

const facts = (changes: Partial<SubmitFacts> = {}): SubmitFacts => ({
  turnId: "1",
  options: usual,
  showable: true,
  earlier: undefined,
  setting: { mode: "default" },
  people: ["op1"],
  defaultPerson: null,
  unaskable: "permit",
  ...changes
})
const word = (submitted: Submitted): string => {
  switch (submitted._tag) {
    case "Refused":
      return submitted.error.code
    case "Permit":
      return `permit ${submitted.option.optionId}: ${submitted.reason}`
    case "SamePermit":
      return `same permit ${submitted.optionId}`
    case "SameAsk":
      return `same ask ${submitted.askId}`
    case "Ask":
      return `ask ${submitted.person}: ${submitted.why}`
  }
}
const decided = (changes: Partial<SubmitFacts>) => word(submit(facts(changes)))

describe("who is asked", () => {
  const asked = { _tag: "Ask", askId: "ask_1", pending: true } as const
  const permitted = { _tag: "Permit", optionId: "allow", reason: "no_registered_person" } as const

  it("a request id of another turn is refused [RIG-W2]", () => {
    assert.strictEqual(decided({ earlier: { turnId: "0", sameContent: true, outcome: asked } }), "duplicate_request")
    assert.strictEqual(
      decided({ earlier: { turnId: "0", sameContent: false, outcome: permitted } }),
      "duplicate_request"
    )
  })

  it("the same request again gets the same ask or permit [RIG-W3]", () => {
    assert.strictEqual(decided({ earlier: { turnId: "1", sameContent: false, outcome: asked } }), "same ask ask_1")
    const settled = { ...asked, pending: false }
    assert.strictEqual(decided({ earlier: { turnId: "1", sameContent: true, outcome: settled } }), "same ask ask_1")
    assert.strictEqual(
      decided({ earlier: { turnId: "1", sameContent: true, outcome: permitted } }),
      "same permit allow"
    )
  })

  it("a settled id with other content is a new request [RIG-W4]", () => {
    const earlier = { turnId: "1", sameContent: false, outcome: { ...asked, pending: false } }
    assert.strictEqual(decided({ earlier }), "ask op1: only_person")
    assert.strictEqual(decided({ earlier: { ...earlier, outcome: permitted } }), "ask op1: only_person")
  })

  it("a seat set to refuse refuses, before anything else is looked at [RIG-W5]", () => {
    assert.strictEqual(decided({ setting: { mode: "deny" }, showable: false, people: undefined }), "denied_by_seat")
  })

  it("what cannot be shown is permitted, with the option that lasts shorter [RIG-W6]", () => {
    const options = [option("always", "allow_always"), option("once", "allow_once")]
    assert.strictEqual(decided({ showable: false, options }), "permit once: options_not_showable")
    assert.strictEqual(
      decided({ showable: false, options: options.slice(0, 1) }),
      "permit always: options_not_showable"
    )
    assert.strictEqual(decided({ showable: false, options: [option("no", "reject_once")] }), "options_unsupported")
    assert.strictEqual(decided({ showable: false, options: [] }), "options_unsupported")
    assert.strictEqual(decided({ showable: false, options: [option("x", "proceed")] }), "options_unsupported")
  })

  it("the person chosen for the seat is asked, and nobody in their place [RIG-W7, RIG-W8]", () => {
    const setting = { mode: "person", person: "op2" } as const
    assert.strictEqual(decided({ setting, people: ["op1", "op2"], defaultPerson: "op1" }), "ask op2: chosen_for_seat")
    assert.strictEqual(decided({ setting, people: ["op1"] }), "permit allow: chosen_person_removed")
  })

  it("people that cannot be read mean a permit [RIG-W9]", () => {
    assert.strictEqual(decided({ people: undefined }), "permit allow: people_unreadable")
    assert.strictEqual(
      decided({ people: undefined, setting: { mode: "person", person: "op1" } }),
      "permit allow: people_unreadable"
    )
  })

  it("the default person or the only one is asked, else it is permitted [RIG-W10, RIG-W11, RIG-W12]", () => {
    assert.strictEqual(decided({ people: ["op1", "op2"], defaultPerson: "op2" }), "ask op2: default_person")
    assert.strictEqual(decided({}), "ask op1: only_person")
    assert.strictEqual(decided({ people: [] }), "permit allow: no_registered_person")
    assert.strictEqual(decided({ people: ["op1", "op2"] }), "permit allow: several_people_no_default")
    assert.strictEqual(
      decided({ people: ["op1", "op2"], defaultPerson: "gone" }),
      "permit allow: several_people_no_default"
    )
  })

  it("where the service refuses instead, nothing is granted", () => {
    for (const changes of [{ people: [] }, { showable: false }, { people: undefined }]) {
      assert.strictEqual(decided({ ...changes, unaskable: "refuse" }), "denied_by_seat")
    }
  })
})

const ask = (changes: Partial<AskFacts> = {}): AskFacts => ({
  askId: "ask_1",
  seat: "dev-a@mill",
  state: "pending",
  options: usual,
  owner: { person: "op1" },
  handoffs: 0,
  ...changes
})
const outcome = (given: ReturnType<typeof answer>): string => {
  if (given._tag === "Refused") return given.error.code
  if (given._tag === "Repeated") return "repeated"
  const { state, optionId, reason, said, row } = given.settlement
  return [state, optionId ?? reason, ...(said === undefined ? [] : [`said ${said}`]), row].join(" ")
}
const text = (words: string, changes: Partial<AskFacts> = {}, acceptDefault = false) =>
  outcome(answer(ask(changes), "op1", { text: words, acceptDefault }))
const noReject = { options: [option("allow", "allow_once"), option("always", "allow_always")] }
const noAllow = { options: [option("reject", "reject_once"), option("never", "reject_always")] }

describe("what an answer does", () => {
  it("an option that was offered is that option, whoever picks it [RIG-P2]", () => {
    assert.strictEqual(outcome(answer(ask(), "primary", { option: "reject" })), "answered reject chosen")
    assert.strictEqual(outcome(answer(ask(), "op2", { option: "other" })), "unknown_option")
    assert.strictEqual(text("Reject."), "answered reject denied")
    const named = { options: [option("a1", "allow_once", "Proceed once"), option("a2", "reject_once", "Leave it")] }
    assert.strictEqual(text("proceed once", named), "answered a1 chosen")
    assert.strictEqual(text("a2", named), "answered a2 chosen")
  })

  it("a yes allows once, or always when that is all there is, or stays open [RIG-P3]", () => {
    assert.strictEqual(text("Yes, please!"), "answered allow chosen")
    assert.strictEqual(
      text("ok", { options: [option("always", "allow_always"), option("r", "reject_once")] }),
      "answered always chosen"
    )
    assert.strictEqual(text("go ahead", noAllow), "no_such_option")
  })

  it("a no is never a grant [RIG-P4]", () => {
    assert.strictEqual(text("no, stop"), "answered reject denied")
    assert.strictEqual(text("No!", noReject), "refused said_no denied")
    assert.strictEqual(outcome(answer(ask(noReject), "op1", { verb: "deny" })), "refused said_no denied")
    assert.strictEqual(outcome(closeRow(ask(noReject), "op1", "denied")), "refused said_no denied")
  })

  it("an end without a choice permits by default, and says so; without an allow option it refuses [RIG-P5]", () => {
    assert.strictEqual(outcome(answer(ask(), "op1", { verb: "drop" })), "permitted allow done")
    assert.strictEqual(outcome(answer(ask(noAllow), "op1", { verb: "approve" })), "refused no_allow_offered done")
    assert.strictEqual(text("use yarn here"), "words_not_an_answer")
    assert.strictEqual(text("use yarn here", {}, true), "permitted allow said use yarn here done")
    assert.strictEqual(text("use yarn", noAllow, true), "refused no_allow_offered said use yarn done")
    assert.strictEqual(outcome(closeRow(ask(), "op1", "failed")), "permitted allow failed")
  })

  it("a seat's row closed as done or failed permits by default, and takes neither option nor text [RIG-P6]", () => {
    const held = { owner: { seat: "dev-b@mill" } }
    assert.strictEqual(outcome(closeRow(ask(held), "dev-b@mill", "done")), "permitted allow done")
    assert.strictEqual(outcome(closeRow(ask(held), "dev-b@mill", "failed")), "permitted allow failed")
    assert.strictEqual(outcome(answer(ask(held), "op1", { option: "allow" })), "row_held_by_seat")
    assert.strictEqual(text("yes", held), "row_held_by_seat")
    assert.strictEqual(outcome(answer(ask(held), "op1", { verb: "deny" })), "answered reject denied")
    assert.strictEqual(outcome(answer(ask(held), "op1", { verb: "drop" })), "permitted allow done")
  })

  it("a canceled row withdraws the ask [RIG-P7]", () => {
    assert.strictEqual(outcome(closeRow(ask(), "op1", "canceled")), "withdrawn row_canceled canceled")
  })

  it("a hand-off is refused to the asking seat and after twenty [RIG-P8]", () => {
    assert.isUndefined(handoff(ask({ handoffs: 19 }), { person: "op2" }))
    assert.strictEqual(handoff(ask({ handoffs: 20 }), { person: "op2" })?.code, "handoff_limit")
    assert.strictEqual(handoff(ask(), { seat: "dev-a@mill" })?.code, "own_seat")
    assert.strictEqual(handoff(ask({ state: "stale" }), { person: "op2" })?.code, "ask_settled")
  })

  it("a settled ask takes the same answer of the same person again and nothing else [RIG-P13]", () => {
    const settled = ask({
      state: "answered",
      settled: { settlement: { optionId: "allow", by: "op1", how: "yes" }, at: "2026-11-30T09:00:00.000Z" }
    })
    assert.strictEqual(outcome(answer(settled, "op1", { text: "ok", acceptDefault: false })), "repeated")
    assert.strictEqual(outcome(answer(settled, "op2", { text: "ok", acceptDefault: false })), "ask_settled")
    assert.strictEqual(outcome(answer(settled, "op1", { option: "allow" })), "ask_settled")
    assert.strictEqual(outcome(answer(settled, "op1", { option: "nothing" })), "ask_settled")
  })

  const Given = Schema.Union([
    Schema.Struct({ option: Schema.Literals(["o0", "o1", "o2", "other"]) }),
    Schema.Struct({
      text: Schema.Literals(["yes", "no", "o1", "name of 2", "something else", ""]),
      acceptDefault: Schema.Boolean
    }),
    Schema.Struct({ verb: Schema.Literals(["deny", "approve", "drop"]) })
  ])
  const Kind = Schema.Literals(["allow_once", "allow_always", "reject_once", "reject_always", "other"])

  it.effect.prop(
    "over any options: a grant names an option that was offered and allows or was picked, a no grants nothing, a final state stays [RIG-P4, RIG-P13]",
    [Schema.Array(Kind).check(Schema.isMaxLength(4)), Given, Schema.Boolean, Schema.Literals(askStates)],
    ([kinds, given, bySeat, state]) =>
      Effect.sync(() => {
        const options = kinds.map((kind, index) => option(`o${index}`, kind, `name of ${index}`))
        const it = ask({ options, state, owner: bySeat ? { seat: "dev-b@mill" } : { person: "op1" } })
        const result = answer(it, "op1", given as Answer)
        if (state !== "pending") {
          assert.notStrictEqual(result._tag, "Settle")
          return
        }
        if (result._tag !== "Settle") return
        const { settlement } = result
        const picked = options.find(({ optionId }) => optionId === settlement.optionId)
        if (settlement.optionId !== undefined) assert.isDefined(picked)
        if (settlement.state === "permitted") assert.isTrue(picked?.kind.startsWith("allow_"))
        const isNo = ("verb" in given && given.verb === "deny") || ("text" in given && given.text === "no")
        if (isNo) assert.isFalse(picked?.kind.startsWith("allow_") ?? false)
        if (bySeat) assert.isTrue("verb" in given)
      }),
    { arbitrary: { runs: 300 } }
  )
})

describe("what a typed answer says", () => {
  const said = (words: string) => classify(words, usual)._tag
  it("is compared without case, courtesy, quotes and final marks", () => {
    assert.strictEqual(normalise("  Please,  GO   ahead!! "), "go ahead")
    assert.strictEqual(normalise("don’t do it, thank you."), "don't do it")
    assert.strictEqual(normalise("ＯＫ"), "ok")
    for (const words of ["Yes, go ahead.", "👍", "okay thanks", "Please do it"])
      assert.strictEqual(said(words), "Yes", words)
    for (const words of ["no thanks", "Don’t!", "🛑", "NOT now"]) assert.strictEqual(said(words), "No", words)
    for (const words of ["yes but not the tests", "allow everything", "", "yesno"])
      assert.strictEqual(said(words), "Words", words)
  })
  it("a choice names exactly one option", () => {
    const twice = [option("a", "allow_once", "Run"), option("b", "allow_always", "run")]
    assert.strictEqual(classify("run", twice)._tag, "Words")
    assert.strictEqual(classify("b", twice)._tag, "Choice")
  })
})

describe("options and tool calls as people see them", () => {
  it("two to four options with ids that can be shown", () => {
    const ids = (...names: ReadonlyArray<string>) =>
      showable(
        names.map((name) => option(name, "allow_once")),
        4
      )
    assert.isTrue(ids("proceed_always", "mode:plan/accept edits"))
    assert.isTrue(ids("ändern", "a.b", "c", "d"))
    assert.isFalse(ids("one"))
    assert.isFalse(ids("a", "b", "c", "d", "e"))
    for (const bad of ["", " a", "a ", "a\nb", "a\u200bb", "a\u2028b", "x".repeat(201), "\ud800"]) {
      assert.isFalse(ids("good", bad), JSON.stringify(bad))
    }
    assert.isFalse(ids("same", "same"))
    assert.isTrue(ids("x".repeat(200), "🙂".repeat(200)))
  })
  it("a name without what cannot be seen, an always with what it makes the harness remember [RIG-192]", () => {
    assert.strictEqual(shownName(option("id", "allow_once", "Al\u0007low\u200b")), "Allow")
    assert.strictEqual(shownName(option("id", "allow_once", "\u200b\n")), "id")
    assert.lengthOf(shownName(option("id", "allow_once", "x".repeat(300))), 200)
    assert.match(shown(option("id", "allow_always")).note ?? "", /remembers/u)
    assert.isNull(shown(option("id", "allow_once")).note)
  })
  it("a large tool call loses its largest parts in order and is never refused [RIG-194]", () => {
    const large = "x".repeat(70_000)
    const small = { title: "Edit", kind: "edit", rawInput: { a: 1 } }
    assert.deepStrictEqual(storedToolCall(small), small)
    assert.deepStrictEqual(storedToolCall({ ...small, content: [large] }), { ...small, truncated: true })
    assert.deepStrictEqual(storedToolCall({ ...small, content: [large], rawOutput: large }), {
      ...small,
      truncated: true
    })
    const { rawInput: _raw, ...rest } = small
    assert.deepStrictEqual(storedToolCall({ ...small, rawInput: large }), { ...rest, truncated: true })
    assert.lengthOf(String(storedToolCall({ title: large })["title"]), 4_096)
    const strange = storedToolCall({ title: "Edit", kind: "edit", toolCallId: "t1", other: large })
    assert.deepStrictEqual(strange, { toolCallId: "t1", title: "Edit", kind: "edit", truncated: true })
    // Nested so deep that nothing can walk through it: left out, and still no refusal.
    let nested: unknown = []
    for (let depth = 0; depth < 20_000; depth += 1) nested = [nested]
    const deep = storedToolCall({ ...small, rawInput: nested as never })
    assert.deepStrictEqual(deep, { ...rest, truncated: true })
    assert.strictEqual(titleOf({ title: " " }), "(untitled)")
    assert.strictEqual(titleOf({}), "(untitled)")
  })
})
