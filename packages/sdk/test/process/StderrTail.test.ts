import { assert, describe, it } from "@effect/vitest"
import { makeStderrTail, stderrKeptBytes, stderrTailBytes } from "../../src/process/StderrTail.ts"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const plain = (text: string): string => text

describe("StderrTail", () => {
  it("keeps the last 64 KiB and gives at most 4 KiB as tail [HRN-036]", () => {
    const tail = makeStderrTail(plain)
    for (let line = 0; line < 20_000; line += 1) tail.push(bytes(`line ${line}\n`))
    assert.isAtMost(bytes(tail.text()).length, stderrKeptBytes)
    assert.isAtMost(bytes(tail.tail()).length, stderrTailBytes)
    assert.isTrue(tail.text().endsWith("line 19999\n"))
    assert.isTrue(tail.tail().endsWith("line 19999\n"))
    assert.isTrue(tail.text().startsWith("line "))
  })

  it("the cut never splits a character", () => {
    const tail = makeStderrTail(plain)
    tail.push(bytes("€".repeat(40_000)))
    assert.notInclude(tail.text(), "\uFFFD")
    assert.notInclude(tail.tail(), "\uFFFD")
  })

  it("is redacted before it is cut, so half a secret is never shown [HRN-036]", () => {
    const secret = "sk-0123456789"
    const tail = makeStderrTail((text) => text.replaceAll(secret, "[redacted]"))
    tail.push(bytes(`${"x".repeat(10)}\n${secret}${"y".repeat(stderrTailBytes - 5)}`))
    assert.notInclude(tail.tail(), "456789")
    const long = makeStderrTail((text) => text.replaceAll(secret, "[redacted]"))
    long.push(bytes(`${secret}\n${"z".repeat(stderrKeptBytes - 6)}`))
    assert.notInclude(long.text(), "6789")
  })

  it("one chunk larger than all that is kept is cut too", () => {
    const tail = makeStderrTail(plain)
    tail.push(bytes(`${"a".repeat(1_000_000)}\nend\n`))
    assert.strictEqual(tail.text(), "end\n")
    assert.strictEqual(tail.total(), 1_000_005)
  })
})
