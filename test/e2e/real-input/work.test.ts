/** Whole runs in a folder of a checkout's size, on every wire, approved by the client. */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import type { Approval } from "@tackroom/sdk/client"
import { type Checkout, makeCheckout, needle, needleFile } from "./Checkout.ts"
import { engage, type Followed, folder, follow, only, type StartedHost, startHost, temporary } from "./Hosts.ts"
import { type Api, apis, called, calls, conversation, keyOf, say, startVendor, told, type Vendor } from "./Vendors.ts"

const keyFor = (api: Api): string => `key-of-${api}-7c1d`

/** The usage each wire states for a request, in its own words, and what the run then says about all five. */
const reported = (api: Api, input: number, output: number) => ({
  usage:
    api === "chat-completions"
      ? { prompt_tokens: input, completion_tokens: output }
      : { input_tokens: input, output_tokens: output }
})

/** What each wire says beside 100 tokens in and 20 out, what the journal makes of it, and the input of the turn. */
const counted: {
  readonly [api in Api]: { readonly details: object; readonly tokens: object; readonly input: number }
} = {
  responses: {
    details: { input_tokens_details: { cached_tokens: 60 }, output_tokens_details: { reasoning_tokens: 7 } },
    tokens: { input: 40, output: 20, reasoning: 7, cache: { read: 60, write: null } },
    input: 41
  },
  "chat-completions": {
    details: { prompt_tokens_details: { cached_tokens: 60 }, completion_tokens_details: { reasoning_tokens: 7 } },
    tokens: { input: 40, output: 20, reasoning: 7, cache: { read: 60, write: null } },
    input: 41
  },
  anthropic: {
    details: { cache_read_input_tokens: 60, cache_creation_input_tokens: 5 },
    tokens: { input: 100, output: 20, reasoning: null, cache: { read: 60, write: 5 } },
    input: 101
  }
}

const editedFile = (api: Api): string => `edited by ${api}.ts`
const finalText = "I looked at everything and changed one line. ".repeat(40).trim()

const plan = (vendor: Vendor, api: Api): void => {
  const id = (name: string): string => `call_${name}_${api.slice(0, 4)}`
  vendor.plays(`work on ${api}`, [
    {
      reply: {
        content: "I will look around.",
        toolCalls: [{ id: id("list"), name: "files__list", arguments: '{"depth":8,"limit":5000}' }],
        ...reported(api, 1_000, 10)
      }
    },
    calls(
      [
        { id: id("needle"), name: "files__search", arguments: { pattern: needle } },
        {
          id: id("many"),
          name: "files__search",
          arguments: { pattern: "^export (const|class) [A-Z]\\w+", regex: true, glob: "src/**/*.ts", limit: 1_000 }
        }
      ],
      reported(api, 2_000, 20)
    ),
    calls(
      ["src/Effect.ts", "src/Schema.ts", needleFile, "no/such/file.ts"].map((path, index) => ({
        id: id(`read${index}`),
        name: "files__read",
        arguments: { path, max_lines: 50 }
      })),
      reported(api, 3_000, 30)
    ),
    calls(
      [
        { id: id("before"), name: "files__read", arguments: { path: editedFile(api) } },
        {
          id: id("edit"),
          name: "files__edit",
          arguments: { path: editedFile(api), edits: [{ old: "const answer = 41", new: "const answer = 42" }] }
        },
        {
          id: id("shell"),
          name: "shell__run",
          arguments: { command: `cat '${editedFile(api)}'; echo oops >&2; exit 3` }
        },
        { id: id("after"), name: "files__read", arguments: { path: editedFile(api) } },
        { id: id("broken"), name: "files__read", arguments: { file: 1 } },
        { id: id("denied"), name: "shell__run", arguments: { command: "rm -rf src" } }
      ],
      reported(api, 4_000, 40)
    ),
    { reply: { content: finalText, ...reported(api, 5_000, 50) }, options: { chunkSize: 20 } }
  ])
  vendor.plays(`again on ${api}`, [
    calls([{ id: id("list"), name: "shell__run", arguments: { command: "ls | head -3" } }], reported(api, 100, 1)),
    say("Done again.", reported(api, 200, 2))
  ])
}

