import { afterEach, assert, describe, it } from "@effect/vitest"
import type { SeatOutcome, SnapshotView } from "@tackroom/protocol/seat"
import Database from "better-sqlite3"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Lab, type LabOptions, plainRunner, record } from "./support/Lab.ts"

const labs: Array<Lab> = []
const open = async (options: LabOptions = {}): Promise<Lab> => {
  const lab = await new Lab(options).start()
  labs.push(lab)
  return lab
}
afterEach(() => Promise.all(labs.splice(0).map((lab) => lab.dispose())))

const outcomesOf = (body: Readonly<Record<string, unknown>>) =>
  (body["outcomes"] as ReadonlyArray<SeatOutcome>).map(({ seat, outcome, reason }) =>
    [seat.split("@")[0], outcome, ...(reason === undefined ? [] : [reason])].join(" ")
  )

describe("stopping a seat", () => {
  it("ends its session and tells what is left running [RIG-260, RIG-261, RIG-091]", async () => {
    const lab = await open()
    const pids = path.join(lab.family, "pids")
    // A child in a session of its own outlives the pane; the second one drops its environment, too.
    const script = plainRunner().replace("exec cat", `setsid sleep 300 & echo $! > '${pids}'; exec cat`)
    lab.runner("otter", script)
    await lab.rig({ member: "a" })
    const seat = "dev-a@mill"
    assert.strictEqual(await lab.launch(seat), "ready")
    const left = Number(
      await lab.until("the child", () => (fs.existsSync(pids) && fs.readFileSync(pids, "utf8").trim()) || undefined)
    )
    const stopped = await lab.api("stopSeat", { seat }, { reason: "done" })
    const outcome = stopped.body["outcome"] as SeatOutcome
    assert.strictEqual(outcome.outcome, "stopped")
    assert.deepStrictEqual(
      outcome.leftovers?.map(({ pid, command }) => [pid, command]),
      [[left, "sleep 300"]]
    )
    process.kill(left, "SIGKILL")
    assert.strictEqual(lab.tmux("list-sessions", "-F", "#{session_name}"), "")
    const again = await lab.api("stopSeat", { seat })
    assert.strictEqual((again.body["outcome"] as SeatOutcome).outcome, "not_running")
    assert.strictEqual((await lab.seat(seat)).launch.state, "stopped")
  })
})

describe("a seat with an ask", () => {
  const seat = "dev-a@mill"
  const permissions = "/api/activity/permission-requests"
  const asked = async (lab: Lab) => {
    lab.runner("otter", plainRunner())
    await lab.rig({ member: "a" })
    await lab.api("addPerson", {}, { id: "op1", name: "Ann" })
    await lab.launch(seat)
    const token = lab.service.hookToken
    const options = [
      { optionId: "allow", name: "Allow", kind: "allow_once" },
      { optionId: "reject", name: "Reject", kind: "reject_once" }
    ]
    const reply = await lab.http("POST", permissions, {
      token,
      body: { sessionName: seat, turnId: "1", requestId: "1", toolCall: { title: "x" }, options }
    })
    const askId = String(reply.body["askId"])
    const waiting = lab.http("GET", `${permissions}/${askId}?waitSeconds=25`, { token })
    const answer = () => lab.api("answerAsk", { ask: askId }, { by: "op1", option: "allow" })
    return { askId, waiting, answer }
  }
  const withdrawn = { state: "withdrawn", reason: "exited" }

  it("that is stopped has its ask withdrawn, and no later answer counts [RIG-D16, RIG-P10]", async () => {
    const lab = await open()
    const { answer, waiting } = await asked(lab)
    const stopped = await lab.api("stopSeat", { seat })
    assert.strictEqual((stopped.body["outcome"] as SeatOutcome).outcome, "stopped")
    assert.deepInclude((await waiting).body, withdrawn)
    assert.deepInclude((await answer()).body, { code: "ask_settled", state: "withdrawn" })
    const view = await lab.seat(seat)
    assert.deepStrictEqual([view.openAsks, view.attention, view.activity.value], [0, [], "unknown"])
  })

  it("whose tmux server is killed has ended like every other, and starts again [RIG-D16, RIG-321, RIG-L3]", async () => {
    const lab = await open()
    const { waiting } = await asked(lab)
    const head = lab.head
    process.kill(Number(lab.tmux("display-message", "-p", "#{pid}")), "SIGKILL")
    assert.deepInclude((await waiting).body, withdrawn)
    await lab.feedUntil(
      head,
      ({ type, data }) => type === "seat.launch" && "launch" in data && data.launch.state === "ended"
    )
    const status = await lab.api("status")
    assert.deepInclude(status.body, { tmux: "absent" })
    assert.strictEqual(await lab.launch(seat), "resumed")
    assert.deepInclude(await lab.seat(seat), { session: "present" })
  })
})

