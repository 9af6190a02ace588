/** Bytes that no client should send, to the real host: each is answered as the protocol says, and the host goes on. */
import { assert, describe, it } from "@effect/vitest"
import { makeLab, residentMiB, type Lab } from "./support/Lab.ts"
import { random, seedOf } from "./support/Random.ts"
import type { Answer, Loose, RawHost } from "./support/RawHost.ts"

const frameBytes = 1_048_576
const newline = "\n"

const makeEchoLab = (): Lab =>
  makeLab({ scenarios: { echo: { default: [], exhausted: "echo" } }, agents: [{ id: "echo", planning: true }] })

const openSession = async (host: RawHost, lab: Lab): Promise<string> =>
  (await host.call("agent/session", { agent: "echo", workspace: lab.workspace, creation_id: "c-1" })).session.session_id

/** It still does its work: a whole run, on a session of its own. */
const proveAlive = async (host: RawHost, lab: Lab): Promise<void> => {
  const id = await openSession(host, lab)
  const submission = `alive-${host.answers.length}`
  await host.call("run/start", { session_id: id, submission_id: submission, text: "still there?" })
  let end = await host.call("run/wait", { session_id: id, submission_id: submission, wait_ms: 5_000 })
  while (end.status === "running") {
    end = await host.call("run/wait", { session_id: id, submission_id: submission, wait_ms: 5_000 })
  }
  assert.deepStrictEqual([end.status, end.final_output], ["completed", "still there?"])
}

/** The answers to what is written, up to a marker behind it. */
const answersTo = async (host: RawHost, bytes: string | Uint8Array): Promise<ReadonlyArray<Answer>> => {
  const before = host.answers.length
  host.write(bytes)
  const marker = host.send("host/info", {}, `marker-${before}`)
  await host.answered(marker)
  return host.answers.slice(before, -1)
}

const codes = (answers: ReadonlyArray<Answer>): ReadonlyArray<ReadonlyArray<unknown>> =>
  answers.map((answer) => [answer.id, answer.error?.code])

/** A request of exactly this many bytes, without its newline. */
const sized = (bytes: number, id: string): string => {
  const shell = JSON.stringify({ jsonrpc: "2.0", id, method: "host/info", params: { filler: "" } })
  return shell.replace('"filler":""', `"filler":"${"a".repeat(bytes - shell.length)}"`)
}

