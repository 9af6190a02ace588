/** What goes wrong between a host and its providers, on every wire, and what a run makes of it. */
import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { engage, folder, follow, only, startRecordedHost, temporary } from "./Hosts.ts"
import {
  type Answer,
  type Api,
  apis,
  calls,
  fails,
  inputs,
  keyOf,
  say,
  startVendor,
  told,
  type Vendor
} from "./Vendors.ts"

const firstKey = (api: Api): string => `canary-one-${api}-51c0ffee0b5e55ed`
const secondKey = (api: Api): string => `canary-two-${api}-0ddba11f005ba11`
const spareKey = (api: Api): string => `canary-spare-${api}-5ca1ab1e0ff1ce`
const keys = apis.flatMap((api) => [firstKey(api), secondKey(api), spareKey(api)])

const tooLong = (api: Api): Answer =>
  api === "anthropic"
    ? fails(400, "prompt is too long: 210000 tokens > 200000 maximum", { type: "invalid_request_error" })
    : fails(400, "This is too much.", { type: "invalid_request_error", code: "context_length_exceeded" })

const readNote = (api: Api) => [
  { id: `call_note_${api.slice(0, 4)}`, name: "files__read", arguments: { path: "note.txt" } }
]

/** Prints a file of keys at once, and again in two pieces that are far enough apart to be two events. */
const reveal = (file: string): string => `cat ${file}; head -c 20 ${file}; sleep 0.5; tail -c +21 ${file}`

