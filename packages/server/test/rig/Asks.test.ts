import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import type { AskView } from "@tackroom/protocol/seat"
import { Lab, plainRunner } from "./support/Lab.ts"

const seat = "dev-a@mill"
const permissions = "/api/activity/permission-requests"
const usual = [
  { optionId: "allow", name: "Allow", kind: "allow_once" },
  { optionId: "always", name: "Always", kind: "allow_always" },
  { optionId: "reject", name: "Reject", kind: "reject_once" }
]

let lab: Lab
let generation: string
let requests = 0
beforeAll(async () => {
  lab = await new Lab().start()
  lab.runner("otter", plainRunner())
  lab.preset("plain", { command: ["cat"] })
  await lab.rig({ member: "a" }, { member: "b" }, { member: "p", harness: "plain" })
  await lab.api("upRig", { rig: "mill" })
  generation = (await lab.seat(seat)).launch.generation ?? ""
  for (const id of ["op1", "op2"]) await lab.api("addPerson", {}, { id, name: id })
  await lab.api("setDefaultPerson", {}, { id: "op1" })
})
afterAll(() => lab.dispose())
afterEach(async () => {
  await lab.api("setPermissions", { seat }, { default: true, reason: "as before" })
  await post("Stop", "end_turn")
})

let sequence = 0
const post = async (hookEvent: string, subtype: string, fields: Readonly<Record<string, unknown>> = {}) => {
  sequence += 1
  const reply = await lab.post({
    sessionName: seat,
    generation,
    sequence,
    occurredAt: new Date(Date.parse("2030-01-01T00:00:00Z") + sequence * 1_000).toISOString(),
    hookEvent,
    subtype,
    ...fields
  })
  return (reply.body["tackroom"] as { readonly why: string }).why
}

const submit = (fields: Readonly<Record<string, unknown>> = {}) =>
  lab.http("POST", permissions, {
    token: lab.service.hookToken,
    body: {
      sessionName: seat,
      generation,
      nativeRef: "c-1",
      turnId: "1",
      requestId: `r${(requests += 1)}`,
      toolCall: { title: "Edit src/a.ts", kind: "edit" },
      options: usual,
      occurredAt: new Date(Date.parse("2030-01-01T00:00:00Z") + sequence * 1_000 + 500).toISOString(),
      ...fields
    }
  })
const open = async (fields: Readonly<Record<string, unknown>> = {}): Promise<string> => {
  const reply = await submit(fields)
  assert.strictEqual(reply.body["created"], true, JSON.stringify(reply))
  return String(reply.body["askId"])
}
const read = async (askId: string, wait = 0) =>
  (await lab.http("GET", `${permissions}/${askId}?waitSeconds=${wait}`, { token: lab.service.hookToken })).body
const view = async (askId: string) => (await lab.api("getAsk", { ask: askId })).body["ask"] as AskView
const answer = (askId: string, body: Readonly<Record<string, unknown>>, token?: string) =>
  lab.api("answerAsk", { ask: askId }, body, token === undefined ? {} : { token })
const items = async () =>
  (await lab.api("listStream", {}, undefined, { query: "?tag=runner-permission-permit" })).body[
    "items"
  ] as ReadonlyArray<{
    readonly body: string
    readonly sourceSession: string
    readonly data: Readonly<Record<string, unknown>> & { readonly option: object; readonly closed: object }
  }>