describe("a rig", () => {
  it("comes up seat by seat, goes down with a snapshot and comes back from it [RIG-262, RIG-263, RIG-264]", async () => {
    const lab = await open()
    lab.runner("otter", plainRunner("c-$OPENRIG_SESSION_NAME"))
    lab.preset("plain", { command: ["cat"] })
    await lab.rig({ member: "a" }, { member: "b", harness: "plain" }, { member: "c", harness: "nobody" })
    const first = await lab.api("upRig", { rig: "mill" }, { seats: ["dev.a"] })
    assert.deepStrictEqual(outcomesOf(first.body), ["dev-a ready"])
    const up = await lab.api("upRig", { rig: "mill" })
    assert.deepStrictEqual(outcomesOf(up.body), [
      "dev-a already_running",
      "dev-b ready",
      "dev-c not_started preset_not_found"
    ])
    const ref = (await lab.seat("dev-a@mill")).nativeRef
    assert.isNotNull(ref)
    const down = await lab.api("downRig", { rig: "mill" }, { snapshot: true })
    assert.deepStrictEqual(outcomesOf(down.body), ["dev-a stopped", "dev-b stopped", "dev-c not_running"])
    const snapshot = down.body["snapshot"] as SnapshotView
    assert.deepInclude(snapshot.seats[0], {
      seat: "dev-a@mill",
      harness: "otter",
      nativeRef: ref,
      launchState: "ready"
    })
    assert.isTrue(snapshot.seats[0]?.declaration?.runner)

    // Up of a rig resumes what has a conversation; fresh alone starts anew.
    const again = await lab.api("upRig", { rig: "mill" }, { seats: ["dev-a", "dev-b"] })
    assert.deepStrictEqual(outcomesOf(again.body), ["dev-a resumed", "dev-b ready"])
    await lab.api("downRig", { rig: "mill" })
    const fresh = await lab.api("upRig", { rig: "mill" }, { seats: ["dev-a"], fresh: true })
    assert.deepStrictEqual(outcomesOf(fresh.body), ["dev-a ready"])
    for (let count = 0; count < 21; count++) await lab.api("downRig", { rig: "mill" })
    const kept = (await lab.api("listSnapshots", { rig: "mill" })).body["items"] as ReadonlyArray<SnapshotView>
    assert.lengthOf(kept, 20)
    assert.notInclude(
      kept.map(({ snapshotId }) => snapshotId),
      snapshot.snapshotId
    )
    const restored = await lab.api("restoreRig", { rig: "mill" }, { snapshotId: kept[0]?.snapshotId })
    assert.deepStrictEqual(outcomesOf(restored.body), [
      "dev-a resumed",
      "dev-b ready",
      "dev-c not_started preset_not_found"
    ])
    const gone = await lab.api("restoreRig", { rig: "mill" }, { snapshotId: snapshot.snapshotId })
    assert.strictEqual(gone.body["code"], "snapshot_not_found")
    assert.strictEqual((await lab.api("upRig", { rig: "nix" })).body["code"], "rig_not_found")
  })

  it("that goes down while it comes up is down: what was starting is stopped, and nothing more is started [RIG-260, RIG-264]", async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "bin-"))
    const [hold, held] = [path.join(folder, "hold"), path.join(folder, "held")]
    const real =
      (process.env["PATH"] ?? "")
        .split(":")
        .map((one) => path.join(one, "tmux"))
        .find(fs.existsSync) ?? ""
    fs.writeFileSync(
      path.join(folder, "tmux"),
      `#!/bin/sh\ncase "$*" in *start-server*) echo >> '${held}'; while [ -e '${hold}' ]; do sleep 0.02; done;; esac\nexec '${real}' "$@"\n`,
      { mode: 0o755 }
    )
    const lab = await open({ variables: { PATH: `${folder}:${process.env["PATH"] ?? ""}` } })
    lab.runner("otter", plainRunner())
    const members = Array.from({ length: 9 }, (_, at) => ({ member: `m${at}` }))
    await lab.rig(...members)
    fs.writeFileSync(hold, "")
    const up = lab.api("upRig", { rig: "mill" })
    await lab.until("eight launches", () =>
      fs.existsSync(held) && fs.readFileSync(held, "utf8").length === 8 ? true : undefined
    )
    const down = lab.api("downRig", { rig: "mill" })
    await lab.until("the snapshot", async () =>
      ((await lab.api("listSnapshots", { rig: "mill" })).body["items"] as ReadonlyArray<unknown>).length === 1
        ? true
        : undefined
    )
    fs.rmSync(folder, { recursive: true, force: true })
    const [came, went] = [outcomesOf((await up).body), outcomesOf((await down).body)]
    assert.deepStrictEqual(came.at(-1), "dev-m8 not_started rig_went_down")
    assert.deepStrictEqual(
      went,
      members.map(({ member }, at) => `dev-${member} ${at === 8 ? "not_running" : "stopped"}`)
    )
    assert.strictEqual(lab.tmux("list-sessions", "-F", "#{session_name}"), "")
  })

  it("whose snapshot fails goes down only where none was asked for [RIG-262]", async () => {
    const lab = await open()
    lab.runner("otter", plainRunner())
    await lab.rig({ member: "a" })
    await lab.api("upRig", { rig: "mill" })
    const db = new Database(path.join(lab.home, "rig.sqlite"), { timeout: 5_000 })
    db.exec("CREATE TRIGGER no_snapshots BEFORE INSERT ON snapshots BEGIN SELECT RAISE(ABORT, 'full'); END")
    const refused = await lab.api("downRig", { rig: "mill" }, { snapshot: true })
    assert.deepStrictEqual([refused.status, refused.body["code"]], [500, "snapshot_failed"])
    assert.deepInclude(await lab.seat("dev-a@mill"), { session: "present" })
    const down = await lab.api("downRig", { rig: "mill" })
    assert.deepStrictEqual([outcomesOf(down.body), down.body["snapshot"]], [["dev-a stopped"], null])
    db.exec("DROP TRIGGER no_snapshots")
    db.close()
  })

  it("keeps in a snapshot what its seats came to, and brings back what can be [RIG-262, RIG-263]", async () => {
    const lab = await open()
    // The first start opens a conversation, the next one says that it is gone.
    lab.runner(
      "otter",
      `if [ -n "$OPENRIG_RESUME_REF" ]; then ${record('"error":"missing"')}; exec cat; fi; ${plainRunner()}`
    )
    lab.runner("mole", `${record('"error":"no"')}; exec cat`)
    await lab.rig({ member: "a" }, { member: "b", harness: "mole" })
    await lab.api("upRig", { rig: "mill" })
    await lab.api("downRig", { rig: "mill" })
    assert.deepStrictEqual(outcomesOf((await lab.api("upRig", { rig: "mill" })).body), [
      "dev-a missing missing",
      "dev-b attention no"
    ])
    const { snapshot } = (await lab.api("downRig", { rig: "mill" }, { snapshot: true })).body
    assert.deepStrictEqual(
      (snapshot as SnapshotView).seats.map(({ launchState, nativeRef }) => [launchState, nativeRef]),
      [
        ["missing", "c-1"],
        ["attention", null]
      ]
    )
    const back = await lab.api("restoreRig", { rig: "mill" })
    assert.deepStrictEqual(outcomesOf(back.body), ["dev-a missing missing", "dev-b attention no"])
    assert.strictEqual((await lab.seat("dev-a@mill")).nativeRef, "c-1")
  })

  it("is made once: the same file again is fine, another is refused, and a bad one is told where", async () => {
    const lab = await open()
    assert.strictEqual((await lab.rig({ member: "a" })).status, 200)
    assert.strictEqual((await lab.rig({ member: "a" })).status, 200)
    assert.strictEqual((await lab.rig({ member: "b" })).body["code"], "rig_exists")
    const bad = await lab.api(
      "createRig",
      {},
      { format: 1, name: "x", seats: [{ pod: "a-b", member: "c", harness: "d", cwd: "/" }] }
    )
    assert.deepStrictEqual([bad.body["code"], bad.body["path"]], ["rig_invalid", "seats[0].pod"])
    const missing = await lab.api(
      "createRig",
      {},
      { format: 1, name: "x", seats: [{ pod: "a", member: "c", harness: "d", cwd: "/nonexistent" }] }
    )
    assert.deepStrictEqual([missing.body["code"], missing.body["path"]], ["rig_invalid", "seats[0].cwd"])
    const headers = { "idempotency-key": "k1" }
    const person = await lab.api("addPerson", {}, { id: "op1", name: "Ann" }, { headers })
    assert.deepStrictEqual((await lab.api("addPerson", {}, { id: "op1", name: "Ann" }, { headers })).body, person.body)
    const conflict = await lab.api("addPerson", {}, { id: "op2", name: "Ben" }, { headers })
    assert.strictEqual(conflict.body["code"], "idempotency_conflict")
    assert.strictEqual((await lab.api("addPerson", {}, { id: "op1", name: "Ann" })).body["code"], "person_exists")
  })
})
