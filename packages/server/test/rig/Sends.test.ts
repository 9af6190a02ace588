import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as fs from "node:fs"
import * as path from "node:path"
import { count, envelope, needleOf, pastable } from "../../src/rig/SendText.ts"
import * as Turnstile from "../../src/rig/Turnstile.ts"
import { Lab, plainRunner } from "./support/Lab.ts"

const seat = "dev-a@mill"
let lab: Lab
let bytes: string
beforeAll(async () => {
  lab = await new Lab().start()
  bytes = path.join(lab.family, "bytes")
  // A pane in raw mode with bracketed paste, which keeps every byte it gets.
  const raw = plainRunner().replace("exec cat", `stty raw -echo; printf '\\033[?2004h'; exec tee '${bytes}'`)
  lab.runner("otter", raw)
  lab.runner("mole", plainRunner())
  await lab.rig({ member: "a" }, { member: "b", harness: "mole" })
  await lab.api("upRig", { rig: "mill" })
})
afterAll(() => lab.dispose())

const send = (text: string, fields: Readonly<Record<string, unknown>> = {}, target = seat) =>
  lab.api("sendSeat", { seat: target }, { text, ...fields })
const got = (text: string) =>
  lab.until("the bytes", () =>
    fs.existsSync(bytes) && fs.readFileSync(bytes, "utf8").endsWith(text) ? true : undefined
  )