describe("a provider in trouble", () => {
  const directory = temporary("faults")
  let vendor: Vendor
  let started: Awaited<ReturnType<typeof startRecordedHost>>
  let workspace: string
  const shown: Array<string> = []

  beforeAll(async () => {
    workspace = folder(directory.path, "work")
    writeFileSync(join(workspace, "note.txt"), "remember the milk\n")
    for (const api of apis) {
      const own = [firstKey(api), secondKey(api), spareKey(api)]
      writeFileSync(join(workspace, `.env.${api}`), own.map((key, index) => `KEY_${index}=${key}\n`).join(""))
    }
    vendor = await startVendor()
    started = await startRecordedHost(directory.path)
    for (const api of apis) {
      await started.host.provider({ name: `${api}-spare`, api, baseUrl: vendor.url, key: () => spareKey(api) })
      await engage(started.host, vendor, {
        name: api,
        api,
        key: firstKey(api),
        agent: { provider: `${api}-spare`, fallbackModel: `spare-model-of-${api}` }
      })
      // A provider of its own, whose key changes while others run.
      await engage(started.host, vendor, { name: `${api}-rotating`, api, key: firstKey(api) })
    }
  })

  afterAll(async () => {
    await started.host.close()
    await vendor.close()
    directory.remove()
  })

  const play = async (api: Api, what: string, agent: string = api) => {
    const session = await started.host.session({ agent, workspace })
    const run = session.run(`${what} ${api}`, { onApproval: () => "once" })
    const followed = await follow(run)
    shown.push(JSON.stringify(followed.items), JSON.stringify(followed.result), JSON.stringify(await session.state()))
    return { ...followed, session, requests: vendor.requests(`${what} ${api}`) }
  }

  describe.concurrent.each(apis)("%s", (api) => {
    it(`too many requests, then what was asked for after the wait that was asked for [AGT-006]`, async () => {
      vendor.plays(`limited ${api}`, [[fails(429, "slow down", { type: "rate_limit_error" }, 2), say("Here it is.")]])
      const begun = performance.now()
      const followed = await play(api, "limited")
      assert.strictEqual(followed.result.status, "completed")
      assert.strictEqual(followed.result.finalOutput, "Here it is.")
      assert.isAtLeast(performance.now() - begun, 1_990)
      assert.deepInclude(only(followed, "session-retry")[0], { attempt: 1, delayMs: 2_000 })
      assert.strictEqual(followed.requests.length, 2)
    })

    it(`a stream that breaks off is taken back and asked for again [AGT-006] [AGT-002]`, async () => {
      const text = "A long answer that is said once and to its end. ".repeat(4).trim()
      vendor.plays(`broken ${api}`, [
        calls(readNote(api)),
        [
          { reply: { content: text }, options: { chunkSize: 8, truncateAfterChunks: 12, latency: 40 } },
          { reply: { content: text }, options: { chunkSize: 8 } }
        ]
      ])
      const followed = await play(api, "broken")
      assert.strictEqual(followed.result.status, "completed")
      assert.strictEqual(followed.result.finalOutput, text)
      const [retracted] = only(followed, "response-retracted")
      const lost = followed.events.filter(
        ({ payload }) => payload.type === "text-delta" && payload.partId.startsWith(`${retracted?.responseIds[0]}.`)
      )
      assert.isAbove(lost.length, 0)
      assert.strictEqual(only(followed, "session-retry").length, 1)
      const [, second, third] = followed.requests
      assert.deepStrictEqual(second?.body, third?.body)
      assert.include(told(third ?? followed.requests[0]!)[0]?.text ?? "", "remember the milk")
    })

    it(`an answer that is no JSON is asked for again [AGT-006]`, async () => {
      vendor.plays(`garbled ${api}`, [[{ reply: { content: "never" }, trouble: "garbled" }, say("In order.")]])
      const followed = await play(api, "garbled")
      assert.strictEqual(followed.result.finalOutput, "In order.")
      assert.strictEqual(only(followed, "response-retracted").length, 1)
    })

    it(`failures of the server, then an answer [AGT-006] [AGT-011]`, async () => {
      const failed = fails(500, "oh no", { type: "server_error" })
      vendor.plays(`failing ${api}`, [[failed, failed, say("At last.")]])
      const followed = await play(api, "failing")
      assert.strictEqual(followed.result.finalOutput, "At last.")
      assert.deepStrictEqual(
        only(followed, "session-retry").map(({ attempt }) => attempt),
        [1, 2]
      )
      assert.strictEqual(only(followed, "usage").length, 1)
      assert.strictEqual(followed.result.usage?.rounds, 1)
    })

    it(`a context that is too long ends the run as truncated, at once [AGT-193]`, async () => {
      vendor.plays(`endless ${api}`, [calls(readNote(api)), tooLong(api)])
      const followed = await play(api, "endless")
      assert.deepInclude(followed.result, { status: "failed", failure: "truncated" })
      assert.strictEqual(followed.requests.length, 2)
    })

    it(`an answer that is cut by the model's limit ends the run as truncated, with its text [AGT-009]`, async () => {
      const cut = say("As far as I", { finishReason: "length" })
      vendor.plays(`cut ${api}`, [calls(readNote(api)), api === "responses" ? { ...cut, trouble: "cut" } : cut])
      const followed = await play(api, "cut")
      assert.deepInclude(followed.result, { status: "failed", failure: "truncated", finalOutput: "As far as I" })
      assert.strictEqual(followed.requests.length, 2)
    })

    it(`calls that cannot be read or are nobody's are told to the model, in a request that its wire accepts [AGT-005]`, async () => {
      const id = (name: string): string => `call_${name}_${api.slice(0, 4)}`
      vendor.plays(`nonsense ${api}`, [
        {
          reply: {
            toolCalls: [
              { id: id("cut"), name: "files__read", arguments: '{"path": "note' },
              { id: id("list"), name: "files__read", arguments: '["note.txt"]' },
              { id: id("nobody"), name: "files__shred", arguments: '{"path":"note.txt"}' },
              { id: id("closed"), name: "files__write", arguments: '{"path":"note.txt","content":""}' },
              { id: id("good"), name: "files__read", arguments: '{"path":"note.txt"}' }
            ]
          }
        },
        say("I see.")
      ])
      const followed = await play(api, "nonsense")
      assert.strictEqual(followed.result.finalOutput, "I see.")
      const [, second] = followed.requests
      const texts = second === undefined ? [] : told(second).map(({ text }) => text)
      // The fake sends no broken JSON on the wire of anthropic: it makes `{}` of it, which the tool's schema refuses.
      const broken = [api === "anthropic" ? "do not fit" : "not valid JSON", "not a JSON object"]
      assert.include(texts[0] ?? "", broken[0] ?? "")
      assert.include(texts[1] ?? "", broken[1] ?? "")
      assert.match(texts[2] ?? "", /^Not run: no tool of this name/)
      assert.match(texts[3] ?? "", /^Not run: no tool of this name/)
      assert.include(texts[4] ?? "", "remember the milk")
      assert.strictEqual(only(followed, "permission-request").length, 0)
      const asked = second === undefined ? [] : inputs(second)
      assert.isTrue(asked.every((input) => typeof input === "object" && input !== null && !Array.isArray(input)))
      assert.strictEqual(asked.length, 5)
    })

    it(`a key that is refused ends the run at once, without a retry or the spare model [AGT-008] [RUN-225]`, async () => {
      const words = `Incorrect API key provided: ${firstKey(api).slice(0, 16)}***`
      vendor.plays(`refused ${api}`, [fails(401, words, { type: "authentication_error", code: "invalid_api_key" })])
      const followed = await play(api, "refused")
      assert.deepInclude(followed.result, { status: "failed", failure: "credentials_missing" })
      assert.strictEqual(followed.requests.length, 1)
      assert.notInclude(JSON.stringify(followed.result), "canary")
    })

    it(`the spare model on its own connection does the rest of the turn, and no more [AGT-007]`, async () => {
      const down = fails(503, "down for good", { type: "server_error" })
      vendor.plays(`down ${api}`, [[down, down, down, down, down, calls(readNote(api))], say("The spare one did it.")])
      const followed = await play(api, "down")
      assert.strictEqual(followed.result.status, "completed", JSON.stringify(followed.result.error))
      assert.strictEqual(followed.result.finalOutput, "The spare one did it.")
      assert.deepStrictEqual(
        followed.requests.map((request) => [request.body["model"], keyOf(request)]),
        [
          ...Array.from({ length: 5 }, () => [`model-of-${api}`, firstKey(api)]),
          [`spare-model-of-${api}`, spareKey(api)],
          [`spare-model-of-${api}`, spareKey(api)]
        ]
      )
      assert.deepStrictEqual(
        only(followed, "harness-notice").map(({ code }) => code),
        ["model_fallback"]
      )
      const responses = only(followed, "response-start").map(({ responseId }) => responseId)
      assert.strictEqual(new Set(responses).size, responses.length, "a response has an id of its own")
      vendor.plays(`afterwards ${api}`, [say("The first one again.")])
      const next = await follow(followed.session.run(`afterwards ${api}`))
      assert.strictEqual(next.result.finalOutput, "The first one again.")
      assert.strictEqual(keyOf(vendor.requests(`afterwards ${api}`).at(-1)!), firstKey(api))
    })

    it(`a key that is replaced while a person thinks is used by the next request [RUN-224]`, async () => {
      vendor.plays(`rotated ${api}`, [
        calls([
          { id: `call_sh_${api.slice(0, 4)}`, name: "shell__run", arguments: { command: reveal(`.env.${api}`) } }
        ]),
        say("Seen.")
      ])
      const session = await started.host.session({ agent: `${api}-rotating`, workspace })
      const run = session.run(`rotated ${api}`, {
        onApproval: async () => {
          const name = `${api}-rotating`
          await started.host.provider({ name, api, baseUrl: vendor.url, key: () => secondKey(api) })
          return "once" as const
        }
      })
      const followed = await follow(run)
      shown.push(JSON.stringify(followed.items), JSON.stringify(followed.result))
      assert.strictEqual(followed.result.finalOutput, "Seen.")
      assert.deepStrictEqual(vendor.requests(`rotated ${api}`).map(keyOf), [firstKey(api), secondKey(api)])
    })

    for (const more of [false, true]) {
      it(`a provider that stops answering ${more ? "in its second answer" : "at once"} is let go when the run is cancelled [RUN-472]`, async () => {
        const what = more ? "stalled later" : "stalled"
        const silent: Answer = { reply: { content: "I was about to say something long" }, trouble: "silent" }
        vendor.plays(`${what} ${api}`, more ? [calls(readNote(api)), silent] : [silent])
        const session = await started.host.session({ agent: api, workspace })
        const run = session.run(`${what} ${api}`)
        const followed = follow(run)
        await vendor.silence(`${what} ${api}`)
        assert.deepStrictEqual((await run.cancel()).cancelled, [session.id])
        const { result, ...rest } = await followed
        assert.strictEqual(result.status, "cancelled")
        assert.strictEqual(only(rest, "cancelled").length, 1)
        await vendor.requests(`${what} ${api}`).at(-1)?.closed
        // The session goes on, and what was cut off is told to nobody.
        const after = `${more ? "much" : "soon"} after a stall, ${api}`
        vendor.plays(after, [say("Fine.")])
        const next = await follow(session.run(after))
        assert.strictEqual(next.result.finalOutput, "Fine.")
      })
    }
  })

  // The last one: it ends the host, so that everything it wrote is there.
  it("no key appears in the store, the log, an answer, an event or a request's body [RUN-225] [RUN-174] [RUN-019]", async () => {
    await started.host.close()
    const texts = new Map<string, string>([
      ["stderr", started.stderr()],
      ["answers", started.answers()],
      ["events and results", shown.join("\n")],
      ...vendor.all.map((request, index) => [`request ${index}`, request.text] as const)
    ])
    for (const entry of readdirSync(started.stateDir, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      texts.set(entry.name, readFileSync(join(entry.parentPath, entry.name), "latin1"))
    }
    assert.isTrue(texts.has("agent-runtime.db"))
    assert.include(texts.get("agent-runtime.db"), "remember the milk")
    assert.include(texts.get("events and results"), "[redacted:")
    const found = [...texts].flatMap(([where, text]) =>
      keys.flatMap((key) => [key, key.slice(0, 24)].filter((part) => text.includes(part)).map(() => `${where}: ${key}`))
    )
    assert.deepStrictEqual(found, [])
  })
})
