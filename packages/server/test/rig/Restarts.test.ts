import { afterEach, assert, describe, it } from "@effect/vitest"
import { type AskView, rigPath, type SeatView, type ServiceStatus } from "@tackroom/protocol/seat"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as http from "node:http"
import * as path from "node:path"
import { statusLines } from "../../src/rig/command/Printing.ts"
import { openFile } from "../../src/database/SqliteFile.ts"
import { type Addresses, cutOff, knownPorts } from "../../src/rig/Addresses.ts"
import { hashOf } from "../../src/rig/Minting.ts"
import { rigSchema } from "../../src/rig/RigTables.ts"
import { Lab, plainRunner, record } from "./support/Lab.ts"
import { rigCommand, type ServiceProcess, startService } from "./support/ServiceProcess.ts"

const seat = "dev-a@mill"
const permissions = "/api/activity/permission-requests"
const options = [
  { optionId: "allow", name: "Allow", kind: "allow_once" },
  { optionId: "reject", name: "Reject", kind: "reject_once" }
]

const labs: Array<Lab> = []
const processes: Array<ServiceProcess> = []
/** A home with a rig of one seat that runs; the lab that made it has ended. */
const prepared = async (script = plainRunner()): Promise<Lab> => {
  const lab = await new Lab().start()
  labs.push(lab)
  lab.runner("otter", script)
  await lab.rig({ member: "a" })
  await lab.api("addPerson", {}, { id: "op1", name: "Ann" })
  return lab
}
const start = async (lab: Lab, variables: Readonly<Record<string, string>> = {}): Promise<ServiceProcess> => {
  const service = await startService(lab.family, variables)
  processes.push(service)
  return service
}
afterEach(async () => {
  await Promise.all(processes.splice(0).map((service) => service.end("SIGKILL")))
  await Promise.all(labs.splice(0).map((lab) => lab.dispose()))
})

