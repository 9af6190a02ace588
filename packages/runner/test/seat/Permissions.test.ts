import { assert, describe, it } from "vitest"
import { allow, reject, sessionId } from "../support/ScriptedAgent.ts"
import { ok, refusal } from "../support/RigStub.ts"
import { openSeat, type SeatUnderTest } from "../support/SeatUnderTest.ts"

const selected = (optionId: string) => ({ outcome: { outcome: "selected", optionId } })
const cancelled = { outcome: { outcome: "cancelled" } }

const makeCall = { toolCallId: "t2", title: "Run make", kind: "execute" }

const working = async (): Promise<SeatUnderTest> => {
  const seat = await openSeat()
  seat.send("work")
  await seat.agent.prompt()
  return seat
}

describe("requests of a turn", () => {
  it("are asked as they were made, answered each on its own, and words become a prompt [SEAT-160, SEAT-161, SEAT-165, SEAT-168, SEAT-169, SEAT-Q1, SEAT-Q3]", async () => {
    const seat = await working()
    const answers = new Map<string, (answer: ReturnType<typeof ok>) => void>()
    seat.rig.onRead = (askId) => new Promise((resolve) => answers.set(askId, resolve))
    const edit = seat.agent.ask([allow, reject])
    await seat.rig.submits.nth(1, () => true)
    const make = seat.agent.ask([allow, reject], makeCall)
    await seat.rig.reads.nth(2, () => true)
    // Nothing soft is told while they wait.
    seat.agent.say("still here")
    await seat.screen.until("agent > still here")
    answers.get("ask_2")?.(ok({ askId: "ask_2", state: "answered", optionId: "reject" }))
    assert.deepStrictEqual((await make).result, selected("reject"))
    answers.get("ask_1")?.(ok({ askId: "ask_1", state: "permitted", optionId: "allow", said: "use yarn\nhere" }))
    assert.deepStrictEqual((await edit).result, selected("allow"))
    await seat.rig.post("active/permission_resolved", 2)
    await seat.screen.until("queued (1 waiting) > use yarn")
    const [first, second] = seat.rig.submits.all
    assert.deepInclude(first, { nativeRef: "c-81", turnId: "1", options: [allow, reject] })
    assert.deepInclude(second, { toolCall: makeCall })
    assert.notStrictEqual(first?.["requestId"], second?.["requestId"])
    assert.deepStrictEqual(
      seat.rig.posts.all.slice(-2).map(({ subtype, ...post }) => [subtype, post["turnId"], post["askId"]]),
      [
        ["permission_resolved", "1", "ask_2"],
        ["permission_resolved", "1", "ask_1"]
      ]
    )
    assert.notInclude(seat.rig.story, "active/agent_message")
    ;(await seat.agent.prompt(1)).end()
    assert.strictEqual((await seat.agent.prompt(2)).text, "use yarn\nhere")
  })

  it("that the seat denies are cancelled at once, and no post is made until the next prompt [SEAT-171, SEAT-Q5]", async () => {
    const seat = await working()
    seat.rig.onSubmit = () => refusal(409, "denied_by_seat")
    const answer = await seat.agent.ask([allow, reject], { toolCallId: "t3", title: "Delete build/", kind: "delete" })
    assert.deepStrictEqual(answer.result, cancelled)
    await seat.rig.post("Notification/permission_prompt")
    await seat.screen.until(
      "permission > REFUSED: Delete build/: denied_by_seat. This seat needs attention until its next message."
    )
    seat.agent.say("then not")
    seat.agent.update({ sessionUpdate: "tool_call", toolCallId: "t4", title: "Look", kind: "read" })
    ;(await seat.agent.prompt(1)).end()
    await seat.screen.until("turn > 1 ended: end_turn")
    seat.send("try without deleting")
    await seat.agent.prompt(2)
    await seat.rig.post("UserPromptSubmit/accepted", 2)
    assert.deepStrictEqual(seat.rig.story, [
      "Stop/idle_heartbeat",
      "UserPromptSubmit/accepted",
      "Notification/permission_prompt",
      "UserPromptSubmit/accepted"
    ])
  })

  it("are settled by a cancel, withdrawn before the stop, and take no later answer [SEAT-167, SEAT-170, SEAT-200]", async () => {
    const seat = await working()
    let answerRead: (answer: ReturnType<typeof ok>) => void = () => undefined
    seat.rig.onRead = () => new Promise((resolve) => (answerRead = resolve))
    const edit = seat.agent.ask()
    await seat.rig.reads.first(() => true)
    seat.type("/abort\r")
    assert.deepStrictEqual((await edit).result, cancelled)
    // A later request of this turn asks nobody.
    assert.deepStrictEqual((await seat.agent.ask([allow], makeCall)).result, cancelled)
    answerRead(ok({ askId: "ask_1", state: "answered", optionId: "allow" }))
    await seat.screen.until("permission > late answer discarded: Edit src/a.ts: Allow (allow_once)")
    ;(await seat.agent.prompt(1)).end("cancelled")
    await seat.rig.post("Stop/cancelled")
    assert.deepStrictEqual(seat.rig.withdraws.all, [{ askId: "ask_1", reason: "turn_cancelled" }])
    assert.strictEqual(seat.rig.submits.all.length, 1)
  })

  it("that wait at the turn's end are withdrawn before its stop [SEAT-170]", async () => {
    const seat = await working()
    let withdrawnBefore = false
    seat.rig.onWithdraw = (askId) => {
      withdrawnBefore = !seat.rig.story.includes("Stop/end_turn")
      return ok({ askId, state: "withdrawn" })
    }
    const edit = seat.agent.ask()
    await seat.rig.reads.first(() => true)
    ;(await seat.agent.prompt(1)).end()
    await seat.rig.post("Stop/end_turn")
    assert.deepStrictEqual((await edit).result, cancelled)
    assert.deepStrictEqual(
      [seat.rig.withdraws.all, withdrawnBefore],
      [[{ askId: "ask_1", reason: "turn_ended" }], true]
    )
  })

  it("that the agent takes back are answered so and withdrawn [SEAT-170]", async () => {
    const seat = await working()
    const edit = seat.agent.askAs("back", [allow, reject], makeCall)
    await seat.rig.reads.first(() => true)
    seat.agent.do({ do: "takeBack", key: "back" })
    assert.strictEqual((await edit).error?.code, -32800)
    await seat.rig.withdraws.first(() => true)
    assert.deepStrictEqual(seat.rig.withdraws.all, [{ askId: "ask_1", reason: "turn_cancelled" }])
  })

  it("are not answered by what is typed meanwhile [SEAT-036]", async () => {
    const seat = await working()
    const edit = seat.agent.ask()
    await seat.rig.reads.first(() => true)
    seat.type("yes\r")
    await seat.screen.until("queued (1 waiting) > yes")
    ;(await seat.agent.prompt(1)).end()
    assert.deepStrictEqual((await edit).result, cancelled)
    assert.strictEqual((await seat.agent.prompt(2)).text, "yes")
  })
})

