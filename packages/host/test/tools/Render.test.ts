import { assert, describe, it } from "@effect/vitest"
import { forModel, render, renderOutput } from "../../src/tools/Render.ts"
import { cutChars, foldCarriageReturns, headAndTail } from "../../src/tools/Text.ts"

const shell = (stdout: string, more: object = {}) => ({
  tool: "shell.run" as const,
  output: {
    exit_code: 0,
    timed_out: false,
    duration_ms: 5,
    stdout_bytes: Buffer.byteLength(stdout),
    stderr_bytes: 0,
    stdout,
    stderr: "",
    ...more
  }
})

describe("Text", () => {
  it("cuts by code points and never inside one", () => {
    assert.strictEqual(cutChars("a😀b😀", 2), "a😀")
    assert.strictEqual(cutChars("abc", 3), "abc")
    const cut = headAndTail("😀".repeat(1_000), 200)
    assert.isTrue(cut.isWellFormed())
    assert.isAtMost([...cut].length, 200)
    assert.isTrue(cut.startsWith("😀") && cut.endsWith("😀"))
  })

  it("keeps head and tail and says how much is missing", () => {
    const text = `BEGIN${"x".repeat(10_000)}END`
    const cut = headAndTail(text, 1_000)
    assert.isAtMost(cut.length, 1_000)
    assert.isTrue(cut.startsWith("BEGIN") && cut.endsWith("END"))
    const left = Number(/\[… (\d+) chars left out …\]/.exec(cut)?.[1])
    assert.strictEqual(cut.replace(/\n\[… \d+ chars left out …\]\n/, "").length + left, text.length)
    assert.strictEqual(headAndTail("x".repeat(1_000), 1_000), "x".repeat(1_000))
  })

  it("a text of exactly the limit in code points is not cut [AGT-012]", () => {
    assert.strictEqual(forModel("😀".repeat(100_000)).length, 200_000)
    assert.strictEqual([...forModel("😀".repeat(100_001))].length <= 100_000, true)
  })

  it("folds carriage returns to the last state of a line [AGT-072]", () => {
    assert.strictEqual(foldCarriageReturns("10%\r50%\r100%\ndone\r\nnext\r"), "100%\ndone\nnext")
    assert.strictEqual(foldCarriageReturns("a\nb"), "a\nb")
    assert.strictEqual(foldCarriageReturns("\r\r\r"), "")
    const begun = performance.now()
    foldCarriageReturns(`${"\r".repeat(2_000_000)}x`)
    assert.isBelow(performance.now() - begun, 4_000)
  })
})

describe("render", () => {
  it("shows the exit code and both streams of a command [AGT-072]", () => {
    assert.strictEqual(
      render(shell("out\n", { exit_code: 3, stderr: "bad", stderr_bytes: 3 })),
      "exit code 3 after 5 ms\nstdout:\nout\nstderr:\nbad\n"
    )
    assert.include(render(shell("", { timed_out: true, exit_code: null, signal: "SIGTERM" })), "time-out")
    assert.include(render(shell("")), "no output")
  })

  it("gives at most 20,000 chars of a stream, folded, with head and tail [AGT-072]", () => {
    const text = render(shell(`first\n${"progress\r".repeat(50_000)}\n${"y".repeat(50_000)}\nlast\n`))
    assert.isAtMost(text.length, 20_100)
    assert.isTrue(text.includes("first") && text.endsWith("last\n"))
    assert.notInclude(text, "\r")
  })

  it("no result is longer than 100,000 chars [AGT-012]", () => {
    const entry = { path: "p".repeat(200), type: "file" as const, bytes: 1, modified_at: "2026-01-01T00:00:00.000Z" }
    const text = render({
      tool: "files.list",
      output: { entries: Array.from({ length: 5_000 }, () => entry), truncated: false }
    })
    assert.isAtMost([...text].length, 100_000)
  })

  it("search results show context with line numbers", () => {
    const match = { path: "a.ts", line: 3, column: 2, text: "hit", before: ["one", "two"], after: ["four"] }
    assert.strictEqual(
      render({ tool: "files.search", output: { matches: [match], truncated: true } }),
      "a.ts-1- one\na.ts-2- two\na.ts:3:2: hit\na.ts-4- four\n(incomplete: there may be more matches)"
    )
  })

  it("an output that is no result of its tool reads as JSON, a string as itself [AGT-036]", () => {
    assert.strictEqual(renderOutput("files.read", { odd: true }), '{"odd":true}')
    assert.strictEqual(renderOutput("docs.search", "plain"), "plain")
    assert.include(
      renderOutput("files.write", { path: "a", bytes: 1, sha256: "0".repeat(64), created: true }),
      "created a"
    )
  })

  it("text reads as text, structured content as JSON, and what was kept beside them by its name [AGT-036]", () => {
    const output = { text: "In words.", structured_content: { in: "numbers" } }
    assert.strictEqual(
      renderOutput("docs.search", output, [
        { type: "inline", mime: "image/png", filename: "image 2", artifactId: "art_1" },
        { type: "unretained", mime: "video/mp4", filename: "video 3", bytes: 7 }
      ]),
      'In words.\n{"in":"numbers"}\n(image 2, image/png, kept as artifact art_1)\n(video 3, video/mp4, 7 bytes, not kept)'
    )
    assert.strictEqual(
      renderOutput("docs.search", "", [{ type: "inline", mime: "image/png", artifactId: "art_1" }]),
      "(an attachment, image/png, kept as artifact art_1)"
    )
  })
})
