/** Large, odd and vanishing input: what a host makes of it, over a real provider's wire. */
import { assert, describe, it } from "@effect/vitest"
import { limits } from "@tackroom/protocol/run"
import type { AgentSession } from "@tackroom/sdk/client"
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import {
  engage,
  type Followed,
  folder,
  follow,
  only,
  readArtifact,
  type StartedHost,
  startHost,
  temporary
} from "./Hosts.ts"
import { calls, say, startVendor, type Told, told, type Vendor } from "./Vendors.ts"

const largestEvent = 262_144

describe("input as it comes", () => {
  const directory = temporary("input")
  let vendor: Vendor
  let started: StartedHost
  let runs = 0

  beforeAll(async () => {
    vendor = await startVendor()
    started = await startHost(directory.path)
    await engage(started.host, vendor, { name: "worker", api: "chat-completions", key: "key-of-worker-1234" })
  })

  afterAll(async () => {
    await started.host.close()
    await vendor.close()
    directory.remove()
  })

  const open = (workspace: string): Promise<AgentSession> => started.host.session({ agent: "worker", workspace })

  interface Played extends Followed {
    /** What the model was told of each call, in order. */
    readonly results: ReadonlyArray<Told>
    readonly outcomes: ReadonlyArray<string>
  }

  /** One turn that makes these calls together and ends. */
  const play = async (
    session: AgentSession,
    planned: ReadonlyArray<readonly [tool: string, args: object]>
  ): Promise<Played> => {
    runs += 1
    const key = `run number ${runs}.`
    const ids = planned.map((_, index) => `call_${runs}_${index}`)
    vendor.plays(key, [
      calls(planned.map(([name, args], index) => ({ id: ids[index] ?? "", name, arguments: args }))),
      say(`End of ${key}`)
    ])
    const followed = await follow(session.run(key, { onApproval: () => "once" }))
    assert.strictEqual(followed.result.finalOutput, `End of ${key}`, JSON.stringify(followed.result.error))
    for (const { wire } of followed.items) assert.isAtMost(Buffer.byteLength(JSON.stringify(wire)), largestEvent)
    const last = vendor.requests(key).at(-1)
    const results = last === undefined ? [] : told(last).filter(({ id }) => ids.includes(id))
    const outcomes = ids.map((id) => {
      const end = followed.items.find(
        ({ wire }) => wire["tool_call_id"] === id && (wire["metadata"] as { outcome?: string } | undefined)?.outcome
      )
      return (end?.wire["metadata"] as { outcome?: string } | undefined)?.outcome ?? "none"
    })
    return { ...followed, results, outcomes }
  }

  it("a tool that prints 100,000 lines leaves bounded rows and its whole output as an artifact [RT-210] [RUN-200] [AGT-072]", async () => {
    const session = await open(folder(directory.path, "prints"))
    const bar = "i=0; while [ $i -lt 3000 ]; do printf '\\rprogress %d of 3000' $i; i=$((i+1)); done; echo"
    const played = await play(session, [
      ["shell__run", { command: "seq 1 100000" }],
      ["shell__run", { command: bar }]
    ])
    assert.deepStrictEqual(played.outcomes, ["completed", "completed"])
    const expected = Array.from({ length: 100_000 }, (_, index) => `${index + 1}\n`).join("")

    const deltas = only(played, "tool-output-delta")
    for (const id of new Set(deltas.map((delta) => delta.toolCallId))) {
      const own = deltas.filter((delta) => delta.toolCallId === id)
      const text = own.map((delta) => delta.delta).join("")
      assert.isAtMost(Buffer.byteLength(text), 65_536)
      assert.isAtMost(own.length, 64)
      assert.strictEqual(own.filter((delta) => delta.truncated === true).length, text.length > 65_000 ? 1 : 0)
    }
    assert.isTrue(
      expected.startsWith(
        deltas
          .filter((delta) => delta.toolCallId === deltas[0]?.toolCallId)
          .map((delta) => delta.delta)
          .join("")
      )
    )
    assert.isBelow(played.items.length, 200)

    // Whole, from the first byte to the last, in pieces of any size.
    const output = played.items.find(({ wire }) => wire.type === "tool-output")
    const artifact = output?.wire.artifacts?.find(({ bytes }) => bytes >= expected.length)
    assert.isDefined(artifact)
    if (artifact === undefined) return
    const wholes = await Promise.all(
      [524_288, 100_001].map((length) => readArtifact(started.host, session.id, artifact.artifact_id, length))
    )
    assert.isTrue(wholes[0]?.equals(wholes[1] ?? Buffer.of()))
    assert.strictEqual(wholes[0]?.length, artifact.bytes)
    const text = wholes[0]?.toString("utf8") ?? ""
    assert.strictEqual(
      artifact.mime.startsWith("application/json") ? (JSON.parse(text) as { stdout: string }).stdout : text,
      expected
    )
    const beyond = await started.host.request("artifact/read", {
      sessionId: session.id,
      artifactId: artifact.artifact_id,
      offset: artifact.bytes
    })
    assert.deepInclude(beyond, { data: "", eof: true })
    const other = await open(folder(directory.path, "prints"))
    const foreign = await started.host
      .request("artifact/read", { sessionId: other.id, artifactId: artifact.artifact_id })
      .then(
        () => "read",
        (error: unknown) => (error as { _tag?: string })._tag
      )
    assert.strictEqual(foreign, "NotFound")

    // The model reads head and tail, and of the bar its last state.
    const [printed, progress] = played.results
    assert.isBelow(printed?.text.length ?? 0, 21_000)
    assert.match(printed?.text ?? "", /^exit code 0 after \d+ ms\nstdout:\n1\n2\n3\n/)
    assert.match(printed?.text ?? "", /\n99999\n100000\n$/)
    assert.match(progress?.text ?? "", /^exit code 0 after \d+ ms\nstdout:\nprogress 2999 of 3000\n$/)
  })

  it("a file of 5 MB is read in parts, as text and as bytes; one over 32 MiB is refused [AGT-012] [RT-210]", async () => {
    const workspace = folder(directory.path, "large")
    const lines = Array.from({ length: 100_000 }, (_, index) => `line ${index + 1} ${"·".repeat(20)}\n`)
    const text = lines.join("")
    assert.isAbove(Buffer.byteLength(text), 5_000_000)
    writeFileSync(join(workspace, "large.txt"), text)
    writeFileSync(join(workspace, "huge.bin"), Buffer.alloc(32 * 1_048_576 + 1))
    const played = await play(await open(workspace), [
      ["files__read", { path: "large.txt", max_lines: 10_000 }],
      ["files__read", { path: "large.txt", start_line: 99_999 }],
      ["files__read", { path: "large.txt", encoding: "base64" }],
      ["files__read", { path: "huge.bin", encoding: "base64" }],
      ["files__search", { pattern: "line 77777 " }]
    ])
    assert.deepStrictEqual(played.outcomes, ["completed", "completed", "completed", "failed", "completed"])
    const [head, tail, bytes, huge, found] = played.results.map((one) => one.text)
    const digest = createHash("sha256").update(text).digest("hex")
    assert.match(
      head ?? "",
      new RegExp(`^large\\.txt \\(lines 1-\\d+ of 100000, \\d+ bytes, sha256 ${digest}, more follows\\)`)
    )
    assert.isAtMost(head?.length ?? 0, 100_200)
    assert.isTrue(tail?.endsWith(`\n${lines[99_998]}${lines[99_999]}`))
    assert.isAtMost(bytes?.length ?? 0, 100_200)
    assert.include(huge ?? "", "huge.bin")
    assert.match(found ?? "", /^large\.txt:77777:1: line 77777 /)
    for (const item of played.items) {
      for (const artifact of item.wire.artifacts ?? []) {
        const whole = await readArtifact(started.host, item.sessionId, artifact.artifact_id, 524_288)
        assert.strictEqual(whole.length, artifact.bytes)
      }
    }
  })

  it("a message of 512 KiB reaches the model whole; a larger one is refused and leaves its id unused [RT-213] [RUN-380]", async () => {
    const session = await open(folder(directory.path, "prompts"))
    const start = "message of half a megabyte: "
    const text = start + "ж".repeat((limits.textBytes - start.length) / 2)
    assert.strictEqual(Buffer.byteLength(text), 524_288)
    for (const more of ["!", "x".repeat(500_000)]) {
      const refused = await session.run(text + more, { submissionId: "half" }).result.then(
        () => assert.fail("it was accepted"),
        (error: unknown) => error
      )
      assert.deepInclude(refused, { _tag: "InvalidParams", path: "text" })
    }
    const tooLarge = await session.run("x".repeat(1_048_576), { submissionId: "half" }).result.then(
      () => assert.fail("it was accepted"),
      (error: unknown) => error
    )
    assert.deepInclude(tooLarge, { _tag: "FrameTooLarge", limitBytes: 1_048_576 })
    vendor.plays(start, [say("Long.")])
    const followed = await follow(session.run(text, { submissionId: "half" }))
    assert.strictEqual(followed.result.finalOutput, "Long.")
    const [request] = vendor.requests(start)
    const messages = request?.body["messages"] as ReadonlyArray<{ role: string; content: unknown }>
    const user = messages.find((message) => message.role === "user")?.content
    assert.strictEqual(typeof user === "string" ? user : (user as [{ text: string }])[0].text, text)
    // In the journal the message is cut, and whole in its artifact.
    const message = followed.items.find(({ wire }) => wire.type === "user-message")
    assert.isAtMost(Buffer.byteLength(JSON.stringify(message?.wire)), largestEvent)
    const [artifact] = message?.wire.artifacts ?? []
    const whole = await readArtifact(started.host, session.id, artifact?.artifact_id ?? "", 524_288)
    assert.include(whole.toString("utf8"), text)
    // And it is still whole in the next turn's request.
    vendor.plays("And now a short one.", [say("Short.")])
    await follow(session.run("And now a short one."))
    assert.include(vendor.requests("And now a short one.")[0]?.text ?? "", "ж".repeat(200_000))
  })

  it("file names are what they are: spaces, quotes, dashes, line feeds, any script [AGT-060]", async () => {
    const workspace = folder(directory.path, "names")
    const names = [
      "with space.txt",
      'it\'s "quoted".txt',
      "-rf.txt",
      "new\nline.txt",
      "Grüße 日本語 🐎.txt",
      "[a-z]*?.txt",
      "..hidden"
    ]
    for (const [index, name] of names.entries()) writeFileSync(join(workspace, name), `content ${index}\n`)
    const session = await open(workspace)
    const read = await play(
      session,
      names.map((path) => ["files__read", { path }])
    )
    assert.deepStrictEqual(
      read.results.map((one) => one.text.split("\n").at(-2)),
      names.map((_, index) => `content ${index}`)
    )
    const edited = await play(session, [
      ...names.map((path) => ["files__edit", { path, edits: [{ old: "content", new: "changed" }] }] as const),
      ["files__search", { pattern: "changed" }],
      ["files__list", { hidden: true }]
    ])
    assert.isTrue(edited.outcomes.every((outcome) => outcome === "completed"))
    for (const [index, name] of names.entries()) {
      assert.strictEqual(readFileSync(join(workspace, name), "utf8"), `changed ${index}\n`)
    }
    // The last two ran side by side: whichever ended first stands first.
    const outputs = only(edited, "tool-output").map(
      ({ output }) => output as { readonly [list: string]: ReadonlyArray<{ readonly path: string }> | undefined }
    )
    for (const list of ["matches", "entries"]) {
      const found = outputs.flatMap((output) => output[list] ?? [])
      assert.sameMembers(
        found.map(({ path }) => path),
        names
      )
    }
    assert.sameMembers(
      only(edited, "file-diff").map(({ path }) => path),
      names
    )
  })

  it("nothing is read or written outside the workspace, through whatever link; the state of the host never [AGT-060] [AGT-061]", async () => {
    const outside = folder(directory.path, "outside")
    writeFileSync(join(outside, "secret.txt"), "the secret outside\n")
    // The folder of the test holds the host's state too.
    const inside = folder(directory.path, "links")
    symlinkSync(join(outside, "secret.txt"), join(inside, "file link"))
    symlinkSync(outside, join(inside, "folder link"))
    symlinkSync(join(outside, "not there yet"), join(inside, "dangling"))
    writeFileSync(join(inside, "own.txt"), "my own\n")
    symlinkSync("own.txt", join(inside, "good link"))
    const session = await open(inside)
    const edit = { edits: [{ old: "the", new: "no" }] }
    const refused: ReadonlyArray<readonly [string, object]> = [
      ["files__read", { path: "file link" }],
      ["files__read", { path: "folder link/secret.txt" }],
      ["files__read", { path: "../outside/secret.txt" }],
      ["files__read", { path: join(outside, "secret.txt") }],
      ["files__list", { path: "folder link" }],
      ["files__search", { path: "folder link", pattern: "secret" }],
      ["files__edit", { path: "file link", ...edit }],
      ["files__edit", { path: "dangling", ...edit }],
      ["shell__run", { command: "pwd", cwd: "folder link" }]
    ]
    const played = await play(session, refused)
    assert.deepStrictEqual(
      played.outcomes,
      refused.map(() => "not_run")
    )
    const [first] = played.results
    assert.include(first?.text ?? "", "file link")
    assert.notInclude(JSON.stringify(played.items), "the secret outside")
    assert.strictEqual(readFileSync(join(outside, "secret.txt"), "utf8"), "the secret outside\n")

    const good = await play(session, [
      ["files__read", { path: "good link" }],
      ["files__read", { path: join(inside, "own.txt") }],
      ["files__search", { pattern: "secret" }],
      ["files__list", { depth: 8 }]
    ])
    assert.deepStrictEqual(good.outcomes, ["completed", "completed", "completed", "completed"])
    assert.include(good.results[0]?.text ?? "", "my own")
    assert.include(good.results[2]?.text ?? "", "no matches")
    assert.notInclude(good.results[3]?.text ?? "", "secret.txt")

    const around = await open(directory.path)
    const state = await play(around, [
      ["files__read", { path: "state/host.key", encoding: "base64" }],
      ["files__list", { depth: 2, hidden: true }],
      ["files__search", { pattern: "agent-runtime" }]
    ])
    assert.strictEqual(state.outcomes[0], "not_run")
    assert.notInclude(state.results[1]?.text ?? "", "state/")
    assert.notInclude(state.results[2]?.text ?? "", "state/")
  })

  it("a workspace that is reached through a link is its real folder [RUN-351]", async () => {
    const real = folder(directory.path, "real place")
    writeFileSync(join(real, "here.txt"), "here\n")
    const link = join(directory.path, "the way there")
    symlinkSync(real, link)
    const session = await open(link)
    assert.strictEqual(session.ref.workspace, real)
    const played = await play(session, [
      ["files__read", { path: "here.txt" }],
      ["files__read", { path: join(link, "here.txt") }],
      ["files__read", { path: join(real, "here.txt") }],
      ["shell__run", { command: "pwd" }]
    ])
    assert.deepStrictEqual(played.outcomes, ["completed", "completed", "completed", "completed"])
    assert.include(played.results[3]?.text ?? "", `${real}\n`)
    // Another folder behind the link is another folder: the session stays where it was made.
    const elsewhere = folder(directory.path, "elsewhere")
    writeFileSync(join(elsewhere, "here.txt"), "elsewhere\n")
    renameSync(link, `${link} old`)
    symlinkSync(elsewhere, link)
    const again = await play(session, [["files__read", { path: "here.txt" }]])
    assert.include(again.results[0]?.text ?? "", "here\n")
    assert.notInclude(again.results[0]?.text ?? "", "elsewhere")
  })

  it("a workspace that goes away fails the calls, not the run, and is never another folder [RUN-351]", async () => {
    const workspace = folder(directory.path, "fleeting")
    writeFileSync(join(workspace, "note.txt"), "mine\n")
    const session = await open(workspace)
    const work: ReadonlyArray<readonly [string, object]> = [
      ["files__read", { path: "note.txt" }],
      ["files__list", {}],
      ["files__edit", { path: "note.txt", edits: [{ old: "\n", new: "!\n" }] }],
      ["shell__run", { command: "echo ran >> ran.txt; cat note.txt" }]
    ]
    const before = await play(session, work)
    assert.deepStrictEqual(before.outcomes, ["completed", "completed", "completed", "completed"])

    const away = `${workspace} away`
    renameSync(workspace, away)
    const gone = await play(session, work)
    assert.deepStrictEqual(gone.outcomes, ["failed", "failed", "failed", "failed"])

    const other = folder(directory.path, "someone else's")
    writeFileSync(join(other, "note.txt"), "not mine\n")
    symlinkSync(other, workspace)
    const exchanged = await play(session, work)
    assert.deepStrictEqual(exchanged.outcomes, ["failed", "failed", "failed", "failed"])
    assert.strictEqual(readFileSync(join(other, "note.txt"), "utf8"), "not mine\n")
    assert.notInclude(JSON.stringify(exchanged.items), "not mine")

    renameSync(workspace, `${workspace} link`)
    renameSync(away, workspace)
    const back = await play(session, work)
    assert.deepStrictEqual(back.outcomes, ["completed", "completed", "completed", "completed"])
    assert.strictEqual(readFileSync(join(workspace, "ran.txt"), "utf8"), "ran\nran\n")
  })

  it("of a response with 70 calls the first 64 run, and the model hears of the others [AGT-013]", async () => {
    const workspace = folder(directory.path, "seventy")
    for (let index = 0; index < 70; index++) writeFileSync(join(workspace, `${index}.txt`), `file ${index}\n`)
    const played = await play(
      await open(workspace),
      Array.from({ length: 70 }, (_, index) => ["files__read", { path: `${index}.txt` }] as const)
    )
    assert.deepStrictEqual(
      played.outcomes,
      Array.from({ length: 70 }, (_, index) => (index < 64 ? "completed" : "not_run"))
    )
    assert.deepStrictEqual(
      played.results.map(({ text }) => text.trim().split("\n").at(-1)),
      Array.from({ length: 70 }, (_, index) =>
        index < 64 ? `file ${index}` : "Not run: a response may hold at most 64 calls"
      )
    )
  })

  it("cancelling ends a command with everything it started, and keeps what it had printed [RUN-472] [AGT-071]", async () => {
    const workspace = folder(directory.path, "endless")
    const session = await open(workspace)
    const key = "something without an end;"
    vendor.plays(key, [
      calls([
        {
          id: "call_endless",
          name: "shell__run",
          arguments: { command: "sleep 1000 & echo $! $$; echo begun >&2; wait" }
        }
      ])
    ])
    const run = session.run(key, { onApproval: () => "once" })
    let printed = ""
    let cancelled: Promise<unknown> | undefined
    const ends: Array<string> = []
    for await (const { event } of run) {
      const payload = event?.payload
      if (payload?.type === "tool-output-delta" && payload.stream === "stdout") printed += payload.delta
      if (payload?.type === "tool-error") ends.push(payload.code ?? "")
      if (printed.includes("\n")) cancelled ??= run.cancel()
    }
    await cancelled
    assert.strictEqual((await run.result).status, "cancelled")
    assert.deepStrictEqual(ends, ["cancelled"])
    const pids = printed.trim().split(" ").map(Number)
    assert.strictEqual(pids.length, 2)
    const left = spawnSync("ps", ["-o", "stat=,args=", "-p", pids.join(",")], { encoding: "utf8" }).stdout
    // A process that ended and that nobody has asked about is a line with Z.
    assert.deepStrictEqual(
      left.split("\n").filter((line) => line !== "" && !line.startsWith("Z")),
      []
    )
  })

  it("two sessions work in one folder at once, each with its own journal and grants [AGT-120]", async () => {
    const workspace = folder(directory.path, "shared")
    mkdirSync(join(workspace, "sub"))
    writeFileSync(join(workspace, "common.txt"), "common\n")
    const work = async (name: string) => {
      const session = await open(workspace)
      writeFileSync(join(workspace, `${name}.txt`), "0\n")
      const key = `shared work of ${name}.`
      const steps = Array.from({ length: 10 }, (_, step) =>
        calls([
          { id: `${name}_${step}_read`, name: "files__read", arguments: { path: "common.txt" } },
          {
            id: `${name}_${step}_edit`,
            name: "files__edit",
            arguments: { path: `${name}.txt`, edits: [{ old: `${step}\n`, new: `${step + 1}\n` }] }
          },
          { id: `${name}_${step}_sh`, name: "shell__run", arguments: { command: `echo ${name} >> sub/log.txt` } }
        ])
      )
      vendor.plays(key, [...steps, say(`${name} is done.`)])
      let asked = 0
      const run = session.run(key, {
        onApproval: () => {
          asked += 1
          return "session"
        }
      })
      return { ...(await follow(run)), asked: () => asked, session }
    }
    const both = await Promise.all([work("anna"), work("bert")])
    for (const [index, name] of ["anna", "bert"].entries()) {
      const one = both[index]
      assert.strictEqual(one?.result.finalOutput, `${name} is done.`)
      assert.strictEqual(readFileSync(join(workspace, `${name}.txt`), "utf8"), "10\n")
      assert.strictEqual(one?.asked(), 2)
      assert.isTrue(one?.items.every((item) => item.sessionId === one.session.id))
      assert.notInclude(JSON.stringify(one?.items), index === 0 ? "bert" : "anna")
    }
    const log = readFileSync(join(workspace, "sub/log.txt"), "utf8").trim().split("\n")
    assert.deepStrictEqual(
      ["anna", "bert"].map((name) => log.filter((line) => line === name).length),
      [10, 10]
    )
  })

  it("32 turns work at once, a 33rd waits for a place, and one that waits can be cancelled [RUN-387]", async () => {
    const workspace = folder(directory.path, "many")
    const gates = Array.from({ length: 34 }, () => Promise.withResolvers<void>())
    const sessions = await Promise.all(gates.map(() => open(workspace)))
    const launch = (index: number) => {
      const key = `one of many, number ${index};`
      vendor.plays(key, [
        {
          reply: async () => {
            await gates[index]?.promise
            return { content: `Number ${index} is done.` }
          }
        }
      ])
      const session = sessions[index]
      if (session === undefined) assert.fail("no session")
      return { run: session.run(key), session }
    }
    const first = Array.from({ length: 32 }, (_, index) => launch(index))
    await vendor.arrived("one of many", 32)
    const waiting = launch(32)
    const cancelled = launch(33)
    await Promise.all([waiting.run.started, cancelled.run.started])
    const phaseOf = async ({ session }: typeof waiting) => {
      const state = await session.state()
      return [state.state, state.phases[0]?.phase]
    }
    assert.deepStrictEqual(await phaseOf(waiting), ["running", "queued"])
    assert.deepStrictEqual(await phaseOf(cancelled), ["running", "queued"])
    assert.deepStrictEqual((await cancelled.run.cancel()).cancelled, [cancelled.session.id])
    assert.strictEqual((await cancelled.run.result).status, "cancelled")
    assert.strictEqual(vendor.requests("one of many").length, 32)

    gates[7]?.resolve()
    assert.strictEqual((await first[7]?.run.result)?.finalOutput, "Number 7 is done.")
    await vendor.arrived("number 32;", 1)
    for (const gate of gates) gate.resolve()
    const ends = await Promise.all([...first, waiting].map(({ run }) => run.result))
    assert.deepStrictEqual(
      ends.map((end) => [end.status, end.finalOutput]),
      ends.map((_, index) => ["completed", `Number ${index} is done.`])
    )
    assert.strictEqual(vendor.requests("number 33;").length, 0)
  })
})
