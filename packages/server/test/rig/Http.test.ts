import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { AskView } from "@tackroom/protocol/seat"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as net from "node:net"
import * as path from "node:path"
import { hashOf } from "../../src/rig/Minting.ts"
import * as RateBucket from "../../src/rig/RateBucket.ts"
import { Lab, type LabOptions, plainRunner } from "./support/Lab.ts"

const seat = "dev-a@mill"
const hooks = "/api/activity/hooks"
const permissions = "/api/activity/permission-requests"

/** One raw exchange: what is written, in pieces with pauses, and everything that comes back. */
const raw = (port: number, ...pieces: ReadonlyArray<string>): Promise<string> =>
  new Promise((resolve, reject) => {
    let answer = ""
    const socket = net.connect(port, "127.0.0.1", () => {
      for (const piece of pieces) socket.write(piece)
    })
    socket.on("data", (chunk: Buffer) => (answer += chunk.toString("utf8")))
    socket.on("close", () => resolve(answer))
    socket.on("error", (error) => (answer === "" ? reject(error) : resolve(answer)))
  })

const failed = async (options: LabOptions): Promise<string> => {
  const lab = new Lab(options)
  try {
    await lab.start()
    return "started"
  } catch (cause) {
    return String((cause as { readonly reason?: string }).reason)
  } finally {
    await lab.dispose()
  }
}

let lab: Lab
let grant: string
beforeAll(async () => {
  lab = await new Lab({ variables: { OPENRIG_GUEST_ACTIVITY_PORT: "0" } }).start()
  lab.runner("otter", plainRunner())
  await lab.rig({ member: "a" }, { member: "g", guest: true }, { member: "h", guest: true })
  for (const name of [seat, "dev-g@mill", "dev-h@mill"]) assert.strictEqual(await lab.launch(name), "ready")
  grant = lab.tmux("show-environment", "-t", "=dev-g@mill", "OPENRIG_ACTIVITY_HOOK_TOKEN").trim().split("=")[1] ?? ""
})
afterAll(() => lab.dispose())

const port = (): number => Number(new URL(lab.service.url).port)
const guest = (): string => lab.service.guestUrl ?? ""
const post = { hookEvent: "active", subtype: "agent_message" }
const code = (reply: { readonly status: number; readonly body: Readonly<Record<string, unknown>> }) =>
  `${reply.status} ${String(reply.body["code"])}`

describe("the rate of a grant", () => {
  it("is so many at once and so many a second", () => {
    const rate = { perSecond: 50, burst: 200 }
    let bucket: RateBucket.RateBucket | undefined
    const burst = (now: number, count: number): number => {
      let taken = 0
      for (let at = 0; at < count; at++) {
        const next = RateBucket.take(bucket, now, rate)
        ;({ bucket } = next)
        if (next.taken) taken += 1
      }
      return taken
    }
    assert.deepStrictEqual([burst(0, 300), burst(500, 300), burst(400, 10), burst(60_000, 300)], [200, 25, 0, 200])
  })
})