describe("a rig in trouble", () => {
  it("that hangs holds up no prompt, no answer and no key [SEAT-120, SEAT-121]", async () => {
    const seat = await openSeat()
    await seat.rig.post("Stop/idle_heartbeat")
    seat.rig.onPost = () => "hang"
    seat.rig.onSubmit = () => ok({ state: "permitted", optionId: "allow", reason: "no_registered_person" })
    const start = performance.now()
    seat.send("one")
    const one = await seat.agent.prompt(1)
    assert.deepStrictEqual((await seat.agent.ask()).result, selected("allow"))
    one.end()
    seat.send("two")
    await seat.agent.prompt(2)
    // Without the hung post being given up: that takes 5.75 s.
    assert.isBelow(performance.now() - start, 4_000)
    await seat.rig.posts.nth(3, () => true)
    assert.deepStrictEqual(seat.rig.story.slice(1), ["UserPromptSubmit/accepted", "UserPromptSubmit/accepted"])
  })

  it("that is started again is asked again [SEAT-125, SEAT-163]", async () => {
    const seat = await working()
    const edit = seat.agent.ask()
    await seat.rig.reads.first(() => true)
    seat.rig.onRead = (askId) => ok({ askId, state: "answered", optionId: "reject" })
    await seat.rig.restart()
    assert.deepStrictEqual((await edit).result, selected("reject"))
    await seat.rig.post("active/permission_resolved")
    ;(await seat.agent.prompt(1)).end()
    await seat.rig.post("Stop/end_turn")
  })

  it("that refuses a grant while the body is on its way is understood [SEAT-161, SEAT-Q7, SEAT-Q8]", async () => {
    const seat = await working()
    seat.rig.refuseEarly = refusal(401, "activity_grant_revoked")
    const large = { ...makeCall, rawInput: { text: "x".repeat(200_000) } }
    assert.deepStrictEqual((await seat.agent.ask([reject, allow], large)).result, selected("allow"))
    seat.rig.refuseEarly = refusal(409, "activity_grant_stale")
    assert.deepStrictEqual((await seat.agent.ask([reject, allow], large)).result, cancelled)
    await seat.screen.until("PERMITTED BY THIS RUNNER: Run make: Allow (allow_once): activity_grant_revoked.")
  })

  it("that answers with no JSON, or with resets, loses no turn [SEAT-125, SEAT-Q9]", async () => {
    const seat = await working()
    seat.rig.onPost = () => "reset"
    seat.rig.onSubmit = () => ({ status: 200, body: undefined, raw: "<html>" })
    assert.deepStrictEqual((await seat.agent.ask()).result, selected("allow"))
    ;(await seat.agent.prompt(1)).end()
    await seat.screen.until("turn > 1 ended: end_turn")
    seat.rig.onPost = () => ok()
    await seat.rig.post("Stop/end_turn")
  })
})

