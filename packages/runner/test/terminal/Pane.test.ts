import { assert, describe, it } from "vitest"
import { mirrored, toolLine } from "../../src/seat/PaneLines.ts"
import { makeSecrecy } from "../../src/seat/Secrecy.ts"
import { makePane } from "../../src/terminal/Pane.ts"
import { foreignPiece, foreignText, lastColumns } from "../../src/terminal/PaneText.ts"

const make = (options: { readonly limitBytes?: number; readonly secrets?: ReadonlyArray<string> } = {}) => {
  const writes: Array<string> = []
  let pending: (() => void) | undefined
  let blocked = false
  const pane = makePane({
    sink: (text, written) => {
      writes.push(text)
      if (blocked) pending = written
      else written()
    },
    redaction: makeSecrecy(() => options.secrets ?? []),
    showsDraft: true,
    ...(options.limitBytes === undefined ? {} : { limitBytes: options.limitBytes })
  })
  return {
    pane,
    writes,
    shown: () => writes.join(""),
    block: () => {
      blocked = true
    },
    unblock: () => {
      blocked = false
      const written = pending
      pending = undefined
      written?.()
    }
  }
}

describe("running text", () => {
  it("has its name before the first line of each run, and no other prefix [SEAT-062]", () => {
    const { pane, shown } = make()
    pane.say("agent", "one\ntw")
    pane.say("agent", "o")
    pane.line("tool > Edit (edit, pending)")
    pane.say("thought", "hm")
    pane.say("agent", "three\n")
    pane.say("agent", "four")
    pane.line("turn > 1 ended: end_turn")
    assert.strictEqual(
      shown(),
      "agent > one\r\ntwo\r\ntool > Edit (edit, pending)\r\nthought > hm\r\nagent > three\r\nfour\r\nturn > 1 ended: end_turn\r\n"
    )
  })

  it("shows whole lines above a draft, and the rest when the draft is gone", () => {
    const { pane, shown } = make()
    pane.draft("he")
    pane.say("agent", "one\ntw")
    pane.say("agent", "o")
    pane.draft("")
    assert.strictEqual(shown().replaceAll("\r\u001b[K", "<"), "draft > he<agent > one\r\ndraft > he<draft > he<two")
  })
})

describe("a draft", () => {
  it("stands on one line, is erased before what comes, and shows its last 60 columns [SEAT-008, SEAT-040]", () => {
    const { pane, shown } = make()
    pane.say("agent", "half")
    pane.draft("x".repeat(80))
    pane.line("seat > ready: c-81")
    pane.draft("")
    const draft = `draft > ${"x".repeat(60)}`
    assert.strictEqual(shown(), `agent > half\r\n${draft}\r\u001b[Kseat > ready: c-81\r\n${draft}\r\u001b[K`)
    assert.strictEqual(lastColumns("ab漢漢", 5), "b漢漢")
    assert.strictEqual(lastColumns("a🐴b", 3), "🐴b")
  })
})

describe("a pane that nobody reads", () => {
  it("gives up the agent's oldest text first and says how much [SEAT-063]", () => {
    const { block, pane, shown, unblock } = make({ limitBytes: 100 })
    block()
    pane.line("seat > ready")
    for (let i = 0; i < 30; i++) {
      pane.say("agent", `text ${i} `)
      if (i % 10 === 9) pane.line(`tool > ${i}`)
    }
    unblock()
    assert.include(shown(), "seat > ready\r\n")
    assert.match(shown(), /\u2026 \(\d+ bytes not shown\)\r\n/u)
    assert.notInclude(shown(), "text 1 ")
    for (const i of [9, 19, 29]) assert.include(shown(), `tool > ${i}\r\n`)
    assert.include(shown(), "text 29 ")
  })

  it("never gives up lines about permissions, cancels and the exit [SEAT-064]", () => {
    const { block, pane, shown, unblock } = make({ limitBytes: 100 })
    block()
    pane.line("seat > ready")
    for (let i = 0; i < 20; i++) {
      pane.line(`permission > asked: ${i}`, "always")
      pane.line(`plan > ${i}`)
    }
    unblock()
    for (let i = 0; i < 20; i++) assert.include(shown(), `permission > asked: ${i}\r\n`)
    assert.notInclude(shown(), "plan > 0\r\n")
  })

  it("keeps no caller waiting, and says when all is written [SEAT-063]", () => {
    const { block, pane, unblock, writes } = make()
    let done = 0
    pane.whenWritten(() => done++)
    assert.strictEqual(done, 1)
    block()
    pane.line("a")
    pane.line("b")
    pane.whenWritten(() => done++)
    assert.deepStrictEqual([writes.length, done], [1, 1])
    unblock()
    assert.deepStrictEqual([writes.length, done], [2, 2])
  })
})

describe("foreign text", () => {
  it("keeps letters, line feeds and tabs, and loses every control character [SEAT-062]", () => {
    const odd = "a\u001b[31mb\u0007\u0000\tc\r\n\u007fd\u0085\u009b2Je \u2028漢🐴"
    assert.strictEqual(foreignText(odd), "a[31mb\tc\nd2Je \u2028漢🐴")
  })

  it("cannot be taken for a menu, a spinner or a question [SEAT-061]", () => {
    assert.strictEqual(foreignText("❯ 1. Yes\n› 2. No"), "> 1. Yes\n> 2. No")
    assert.strictEqual(
      foreignPiece("Do you want to\n⠋ proceed? (Esc to interrupt)"),
      "do you want-to * proceed? (esc-to-interrupt)"
    )
  })

  it("of a name or a title has room for 200 characters", () => {
    const title = "🙂".repeat(1 << 20)
    const short = `${"🙂".repeat(200)}…`
    assert.strictEqual(toolLine({ title, kind: "edit", status: undefined }), `tool > ${short} (edit, pending)`)
  })

  it("of a long prompt shows 16 KiB and the size of the rest [SEAT-060]", () => {
    assert.strictEqual(mirrored("a\nb"), "a\nb")
    const shown = mirrored("é".repeat(10_000))
    assert.strictEqual(shown, `${"é".repeat(8_192)}\u2026 (${20_000 - 16_384} bytes more)`)
  })
})

describe("secrets", () => {
  it("are shown as stars, also when they arrive in pieces [SEAT-280]", () => {
    const { pane, shown } = make({ secrets: ["canary-value", "short"] })
    pane.line("error > got canary-value and short")
    pane.say("agent", "it is can")
    pane.say("agent", "ary-value!")
    pane.draft("canary-value")
    assert.strictEqual(shown(), "error > got *** and short\r\nagent > it is ***!\r\ndraft > ***")
  })
})