describe("the start", () => {
  it("makes its files private, once, and the endpoint file whole [RIG-001, RIG-004]", async () => {
    const mode = (name: string) => fs.statSync(path.join(lab.home, name)).mode & 0o777
    assert.strictEqual(mode("."), 0o700)
    for (const name of ["community-harnesses", "launch", "transcripts"]) assert.strictEqual(mode(name), 0o700)
    for (const name of ["activity-hook-token", "operator-token", "activity-endpoint.json", "rig.sqlite", "rig.lock"]) {
      assert.strictEqual(mode(name), 0o600, name)
    }
    assert.match(fs.readFileSync(path.join(lab.home, "activity-hook-token"), "utf8"), /^[0-9a-f]{64}$/u)
    assert.match(lab.service.operatorToken, /^tro_[A-Za-z0-9_-]{43}$/u)
    assert.deepStrictEqual(JSON.parse(fs.readFileSync(path.join(lab.home, "activity-endpoint.json"), "utf8")), {
      baseUrl: lab.service.url,
      token: lab.service.hookToken
    })
    // A second service of this home is refused, and the first one goes on.
    assert.strictEqual(await failed({ home: lab.family }), "already_running")
    assert.strictEqual((await lab.api("status")).status, 200)
  })

  it("is refused for a host that others reach, and for a guest listener that cannot be opened [RIG-002, RIG-003]", async () => {
    assert.strictEqual(await failed({ variables: { TACKROOM_RIG_HOST: "0.0.0.0" } }), "host_not_loopback")
    assert.strictEqual(await failed({ variables: { TACKROOM_RIG_HOST: "192.168.1.1" } }), "host_not_loopback")
    const same = { TACKROOM_RIG_PORT: "7999", OPENRIG_GUEST_ACTIVITY_PORT: "7999" }
    assert.strictEqual(await failed({ variables: same }), "guest_port_conflict")
    const taken = { OPENRIG_GUEST_ACTIVITY_PORT: String(port()) }
    assert.strictEqual(await failed({ variables: taken }), "guest_bind_failed")
    assert.strictEqual(await failed({ variables: { TACKROOM_RIG_LAUNCH_WAIT: "4" } }), "bad_setting")
  })

  it("is refused with a token file that others can read or that holds no token [RIG-004]", async () => {
    const other = await new Lab().start()
    const file = path.join(other.home, "operator-token")
    await other.end()
    fs.chmodSync(file, 0o644)
    assert.strictEqual(await failed({ home: other.family }), "unsafe_file")
    fs.chmodSync(file, 0o600)
    fs.writeFileSync(file, "short")
    assert.strictEqual(await failed({ home: other.family }), "unsafe_file")
    fs.rmSync(file)
    fs.symlinkSync(path.join(other.home, "activity-hook-token"), file)
    assert.strictEqual(await failed({ home: other.family }), "unsafe_file")
    await other.dispose()
  })
})

