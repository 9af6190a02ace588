import { assert, describe, it } from "@effect/vitest"
import { type LaunchFacts, launchOutcome } from "../../src/rig/LaunchMachine.ts"

const base = { format: 1, attempt: "a", harness: "otter" } as const
const opened = (nativeRef: string) => ({ ...base, nativeRef })
const failed = (error: string) => ({ ...base, error })
const fresh: LaunchFacts = { resumes: null, wantsRecord: true, runner: true }
const resume: LaunchFacts = { ...fresh, resumes: "c-1" }
const short = (facts: LaunchFacts, record?: ReturnType<typeof opened> | ReturnType<typeof failed>) => {
  const { state, conversation, otherRef } = launchOutcome(facts, record)
  return [state, conversation._tag, ...(otherRef === null ? [] : [otherRef])].join(" ")
}

describe("how a launch comes out", () => {
  it("new: ready with its conversation, else attention without one [RIG-N1, RIG-N2, RIG-N3]", () => {
    assert.strictEqual(short(fresh, opened("c-1")), "ready Set")
    assert.strictEqual(short(fresh, failed("missing")), "attention None")
    assert.strictEqual(short(fresh, failed("unconfirmed")), "attention None")
    assert.strictEqual(short(fresh), "attention None")
  })
  it("resume: the same conversation, another, a missing one, or nothing confirmed [RIG-N5, RIG-N6, RIG-N7, RIG-N8]", () => {
    assert.strictEqual(short(resume, opened("c-1")), "resumed Keep")
    assert.strictEqual(short(resume, opened("c-2")), "mismatch Keep c-2")
    assert.strictEqual(short(resume, failed("missing")), "missing Missing")
    assert.strictEqual(short(resume, failed("busy")), "unconfirmed Keep")
    assert.strictEqual(short(resume), "unconfirmed Keep")
  })
  it("a plain program that tells nothing is at work without an identity", () => {
    assert.strictEqual(short({ ...fresh, runner: false }), "ready None")
    assert.strictEqual(short({ resumes: null, wantsRecord: false, runner: false }), "ready None")
  })
})