describe("a request of a runner", () => {
  it("opens an ask with one row and the seat's attention, and the same one again [RIG-P1, RIG-D11, RIG-W3, RIG-190, RIG-192]", async () => {
    const content = "x".repeat(100_000)
    const askId = await open({ requestId: 7, toolCall: { title: "", kind: "edit", content: [content] } })
    assert.strictEqual((await lab.seat(seat)).activity.value, "needs_input")
    const ask = await view(askId)
    assert.deepInclude(ask, {
      state: "pending",
      seat,
      generation,
      nativeRef: "c-1",
      turnId: "1",
      requestId: "7",
      why: "default_person"
    })
    assert.deepStrictEqual(ask.toolCall, { title: "(untitled)", kind: "edit", truncated: true })
    assert.deepStrictEqual(
      ask.options.map(({ kind, note }) => [kind, note !== null]),
      [
        ["allow_once", false],
        ["allow_always", true],
        ["reject_once", false]
      ]
    )
    assert.deepStrictEqual(
      ask.rows.map(({ owner, state }) => [owner, state]),
      [[{ person: "op1" }, "open"]]
    )
    const again = await submit({ requestId: "7", toolCall: {} })
    assert.deepStrictEqual(again.body, { ok: true, askId, created: false })
    const other = await submit({ requestId: "7", turnId: "2" })
    assert.deepStrictEqual([other.status, other.body["code"]], [409, "duplicate_request"])
  })

  it("of another generation is refused, as of a seat without an occupant [RIG-W1]", async () => {
    const old = await submit({ generation: "of-before" })
    assert.deepStrictEqual([old.status, old.body["code"]], [409, "stale_generation"])
    const { generation: _own, ...rest } = { generation: "" }
    const local = await lab.http("POST", permissions, {
      token: lab.service.hookToken,
      body: { ...rest, sessionName: seat, turnId: 1, requestId: null, toolCall: {}, options: usual }
    })
    assert.strictEqual(local.status, 200)
    assert.strictEqual((await view(String(local.body["askId"]))).requestId, "null")
  })

  it("goes to whom its seat is set, is refused, or is permitted with one record [RIG-W5, RIG-W6, RIG-W7, RIG-W8, RIG-196]", async () => {
    const set = (body: Readonly<Record<string, unknown>>) => lab.api("setPermissions", { seat }, body)
    assert.strictEqual((await set({ to: "op2" })).body["path"], "reason")
    assert.strictEqual((await set({ to: "nobody", reason: "x" })).body["code"], "unknown_person")
    assert.strictEqual((await set({ to: "op2", deny: true, reason: "x" })).body["code"], "invalid_field")
    await set({ to: "op2", reason: "knows the build" })
    assert.deepInclude((await lab.seat(seat)).permissions, {
      mode: "person",
      person: "op2",
      reason: "knows the build",
      by: "operator"
    })
    const asked = await view(await open())
    assert.deepStrictEqual([asked.why, asked.rows[0]?.owner], ["chosen_for_seat", { person: "op2" }])
    await set({ deny: true, reason: "not today" })
    assert.strictEqual((await submit()).body["code"], "denied_by_seat")
    // A later change does not move an open ask.
    assert.strictEqual((await view(asked.askId)).state, "pending")
    await set({ default: true, reason: "back" })

    const before = (await items()).length
    const single = { requestId: "same", options: usual.slice(1, 2) }
    const permitted = await submit(single)
    assert.deepStrictEqual(permitted.body, {
      ok: true,
      state: "permitted",
      optionId: "always",
      reason: "options_not_showable"
    })
    assert.deepStrictEqual((await submit(single)).body, permitted.body)
    const [item, ...older] = await items()
    assert.strictEqual(older.length, before)
    assert.strictEqual(item?.sourceSession, seat)
    assert.deepInclude(item?.data ?? {}, {
      why: "options_not_showable",
      closed: null,
      conversation: "c-1",
      requestId: "same",
      askId: null
    })
    assert.deepInclude(item?.data.option ?? {}, { optionId: "always", kind: "allow_always", rememberedByHarness: true })
    // However large an agent names its options: the record is read by people.
    const huge = "x".repeat(1 << 20)
    const odd = { optionId: huge, name: huge, kind: "allow_once" }
    assert.strictEqual((await submit({ options: [odd] })).body["optionId"], huge)
    assert.isBelow(JSON.stringify((await items())[0]).length, 6_000)
    const named = await open({
      options: [
        { ...odd, optionId: "allow" },
        { ...odd, optionId: "other", kind: huge }
      ]
    })
    assert.isBelow(JSON.stringify(await view(named)).length, 6_000)
    assert.strictEqual((await submit({ options: [] })).body["code"], "options_unsupported")
    const field = await lab.api(
      "createRig",
      {},
      {
        format: 1,
        name: "other",
        seats: [{ pod: "a", member: "b", harness: "otter", cwd: lab.family, permissions: "deny" }]
      }
    )
    assert.deepStrictEqual([field.body["code"], field.body["path"]], ["field_not_allowed", "seats[0].permissions"])
  })

  it("is answered for a waiting read within its time, once, and the loser of a race is told [RIG-197, RIG-P2, RIG-P13, RIG-D13, RIG-D4]", async () => {
    const askId = await open()
    const waiting = read(askId, 25)
    await new Promise((resolve) => setImmediate(resolve))
    const started = performance.now()
    const [first, second] = await Promise.all([
      answer(askId, { by: "op2", option: "allow" }),
      answer(askId, { by: "op1", option: "reject" })
    ])
    assert.deepStrictEqual(await waiting, { ok: true, askId, state: "answered", optionId: "allow" })
    assert.isBelow(performance.now() - started, 4 * 100 + 400)
    assert.strictEqual(first.status, 200)
    assert.deepInclude(second.body, { code: "ask_settled", state: "answered", optionId: "allow", by: "op2" })
    assert.strictEqual((await answer(askId, { by: "op2", option: "allow" })).body["repeated"], true)
    // Attention stays until the runner goes on.
    assert.strictEqual((await lab.seat(seat)).activity.value, "needs_input")
    assert.strictEqual(await post("active", "permission_resolved", { turnId: "1", askId }), "counted")
    assert.strictEqual((await lab.seat(seat)).activity.value, "working")
  })

  it("answered with words is not answered until the default is accepted, and the words go along [RIG-P5]", async () => {
    const askId = await open()
    const words = await answer(askId, { by: "op1", text: "use yarn here" })
    assert.deepInclude(words.body, { code: "words_not_an_answer", wouldPermit: "allow" })
    assert.strictEqual((await view(askId)).state, "pending")
    const before = (await items()).length
    assert.strictEqual((await answer(askId, { by: "op1", text: "use yarn here", acceptDefault: true })).status, 200)
    assert.deepStrictEqual(await read(askId), {
      ok: true,
      askId,
      state: "permitted",
      optionId: "allow",
      said: "use yarn here"
    })
    const [item, ...older] = await items()
    assert.strictEqual(older.length, before)
    assert.deepInclude(item?.data.closed ?? {}, { askId, by: "op1", how: "words" })
    assert.strictEqual(item?.data["why"], "closed_without_choice")
    const long = await answer(await open(), { by: "op1", text: "x".repeat(4_001) })
    assert.deepStrictEqual([long.status, long.body["code"]], [400, "too_long"])
    const both = await answer(askId, { by: "op1", text: "yes", option: "allow" })
    assert.strictEqual(both.body["code"], "invalid_field")
  })

  it("takes a person's token only as that person, and only for asks [RIG-193]", async () => {
    const added = await lab.api("addPerson", {}, { id: "op3", name: "Three" })
    const token = String(added.body["token"])
    const askId = await open()
    assert.strictEqual((await answer(askId, { by: "op1", option: "allow" }, token)).body["code"], "not_allowed")
    assert.strictEqual((await answer(askId, { by: "nobody", option: "allow" })).body["code"], "unknown_person")
    assert.strictEqual((await answer(askId, { by: "op3", option: "other" }, token)).body["code"], "unknown_option")
    assert.strictEqual((await answer(askId, { by: "op3", text: "no" }, token)).status, 200)
    assert.strictEqual((await read(askId))["optionId"], "reject")
    assert.strictEqual((await lab.api("stopSeat", { seat }, {}, { token })).body["code"], "not_allowed")
    assert.strictEqual((await lab.api("listAsks", {}, undefined, { token })).status, 200)
    // Removing a person moves no open ask, and nothing settles it.
    const open1 = await open()
    await lab.api("handoffAsk", { ask: open1 }, { by: "op1", to: { person: "op3" } })
    await lab.api("removePerson", { person: "op3" })
    const left = await view(open1)
    assert.deepStrictEqual(
      [left.state, left.rows.at(-1)?.owner, left.why],
      ["pending", { person: "op3" }, "handed_by:op1"]
    )
    assert.strictEqual((await answer(open1, { by: "op3", option: "allow" }, token)).status, 401)
  })

  it("is handed on without a grant, to a person who gets its options and to a seat that gets none [RIG-P8, RIG-P6, RIG-P7, RIG-195]", async () => {
    const askId = await open()
    const to = (target: Readonly<Record<string, unknown>>) =>
      lab.api("handoffAsk", { ask: askId }, { by: "op1", to: target, note: "yours" })
    assert.strictEqual((await to({ seat })).body["code"], "own_seat")
    assert.strictEqual((await to({ seat: "a-b@c@elsewhere" })).body["code"], "other_host_unsupported")
    assert.strictEqual((await to({ seat: "dev-z@mill" })).body["code"], "seat_not_found")
    assert.strictEqual((await to({ person: "op2" })).status, 200)
    const passed = await to({ seat: "dev.b@mill" })
    const ask = passed.body["ask"] as AskView
    assert.deepStrictEqual(
      ask.rows.map(({ owner, state, by, note }) => [owner, state, by, note]),
      [
        [{ person: "op1" }, "handed_off", "op1", "yours"],
        [{ person: "op2" }, "handed_off", "op1", "yours"],
        [{ seat: "dev-b@mill" }, "open", null, null]
      ]
    )
    const row = ask.rows[2]?.rowId ?? ""
    const pane = lab.tmux("capture-pane", "-p", "-J", "-t", "=dev-b@mill:")
    assert.include(pane, `Row: ${row}`)
    assert.include(pane, "Tool call: Edit src/a.ts")
    assert.notInclude(pane, "always")
    const held = await answer(askId, { by: "op1", option: "allow" })
    assert.deepStrictEqual([held.body["code"], held.body["seat"]], ["row_held_by_seat", "dev-b@mill"])
    const close = (rowId: string, by: string, closure: string) => lab.api("closeRow", { row: rowId }, { by, closure })
    assert.strictEqual((await close(ask.rows[0]?.rowId ?? "", "op1", "done")).body["code"], "row_closed")
    assert.strictEqual((await close(row, "dev-p@mill", "done")).body["code"], "not_allowed")
    assert.strictEqual((await close(row, "dev-b@mill", "done")).status, 200)
    assert.deepInclude((await view(askId)).result ?? {}, { optionId: "allow", by: "dev-b@mill", how: "row_done" })
    const [item] = await items()
    assert.deepInclude(item?.data.closed ?? {}, { how: "done", by: "dev-b@mill" })

    // What the agent named the call does not keep the message from the seat, nor add lines to it.
    const odd = await open({ toolCall: { title: "Edit \u001b[31m\nRow: row_X", kind: "edit" } })
    const told = await lab.api("handoffAsk", { ask: odd }, { by: "op1", to: { seat: "dev-b@mill" }, note: "a\u0007b" })
    assert.isNull((told.body["ask"] as AskView).rows.at(-1)?.note)
    const shown = lab.tmux("capture-pane", "-p", "-J", "-S", "-200", "-t", "=dev-b@mill:")
    assert.include(shown, "Tool call: Edit \u241b[31m\u240aRow: row_X\nNote: a\u2407b\n")
    await answer(odd, { by: "op1", verb: "deny" })

    const other = await open()
    await lab.api("stopSeat", { seat: "dev-b@mill" })
    const untold = await lab.api("handoffAsk", { ask: other }, { by: "op1", to: { seat: "dev-b@mill" } })
    const rows = (untold.body["ask"] as AskView).rows
    assert.match(rows.at(-1)?.note ?? "", /could not take/u)
    assert.strictEqual((await close(rows.at(-1)?.rowId ?? "", "primary", "canceled")).status, 200)
    assert.deepInclude(await read(other), { state: "withdrawn", reason: "row_canceled" })
  })

  it("ends with the runner's withdrawal, its turn, or its agent's exit, and takes no later answer [RIG-P9, RIG-P10, RIG-D7, RIG-D9, RIG-D12]", async () => {
    const withdraw = (askId: string, reason: string) =>
      lab.http("POST", `${permissions}/${askId}/withdraw`, { token: lab.service.hookToken, body: { reason } })
    const askId = await open()
    assert.strictEqual((await withdraw(askId, "bored")).body["code"], "invalid_field")
    assert.deepStrictEqual((await withdraw(askId, "turn_cancelled")).body, { ok: true, askId, state: "withdrawn" })
    assert.deepStrictEqual((await withdraw(askId, "exited")).body, { ok: true, askId, state: "withdrawn" })
    assert.notStrictEqual((await lab.seat(seat)).activity.value, "needs_input")
    assert.strictEqual((await answer(askId, { by: "op1", option: "allow" })).body["code"], "ask_settled")
    const [one, other] = [await open({ turnId: "5" }), await open({ turnId: "6" })]
    await post("Stop", "end_turn", { turnId: "5" })
    assert.deepInclude(await read(one), { state: "withdrawn", reason: "turn_ended" })
    assert.strictEqual((await read(other))["state"], "pending")
    await post("Stop", "otter_exited")
    assert.deepInclude(await read(other), { state: "withdrawn", reason: "exited" })
    assert.deepInclude((await view(other)).result ?? {}, { how: "exit", by: "service" })
  })

  it("stays open whatever time and people do, with attention of a plain seat until it is settled [RIG-P12, RIG-191]", async () => {
    const plain = await lab.seat("dev-p@mill")
    const reply = await submit({ sessionName: "dev-p@mill", generation: plain.launch.generation })
    const askId = String(reply.body["askId"])
    assert.strictEqual((await lab.seat("dev-p@mill")).activity.value, "needs_input")
    await lab.api("setDefaultPerson", {}, { id: null })
    assert.strictEqual((await submit()).body["reason"], "several_people_no_default")
    for (const person of ["op1", "op2"]) await lab.api("removePerson", { person })
    assert.strictEqual((await submit()).body["reason"], "no_registered_person")
    assert.strictEqual((await read(askId))["state"], "pending")
    assert.strictEqual((await answer(askId, { by: "primary", option: "allow" })).status, 200)
    assert.notStrictEqual((await lab.seat("dev-p@mill")).activity.value, "needs_input")
    for (const id of ["op1", "op2"]) await lab.api("addPerson", {}, { id, name: id })
    await lab.api("setDefaultPerson", {}, { id: "op1" })
  })

  it("of an occupant that was replaced is stale, however it ended [RIG-P11, RIG-D15, RIG-197]", async () => {
    const answered = await open()
    await answer(answered, { by: "op1", option: "allow" })
    const pending = await open()
    const waiting = read(pending, 25)
    await lab.api("stopSeat", { seat })
    assert.deepInclude(await waiting, { state: "withdrawn", reason: "exited" })
    assert.strictEqual(await lab.launch(seat), "resumed")
    generation = (await lab.seat(seat)).launch.generation ?? ""
    assert.strictEqual((await read(answered))["state"], "stale")
    assert.strictEqual((await read(pending))["state"], "stale")
    assert.strictEqual((await view(answered)).state, "answered")
  })

  it("of a service that refuses where nobody can be asked is refused and nothing is granted", async () => {
    const other = await new Lab({
      variables: { TACKROOM_RIG_UNASKABLE: "refuse", TACKROOM_RIG_MAX_OPTIONS: "2" }
    }).start()
    other.runner("otter", plainRunner())
    await other.rig({ member: "a" })
    await other.launch(seat)
    const reply = await other.http("POST", permissions, {
      token: other.service.hookToken,
      body: { sessionName: seat, turnId: 1, requestId: 1, toolCall: {}, options: usual }
    })
    assert.deepStrictEqual([reply.status, reply.body["code"]], [409, "denied_by_seat"])
    assert.deepStrictEqual((await other.api("listStream")).body["items"], [])
    await other.dispose()
  })
})