const call = async (
  service: ServiceProcess,
  method: string,
  target: string,
  body?: unknown,
  token = service.operatorToken
) => {
  const response = await fetch(service.url + target, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  return { status: response.status, body: (await response.json()) as Readonly<Record<string, unknown>> }
}

/** A tmux that waits while a file is there: before a command, or after it was done. */
const slowTmux = (lab: Lab, when: "before" | "after", command: string) => {
  const folder = fs.mkdtempSync(path.join(lab.family, "bin-"))
  const hold = path.join(folder, "hold")
  const held = path.join(folder, "held")
  const real =
    (process.env["PATH"] ?? "")
      .split(":")
      .map((one) => path.join(one, "tmux"))
      .find(fs.existsSync) ?? ""
  const wait = `if [ -e '${hold}' ]; then echo $$ > '${held}'; while [ -e '${hold}' ]; do sleep 0.02; done; fi`
  const script =
    when === "before"
      ? `case "$*" in *${command}*) ${wait};; esac; exec '${real}' "$@"`
      : `case "$*" in *${command}*) cat > '${folder}/in'; grep -q new-session '${folder}/in' && new=1; '${real}' "$@" < '${folder}/in'; code=$?; [ -n "$new" ] && { ${wait}; }; exit $code;; esac; exec '${real}' "$@"`
  fs.writeFileSync(path.join(folder, "tmux"), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  fs.writeFileSync(hold, "")
  return {
    PATH: `${folder}:${process.env["PATH"] ?? ""}`,
    held,
    release: () => fs.rmSync(hold, { force: true }),
    /** The command that waits is never done. */
    end: () => process.kill(Number(fs.readFileSync(held, "utf8")), "SIGKILL")
  }
}

const launchOf = (service: ServiceProcess) => call(service, "POST", `/api/rig/v1/seats/${seat}/launch`, {})

describe("a service that is killed", () => {
  it("has every post, ask and answer that it acknowledged, once, and goes on numbering its feed [RIG-323, RIG-322, RIG-320]", async () => {
    const lab = await prepared()
    assert.strictEqual(await lab.launch(seat), "ready")
    const { nodeId, launch } = await lab.seat(seat)
    await lab.end()
    const acknowledged: Array<string> = []
    const answers: Array<readonly [string, string]> = []
    let count = 0
    for (const kills of [5, 31]) {
      const service = await start(lab)
      const killed = new AbortController()
      const work = async (worker: number) => {
        while (!killed.signal.aborted) {
          const number = (count += 1)
          const subtype = `kind-${number}`
          const body = { nodeId, generation: launch.generation, hookEvent: "PreToolUse", subtype }
          const posted = await call(service, "POST", "/api/activity/hooks", body, service.hookToken).catch(
            () => undefined
          )
          if (posted?.status === 200) acknowledged.push(subtype)
          if (worker !== 0) continue
          const ask = {
            nodeId,
            generation: launch.generation,
            turnId: "1",
            requestId: `q${number}`,
            toolCall: {},
            options
          }
          const asked = await call(service, "POST", permissions, ask, service.hookToken).catch(() => undefined)
          const askId = asked?.body["askId"]
          if (typeof askId !== "string") continue
          const option = number % 2 === 0 ? "allow" : "reject"
          const answered = await call(service, "POST", `/api/rig/v1/asks/${askId}/answer`, { by: "op1", option }).catch(
            () => undefined
          )
          answers.push([askId, answered?.status === 200 ? option : "pending or answered"])
        }
      }
      const working = [0, 1, 2].map(work)
      const from = acknowledged.length
      await lab.until("enough posts", () => (acknowledged.length - from >= kills ? true : undefined))
      killed.abort()
      await service.end("SIGKILL")
      await Promise.all(working)
    }
    await lab.start()
    const { store } = lab.service
    const stored = store.logs.posts(nodeId).map(({ subtype }) => subtype)
    for (const subtype of acknowledged) {
      assert.strictEqual(stored.filter((one) => one === subtype).length, 1, subtype)
    }
    for (const [askId, option] of answers) {
      const ask = store.asks.ask(askId)
      assert.isDefined(ask, askId)
      if (option === "allow" || option === "reject") assert.strictEqual(ask?.result?.optionId, option)
      assert.strictEqual(
        store.asks.rows(askId).filter(({ state }) => state === "open").length,
        ask?.state === "pending" ? 1 : 0
      )
    }
    const cursors = store.logs.feed(0, lab.head, 100_000).map(({ cursor }) => cursor)
    assert.deepStrictEqual(
      cursors,
      cursors.map((_, index) => index + 1)
    )
    // The seat never noticed.
    assert.strictEqual((await lab.seat(seat)).session, "present")
  })

  it("keeps pending asks with their attention, and ignores beats until the next prompt [RIG-322]", async () => {
    const lab = await prepared()
    await lab.launch(seat)
    const { launch } = await lab.seat(seat)
    await lab.end()
    const service = await start(lab)
    const common = { sessionName: seat, generation: launch.generation }
    await call(
      service,
      "POST",
      "/api/activity/hooks",
      { ...common, sequence: 1, hookEvent: "UserPromptSubmit", subtype: "accepted", turnId: "1" },
      service.hookToken
    )
    const asked = await call(
      service,
      "POST",
      permissions,
      { ...common, turnId: "1", requestId: 1, toolCall: {}, options },
      service.hookToken
    )
    await service.end("SIGKILL")
    await lab.start()
    assert.strictEqual((await lab.seat(seat)).activity.value, "needs_input")
    const ask = (await lab.api("getAsk", { ask: String(asked.body["askId"]) })).body["ask"] as AskView
    assert.strictEqual(ask.state, "pending")
    assert.strictEqual((await lab.api("answerAsk", { ask: ask.askId }, { by: "op1", option: "allow" })).status, 200)
    await lab.post({ ...common, sequence: 8, hookEvent: "active", subtype: "permission_resolved", turnId: "1" })
    const beat = await lab.post({ ...common, sequence: 9, hookEvent: "active", subtype: "liveness", turnId: "1" })
    assert.deepInclude(beat.body["tackroom"] as object, { why: "beat_ignored:turn_unknown" })
  })

  it("drops what was reserved and never started, with its grant, and registers what had started [RIG-321, RIG-L8]", async () => {
    const lab = await prepared()
    await lab.end()
    const before = slowTmux(lab, "before", "start-server")
    const first = await start(lab, { PATH: before.PATH })
    void launchOf(first).catch(() => undefined)
    await lab.until("the hold", () => (fs.existsSync(before.held) ? true : undefined))
    await first.end("SIGKILL")
    before.release()
    await lab.start()
    const view = await lab.seat(seat)
    assert.deepStrictEqual([view.launch.state, view.launch.reason], ["not_started", "interrupted"])
    assert.deepStrictEqual(lab.service.store.seats.openOccupants(), [])
    await lab.end()

    const after = slowTmux(lab, "after", "source-file")
    const second = await start(lab, { PATH: after.PATH })
    void launchOf(second).catch(() => undefined)
    await lab.until("the hold", () => (fs.existsSync(after.held) ? true : undefined))
    await second.end("SIGKILL")
    after.release()
    await lab.start()
    const ready = await lab.until("the record", async () => {
      const now = await lab.seat(seat)
      return now.launch.state === "ready" ? now : undefined
    })
    assert.deepStrictEqual([ready.nativeRef, ready.session], ["c-1", "present"])
  })

  it("ends an occupant whose session went away meanwhile, and concludes nothing where tmux cannot be asked [RIG-321]", async () => {
    const lab = await prepared()
    await lab.launch(seat)
    const token = `trg_${"x".repeat(43)}`
    const { nodeId, launch } = await lab.seat(seat)
    await Effect.runPromise(
      lab.service.store.write((tx) =>
        tx.seats.addGrant({
          hash: hashOf(token),
          nodeId,
          generation: launch.generation ?? "",
          attempt: launch.attempt ?? "",
          at: tx.wall
        })
      )
    )
    await lab.end()
    const folder = fs.mkdtempSync(path.join(lab.family, "bin-"))
    fs.writeFileSync(
      path.join(folder, "tmux"),
      "#!/bin/sh\n[ \"$5\" = -V ] && echo tmux 3.3 && exit 0\necho 'error connecting to x (Permission denied)' >&2; exit 1\n",
      { mode: 0o755 }
    )
    const blind = await start(lab, { PATH: `${folder}:${process.env["PATH"] ?? ""}` })
    const seen = await call(blind, "GET", `/api/rig/v1/seats/${seat}`)
    const view = seen.body["seat"] as SeatView
    assert.deepStrictEqual([view.launch.state, view.session], ["ready", "unavailable"])
    assert.strictEqual(
      (await call(blind, "POST", "/api/activity/hooks", { hookEvent: "a", subtype: "b" }, token)).status,
      200
    )
    assert.strictEqual((await launchOf(blind)).body["code"], "tmux_unavailable")
    assert.strictEqual(
      (await call(blind, "POST", `/api/rig/v1/seats/${seat}/stop`, {})).body["code"],
      "tmux_unavailable"
    )
    await blind.end("SIGKILL")

    lab.tmux("kill-session", "-t", `=${seat}`)
    await lab.start()
    assert.strictEqual((await lab.seat(seat)).launch.state, "ended")
    const refused = await lab.post({ hookEvent: "a", subtype: "b" }, token)
    assert.strictEqual(refused.body["code"], "activity_grant_revoked")
  })

  it("goes on with a launch in its wait with what is left of it [RIG-322, RIG-L9]", async () => {
    const go = "go-file"
    const lab = await prepared()
    lab.runner(
      "otter",
      `while [ ! -e "$OPENRIG_HOME/${go}" ]; do sleep 0.05; done; ${record('"nativeRef":"c-5"')}; exec cat`
    )
    await lab.end()
    const service = await start(lab)
    void launchOf(service).catch(() => undefined)
    await lab.until("the start", async () => {
      const { body } = await call(service, "GET", `/api/rig/v1/seats/${seat}`)
      return (body["seat"] as SeatView).session === "present" ? true : undefined
    })
    await service.end("SIGKILL")
    await lab.start()
    assert.strictEqual((await lab.seat(seat)).launch.state, "starting")
    const head = lab.head
    fs.writeFileSync(path.join(lab.home, go), "")
    await lab.feedUntil(head, ({ type }) => type === "seat.launch")
    const view = await lab.seat(seat)
    assert.deepStrictEqual([view.launch.state, view.nativeRef, view.launch.late], ["ready", "c-5", false])
  })
})

describe("a store of the first version", () => {
  it("is brought forward with what it holds [RIG-320]", async () => {
    const lab = new Lab()
    labs.push(lab)
    const [first] = rigSchema.steps
    const file = path.join(lab.family, "rig.sqlite")
    const add = "INSERT INTO sends VALUES ('snd_1', 'nod_1', 'g1', 1, 'operator', 5, NULL, 'started')"
    const older = { ...rigSchema, minor: 0, steps: first === undefined ? [] : [first] }
    await Effect.runPromise(Effect.scoped(Effect.map(openFile(file, older), (db) => void db.exec(add))))
    const rows = await Effect.runPromise(
      Effect.scoped(Effect.map(openFile(file, rigSchema), (db) => db.prepare("SELECT id, draft FROM sends").all()))
    )
    assert.deepStrictEqual(rows, [{ id: "snd_1", draft: 0 }])
  })
})

describe("a port that the system chose", () => {
  it("is known from what seats were told, and who was told another address is cut off", () => {
    const known = [
      { seat: "a", guest: false, url: "http://127.0.0.1:5001" },
      { seat: "b", guest: true, url: "http://10.0.0.1:5002" },
      { seat: "c", guest: false, url: "http://127.0.0.1:5000" },
      { seat: "d", guest: false, url: "http://127.0.0.1:5001" }
    ]
    assert.deepStrictEqual([knownPorts(known, false), knownPorts(known, true)], [[5001, 5000], [5002]])
    const cut = (now: Addresses) => cutOff(known, now).map(({ seat: name }) => name)
    const main = "http://127.0.0.1:5001"
    assert.deepStrictEqual(cut({ main, guest: "http://10.0.0.1:5002" }), ["c"])
    assert.deepStrictEqual(cut({ main, guest: null }), ["b", "c"])
    // Under a name of its own the listener may be reached as before.
    assert.deepStrictEqual(cut({ main }), ["c"])
  })

  it("is taken again for guests, too [RIG-006]", async () => {
    const lab = await new Lab({ variables: { OPENRIG_GUEST_ACTIVITY_PORT: "0" } }).start()
    labs.push(lab)
    lab.runner("otter", plainRunner())
    await lab.rig({ member: "g", guest: true })
    assert.strictEqual(await lab.launch("dev-g@mill"), "ready")
    const { guestUrl } = lab.service
    await lab.end()
    await lab.start()
    assert.strictEqual(lab.service.guestUrl, guestUrl)
  })

  it("is taken again while seats live that know it, and who is cut off without it is named [RIG-006]", async () => {
    const said: Array<readonly [string, unknown]> = []
    const lab = new Lab({ log: { write: (_, message, fields) => said.push([message, fields?.["seat"]]) } })
    labs.push(await lab.start())
    lab.runner("otter", plainRunner())
    await lab.rig({ member: "a" })
    await lab.launch(seat)
    const { url } = lab.service
    await lab.end()
    await lab.start()
    assert.strictEqual(lab.service.url, url)
    await lab.end()

    const taken = http.createServer()
    await new Promise<void>((resolve) => taken.listen(Number(new URL(url).port), "127.0.0.1", () => resolve()))
    await lab.start()
    assert.notStrictEqual(lab.service.url, url)
    assert.deepInclude(said, ["the port that running seats know is not to be had", undefined])
    assert.deepInclude(said, ["a running seat knows another address and is cut off until it is launched again", seat])
    const status = async () => (await lab.api("status")).body as unknown as ServiceStatus
    assert.deepStrictEqual((await status()).cutOff, [{ seat, url }])
    const told = statusLines(await status()).join("\n")
    assert.match(told, new RegExp(`cut off +dev-a@mill knows ${url} and reaches nobody there`, "u"))
    await lab.api("stopSeat", { seat })
    assert.deepStrictEqual((await status()).cutOff, [])
    await new Promise((resolve) => taken.close(resolve))
  })
})

describe("a send that a kill cuts off before its Enter", () => {
  /** A seat whose pane keeps every byte it gets, in which a send under a key stands without its Enter. */
  const cut = async (fields: Readonly<Record<string, unknown>>) => {
    const lab = await prepared()
    const bytes = path.join(lab.family, "bytes")
    lab.runner(
      "otter",
      plainRunner().replace("exec cat", `stty raw -echo; printf '\\033[?2004h'; exec tee '${bytes}'`),
      fields
    )
    await lab.launch(seat)
    await lab.end()
    const enter = slowTmux(lab, "before", "Enter")
    const service = await start(lab, { PATH: enter.PATH })
    const sending = fetch(`${service.url}${rigPath("sendSeat", { seat })}`, {
      method: "POST",
      headers: { authorization: `Bearer ${service.operatorToken}`, "idempotency-key": "k1" },
      body: JSON.stringify({ text: "first", raw: true })
    }).catch(() => undefined)
    await lab.until("the paste", () => (fs.existsSync(enter.held) ? true : undefined))
    await service.end("SIGKILL")
    enter.end()
    await sending
    await lab.start()
    const got = (text: string) =>
      lab.until(JSON.stringify(text), () => (fs.readFileSync(bytes, "utf8").endsWith(text) ? true : undefined))
    const next = (more: object = {}) =>
      lab.api("sendSeat", { seat }, { text: "third", raw: true, verify: true, ...more })
    return { lab, got, next }
  }

  it("is unknown after the restart, and a runner's draft is cleared before the next send [RIG-231, RIG-323]", async () => {
    const { lab, got, next } = await cut({})
    const { draft } = await lab.seat(seat)
    assert.strictEqual(draft?.from, "operator")
    const again = await lab.api(
      "sendSeat",
      { seat },
      { text: "first", raw: true },
      { headers: { "idempotency-key": "k1" } }
    )
    assert.deepInclude(again.body, { code: "idempotency_conflict", interrupted: true })
    const sent = await next()
    assert.match(String(sent.body["advisory"]), /draft of a send that was cut off was cleared/u)
    await got("\u001b[200~first\u001b[201~\u0015\u001b[200~third\u001b[201~\r")
    assert.notProperty(await lab.seat(seat), "draft")
    assert.notMatch(String((await next({ text: "fourth" })).body["advisory"]), /cleared/u)
    await got("\u001b[201~\r\u001b[200~fourth\u001b[201~\r")
  })

  it("stands in the way of the next one where nobody knows how to clear it [RIG-231]", async () => {
    const { got, next } = await cut({ runner: false })
    const refused = await next()
    assert.deepInclude(refused.body, { code: "send_failed", step: "draft", mayStandAsDraft: true })
    assert.strictEqual((await next({ force: true, reason: "cleared by hand" })).status, 200)
    await got("\u001b[200~first\u001b[201~\u001b[200~third\u001b[201~\r")
  })
})

describe("a service that is asked to end", () => {
  it("answers waiting reads with pending and leaves its seats running [RIG-006, RIG-001]", async () => {
    const lab = await prepared()
    await lab.launch(seat)
    const { launch } = await lab.seat(seat)
    await lab.end()
    const service = await start(lab)
    const asked = await call(
      service,
      "POST",
      permissions,
      { sessionName: seat, generation: launch.generation, turnId: "1", requestId: 1, toolCall: {}, options },
      service.hookToken
    )
    const waiting = call(
      service,
      "GET",
      `${permissions}/${String(asked.body["askId"])}?waitSeconds=25`,
      undefined,
      service.hookToken
    )
    // The read has to be there before the service ends: a second one that answers at once comes after it.
    await call(service, "GET", `${permissions}/${String(asked.body["askId"])}`, undefined, service.hookToken)
    const second = await startService(lab.family).then(
      () => 0,
      (cause: unknown) => (cause as { readonly code?: number }).code
    )
    assert.strictEqual(second, 75)
    const code = await service.end("SIGTERM")
    assert.strictEqual((await waiting).body["state"], "pending")
    assert.strictEqual(code, 0)
    assert.include(lab.tmux("list-sessions", "-F", "#{session_name}"), seat)
    await lab.start()
    assert.strictEqual((await lab.seat(seat)).launch.generation, launch.generation)
  })
})

describe("a home that the system does not make", () => {
  it("is refused at once", () => {
    // Below /proc a folder is never there, whoever makes its parents.
    const run = spawnSync(process.execPath, [rigCommand, "serve"], {
      encoding: "utf8",
      env: { ...process.env, TACKROOM_HOME: "/proc/tackroom-home" },
      timeout: 20_000,
      killSignal: "SIGKILL"
    })
    assert.deepStrictEqual([run.status, run.signal], [78, null])
    assert.include(run.stderr, "unsafe_home")
  })
})