describe("text that is sent", () => {
  it("with a control character is refused with its place, and CRLF is LF [RIG-T1]", async () => {
    const problem = (text: string) => {
      const checked = pastable(text)
      return typeof checked === "string"
        ? checked
        : `${checked.code} ${"offset" in checked ? checked.offset : ""}`.trim()
    }
    assert.strictEqual(problem("a\r\nb\tc"), "a\nb\tc")
    assert.strictEqual(problem("é\u001b[201~"), "invalid_text 2")
    for (const bad of ["", " \n", "a\u0003", "a\rb", "\u0000", "\u007f", "\u009b", "a\ud800b"])
      assert.match(problem(bad), /^invalid_text/u)
    assert.strictEqual(problem("x".repeat(1_048_577)), "text_too_large")
    const refused = await send("two\u001b")
    assert.deepInclude(refused.body, { code: "invalid_text", offset: 3 })
    assert.strictEqual((await send("x".repeat(1_048_577))).status, 413)
    // A runner drops a larger block whole, so the envelope counts.
    const wrapped = await send("x".repeat(1_048_576))
    assert.deepInclude(wrapped.body, { code: "text_too_large", limit: 1_048_576 })
  })

  it("is one bracketed paste and then Enter, in an envelope unless it is raw [RIG-T4, RIG-T5, RIG-T6, RIG-232]", async () => {
    const text = "run the tests\n/abort\n\ttrailing \u2028é🙂 "
    const sent = await send(text, { from: "dev-lead@mill" })
    assert.deepInclude(sent.body, { outcome: "sent" })
    assert.match(String(sent.body["evidence"]), /evidence of the pane only/u)
    const wrapped = `From: dev-lead@mill\nTo: ${seat}\n---\n${text}\n---\nReply: tackroom rig send dev-lead@mill "…"`
    assert.strictEqual(envelope("dev-lead@mill", seat, text), wrapped)
    // Nothing can be sent to what is no seat.
    assert.match(envelope("operator", seat, text), /\n---\nReply: here, in your own words$/u)
    await got(`\u001b[200~${wrapped}\u001b[201~\r`)
    assert.strictEqual((await send("/abort", { raw: true })).status, 200)
    await got("\u001b[200~/abort\u001b[201~\r")
    // A pane in copy mode is taken out of it first: Enter would be eaten there.
    lab.tmux("copy-mode", "-t", `=${seat}:`)
    assert.strictEqual((await send("after copy mode", { raw: true })).status, 200)
    await got("\u001b[200~after copy mode\u001b[201~\r")
  })

  it("is looked for in the pane when that is asked for [RIG-T7, RIG-230]", async () => {
    assert.strictEqual(needleOf(`${"a".repeat(50)}\nb`), "a".repeat(40))
    assert.strictEqual(count("ab ab", "ab"), 2)
    const shown = await send("a needle nobody else sends", { raw: true, verify: true }, "dev-b@mill")
    assert.strictEqual(shown.body["outcome"], "delivered")
    // This pane shows nothing of what it gets that way: the same text, with a pane that does not echo it as text.
    lab.tmux("respawn-pane", "-k", "-t", "=dev-b@mill:", "stty -echo; exec sleep 1000")
    const unseen = await send("a needle that stays unseen", { raw: true, verify: true }, "dev-b@mill")
    assert.strictEqual(unseen.body["outcome"], "unconfirmed")
  })

  it("goes by attention: a seat that waits takes it only by force with a reason, which is kept [RIG-T2]", async () => {
    const generation = (await lab.seat(seat)).launch.generation
    const common = { sessionName: seat, generation }
    await lab.post({ ...common, hookEvent: "Notification", subtype: "permission_prompt" })
    assert.strictEqual((await send("x")).body["code"], "target_needs_input")
    assert.strictEqual((await send("x", { force: true })).body["code"], "invalid_field")
    assert.strictEqual((await send("forced", { force: true, reason: "it hangs", raw: true })).status, 200)
    await lab.post({ ...common, hookEvent: "UserPromptSubmit", subtype: "accepted", turnId: 1 })
    assert.match(String((await send("more", { raw: true })).body["advisory"]), /is working/u)
    await lab.post({ ...common, hookEvent: "Stop", subtype: "end_turn" })
    assert.notProperty((await send("again", { raw: true })).body, "advisory")
  })

  it("of several senders is one after the other, in their order [RIG-T3]", async () => {
    const texts = Array.from({ length: 4 }, (_, index) => `message number ${index}`)
    await Promise.all(texts.map((text) => send(text, { raw: true })))
    await got(texts.map((text) => `\u001b[200~${text}\u001b[201~\r`).join(""))
  })

  it.effect("that waits too long for its turn leaves the line, and the turn is not lost [RIG-T3]", () =>
    Effect.gen(function* () {
      const turnstile = Turnstile.make()
      const order: Array<string> = []
      const pass = (name: string, holdMs: number, waitMs: number) => {
        const use = Effect.andThen(
          Effect.sleep(holdMs),
          Effect.sync(() => order.push(name))
        )
        return Effect.forkChild(turnstile.pass(use, { waitMs, late: () => "late" as const }))
      }
      const first = yield* pass("a", 60, 1)
      const late = yield* pass("b", 0, 59)
      // Its clock strikes when its turn comes: it has either, and nothing is lost.
      const close = yield* pass("c", 10, 60)
      const gone = yield* pass("d", 0, 5_000)
      const last = yield* pass("e", 0, 5_000)
      yield* TestClock.adjust(59)
      assert.deepStrictEqual([order, yield* Fiber.await(late)], [[], Exit.fail("late")])
      yield* Fiber.interrupt(gone)
      yield* TestClock.adjust(1_000)
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(first)))
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(last)))
      const had = Exit.isSuccess(yield* Fiber.await(close))
      assert.deepStrictEqual(order, had ? ["a", "c", "e"] : ["a", "e"])
      yield* Fiber.join(yield* pass("f", 0, 0))
    })
  )

  it("that fails names its step and whether a draft may stand [RIG-231]", async () => {
    const wrapper = fs.mkdtempSync(path.join(lab.family, "bin-"))
    const real =
      (process.env["PATH"] ?? "")
        .split(":")
        .map((folder) => path.join(folder, "tmux"))
        .find(fs.existsSync) ?? ""
    fs.writeFileSync(
      path.join(wrapper, "tmux"),
      `#!/bin/sh\ncase "$*" in *$(cat '${wrapper}/fails')*) echo broken >&2; exit 1;; esac\nexec '${real}' "$@"\n`,
      { mode: 0o755 }
    )
    fs.writeFileSync(path.join(wrapper, "fails"), "nothing-fails")
    const other = await new Lab({ variables: { PATH: `${wrapper}:${process.env["PATH"] ?? ""}` } }).start()
    other.runner("otter", plainRunner())
    await other.rig({ member: "a" })
    assert.strictEqual(await other.launch(seat), "ready")
    const failures: Array<unknown> = []
    for (const step of ["load-buffer", "paste-buffer", "Enter"]) {
      fs.writeFileSync(path.join(wrapper, "fails"), step)
      const reply = await other.api("sendSeat", { seat }, { text: "x", raw: true })
      failures.push([reply.status, reply.body["code"], reply.body["step"], reply.body["mayStandAsDraft"]])
    }
    assert.deepStrictEqual(failures, [
      [502, "send_failed", "load_buffer", false],
      [502, "send_failed", "paste_buffer", false],
      [502, "send_failed", "enter", true]
    ])
    // What stands is known at once, and cleared before the next one is pasted.
    assert.isString((await other.seat(seat)).draft?.sendId)
    fs.writeFileSync(path.join(wrapper, "fails"), "C-u")
    const standing = await other.api("sendSeat", { seat }, { text: "y", raw: true })
    assert.deepInclude(standing.body, { code: "send_failed", step: "clear_draft", mayStandAsDraft: true })
    fs.writeFileSync(path.join(wrapper, "fails"), "nothing-fails")
    const sent = await other.api("sendSeat", { seat }, { text: "y", raw: true })
    assert.match(String(sent.body["advisory"]), /was cleared first/u)
    await other.dispose()
  })
})