describe("work in a folder of more than 2,000 files", () => {
  const directory = temporary("work")
  let vendor: Vendor
  let started: StartedHost
  let checkout: Checkout

  beforeAll(async () => {
    checkout = makeCheckout(folder(directory.path, "checkout"))
    assert.isAbove(checkout.files, 2_000)
    for (const api of apis)
      writeFileSync(join(checkout.path, editedFile(api)), "// before\nconst answer = 41\n// after\n")
    vendor = await startVendor()
    started = await startHost(directory.path)
    for (const api of apis) await engage(started.host, vendor, { name: api, api, key: keyFor(api) })
  })

  afterAll(async () => {
    await started.host.close()
    await vendor.close()
    directory.remove()
  })

  for (const api of apis) {
    it(`${api}: text, calls one by one and together, approvals, results, usage [AGT-001] [AGT-004] [AGT-005] [RUN-572]`, async () => {
      plan(vendor, api)
      const session = await started.host.session({ agent: api, workspace: checkout.path })
      const asked: Array<Approval> = []
      const allAsked = Promise.withResolvers<void>()
      const run = session.run(`please work on ${api}`, {
        onApproval: async (approval) => {
          asked.push(approval)
          if (asked.length === 3) allAsked.resolve()
          // Nobody answers before all three wait: they are raised without an answer to the first.
          await allAsked.promise
          if (JSON.stringify(approval.arguments).includes("rm -rf"))
            return { decision: "deny", reason: "not the sources" }
          return approval.tool === "files__edit" ? "once" : { decision: "once" }
        }
      })
      const followed = await follow(run)
      const { items, result } = followed
      assert.strictEqual(result.status, "completed", JSON.stringify(result.error))
      assert.strictEqual(result.finalOutput, finalText)

      // The journal: no gap, nothing unknown, and the text in pieces that join to what the end says.
      assert.deepStrictEqual(
        items.map((item) => item.cursor),
        items.map((_, index) => (items[0]?.cursor ?? 0) + index)
      )
      assert.isTrue(items.every((item) => item.event !== undefined))
      const ended = only(followed, "text-end").at(-1)
      const deltas = only(followed, "text-delta").filter((delta) => delta.partId === ended?.partId)
      assert.strictEqual(deltas.map((delta) => delta.delta).join(""), finalText)
      assert.strictEqual(only(followed, "response-start").length, 5)
      const stored = await started.host.request("event/read", { sessionId: session.id, maxEvents: 1_000 })
      assert.isFalse(stored.moreEvents)
      assert.deepStrictEqual(
        stored.events.slice(-items.length),
        items.map((item) => item.wire)
      )

      // Three calls needed a person; all were asked before any of that response ran, and told what they are.
      assert.deepStrictEqual(asked.map((one) => [one.tool, one.category]).toSorted(), [
        ["files__edit", "write_local"],
        ["shell__run", "exec"],
        ["shell__run", "exec"]
      ])
      const places = (type: string): ReadonlyArray<number> =>
        items.flatMap((item) => (item.wire.type === type ? [item.cursor] : []))
      const firstAnswer = Math.min(...places("permission-resolved"))
      assert.isTrue(places("permission-request").every((cursor) => cursor < firstAnswer))

      // Every call has one end, in the outcome it had.
      const outcomes = Object.fromEntries(
        items.flatMap(({ wire }) => {
          const metadata = wire["metadata"] as { readonly outcome?: string } | undefined
          const ends = wire.type === "tool-output" || wire.type === "tool-error" || wire["status"] === "uncertain"
          return ends ? [[String(wire["tool_call_id"]).replace(/^call_|_[^_]*$/g, ""), metadata?.outcome]] : []
        })
      )
      assert.deepStrictEqual(outcomes, {
        list: "completed",
        needle: "completed",
        many: "completed",
        read0: "completed",
        read1: "completed",
        read2: "completed",
        read3: "failed",
        before: "completed",
        edit: "completed",
        shell: "completed",
        after: "completed",
        broken: "not_run",
        denied: "not_run"
      })

      // The folder.
      assert.strictEqual(
        readFileSync(join(checkout.path, editedFile(api)), "utf8"),
        "// before\nconst answer = 42\n// after\n"
      )
      assert.include(readFileSync(join(checkout.path, "src/Effect.ts"), "utf8"), "export")
      const diff = only(followed, "file-diff")
      assert.strictEqual(diff.length, 1)

      checkRequests(vendor, api)
      checkUsage(result)
    })

    it(`${api}: a grant for the session is used by the next run without asking [AGT-120] [AGT-111]`, async () => {
      const session = await started.host.session({ agent: api, workspace: checkout.path })
      let asked = 0
      const ask = () => {
        asked += 1
        return "session" as const
      }
      const first = await follow(session.run(`again on ${api}, once`, { onApproval: ask }))
      const second = await follow(session.run(`again on ${api}, twice`, { onApproval: ask }))
      assert.deepStrictEqual([first.result.status, second.result.status], ["completed", "completed"])
      assert.strictEqual(asked, 1)
      assert.strictEqual(only(second, "permission-resolved")[0]?.origin, "grant")
      // An id that the model uses again is made new, and the request repeats it consistently.
      const last = vendor.requests(`again on ${api}, twice`).at(-1)
      assert.isDefined(last)
      if (last === undefined) return
      assert.deepStrictEqual(
        told(last).map(({ id }) => id),
        called(last)
      )
      assert.strictEqual(new Set(called(last)).size, 2)
      const state = await session.state()
      assert.deepStrictEqual(
        state.grants?.map((grant) => grant.qualifiedName),
        ["shell.run"]
      )
      assert.strictEqual(state.usage?.inputTokens, 600)
      assert.strictEqual(state.usage?.outputTokens, 6)
    })

    it(`${api}: what the vendor says of cached and reasoning tokens is kept, and counted per turn and session [AGT-011] [HRN-017]`, async () => {
      const key = (turn: string): string => `count ${turn} on ${api}.`
      const { details, input, tokens } = counted[api]
      for (const turn of ["one", "two"]) {
        const listing = calls([{ id: "call_list", name: "files__list", arguments: {} }], reported(api, 100, 20))
        vendor.plays(key(turn), [{ ...listing, details: { ...details } }, say("Counted.", reported(api, 1, 1))])
      }
      const session = await started.host.session({ agent: api, workspace: checkout.path })
      const totals = { inputTokens: input, outputTokens: 21, cachedInputTokens: 60, rounds: 2 }
      for (const turn of ["one", "two"]) {
        const followed = await follow(session.run(key(turn)))
        assert.deepStrictEqual<unknown>(only(followed, "usage")[0]?.observation?.tokens, tokens)
        assert.deepStrictEqual(followed.result.usage, totals)
      }
      const { usage } = await session.state()
      assert.deepStrictEqual(usage, { inputTokens: 2 * input, outputTokens: 42, cachedInputTokens: 120, rounds: 4 })
    })

    it(`${api}: text is there while the model still speaks, and in its order [RUN-170] [RT-202]`, async () => {
      const words = Array.from({ length: 60 }, (_, index) => `word${index} `).join("")
      const key = `speak slowly on ${api}`
      vendor.plays(key, [{ reply: { content: words }, options: { chunkSize: 14, latency: 25 } }])
      const session = await started.host.session({ agent: api, workspace: checkout.path })
      let over = false
      const watch = async () => {
        await vendor.arrived(key, 1)
        await vendor.requests(key)[0]?.closed
        over = true
      }
      const answered = watch()
      let early = ""
      for await (const { event } of session.run(key)) {
        if (event?.payload.type === "text-delta" && !over) early += event.payload.delta
      }
      await answered
      assert.isAbove(early.length, 0)
      assert.isTrue(words.startsWith(early))
    })

    it(`${api}: a restart of the host changes nothing in what the model is told [AGT-002] [RUN-146]`, async () => {
      const own = temporary("again")
      const first = await startHost(own.path)
      await engage(first.host, vendor, { name: api, api, key: keyFor(api) })
      const workspace = folder(own.path, "work")
      writeFileSync(join(workspace, "large.txt"), "0123456789 and so on\n".repeat(20_000))
      const key = (turn: string): string => `remember ${turn} on ${api}.`
      vendor.plays(key("this"), [
        {
          reply: {
            reasoning: "They want me to read. So I read.",
            content: "Reading.",
            toolCalls: [
              {
                id: `call_l_${api.slice(0, 4)}`,
                name: "files__read",
                arguments: '{"path":"large.txt","max_lines":9000}'
              },
              { id: `call_n_${api.slice(0, 4)}`, name: "files__read", arguments: '{"path":"none.txt"}' },
              { id: `call_s_${api.slice(0, 4)}`, name: "shell__run", arguments: '{"command":"seq 1 30000"}' },
              { id: `call_d_${api.slice(0, 4)}`, name: "shell__run", arguments: '{"command":"exit 1"}' }
            ]
          }
        },
        { reply: { reasoning: "That was it.", content: "I have read it." } }
      ])
      for (const turn of ["before", "after"]) vendor.plays(key(turn), [say(`Yes, ${turn}.`)])
      const session = await first.host.session({ agent: api, workspace })
      const asked: Array<string> = []
      await follow(
        session.run(key("this"), {
          onApproval: ({ id }) => (asked.push(id) === 1 ? "once" : { decision: "deny", reason: "once is enough" })
        })
      )
      assert.strictEqual((await follow(session.run(key("before")))).result.finalOutput, "Yes, before.")
      await first.host.close()

      const second = await startHost(own.path)
      await second.host.provider({ name: api, api, key: () => keyFor(api) })
      const attached = await second.host.attach(session.id)
      assert.strictEqual((await follow(attached.run(key("after")))).result.finalOutput, "Yes, after.")
      await second.host.close()
      own.remove()

      const [asks, ends, before, after] = vendor.requests(key("this")).map(conversation)
      assert.isDefined(after)
      if (asks === undefined || ends === undefined || before === undefined || after === undefined) return
      assert.deepStrictEqual(ends.slice(0, asks.length), asks)
      // On a wire that joins messages of the user, the last one is longer in the next request.
      assert.deepStrictEqual(before.slice(0, ends.length), ends)
      assert.deepStrictEqual(after.slice(0, before.length), before)
      assert.isAbove(after.length, before.length)
    })
  }
})