describe("the main listener", () => {
  it("takes the local token on the four routes and the operator's on all others [RIG-002]", async () => {
    const body = { ...post, sessionName: seat }
    assert.strictEqual((await lab.post(body)).status, 200)
    assert.strictEqual(
      (await lab.http("POST", hooks, { headers: { "x-openrig-activity-token": lab.service.hookToken }, body })).status,
      200
    )
    assert.strictEqual(code(await lab.post(body, lab.service.operatorToken)), "401 activity_hook_unauthorized")
    assert.strictEqual(code(await lab.http("POST", hooks, { body })), "401 activity_hook_unauthorized")
    assert.strictEqual(
      code(await lab.api("status", {}, undefined, { token: lab.service.hookToken })),
      "401 operator_unauthorized"
    )
    assert.strictEqual(code(await lab.http("GET", "/api/rig/v1/nothing", {})), "401 operator_unauthorized")
    const { operatorToken: token } = lab.service
    assert.strictEqual(code(await lab.http("GET", "/api/rig/v1/nothing", { token })), "404 not_found")
    assert.strictEqual(code(await lab.http("DELETE", "/api/rig/v1/rigs", { token })), "405 method_not_allowed")
    assert.strictEqual(code(await lab.http("GET", hooks, { token: lab.service.hookToken })), "405 method_not_allowed")
  })

  it("refuses a foreign Host and a foreign Origin [RIG-005]", async () => {
    const ask = (headers: string) =>
      raw(port(), `GET /api/rig/v1/status HTTP/1.1\r\n${headers}Connection: close\r\n\r\n`)
    assert.match(await ask("Host: evil.example\r\n"), /^HTTP\/1\.1 421 .*"code":"bad_host"/su)
    assert.match(await ask(`Host: 127.0.0.1:${port() + 1}\r\n`), /^HTTP\/1\.1 421 /u)
    assert.match(
      await ask(`Host: 127.0.0.1:${port()}\r\nOrigin: http://evil.example\r\n`),
      /^HTTP\/1\.1 403 .*"code":"bad_origin"/su
    )
    assert.match(await ask(`Host: localhost:${port()}\r\nOrigin: http://localhost:${port()}\r\n`), /^HTTP\/1\.1 401 /u)
  })

  it("lives through targets and frames that are none", async () => {
    const lines = ["//", "http://", "/%", "/api/activity/permission-requests/%E0%A4%A", "*"]
    for (const listener of [port(), Number(new URL(guest()).port)]) {
      const head = `Host: 127.0.0.1:${listener}\r\nAuthorization: Bearer ${lab.service.operatorToken}\r\nConnection: close\r\n\r\n`
      for (const target of lines) {
        assert.match(await raw(listener, `GET ${target} HTTP/1.1\r\n${head}`), /^HTTP\/1\.1 4\d\d /u, target)
      }
      assert.match(await raw(listener, "\u0000\u0001 nonsense\r\n\r\n"), /^HTTP\/1\.1 400 /u)
    }
    assert.strictEqual((await lab.api("status")).status, 200)
  })

  it("answers 401 before the body is there, and bounds headers, bodies and their time [RIG-002]", async () => {
    const head = (length: number, token = "nobody") =>
      `POST ${hooks} HTTP/1.1\r\nHost: 127.0.0.1:${port()}\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${length}\r\n`
    assert.match(await raw(port(), `${head(1_000)}\r\n{`), /^HTTP\/1\.1 401 .*activity_hook_unauthorized/su)
    assert.match(await raw(port(), `${head(2)}X-Large: ${"x".repeat(17_000)}\r\n\r\n{}`), /^HTTP\/1\.1 431 /u)
    const { hookToken: token } = lab.service
    const announced = raw(port(), `${head(70_000, token)}\r\n{`)
    assert.match(await announced, /^HTTP\/1\.1 413 .*"code":"body_too_large"/su)
    const chunked = `POST ${hooks} HTTP/1.1\r\nHost: 127.0.0.1:${port()}\r\nAuthorization: Bearer ${token}\r\nTransfer-Encoding: chunked\r\n\r\n`
    const size = 70_000
    assert.match(await raw(port(), `${chunked}${size.toString(16)}\r\n${"x".repeat(size)}\r\n`), /^HTTP\/1\.1 413 /u)
    assert.match(await raw(port(), `${head(100, token)}\r\n{"slow`), /^HTTP\/1\.1 408 .*"code":"body_timeout"/su)
  })

  it("names what is wrong with a body", async () => {
    const { hookToken: token } = lab.service
    const send = (body: unknown) => lab.http("POST", hooks, { token, body })
    assert.strictEqual(code(await send("[1]")), "400 invalid_json")
    assert.strictEqual(code(await send("{")), "400 invalid_json")
    const bad = await send({ ...post, sessionName: seat, sequence: -1 })
    assert.deepStrictEqual([bad.status, bad.body["code"], bad.body["path"]], [400, "invalid_field", "sequence"])
    assert.strictEqual(code(await send({ ...post, sessionName: "x".repeat(257) })), "400 invalid_field")
    assert.strictEqual(code(await send(post)), "400 missing_session_identity")
    assert.strictEqual(code(await send({ ...post, sessionName: "dev-z@mill" })), "404 session_not_found")
  })
})

