import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { AskView, FeedEvent, SeatView } from "@tackroom/protocol/seat"
import { spawn } from "node:child_process"
import { Effect, Fiber } from "effect"
import * as fs from "node:fs"
import * as net from "node:net"
import * as path from "node:path"
import { parse } from "../../src/rig/command/CommandLine.ts"
import { commandNames, commands } from "../../src/rig/command/Commands.ts"
import { failureOutput, type Output, perform, type Surroundings } from "../../src/rig/command/Perform.ts"
import { make as makeClient } from "../../src/rig/command/RigClient.ts"
import { completions, helpText } from "../../src/rig/command/Help.ts"
import { pass } from "../../src/rig/Retention.ts"
import { problemLine, readPresetText } from "../../src/rig/Presets.ts"
import { Lab, plainRunner } from "./support/Lab.ts"
import { rigCommand, runCommand } from "./support/ServiceProcess.ts"

let lab: Lab
beforeAll(async () => {
  lab = await new Lab().start()
  lab.runner("otter", plainRunner())
})
afterAll(() => lab.dispose())

const rig = (...args: ReadonlyArray<string>) => runCommand(lab.family, args)
const json = async (...args: ReadonlyArray<string>) => {
  const { code, stdout } = await rig(...args, "--json")
  return { code, body: JSON.parse(stdout) as Readonly<Record<string, unknown>> }
}
const seat = "dev-a@mill"

/** A command without a process of its own: what it prints, and its exit code. */
const performed = (
  args: ReadonlyArray<string>,
  input: Uint8Array = new Uint8Array(),
  { url }: { readonly url: string } = lab.service
): Promise<Output> => {
  const parsed = parse(args)
  if (parsed._tag !== "Run") throw new Error(`no command: ${args.join(" ")}`)
  const { name } = parsed
  if (name === "serve" || name === "presetCheck" || name === "completions") throw new Error("it is local")
  const client = makeClient({ url, token: lab.service.operatorToken })
  const around: Surroundings = {
    readInput: Effect.succeed(input),
    confirm: undefined,
    write: () => undefined,
    note: () => undefined,
    fileExists: fs.existsSync
  }
  return Effect.runPromise(
    perform(name, parsed, client, around).pipe(Effect.catch((failure) => Effect.succeed(failureOutput(failure))))
  )
}

describe("a command line", () => {
  const said = (...argv: ReadonlyArray<string>) => {
    const parsed = parse(argv)
    return parsed._tag === "Usage" ? parsed.message : parsed._tag === "Run" ? parsed.name : parsed._tag
  }
  it("names its command by the longest words, and what is wrong with it", () => {
    assert.strictEqual(said("seat", "status", seat), "seatStatus")
    assert.strictEqual(
      said("seat"),
      "seat takes one of: status, launch, stop, revoke-grant, clear-attention, set-permissions-to"
    )
    assert.strictEqual(said("sned", seat, "x"), 'there is no command "sned"; did you mean send?')
    assert.strictEqual(said("send", seat), "text is missing")
    assert.strictEqual(said("send", seat, "a", "b"), '"b" is one argument too many')
    assert.strictEqual(said("send", seat, "--rwa", "x"), "there is no flag --rwa; did you mean --raw?")
    assert.strictEqual(said("send", seat, "--from"), "--from takes NAME")
    assert.strictEqual(said("send", seat, "--raw=1", "x"), "--raw takes no value")
    assert.strictEqual(said("send", seat, "--", "--raw"), "send")
    assert.strictEqual(said("row", "close", "row_1", "--closure-reason=done"), "rowClose")
    assert.strictEqual(said("ps", "--help"), "Help")
    assert.deepInclude(parse(["--json", "ps"]), { name: "ps", json: true })
    assert.strictEqual(said("--seat", seat, "ps"), "--seat comes after its command")
    assert.strictEqual(said(), "Help")
  })
  it("has help and completions for every command", () => {
    for (const name of commandNames) {
      assert.include(helpText(name), `tackroom rig ${commands[name].words.join(" ")}`)
      for (const line of helpText(name).split("\n")) assert.isAtMost(line.length, 120)
    }
    for (const shell of ["bash", "zsh", "fish"] as const) assert.include(completions(shell), "set-permissions-to")
  })
})

