import { assert, describe, it } from "@effect/vitest"
import { screenLines, screenText } from "../../src/conformance/peer/Screen.ts"
import { readPreset } from "../../src/conformance/runner/Preset.ts"
import { type Fed, requestReader } from "../../src/conformance/runner/rig/HttpWire.ts"
import { generator, sample } from "../../src/conformance/Chance.ts"

const read = (chunks: ReadonlyArray<string>): ReadonlyArray<Fed> => {
  const reader = requestReader()
  return chunks.flatMap((chunk) => reader.feed(Buffer.from(chunk, "latin1")))
}

const told = (fed: ReadonlyArray<Fed>): ReadonlyArray<string> =>
  fed.map((one) =>
    one._tag === "Request"
      ? `${one.request.method} ${one.request.target} ${one.request.headers.get("authorization") ?? "-"} ${one.request.body.toString("latin1")}`
      : one._tag === "Bad"
        ? `bad: ${one.reason}`
        : "continue"
  )

const post =
  'POST /api/activity/hooks HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t\r\nContent-Length: 7\r\n\r\n{"a":1}'
const chunked =
  'POST /b HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\n{"a\r\n4\r\n":2}\r\n0\r\ntrailer: x\r\n\r\n'
const get = "GET /c?waitSeconds=25 HTTP/1.1\r\nhost: a\r\n\r\n"

describe("the rig's reader of HTTP", () => {
  it("reads the same requests wherever the bytes are cut [CHK-301]", () => {
    const all = post + chunked + get
    const expected = told(read([all]))
    assert.deepStrictEqual(expected, [
      'POST /api/activity/hooks Bearer t {"a":1}',
      'POST /b - {"a":2}',
      "GET /c?waitSeconds=25 - "
    ])
    for (let cut = 1; cut < all.length; cut += 1) {
      assert.deepStrictEqual(told(read([all.slice(0, cut), all.slice(cut)])), expected)
    }
    assert.deepStrictEqual(told(read([...all])), expected)
  })

  it("refuses what is no good HTTP, once, and reads nothing behind it [CHK-301]", () => {
    for (const [text, reason] of [
      ["POST /a HTTP/1.0\r\nhost: a\r\n\r\n", "not a request line"],
      ["POST /a HTTP/1.1\r\n\r\n", "no host header"],
      ["POST /a HTTP/1.1\r\nhost: a\r\nno header\r\n\r\n", "not a header"],
      ["POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 1e3\r\n\r\n", "bad content length"],
      ["POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n", "bad transfer coding"],
      ["POST /a HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "bad chunk"]
    ] as const) {
      const fed = told(read([text, get]))
      assert.strictEqual(fed.length, 1)
      assert.include(fed[0], `bad: ${reason}`)
    }
  })

  it("gives leave to a sender that waits for it", () => {
    const [first, second] = ["POST /a HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n", "{}"]
    assert.deepStrictEqual(told(read([first, second])), ["continue", "POST /a - {}"])
  })
})

describe("the screen", () => {
  it("shows what a person sees after control sequences did their work", () => {
    assert.deepStrictEqual(screenLines("\u001b[?2004hone\r\ntwo\u001b[1mbold\u001b[0m\r\n"), ["one", "twobold", ""])
    assert.strictEqual(screenText("draft > hel\r\u001b[Kyou > hello\r\n"), "you > hello\n")
    assert.strictEqual(screenText("abc\b\bX"), "aXc")
    assert.strictEqual(screenText("\u001b]0;title\u0007seen\u001b(B"), "seen")
    assert.strictEqual(screenText("\u{1f600}e\u0301\u2028x"), "\u{1f600}e\u0301\u2028x")
  })
})

describe("a preset under check", () => {
  const good = "format: 1\nname: otter\ncommand: otter-seat\nrunner: true\nlaunch_result: true\nlimits:\n  - none\n"

  it("is read with what it declares", () => {
    assert.deepStrictEqual(readPreset(good, "otter.yaml").problems, [])
    assert.strictEqual(readPreset(good, "otter.yaml").declared["runner"], true)
  })

  it("is told everything that is wrong with it", () => {
    const wrong =
      "format: 2\nname: other\ncommand: []\nrunner: true\nnames_conversation: true\nlimits: none\nresume: on\nmaintaner: me\n"
    assert.deepStrictEqual(readPreset(wrong, "otter.yaml").problems, [
      "maintaner is no key, maintainer is",
      "format is not 1",
      "name is other, the file is otter.yaml",
      "command is neither a program nor a list of words",
      "resume is no boolean",
      "runner: true needs launch_result: true",
      "runner and names_conversation exclude each other",
      "limits is no list of at most 50 texts of 1 to 500 characters"
    ])
    assert.include(readPreset("a: 1\na: 2\n", "otter.yaml").problems[0], "Duplicate key")
    assert.deepStrictEqual(readPreset("- 1\n", "otter.yaml").problems, ["the file is no mapping"])
    assert.deepStrictEqual(readPreset("#".repeat(70_000), "otter.yaml").problems, ["the file is larger than 64 KiB"])
  })
})

describe("chance", () => {
  it("draws the same from the same seed, each at most once, in the list's order", () => {
    const list = Array.from({ length: 40 }, (_, index) => index)
    const drawn = sample(generator(7), list, 10)
    assert.deepStrictEqual(sample(generator(7), list, 10), drawn)
    assert.notDeepEqual(sample(generator(8), list, 10), drawn)
    assert.strictEqual(new Set(drawn).size, 10)
    assert.deepStrictEqual(
      [...drawn].toSorted((a, b) => a - b),
      drawn
    )
    assert.deepStrictEqual(sample(generator(1), [1, 2], 5), [1, 2])
  })
})
