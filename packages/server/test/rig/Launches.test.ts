import { afterEach, assert, describe, it } from "@effect/vitest"
import type { SeatOutcome } from "@tackroom/protocol/seat"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { Lab, type LabOptions, plainRunner, record } from "./support/Lab.ts"

const labs: Array<Lab> = []
const open = async (options: LabOptions = {}): Promise<Lab> => {
  const lab = await new Lab(options).start()
  labs.push(lab)
  return lab
}
afterEach(() => Promise.all(labs.splice(0).map((lab) => lab.dispose())))

const seat = "dev-a@mill"

describe("a new launch", () => {
  it("gives the pane the variables of the contract and the named ones, through no shell and no argument list [RIG-L1, RIG-L8, RIG-N1, RIG-051, RIG-052, RIG-056, RIG-057]", async () => {
    const lab = await open({ variables: { SECRET_OF_SERVICE: "sentinel", NAMED: "two\nlines'\"$HOME#{pane_id}" } })
    const words = path.join(lab.family, "words")
    const script = [
      `env -0 > "${words}.env"; cp "$OPENRIG_FIRST_INPUT" "${words}.input"; printf '%s\\n' "$@" > "${words}";`,
      plainRunner("c-81")
    ].join(" ")
    const odd = "a b'\"$HOME#{pane_id}\\;é"
    lab.runner("otter", script, {
      command: ["sh", "-c", script, "sh", odd],
      first_input: true,
      passes_model: true,
      tackroom: { env: ["NAMED"] }
    })
    const firstInput = "first\n\u2028 turn "
    const made = await lab.rig({ member: "a", model: "big-1", firstInput, guidance: ["x"] })
    assert.deepStrictEqual(made.body["warnings"], ["guidance is not delivered"])
    assert.strictEqual(await lab.launch(seat), "ready")

    const view = await lab.seat(seat)
    const variables = Object.fromEntries(
      fs
        .readFileSync(`${words}.env`, "utf8")
        .split("\0")
        .filter((line) => line !== "")
        .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)] as const)
    )
    assert.deepInclude(variables, {
      OPENRIG_NODE_ID: view.nodeId,
      OPENRIG_SESSION_NAME: seat,
      OPENRIG_RUNTIME: "otter",
      OPENRIG_OCCUPANT_GENERATION: view.launch.generation ?? "",
      OPENRIG_HOME: lab.home,
      OPENRIG_URL: lab.service.url,
      OPENRIG_HOST: "127.0.0.1",
      OPENRIG_PORT: new URL(lab.service.url).port,
      OPENRIG_ACTIVITY_HOOK_TOKEN: lab.service.hookToken,
      OPENRIG_LAUNCH_ATTEMPT: view.launch.attempt ?? "",
      OPENRIG_LAUNCH_RESULT: path.join(lab.home, "launch", view.launch.attempt ?? "", "result.json"),
      OPENRIG_MODEL: "big-1",
      NAMED: "two\nlines'\"$HOME#{pane_id}"
    })
    assert.notProperty(variables, "OPENRIG_RESUME_REF")
    assert.notProperty(variables, "SECRET_OF_SERVICE")
    assert.notInclude(JSON.stringify(variables), "sentinel")
    const allowed =
      /^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|OPENRIG_\w+|NAMED|TERM|TERM_PROGRAM|TERM_PROGRAM_VERSION|TMUX|TMUX_PANE|PWD|OLDPWD|SHLVL|_)$/u
    assert.deepStrictEqual(
      Object.keys(variables).filter((name) => !allowed.test(name)),
      []
    )
    assert.strictEqual(fs.readFileSync(words, "utf8"), `${odd}\n`)
    assert.strictEqual(fs.readFileSync(`${words}.input`, "utf8"), firstInput)
    // No process was ever told the token in its arguments; those that live show theirs.
    const pids = fs.readdirSync("/proc").filter((name) => /^\d+$/u.test(name))
    const lines = pids.map((pid) => {
      try {
        return fs.readFileSync(`/proc/${pid}/cmdline`, "utf8")
      } catch {
        return ""
      }
    })
    assert.isFalse(lines.some((line) => line.includes(lab.service.hookToken)))
    // The private file is gone as soon as the state is set.
    assert.deepStrictEqual(fs.readdirSync(path.join(lab.home, "launch", view.launch.attempt ?? "")), ["result.json"])
    assert.deepInclude(view, {
      nativeRef: "c-81",
      identitySource: "launcher-reported",
      model: { declared: "big-1", effective: "unknown" }
    })
    assert.deepStrictEqual(view.launch.warnings, ["guidance is not delivered"])
  })

  it("runs in a tmux server of its own with fixed settings, its output in a private transcript [RIG-053]", async () => {
    const lab = await open()
    lab.runner("otter", `echo hello from the pane; ${plainRunner()}`)
    await lab.rig({ member: "a" })
    assert.strictEqual(await lab.launch(seat), "ready")
    assert.match(lab.tmux("show-options", "-s", "exit-empty"), /off/u)
    assert.match(lab.tmux("show-options", "-g", "remain-on-exit"), /off/u)
    assert.match(lab.tmux("show-options", "-g", "history-limit"), /5000/u)
    assert.strictEqual(
      lab.tmux("display-message", "-p", "-t", `=${seat}:`, "#{window_width}x#{window_height}").trim(),
      "200x50"
    )
    const view = await lab.seat(seat)
    const file = path.join(lab.home, "transcripts", `${seat}.${view.launch.generation ?? ""}.log`)
    await lab.until("the transcript", () =>
      fs.readFileSync(file, "utf8").includes("hello from the pane") ? true : undefined
    )
    assert.strictEqual(fs.statSync(file).mode & 0o777, 0o600)
    const long = new Lab({ variables: { TACKROOM_RIG_TMUX_SOCKET: `/tmp/${"x".repeat(100)}` } })
    labs.push(long)
    const failure = await long.start().then(
      () => "",
      (cause: unknown) => String((cause as { readonly reason?: string }).reason)
    )
    assert.strictEqual(failure, "socket_path_too_long")
  })

  it("with an error in its record needs attention, and a clearing marks that as seen [RIG-N2, RIG-055]", async () => {
    const lab = await open()
    lab.runner("otter", `${record('"error":"unconfirmed"')}; exec cat`)
    await lab.rig({ member: "a" })
    assert.strictEqual(await lab.launch(seat), "attention: unconfirmed")
    assert.deepStrictEqual((await lab.seat(seat)).attention, ["launch"])
    const refused = await lab.api("sendSeat", { seat }, { text: "hello" })
    assert.strictEqual(refused.body["code"], "seat_needs_attention")
    assert.strictEqual((await lab.api("clearAttention", { seat }, { reason: "seen" })).status, 200)
    const view = await lab.seat(seat)
    assert.deepStrictEqual([view.launch.state, view.launch.seen, view.attention], ["attention", true, []])
    assert.strictEqual((await lab.api("clearAttention", { seat }, { reason: "seen" })).body["code"], "not_in_attention")
  })

  it("waits for its record, then says what is so; a late one is applied once more; a later change is not [RIG-L9, RIG-N3, RIG-055]", async () => {
    const lab = await open({ variables: { TACKROOM_RIG_LAUNCH_WAIT: "5" } })
    const go = path.join(lab.family, "go")
    lab.runner("otter", `while [ ! -e '${go}' ]; do sleep 0.05; done; ${record('"nativeRef":"c-9"')}; exec cat`)
    lab.preset("plain", { command: ["cat"], launch_result: true })
    lab.runner("bad", `${record('"nativeRef":"c-1","error":"missing"')}; exec cat`)
    await lab.rig({ member: "a" }, { member: "b", harness: "plain" }, { member: "c", harness: "bad" })
    const up = lab.api("upRig", { rig: "mill" })
    await lab.until("the start", async () => ((await lab.seat(seat)).launch.state === "starting" ? true : undefined))
    assert.strictEqual((await lab.api("launchSeat", { seat })).body["code"], "launch_in_progress")
    assert.strictEqual((await lab.api("sendSeat", { seat }, { text: "x" })).body["code"], "seat_not_ready")
    const outcomes = (await up).body["outcomes"] as ReadonlyArray<{ seat: string; outcome: string; reason?: string }>
    assert.deepStrictEqual(
      outcomes.map(({ outcome, reason }) => [outcome, reason]),
      [
        ["attention", "no_record"],
        ["ready", undefined],
        ["attention", "no_record"]
      ]
    )
    assert.isNull((await lab.seat("dev-b@mill")).nativeRef)
    const head = lab.head
    fs.writeFileSync(go, "")
    await lab.feedUntil(head, (event) => event.type === "seat.launch" && event.data.seat === seat)
    const view = await lab.seat(seat)
    assert.deepStrictEqual([view.launch.state, view.launch.late, view.nativeRef], ["ready", true, "c-9"])
    const file = path.join(lab.home, "launch", view.launch.attempt ?? "", "result.json")
    fs.writeFileSync(file, fs.readFileSync(file, "utf8").replace("c-9", "c-10"))
    assert.strictEqual((await lab.seat(seat)).nativeRef, "c-9")
  })

  it("whose record folder fails starts without one and needs attention; a resume and a first input start nothing [RIG-N4, RIG-N9, RIG-L5, RIG-L6]", async () => {
    const lab = await open()
    const seen = path.join(lab.family, "seen")
    lab.runner("otter", plainRunner())
    lab.runner("mole", `echo "\${OPENRIG_LAUNCH_RESULT:-none}" > '${seen}'; exec cat`)
    lab.runner("vole", "exec cat", { first_input: true })
    await lab.rig({ member: "a" }, { member: "b", harness: "mole" }, { member: "c", harness: "vole", firstInput: "x" })
    assert.strictEqual(await lab.launch(seat), "ready")
    await lab.api("stopSeat", { seat })
    const launches = path.join(lab.home, "launch")
    fs.rmSync(launches, { recursive: true })
    fs.writeFileSync(launches, "no folder")
    assert.strictEqual(await lab.launch("dev-b@mill"), "attention: record_folder_failed")
    await lab.until("the pane", () => (fs.existsSync(seen) && fs.readFileSync(seen, "utf8") !== "" ? true : undefined))
    assert.strictEqual(fs.readFileSync(seen, "utf8"), "none\n")
    assert.strictEqual(await lab.launch(seat), "not_started: record_folder_failed")
    assert.strictEqual((await lab.seat(seat)).nativeRef, "c-1")
    assert.strictEqual(await lab.launch("dev-c@mill"), "500 first_input_failed")
    assert.strictEqual(lab.tmux("list-sessions", "-F", "#{session_name}"), "dev-b@mill\n")
    assert.strictEqual((await lab.seat("dev-c@mill")).launch.state, "not_started")
  })

  it("that tmux cannot make leaves nothing behind [RIG-L4, RIG-L7]", async () => {
    const lab = await open({ variables: { TACKROOM_RIG_TMUX_SOCKET: "/nonexistent-folder/s" } })
    lab.runner("otter", plainRunner())
    await lab.rig({ member: "a" })
    assert.strictEqual(await lab.launch(seat), "502 launch_failed")
    assert.deepStrictEqual(fs.readdirSync(path.join(lab.home, "launch")), [])
    const view = await lab.seat(seat)
    assert.deepStrictEqual([view.launch.state, view.launch.reason], ["not_started", "launch_failed"])
    const { store } = lab.service
    assert.deepStrictEqual(store.seats.openOccupants(), [])
    assert.isUndefined(store.seats.latest(view.nodeId))
  })

  it("does not touch a session of the same name that is not its own, nor one that runs [RIG-L3]", async () => {
    const lab = await open()
    lab.runner("otter", plainRunner())
    await lab.rig({ member: "a" }, { member: "b" })
    assert.strictEqual(await lab.launch("dev-b@mill"), "ready")
    assert.strictEqual(await lab.launch("dev-b@mill"), "409 seat_running")
    lab.tmux("new-session", "-d", "-s", seat, "cat")
    assert.strictEqual(await lab.launch(seat), "not_started: session_name_taken")
    assert.include(lab.tmux("list-sessions", "-F", "#{session_name}"), seat)
    const stopped = await lab.api("stopSeat", { seat })
    assert.deepInclude(stopped.body["outcome"] as object, { outcome: "left_running", reason: "session_not_ours" })
    assert.include(lab.tmux("list-sessions", "-F", "#{session_name}"), seat)
  })

  it("with a preset that cannot be used starts nothing and names every problem [RIG-L1, RIG-050]", async () => {
    const lab = await open()
    await lab.rig({ member: "a" })
    assert.strictEqual(await lab.launch(seat), "404 preset_not_found")
    const file = path.join(lab.home, "community-harnesses", "otter.yaml")
    fs.writeFileSync(
      file,
      "format: 1\nname: otter\ncommand: cat\nmaintainer: me\nlimits: []\nrunner: true\nfrist_input: 1\n"
    )
    const refused = await lab.api("launchSeat", { seat })
    assert.deepStrictEqual(
      [refused.status, refused.body["code"], refused.body["problems"]],
      [
        400,
        "preset_invalid",
        [
          "otter.yaml:7:1 frist_input is not a key; first_input is",
          "otter.yaml:6:1 runner: true needs launch_result: true"
        ]
      ]
    )
    const up = (await lab.api("upRig", { rig: "mill" })).body["outcomes"] as ReadonlyArray<SeatOutcome>
    assert.deepStrictEqual(
      up.map(({ detail, outcome, reason }) => [outcome, reason, detail]),
      [
        [
          "not_started",
          "preset_invalid",
          `otter.yaml:7:1 frist_input is not a key; first_input is (and 1 more); see tackroom rig preset check ${file}`
        ]
      ]
    )
    fs.writeFileSync(file, "format: 1\nname: otter\nname: otter\n")
    assert.strictEqual(await lab.launch(seat), "400 preset_invalid")
    assert.strictEqual((await lab.seat(seat)).launch.state, "not_started")
  })
})