describe("grants and the guest listener", () => {
  it("the guest listener knows the four routes and grants, and nothing else [RIG-090]", async () => {
    const base = guest()
    assert.match(grant, /^trg_[A-Za-z0-9_-]{43}$/u)
    const { store } = lab.service
    const node = (await lab.seat("dev-g@mill")).nodeId
    assert.strictEqual(store.seats.grant(hashOf(grant))?.nodeId, node)
    assert.isFalse(fs.readFileSync(path.join(lab.home, "rig.sqlite")).includes(grant))
    assert.strictEqual((await lab.http("POST", hooks, { base, token: grant, body: post })).status, 200)
    const local = await lab.http("POST", hooks, { base, token: lab.service.hookToken, body: post })
    assert.strictEqual(code(local), "401 activity_hook_unauthorized")
    for (const [method, target] of [
      ["GET", "/api/rig/v1/status"],
      ["GET", hooks],
      ["DELETE", permissions],
      ["GET", "/"]
    ] as const) {
      const reply = await lab.http(method, target, { base, token: lab.service.operatorToken })
      assert.deepStrictEqual([reply.status, reply.body], [404, { ok: false, code: "not_found" }])
    }
    const environment = lab.tmux("show-environment", "-t", "=dev-g@mill")
    assert.include(environment, `OPENRIG_URL=${base}`)
    for (const name of ["OPENRIG_HOST", "OPENRIG_PORT", "OPENRIG_HOME"]) assert.notInclude(environment, `${name}=`)
    assert.notInclude(environment, lab.service.hookToken)
  })

  it("a grant speaks for its own seat and generation, also at the main port [RIG-090, RIG-092]", async () => {
    const send = (body: Readonly<Record<string, unknown>>, token = grant) => lab.post({ ...post, ...body }, token)
    assert.strictEqual((await send({})).status, 200)
    assert.strictEqual(code(await send({ sessionName: seat })), "403 activity_grant_wrong_seat")
    assert.strictEqual(code(await send({ nodeId: (await lab.seat(seat)).nodeId })), "403 activity_grant_wrong_seat")
    assert.strictEqual(code(await send({ generation: "other" })), "409 activity_grant_stale")
    assert.strictEqual(code(await send({}, `trg_${"x".repeat(43)}`)), "401 activity_hook_unauthorized")
  })

  it("posts of a grant have a rate, permission requests have none", async () => {
    const other =
      lab.tmux("show-environment", "-t", "=dev-h@mill", "OPENRIG_ACTIVITY_HOOK_TOKEN").trim().split("=")[1] ?? ""
    const base = guest()
    const bare = `POST ${hooks} HTTP/1.1\r\nHost: guest\r\nAuthorization: Bearer ${other}\r\nContent-Length: `
    const body = JSON.stringify(post)
    // Over one connection, as fast as it goes: the burst is let in and something behind it is not.
    const many = `${bare}${body.length}\r\n\r\n${body}`.repeat(400)
    const answers = await raw(
      Number(new URL(base).port),
      many,
      `${bare}${body.length}\r\nConnection: close\r\n\r\n${body}`
    )
    assert.isAtLeast(answers.split("HTTP/1.1 200 ").length - 1, 200)
    assert.include(answers, '"code":"rate_limited"')
    const read = await lab.http("GET", `${permissions}/ask_none`, { base, token: other })
    assert.strictEqual(code(read), "404 ask_not_found")
  })

  it("the guest listener holds 64 connections: one that says nothing makes room, and grants at work do not", async () => {
    const base = guest()
    const at = Number(new URL(base).port)
    /** Connections, and with a text once the service has answered to its head. */
    const connected = (text?: string) =>
      Promise.all(
        Array.from(
          { length: 64 },
          () =>
            new Promise<net.Socket>((resolve, reject) => {
              const socket = net.connect(at, "127.0.0.1", () =>
                text === undefined ? resolve(socket) : socket.write(text)
              )
              socket.once("data", () => resolve(socket))
              socket.once("error", reject)
            })
        )
      )
    const idle = await connected()
    const head = `POST ${hooks} HTTP/1.1\r\nHost: guest\r\nAuthorization: Bearer ${grant}\r\nContent-Length: `
    const body = JSON.stringify(post)
    const request = `${head}${body.length}\r\nConnection: close\r\n\r\n${body}`
    assert.match(await raw(at, request), /^HTTP\/1\.1 200 /u)
    for (const socket of idle) socket.destroy()
    // Bodies that are still to come.
    const working = await connected(`${head}100\r\nExpect: 100-continue\r\n\r\n`)
    assert.match(await raw(at, request), /^HTTP\/1\.1 503 .*"code":"activity_hook_unconfigured"/su)
    for (const socket of working) socket.destroy()
  })

  it("a grant that is revoked while a body arrives records nothing, and a waiting read ends with its code [RIG-091, RIG-092, RIG-093]", async () => {
    await lab.api("addPerson", {}, { id: "op1", name: "Ann" })
    const submitted = await lab.http("POST", permissions, {
      token: grant,
      body: {
        turnId: 1,
        requestId: "r1",
        toolCall: { title: "x" },
        options: [
          { optionId: "a", name: "A", kind: "allow_once" },
          { optionId: "b", name: "B", kind: "reject_once" }
        ]
      }
    })
    const askId = String(submitted.body["askId"])
    const waiting = lab.http("GET", `${permissions}/${askId}?waitSeconds=25`, { base: guest(), token: grant })
    const { store } = lab.service
    const { nodeId } = await lab.seat("dev-g@mill")
    const count = store.logs.countPosts(nodeId)
    const body = JSON.stringify(post)
    const answered = new Promise<string>((resolve) => {
      let answer = ""
      const socket = net.connect(port(), "127.0.0.1", async () => {
        socket.write(
          `POST ${hooks} HTTP/1.1\r\nHost: 127.0.0.1:${port()}\r\nAuthorization: Bearer ${grant}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body.slice(0, 5)}`
        )
        await lab.api("revokeGrant", { seat: "dev-g@mill" })
        socket.write(body.slice(5))
      })
      socket.on("data", (chunk: Buffer) => (answer += chunk.toString("utf8")))
      socket.on("close", () => resolve(answer))
    })
    assert.match(await answered, /^HTTP\/1\.1 401 .*"code":"activity_grant_revoked"/su)
    assert.strictEqual(store.logs.countPosts(nodeId), count)
    assert.strictEqual(code(await waiting), "401 activity_grant_revoked")
    // No answer could reach the guest any more, so nobody is asked for one.
    const { ask } = (await lab.api("getAsk", { ask: askId })).body as { readonly ask: AskView }
    assert.deepStrictEqual([ask.state, ask.result?.reason, ask.result?.by], ["withdrawn", "grant_revoked", "operator"])
    assert.deepStrictEqual((await lab.seat("dev-g@mill")).attention, [])
    // A later occupant makes it stale, revoked or not.
    await lab.api("stopSeat", { seat: "dev-g@mill" })
    assert.strictEqual(code(await lab.post(post, grant)), "401 activity_grant_revoked")
    assert.strictEqual(await lab.launch("dev-g@mill"), "resumed")
    assert.strictEqual(code(await lab.post(post, grant)), "409 activity_grant_stale")
    assert.strictEqual(
      code(await lab.http("GET", `${permissions}/${askId}`, { token: grant })),
      "409 activity_grant_stale"
    )
  })

  it("a launch that has not registered answers a grant pending, and a local post waits for it [RIG-054, RIG-S1]", async () => {
    const wrapper = fs.mkdtempSync(path.join(lab.family, "bin-"))
    const hold = path.join(wrapper, "hold")
    const real =
      (process.env["PATH"] ?? "")
        .split(":")
        .map((folder) => path.join(folder, "tmux"))
        .find(fs.existsSync) ?? ""
    // Holds the launch between its reservation and its session.
    fs.writeFileSync(
      path.join(wrapper, "tmux"),
      `#!/bin/sh\ncase "$*" in *start-server*) while [ -e '${hold}' ]; do sleep 0.02; done;; esac\nexec '${real}' "$@"\n`,
      { mode: 0o755 }
    )
    const other = await new Lab({ variables: { PATH: `${wrapper}:${process.env["PATH"] ?? ""}` } }).start()
    other.runner("otter", plainRunner())
    await other.rig({ member: "a" })
    fs.writeFileSync(hold, "")
    const launching = other.launch(seat)
    const view = await other.until("the reservation", async () => {
      const now = await other.seat(seat)
      return now.launch.state === "starting" ? now : undefined
    })
    const { generation, attempt } = view.launch
    const early = `trg_${"e".repeat(43)}`
    await Effect.runPromise(
      other.service.store.write((tx) =>
        tx.seats.addGrant({
          hash: hashOf(early),
          nodeId: view.nodeId,
          generation: generation ?? "",
          attempt: attempt ?? "",
          at: tx.wall
        })
      )
    )
    assert.strictEqual(code(await other.post(post, early)), "409 activity_grant_pending")
    assert.strictEqual((await other.seat(seat)).activity.value, "unknown")
    const why = (reply: { readonly body: Readonly<Record<string, unknown>> }) =>
      (reply.body["tackroom"] as { why: string }).why
    // A post of nobody's generation does not wait.
    assert.strictEqual(why(await other.post({ ...post, sessionName: seat, generation: "other" })), "no_occupant")
    assert.strictEqual(why(await other.post({ ...post, sessionName: seat, generation })), "generation_pending")
    const waited = other.post({ ...post, sessionName: seat, generation })
    fs.rmSync(hold)
    assert.strictEqual(why(await waited), "counted")
    assert.strictEqual(await launching, "ready")
    assert.strictEqual((await other.post(post, early)).status, 200)
    await other.dispose()
  })
})