const checkRequests = (vendor: Vendor, api: Api): void => {
  const requests = vendor.requests(`work on ${api}`)
  assert.strictEqual(requests.length, 5)
  for (const request of requests) {
    assert.strictEqual(request.api, api)
    assert.strictEqual(keyOf(request), keyFor(api))
    assert.strictEqual(request.body["model"], `model-of-${api}`)
    assert.include(request.text, "You work in a folder.")
    // Each call that is repeated has its result, in order.
    assert.deepStrictEqual(
      told(request).map(({ id }) => id),
      called(request)
    )
  }
  const [, second, third, fourth, fifth] = requests.map((request) => told(request))
  const listing = second?.[0]?.text ?? ""
  assert.include(listing, "src/Effect.ts (file, ")
  const [found, many] = third?.slice(1) ?? []
  // Two files of the folder have lines of megabytes, which are searched in part: the answer says so.
  assert.strictEqual(
    found?.text,
    `${needleFile}:2:24: export const needle = "${needle}"\n(incomplete: there may be more matches)`
  )
  assert.isAbove(many?.text.split("\n").length ?? 0, 900)
  assert.isAtMost(many?.text.length ?? 0, 100_000 + 200)
  const reads = fourth?.slice(3) ?? []
  assert.match(
    reads[0]?.text ?? "",
    /^src\/Effect\.ts \(lines 1-50 of \d+, \d+ bytes, sha256 [0-9a-f]{64}, more follows\)\n/
  )
  assert.include(reads[2]?.text ?? "", needle)
  assert.match(reads[3]?.text ?? "", /no\/such\/file\.ts/)
  const [before, edit, shell, after, broken, denied] = fifth?.slice(7) ?? []
  assert.include(before?.text ?? "", "41")
  assert.include(edit?.text ?? "", "1 replacements")
  assert.match(
    shell?.text ?? "",
    /^exit code 3 after \d+ ms\nstdout:\n\/\/ before\nconst answer = 42\n\/\/ after\nstderr:\noops\n$/
  )
  assert.include(after?.text ?? "", "42")
  assert.match(broken?.text ?? "", /^Not run: the arguments do not fit/)
  assert.match(denied?.text ?? "", /^Not run: a person denied this call\. not the sources$/)
  if (api === "chat-completions") return
  assert.deepStrictEqual(
    [before, edit, shell, after, broken, denied].map((one) => one?.failed),
    [false, false, false, false, true, true]
  )
}

const checkUsage = ({ usage }: Followed["result"]): void => {
  assert.deepStrictEqual(usage, { inputTokens: 15_000, outputTokens: 150, cachedInputTokens: null, rounds: 5 })
}