describe("a program that is not there", () => {
  it("is named, and nothing is started for it [RIG-050]", async () => {
    const lab = await open()
    lab.runner("otter", "", { command: ["no-such-otter"] })
    lab.runner("mole", "", { command: ["./no/mole"] })
    await lab.rig({ member: "a" }, { member: "b", harness: "mole" })
    const up = (await lab.api("upRig", { rig: "mill" })).body["outcomes"] as ReadonlyArray<SeatOutcome>
    assert.deepStrictEqual(
      up.map(({ detail, outcome, reason }) => [outcome, reason, detail]),
      [
        ["not_started", "program_not_found", "no-such-otter is no program on the PATH of the service"],
        ["not_started", "program_not_found", `./no/mole is no program from ${lab.family}`]
      ]
    )
    const { launch } = await lab.seat(seat)
    assert.deepStrictEqual([launch.state, launch.reason], ["not_started", "program_not_found"])
  })
})

describe("a resume", () => {
  it("reopens the same conversation or says what it found; only fresh leaves it [RIG-N5, RIG-N6, RIG-N7, RIG-N8, RIG-L2, RIG-263]", async () => {
    const lab = await open()
    const now = path.join(lab.family, "now")
    const script = `if [ -z "$OPENRIG_RESUME_REF" ]; then ${record('"nativeRef":"c-1"')}; else case $(cat '${now}') in
      same) ${record('"nativeRef":"c-1"')};; other) ${record('"nativeRef":"c-2"')};;
      missing) ${record('"error":"missing"')};; *) ${record('"error":"busy"')};; esac; fi; exec cat`
    lab.runner("otter", script)
    await lab.rig({ member: "a" })
    assert.strictEqual(await lab.launch(seat), "ready")
    const outcomes: Array<unknown> = []
    for (const word of ["same", "other", "busy", "missing"]) {
      fs.writeFileSync(now, word)
      await lab.api("stopSeat", { seat })
      outcomes.push([await lab.launch(seat), (await lab.seat(seat)).nativeRef])
    }
    assert.deepStrictEqual(outcomes, [
      ["resumed", "c-1"],
      ["mismatch: another_conversation", "c-1"],
      ["unconfirmed: busy", "c-1"],
      ["missing: missing", "c-1"]
    ])
    const view = await lab.seat(seat)
    assert.isTrue(view.conversationMissing)
    assert.strictEqual(view.launch.ordinal, 5)
    await lab.api("stopSeat", { seat })
    // What was declared at a launch stays with it; an edit concerns the next one.
    lab.runner("otter", script, { resume: false })
    assert.isTrue((await lab.seat(seat)).declaration?.resume)
    assert.strictEqual(await lab.launch(seat), "not_started: resume_not_declared")
    assert.strictEqual(await lab.launch(seat, { fresh: true }), "ready")
    await lab.api("stopSeat", { seat })
    lab.runner("otter", script)
    const { store } = lab.service
    await Effect.runPromise(store.write((tx) => tx.seats.setConversation(view.nodeId, "c-7", "badger", false)))
    assert.strictEqual(await lab.launch(seat), "not_started: other_harness")
  })

  it("says missing though its program is gone, until a person acts [RIG-N7, RIG-055, RIG-T2]", async () => {
    const lab = await open()
    const go = path.join(lab.family, "go")
    const gone = `while [ ! -e '${go}' ]; do sleep 0.05; done; ${record('"error":"missing"')}; exit 3`
    lab.runner("otter", `if [ -n "$OPENRIG_RESUME_REF" ]; then ${gone}; fi; ${plainRunner()}`)
    await lab.rig({ member: "a" })
    await lab.launch(seat)
    await lab.api("stopSeat", { seat })
    // The record is written and the program ends while the service is down: its next start finds both at once.
    const { nodeId } = await lab.seat(seat)
    const lives = (yes: boolean) =>
      lab.until("a change of the occupant", () =>
        (lab.service.store.seats.live(nodeId) !== undefined) === yes ? true : undefined
      )
    const cut = lab.launch(seat).catch(() => "cut off")
    await lives(true)
    await lab.end()
    await cut
    fs.writeFileSync(go, "")
    await lab.until("the end of its session", () =>
      lab.tmux("list-sessions", "-F", "#{session_name}") === "" ? true : undefined
    )
    await lab.start()
    const shown = async () => {
      const { attention, conversationMissing, launch, nativeRef } = await lab.seat(seat)
      return [launch.state, attention.join(), conversationMissing, nativeRef]
    }
    assert.deepStrictEqual(await shown(), ["missing", "launch", true, "c-1"])
    const refusal = async (fields: object) =>
      (await lab.api("sendSeat", { seat }, { text: "x", ...fields })).body["code"]
    assert.strictEqual(await refusal({}), "seat_needs_attention")
    assert.strictEqual(await refusal({ force: true, reason: "try" }), "seat_stopped")
    await lab.api("stopSeat", { seat })
    assert.deepStrictEqual(await shown(), ["stopped", "", true, "c-1"])
    // The same while the service runs: it sees the session gone.
    fs.rmSync(go)
    const launched = lab.launch(seat)
    await lives(true)
    fs.writeFileSync(go, "")
    assert.strictEqual(await launched, "missing: missing")
    await lives(false)
    assert.deepStrictEqual(await shown(), ["missing", "launch", true, "c-1"])
    await lab.api("clearAttention", { seat }, { reason: "seen" })
    assert.deepStrictEqual(await shown(), ["missing", "", true, "c-1"])
    assert.strictEqual(await lab.launch(seat, { fresh: true }), "ready")
  })
})