describe("the commands", () => {
  it("make a rig from a file, bring it up, and show it", async () => {
    const file = path.join(lab.family, "mill.yaml")
    fs.writeFileSync(
      file,
      `format: 1\nname: mill\nseats:\n  - {pod: dev, member: a, harness: otter, cwd: ${lab.family}}\n`
    )
    const up = await rig("up", file)
    assert.deepStrictEqual([up.code, up.stdout], [0, `rig mill: 1 seat\n${seat}: ready\n`])
    const again = await json("up", "mill")
    assert.deepStrictEqual([again.code, again.body["ok"]], [0, true])
    const ps = await rig("ps")
    assert.match(ps.stdout, /^SEAT +ACTIVITY +LAUNCH/u)
    assert.match(ps.stdout, /dev-a@mill +\S+ +ready +0 +otter +c-1/u)
    const status = await json("seat", "status", "dev.a@mill")
    assert.strictEqual((status.body["seat"] as SeatView).seat, seat)
    const sent = await runCommand(lab.family, ["send", seat, "-", "--raw", "--verify"], "hello from a pipe\n")
    assert.deepStrictEqual([sent.code, sent.stdout.split("\n")[0]], [0, "delivered"])
    assert.include((await rig("capture", seat, "--lines", "20")).stdout, "hello from a pipe")
  })

  it("answer what an agent asks, and ask before what permits by default", async () => {
    const added = await performed(["person", "add", "op1", "--name", "Ann"])
    assert.match(added.lines[1] ?? "", /token, shown this once: trp_/u)
    const ask = async (requestId: string) => {
      const reply = await lab.http("POST", "/api/activity/permission-requests", {
        token: lab.service.hookToken,
        body: {
          sessionName: seat,
          turnId: "1",
          requestId,
          toolCall: { title: "Run \u001b[31mmake" },
          options: [
            { optionId: "allow", name: "Allow", kind: "allow_once" },
            { optionId: "reject", name: "Reject", kind: "reject_once" }
          ]
        }
      })
      return String(reply.body["askId"])
    }
    const first = await ask("1")
    const list = (await performed(["ask", "list"])).lines.join("\n")
    assert.match(list, new RegExp(`${first} +pending +${seat} +op1 +Run`, "u"))
    assert.notInclude(list, "\u001b")
    const unsure = await rig("ask", "answer", first, "--approve")
    assert.deepStrictEqual([unsure.code, unsure.stdout], [64, "This permits Allow (allow_once).\n"])
    const words = await performed(["ask", "answer", first, "--text", "hmm", "--by", "op1"])
    assert.strictEqual(words.code, 1)
    assert.match(words.lines.join("\n"), /words_not_an_answer[\s\S]*nothing was done\nnext: /u)
    assert.strictEqual((await performed(["ask", "answer", first, "--drop", "--yes", "--by", "op1"])).code, 0)
    const shown = await json("ask", "show", first)
    assert.deepInclude((shown.body["ask"] as AskView).result ?? {}, { optionId: "allow", by: "op1", how: "drop" })
    const items = await performed(["stream", "list", "--tag", "runner-permission-permit"])
    assert.match(items.lines.join("\n"), /Permitted by default/u)
    const second = await ask("2")
    const row = ((await json("ask", "show", second)).body["ask"] as AskView).rows[0]?.rowId ?? ""
    assert.strictEqual((await performed(["row", "close", row, "--closure-reason", "denied"])).code, 0)
    assert.strictEqual((await json("ask", "show", second)).body["ok"], true)
  })

  it("end with 1 for a refusal, 64 for usage, 2 for what is left running or not there", async () => {
    const missing = await rig("seat", "status", "dev-z@mill")
    assert.deepStrictEqual([missing.code, missing.stdout], [1, ""])
    assert.match(
      missing.stderr,
      /there is no seat dev-z@mill \(seat_not_found\)\nnothing was done\nnext: tackroom rig ps/u
    )
    assert.strictEqual((await json("seat", "status", "dev-z@mill")).body["code"], "seat_not_found")
    assert.strictEqual((await rig("seat", "frob")).code, 64)
    assert.strictEqual((await rig("seat", "clear-attention", seat)).code, 64)
    lab.tmux("new-session", "-d", "-s", "dev-x@mill", "cat")
    const nowhere = await runCommand(path.join(lab.family, "nobody"), ["ps"])
    assert.deepStrictEqual([nowhere.code, nowhere.stderr.includes("tackroom rig serve")], [2, true])
  })

  it("refuse what they cannot do as it was said, and say why", async () => {
    const two = path.join(lab.family, "two.yaml")
    fs.writeFileSync(two, "format: 1\n---\nformat: 1\n")
    const cases = [
      [["feed", "--after", "-5"], 64, "--after takes a cursor, a whole number"],
      [["feed", "--after", "999999"], 1, /^--after 999999 is ahead of the feed, which is at \d+$/u],
      [["seat", "revoke-grant", seat], 1, `${seat} has no grant in force; nothing was done`],
      [["ps", "nosuch"], 1, "there is no rig nosuch (rig_not_found)"],
      [["stream", "list", "--since", "garbage"], 1, /^since does not fit.*2026-11-30T09:00:00Z \(invalid_field\)$/u],
      [["ask", "list", "--limit", "0"], 64, "--limit takes a whole number from 1 to 500"],
      [["send", seat, "x", "--from", "a\nb"], 1, /^from does not fit.*in one line \(invalid_field\)$/u],
      [["up", two], 64, `${two}: a rig is one YAML document, and this has more`]
    ] as const
    for (const [args, expectedCode, expected] of cases) {
      const { code, lines } = await performed(args)
      assert.strictEqual(code, expectedCode, args.join(" "))
      if (typeof expected === "string") assert.strictEqual(lines[0], expected)
      else assert.match(String(lines[0]), expected)
    }
    for (const target of ["asks", "stream", "rigs/mill/snapshots"]) {
      const reply = await lab.http("GET", `/api/rig/v1/${target}?after=zzz`, { token: lab.service.operatorToken })
      assert.deepInclude(reply.body, { code: "invalid_field", path: "after" }, target)
    }
  })

  it("follow the feed for as long as somebody reads it", async () => {
    const feed = spawn(process.execPath, [rigCommand, "feed", "--after", "0"], {
      env: { ...process.env, TACKROOM_HOME: lab.family },
      stdio: ["ignore", "pipe", "pipe"]
    })
    const said: Array<Buffer> = []
    feed.stderr.on("data", (chunk: Buffer) => said.push(chunk))
    const ended = new Promise((resolve) => feed.once("close", resolve))
    await new Promise((resolve) => feed.stdout.once("data", resolve))
    feed.stdout.destroy()
    // The next event finds nobody.
    await performed(["person", "add", "op9", "--name", "Zoe"])
    assert.deepStrictEqual([await ended, Buffer.concat(said).toString("utf8")], [0, ""])
    await performed(["person", "remove", "op9"])
  })

  it("follow the feed from what is kept, and say so, where the position is older", async () => {
    const { service } = lab
    await Effect.runPromise(pass(service.store, 2))
    const [notes, events] = [new Array<string>(), new Array<string>()]
    const parsed = parse(["feed", "--after", "1"])
    if (parsed._tag !== "Run") throw new Error("no command")
    const client = makeClient({ url: service.url, token: service.operatorToken })
    const two = Promise.withResolvers<void>()
    const write = (line: string): undefined => void (events.push(line) === 2 && two.resolve())
    const around: Surroundings = {
      readInput: Effect.never,
      confirm: undefined,
      write,
      note: (line) => void notes.push(line),
      fileExists: () => false
    }
    const fiber = Effect.runFork(perform("feed", parsed, client, around))
    await two.promise
    await Effect.runPromise(Fiber.interrupt(fiber))
    const oldest = lab.head - 1
    assert.deepStrictEqual(notes, [
      `feed: the position is not to be had (trimmed); it goes on from ${oldest}, the head is ${lab.head}`
    ])
    assert.deepStrictEqual(
      events.map((line) => (JSON.parse(line) as FeedEvent).cursor),
      [oldest, lab.head]
    )
  })

  it("send no text that is not UTF-8, and say where it stops being that [RIG-T1]", async () => {
    const input = Buffer.concat([Buffer.from("grüße "), Buffer.from([0xe2, 0x82, 0x41])])
    const { code, lines } = await performed(["send", seat, "-"], input)
    assert.deepStrictEqual(
      [code, lines[0]],
      [1, "the text cannot be pasted at byte 10: it is not UTF-8 (invalid_text)"]
    )
  })

  it("show as much of what an agent named as helps to know it", async () => {
    const long = "x".repeat(50_000)
    const asked = await lab.http("POST", "/api/activity/permission-requests", {
      token: lab.service.hookToken,
      body: {
        sessionName: seat,
        turnId: "9",
        requestId: "long",
        toolCall: { title: long, kind: long.slice(0, 9_000) },
        options: [
          { optionId: "allow", name: long, kind: "allow_once" },
          { optionId: "reject", name: "Reject", kind: long }
        ]
      }
    })
    const { lines } = await performed(["ask", "show", String(asked.body["askId"])])
    for (const line of lines) assert.isAtMost(line.length, 450)
    assert.include(lines, `tool call      ${"x".repeat(200)}\u2026 (${"x".repeat(200)}\u2026)`)
  })

  it("say that an outcome is unknown when the service goes away before it answers", async () => {
    const server = net.createServer((socket) => socket.once("data", () => socket.destroy()))
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()))
    const url = `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`
    const linesOf = async (...args: ReadonlyArray<string>) => (await performed(args, undefined, { url })).lines
    assert.match(
      (await linesOf("send", seat, "x")).join("\n"),
      /went away before it answered.*\nwhether it was done is unknown/u
    )
    assert.match((await linesOf("ps")).join("\n"), /^the service does not answer/u)
    await new Promise((resolve) => server.close(resolve))
    assert.match((await linesOf("send", seat, "x")).join("\n"), /^the service does not answer/u)
  })

  it("check a preset without a service", async () => {
    const file = path.join(lab.family, "mole.yaml")
    fs.writeFileSync(file, "format: 1\nname: mole\ncommand: [mole]\nresume: yes\n")
    const { code, stderr } = await rig("preset", "check", file)
    assert.strictEqual(code, 1)
    assert.match(stderr, /error mole\.yaml:4:1 resume is "yes", expected a boolean/u)
    const problems = (text: string) => readPresetText(file, text).problems.map(problemLine)
    assert.deepStrictEqual(problems("format: 1\nname: mole\ncommand: [mole]\n---\nformat: 1\n"), [
      "mole.yaml:4:1 a preset is one YAML document, and another one begins here"
    ])
    for (const bomb of ["a: &a [x,x]\nb: &b [*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b]\n", "limits: &a [*a]\n"]) {
      assert.deepStrictEqual(problems(bomb), ["mole.yaml:1:1 its aliases (*name) repeat too much, or without end"])
    }
    fs.writeFileSync(file, "format: 1\nname: mole\ncommand: [mole]\n")
    assert.deepStrictEqual((await json("preset", "check", file)).body["ok"], true)
  })

  it("take a rig down and bring it back", async () => {
    const down = await rig("down", "mill", "--snapshot")
    assert.strictEqual(down.code, 0)
    assert.match(down.stdout, /^snapshot snp_/u)
    const back = await rig("restore", "mill")
    assert.deepStrictEqual([back.code, back.stdout], [0, `${seat}: resumed\n`])
    assert.strictEqual((await rig("seat", "stop", seat)).code, 0)
    const { lines } = await performed(["send", seat, "hello"])
    assert.strictEqual(lines.at(-1), `next: tackroom rig seat launch ${seat}`)
  })
})