describe("a host under hostile input", () => {
  it("tells bad frames apart and goes on [RUN-005, RUN-006, RUN-007, RUN-008, RUN-011, RUN-012]", async () => {
    const lab = makeEchoLab()
    const host = await lab.open()
    const cases: ReadonlyArray<readonly [string, ReadonlyArray<readonly [unknown, number | undefined]>]> = [
      ["hello?", [[null, -32700]]],
      ['{"jsonrpc":"2.0","id":1,"method":"host/info"', [[null, -32700]]],
      ["", []],
      ["   \t  ", []],
      ["\r", []],
      ["null", [[null, -32600]]],
      ["42", [[null, -32600]]],
      ['"text"', [[null, -32600]]],
      ["[]", [[null, -32600]]],
      [
        '[{"jsonrpc":"2.0","id":1,"method":"host/info"},{"jsonrpc":"2.0","id":2,"method":"host/info"}]',
        [[null, -32600]]
      ],
      ['{"id":3,"method":"host/info"}', [[3, -32600]]],
      ['{"jsonrpc":"1.0","id":4,"method":"host/info"}', [[4, -32600]]],
      ['{"jsonrpc":"2.0","id":5,"method":""}', [[5, -32600]]],
      ['{"jsonrpc":"2.0","id":6,"method":7}', [[6, -32600]]],
      [`{"jsonrpc":"2.0","id":7,"method":"${"m".repeat(129)}"}`, [[7, -32600]]],
      ['{"jsonrpc":"2.0","id":8,"method":"host/info","params":[1]}', [[8, -32602]]],
      ['{"jsonrpc":"2.0","id":9,"method":"host/info","params":"x"}', [[9, -32602]]],
      ['{"jsonrpc":"2.0","id":10,"method":"no/such"}', [[10, -32601]]],
      ['{"jsonrpc":"2.0","method":"no/such"}', []],
      ['{"jsonrpc":"2.0","method":"provider/set","params":{"name":"sneaked","api":"responses"}}', []],
      ['{"jsonrpc":"2.0","id":11,"result":{}}', []],
      ['{"jsonrpc":"2.0","id":12,"error":{"code":1,"message":"x"}}', []]
    ]
    for (const [frame, expected] of cases) {
      assert.deepStrictEqual(codes(await answersTo(host, `${frame}${newline}`)), expected, frame.slice(0, 200))
    }
    const { providers } = await host.call("provider/list")
    assert.deepStrictEqual(
      providers.map((provider: Loose) => provider.name),
      ["echo"]
    )
    const { counters } = await host.call("host/info")
    assert.strictEqual(counters.notifications_ignored, 2)
    assert.strictEqual(counters.responses_ignored, 2)
    await proveAlive(host, lab)
  })

  it("echoes ids exactly and refuses what is none [RUN-009, RUN-010, RUN-014]", async () => {
    const lab = makeEchoLab()
    const host = await lab.open()
    const good = ["0", "-1", "1", "9007199254740991", "-9007199254740991", '""', '"é𝄞"', `"${"i".repeat(256)}"`, '"1"']
    for (const id of good) {
      const [answer] = await answersTo(host, `{"jsonrpc":"2.0","id":${id},"method":"host/info"}${newline}`)
      assert.isUndefined(answer?.error)
      assert.strictEqual(JSON.stringify(answer?.id), id)
    }
    const bad = [
      "null",
      "true",
      "[1]",
      '{"a":1}',
      "1.5",
      "9007199254740992",
      "-9007199254740992",
      "1e400",
      `"${"i".repeat(257)}"`,
      '"\\ud800"',
      '"a\\u0000b"'
    ]
    for (const id of bad) {
      const answers = await answersTo(host, `{"jsonrpc":"2.0","id":${id},"method":"host/info"}${newline}`)
      assert.deepStrictEqual(codes(answers), [[null, -32600]], id.slice(0, 40))
    }
    const same = `{"jsonrpc":"2.0","id":"same","method":"host/info"}${newline}`
    assert.deepStrictEqual(
      codes(await answersTo(host, same.repeat(50))),
      Array.from({ length: 50 }, () => ["same", undefined])
    )
    await proveAlive(host, lab)
  })

  it("takes a frame of exactly one MiB and refuses the next byte, whatever else comes along [RUN-003, RUN-004]", async () => {
    const lab = makeEchoLab()
    const host = await lab.open()
    const small = '{"jsonrpc":"2.0","id":"small","method":"host/info"}'
    const many = [
      sized(frameBytes, "fits"),
      small,
      sized(frameBytes + 1, "over"),
      small,
      sized(frameBytes - 1, "under")
    ]
    const answers = await answersTo(host, `${many.join(newline)}${newline}`)
    assert.deepStrictEqual(codes(answers), [
      ["fits", undefined],
      ["small", undefined],
      ["over", -32011],
      ["small", undefined],
      ["under", undefined]
    ])
    assert.deepStrictEqual(answers[2]?.error?.data, {
      kind: "frame_too_large",
      limit_bytes: frameBytes,
      observed_bytes: frameBytes + 1
    })
    await proveAlive(host, lab)
  })

  it("discards 300 MB without a newline in little memory and time [RUN-004]", async () => {
    const lab = makeEchoLab()
    const host = await lab.open()
    const before = residentMiB(host.pid)
    const chunk = Buffer.alloc(1 << 20, "x")
    const began = performance.now()
    for (let sent = 0; sent < 300; sent += 1) {
      if (host.child.stdin?.write(chunk) === false) {
        await new Promise((resolve) => host.child.stdin?.once("drain", resolve))
      }
    }
    const during = residentMiB(host.pid)
    const answers = await answersTo(host, newline)
    assert.deepStrictEqual(codes(answers), [[null, -32011]])
    assert.strictEqual(answers[0]?.error?.data.observed_bytes, 300 << 20)
    assert.isBelow(performance.now() - began, 20_000)
    // What the pipe hands over and the collector has not taken yet; kept bytes would be 300.
    assert.isBelow(during - before, 128)
    await proveAlive(host, lab)
  })

  it("bounds nesting and treats odd keys as data [RUN-013]", async () => {
    const lab = makeEchoLab()
    const host = await lab.open()
    const nested = (depth: number) =>
      `{"jsonrpc":"2.0","id":1,"method":"host/info","params":{"a":${"[".repeat(depth)}${"]".repeat(depth)}}}`
    assert.deepStrictEqual(codes(await answersTo(host, `${nested(126)}${newline}`)), [[1, undefined]])
    const tooDeep = await answersTo(host, `${nested(127)}${newline}`)
    assert.deepStrictEqual(codes(tooDeep), [[1, -32600]])
    assert.strictEqual(tooDeep[0]?.error?.data.reason, "too_deep")
    const depth = 100_000
    const open = `${"[".repeat(depth)}${newline}{"a":${'{"a":'.repeat(depth)}${newline}`
    assert.deepStrictEqual(codes(await answersTo(host, open)), [
      [null, -32700],
      [null, -32700]
    ])
    const closed = `${"[".repeat(depth)}${"]".repeat(depth)}${newline}${'{"a":'.repeat(depth)}1${"}".repeat(depth)}${newline}`
    assert.deepStrictEqual(codes(await answersTo(host, closed)), [
      [null, -32600],
      [null, -32600]
    ])
    const keys = '"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"toString":1'
    const odd = `{"jsonrpc":"2.0","id":2,"method":"host/info","params":{${keys}},"__proto__":{"method":"x"}}`
    const twice = '{"jsonrpc":"2.0","id":3,"id":4,"method":"x","method":"host/info"}'
    assert.deepStrictEqual(codes(await answersTo(host, `${odd}${newline}${twice}${newline}`)), [
      [2, undefined],
      [4, undefined]
    ])
    const id = await openSession(host, lab)
    const cursors = await host.ask("run/wait", { session_id: id, cursors: JSON.parse('{"__proto__":1}') })
    assert.isDefined(cursors.error)
    await proveAlive(host, lab)
  })

  it("refuses bytes that are no UTF-8, also where they cut a character [RUN-005, RUN-001]", async () => {
    const lab = makeEchoLab()
    const host = await lab.open()
    const frame = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"host/info","params":{"a":"é"}}\n')
    const cut = Buffer.concat([frame.subarray(0, frame.indexOf(0xa9)), frame.subarray(frame.indexOf(0xa9) + 1)])
    for (const bytes of [
      cut,
      Buffer.from([0xff, 0xfe, 0x0a]),
      Buffer.from([0xc0, 0x80, 0x0a]),
      Buffer.from([0xed, 0xa0, 0x80, 0x0a])
    ]) {
      assert.deepStrictEqual(codes(await answersTo(host, bytes)), [[null, -32700]], bytes.toString("hex"))
    }
    // One byte at a time is no difference.
    const before = host.answers.length
    for (const byte of frame) host.write(Uint8Array.of(byte))
    await host.first(before + 1)
    assert.deepStrictEqual(codes(host.answers.slice(before)), [[1, undefined]])
    await proveAlive(host, lab)
  })

  const seed = seedOf("hostile bytes")
  it(`survives two thousand lines of random bytes and mangled requests, seed ${seed} [RUN-005, RUN-060]`, async () => {
    const lab = makeEchoLab()
    const host = await lab.open()
    const id = await openSession(host, lab)
    const next = random(seed)
    const below = (limit: number) => Math.floor(next() * limit)
    const templates = [
      { method: "run/wait", params: { session_id: id, wait_ms: 0, cursors: { [id]: 1 } } },
      { method: "event/read", params: { session_id: id, after: 0, max_events: 2 } },
      { method: "session/state", params: { session_id: id } },
      { method: "agent/register", params: { agent: { id: "a", instructions: "", tools: ["files.read"] } } },
      { method: "run/respond", params: { session_id: id, interaction_id: "int_x", decision: "once" } }
    ]
    const odd = [
      null,
      true,
      -1,
      1.5,
      1e308,
      "",
      "\u0000",
      "\ud800",
      "x".repeat(300),
      [],
      {},
      [[]],
      { a: null },
      "__proto__"
    ]
    const mangle = (value: Loose): Loose => {
      if (next() < 0.2) return odd[below(odd.length)]
      if (typeof value !== "object" || value === null) return value
      const entries = Object.entries(value).filter(() => next() > 0.1)
      const kept = entries.map(([key, one]) => [next() < 0.05 ? String(odd[below(odd.length)]) : key, mangle(one)])
      return Array.isArray(value) ? kept.map(([, one]) => one) : Object.fromEntries(kept)
    }
    const line = (number: number): Uint8Array => {
      const kind = below(3)
      if (kind === 0) return Uint8Array.from({ length: below(200) }, () => below(256))
      const template = templates[below(templates.length)]
      const request = { jsonrpc: "2.0", id: number, ...template, params: mangle(template?.params) }
      const bytes = Buffer.from(JSON.stringify(kind === 1 ? request : mangle(request)))
      for (let flips = kind === 1 ? 0 : below(4); flips > 0; flips -= 1) bytes[below(bytes.length)] = below(256)
      return bytes
    }
    for (let batch = 0; batch < 20; batch += 1) {
      const lines = Array.from({ length: 100 }, (_, index) => line(batch * 100 + index))
      const answers = await answersTo(host, Buffer.concat(lines.flatMap((bytes) => [bytes, Buffer.from(newline)])))
      for (const answer of answers) {
        if (answer.error === undefined) continue
        assert.notStrictEqual(answer.error.code, -32603, JSON.stringify(answer))
        assert.isString(answer.error.data.kind)
        assert.notInclude(JSON.stringify(answer.error), "    at ", "no stack trace")
      }
    }
    await proveAlive(host, lab)
  })
})