describe("requests of millions of members", () => {
  const millions = 2_200_000
  const large = {
    do: "members",
    head: `{"jsonrpc":"2.0","id":"large","method":"session/request_permission","params":{"sessionId":"${sessionId}","options":${JSON.stringify([allow, reject])},"toolCall":{`,
    members: millions,
    tail: `,${JSON.stringify(makeCall).slice(1)}}}`
  } as const

  it("are asked, give no other request a permit of the runner, and hold up no cancel [SEAT-161, SEAT-162, SEAT-200, SEAT-Q9]", async () => {
    const seat = await working()
    // Answers come while the second large one is read, and wait in the socket meanwhile.
    const written = seat.agent.told.nth(2, ({ told }) => told === "done")
    seat.rig.onSubmit = () => written.then(() => refusal(409, "denied_by_seat"))
    const edit = seat.agent.ask()
    await seat.rig.submits.nth(1, () => true)
    seat.agent.do({ ...large, lines: 3 })
    assert.deepStrictEqual((await edit).result, cancelled)
    // Neither do they hold up a cancel.
    const start = performance.now()
    seat.type("/abort\r")
    await seat.screen.until("cancel > requested")
    // Where each of them becomes a value: 10 s and more.
    assert.isBelow(performance.now() - start, 4_000)
    const largest = await seat.rig.submits.nth(2, () => true)
    assert.deepInclude(largest["toolCall"], makeCall)
    assert.property(largest["toolCall"], "_meta")
    assert.notInclude(seat.screen.text, "PERMITTED BY THIS RUNNER")
  })
})

describe("the agent's other requests", () => {
  it("are answered with their error, and the turn goes on [SEAT-092, SEAT-096]", async () => {
    const seat = await working()
    const ask = async (key: string, method: string, params: object) => {
      seat.agent.do({ do: "ask", key, method, params })
      const told = await seat.agent.told.first((item) => item.told === "answer" && item.key === key)
      return told.told === "answer" ? told.error?.code : undefined
    }
    assert.strictEqual(await ask("fs", "fs/read_text_file", { sessionId: "c-81", path: "/etc/passwd" }), -32601)
    assert.strictEqual(await ask("own", "_otter/whatever", {}), -32601)
    assert.strictEqual(await ask("bad", "session/request_permission", { sessionId: "c-81" }), -32602)
    assert.strictEqual(
      await ask("odd", "session/request_permission", { sessionId: "c-81", toolCall: {}, options: [{ optionId: 7 }] }),
      -32602
    )
    seat.agent.do({ do: "notify", method: "_otter/told", params: {} })
    ;(await seat.agent.prompt(1)).end()
    await seat.rig.post("Stop/end_turn")
    assert.strictEqual(seat.rig.submits.all.length, 0)
  })
})