describe("a host before initialize", () => {
  it("executes nothing, whatever is asked, and is initialized once [RUN-121, RUN-122, RUN-063, RUN-120]", async () => {
    const lab = makeEchoLab()
    const host = lab.start()
    const early = ["host/info", "provider/list", "agent/list", "run/wait", "no/such"].map((method) =>
      host.send(method, {})
    )
    early.push(host.send("provider/set", { name: "early", api: "responses" }))
    const versions = await host.call("initialize", { protocol_version: 999 })
    assert.strictEqual(versions.protocol_version, 1)
    for (const id of early) assert.strictEqual((await host.answered(id)).error?.data.kind, "not_initialized")
    assert.strictEqual((await host.ask("initialize", {})).error?.data.kind, "already_initialized")
    assert.strictEqual((await host.ask("no/such", {})).error?.code, -32601)
    const { providers } = await host.call("provider/list")
    assert.lengthOf(providers, 1)
    await proveAlive(host, lab)
  })
})

describe("a host under load", () => {
  it("answers a thousand pipelined requests in order, executed or busy [RUN-030, RUN-038]", async () => {
    const lab = makeEchoLab()
    const host = await lab.open()
    const id = await openSession(host, lab)
    const before = host.answers.length
    const ids: Array<string> = []
    let frames = ""
    for (let number = 0; number < 1_000; number += 1) {
      const [method, params] =
        number % 3 === 0 ? ["session/state", { session_id: id }] : ["event/read", { session_id: id, after: 0 }]
      frames += `${JSON.stringify({ jsonrpc: "2.0", id: `p${number}`, method, params })}${newline}`
      ids.push(`p${number}`)
    }
    host.write(frames)
    await host.first(before + 1_000)
    const answers = host.answers.slice(before)
    assert.deepStrictEqual(
      answers.map((answer) => answer.id),
      ids
    )
    for (const { error } of answers) {
      if (error === undefined) continue
      assert.strictEqual(error.data.kind, "busy")
      assert.isAbove(error.data.retry_after_ms, 0)
    }
    const { counters } = await host.call("host/info")
    assert.strictEqual(counters.busy_answers, answers.filter((answer) => answer.error !== undefined).length)
    await proveAlive(host, lab)
  })

  it("keeps its memory for a client that never reads, and drops nothing [RUN-018]", async () => {
    const lab = makeEchoLab()
    const host = await lab.open({ env: { TACKROOM_LOG_LEVEL: "debug" } })
    const id = await openSession(host, lab)
    await host.call("run/start", { session_id: id, submission_id: "big", text: "y".repeat(60_000) })
    let end = await host.call("run/wait", { session_id: id, wait_ms: 5_000 })
    while (end.status === "running") end = await host.call("run/wait", { session_id: id, wait_ms: 5_000 })
    const page = JSON.stringify(await host.call("event/read", { session_id: id })).length
    const before = residentMiB(host.pid)
    const count = host.answers.length
    host.child.stdout?.pause()
    const total = Math.ceil((100 << 20) / page)
    for (let number = 0; number < total; number += 1) host.send("event/read", { session_id: id }, `n${number}`)
    // Refusals are small; what is read is not: the host stops by itself, and starts no other request (RUN-018).
    const late = host.send("provider/set", { name: "late", api: "responses" })
    await host.until("a pause", () => (host.stderr().includes("reading paused") ? true : undefined))
    assert.isBelow(residentMiB(host.pid) - before, 128)
    host.child.stdout?.resume()
    await host.answered(late)
    assert.deepStrictEqual(
      host.answers.slice(count).map((answer) => answer.id),
      [...Array.from({ length: total }, (_, number) => `n${number}`), late]
    )
    for (const answer of host.answers.slice(count)) {
      if (answer.error !== undefined) assert.strictEqual(answer.error.data.kind, "busy")
    }
    await proveAlive(host, lab)
  })
})
