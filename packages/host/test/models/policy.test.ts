import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { retryAfter } from "../../src/models/Classify.ts"
import { endpointOf, isLoopback, mayCarryKey } from "../../src/models/Endpoint.ts"
import { ModelFailure } from "../../src/models/ModelFailure.ts"
import type { FailureKind } from "../../src/models/ModelFailure.ts"
import { nextDelay, retryPolicy } from "../../src/models/Retry.ts"
import { sanitize } from "../../src/models/Sanitize.ts"
import { contextWindow, estimateTokens } from "../../src/models/Windows.ts"

const failed = (kind: FailureKind, retryAfterMs: number | null = null) =>
  new ModelFailure({ kind, status: null, retryAfterMs, errorClass: "model", message: "" })

describe("retry", () => {
  it("waits about 1, 2, 4 and 8 s, then no more [AGT-006]", () => {
    for (const [index, base] of [1_000, 2_000, 4_000, 8_000].entries()) {
      assert.strictEqual(nextDelay(failed("retryable"), index + 1, 0.5), base)
      assert.strictEqual(nextDelay(failed("disconnect"), index + 1, 0), base * 0.75)
      const longest = nextDelay(failed("retryable"), index + 1, 0.999_999)
      assert.isAtMost(longest ?? Infinity, base * (1 + retryPolicy.jitter))
    }
    assert.isNull(nextDelay(failed("retryable"), 5, 0.5))
  })

  it("waits what the provider asked for, up to 60 s [AGT-006]", () => {
    assert.strictEqual(nextDelay(failed("retryable", 7_000), 1, 0.5), 7_000)
    assert.strictEqual(nextDelay(failed("retryable", 3_600_000), 4, 0.5), 60_000)
    assert.strictEqual(nextDelay(failed("retryable", 0), 1, 0.5), 1_000)
    assert.isNull(nextDelay(failed("retryable", 7_000), 5, 0.5))
  })

  it("never tries a refusal again [AGT-006, AGT-008]", () => {
    for (const kind of ["credential", "overflow", "refused"] as const) {
      assert.isNull(nextDelay(failed(kind, 1_000), 1, 0.5))
    }
  })

  it("reads Retry-After as seconds, as a date and to the millisecond [AGT-006]", () => {
    assert.strictEqual(retryAfter({ "retry-after": "3" }, 0), 3_000)
    assert.strictEqual(retryAfter({ "retry-after": "0.5" }, 0), 500)
    assert.strictEqual(retryAfter({ "retry-after": "3", "retry-after-ms": "2750" }, 0), 2_750)
    assert.strictEqual(retryAfter({ "retry-after": "Thu, 01 Jan 1970 00:01:00 GMT" }, 20_000), 40_000)
    assert.strictEqual(retryAfter({ "retry-after": "Thu, 01 Jan 1970 00:01:00 GMT" }, 90_000), 0)
    for (const value of ["", "soon", "-1"]) assert.isNull(retryAfter({ "retry-after": value }, 0))
    assert.isNull(retryAfter(undefined, 0))
  })
})

describe("endpoints", () => {
  it("a name selects no endpoint; two wires have their vendor's [RUN-222]", () => {
    assert.strictEqual(endpointOf("responses", null), "https://api.openai.com/v1")
    assert.strictEqual(endpointOf("anthropic", null), "https://api.anthropic.com/v1")
    assert.isNull(endpointOf("chat-completions", null))
    assert.strictEqual(endpointOf("chat-completions", "http://127.0.0.1:8080/v1/"), "http://127.0.0.1:8080/v1")
  })

  it("a key travels over TLS or to this machine only [RUN-223]", () => {
    for (const url of [
      "https://models.example",
      "http://127.0.0.1:1",
      "http://127.8.0.1",
      "http://[::1]:80",
      "http://localhost"
    ]) {
      assert.isTrue(mayCarryKey(new URL(url)), url)
    }
    for (const url of [
      "http://models.example",
      "http://192.168.0.2",
      "http://127.0.0.1.example",
      "http://localhost.example",
      "ftp://localhost"
    ]) {
      assert.isFalse(mayCarryKey(new URL(url)), url)
    }
    assert.isTrue(isLoopback("api.localhost"))
  })
})

describe("messages of providers", () => {
  const key = "tr-live-9f8e7d6c5b4a3210"

  it("a key disappears whole, cut and masked [RUN-225, RT-320]", () => {
    for (const text of [
      `bad key ${key}!`,
      `bad key ${key.slice(0, 9)}`,
      `bad key …${key.slice(-7)}`,
      `bad key "tr-l***3210"`,
      "bad key sk-proj-AbCdEf123456",
      `sent Bearer ${key}`
    ]) {
      const shown = sanitize(text, key)
      assert.include(shown, "[redacted]", text)
      for (let i = 0; i + 6 <= key.length; i++) assert.notInclude(shown, key.slice(i, i + 6))
    }
  })

  it("no stack, no line break, no half character, at most 500 [RT-323]", () => {
    assert.strictEqual(sanitize("broken\n    at run (a.js:1)", key), "broken")
    assert.strictEqual(sanitize('bad\nTraceback (most recent call last):\n  File "x"', key), "bad")
    assert.strictEqual(sanitize("a\r\n\u0007b\u0000c", key), "a b c")
    const long = sanitize("\u{1f600}".repeat(1_000), key)
    assert.isAtMost(long.length, 500)
    assert.isTrue(long.isWellFormed())
    assert.strictEqual(sanitize("plain", ""), "plain")
  })

  it("takes time linear in the text, whatever the text", () => {
    const start = performance.now()
    sanitize("*".repeat(1_000_000), key)
    sanitize("a".repeat(1_000_000), "a".repeat(4_096))
    assert.isBelow(performance.now() - start, 2_000)
  })
})

describe("windows", () => {
  it("a model that is not known has 128,000 tokens [AGT-194]", () => {
    assert.strictEqual(contextWindow("local-model"), 128_000)
    assert.strictEqual(contextWindow("claude-sonnet-4-5"), 200_000)
    assert.strictEqual(contextWindow("openai/gpt-5-mini"), 272_000)
    assert.strictEqual(contextWindow("gpt-4.1-nano"), 1_047_576)
  })

  it("counts instructions, messages, results and tools of a request [AGT-190]", () => {
    const request = {
      instructions: "a".repeat(40),
      messages: [
        { role: "user" as const, text: "b".repeat(40) },
        {
          role: "assistant" as const,
          parts: [
            { type: "text" as const, text: "c".repeat(40) },
            { type: "call" as const, callId: "1", tool: "t", arguments: { x: "d".repeat(40) } }
          ]
        },
        { role: "tool" as const, results: [{ callId: "1", tool: "t", text: "e".repeat(400) }] }
      ],
      tools: [{ alias: "t", description: "f".repeat(40), schema: { type: "object" } }]
    }
    assert.isAtLeast(estimateTokens(request), 150)
    assert.isAtMost(estimateTokens(request), 170)
  })
})

describe("loading", () => {
  it("no client library is loaded before the first live request", () => {
    const script = `
      import { registerHooks } from "node:module"
      const seen = []
      registerHooks({ resolve: (name, context, next) => { seen.push(name); return next(name, context) } })
      await import(${JSON.stringify(new URL("../../src/models/Models.ts", import.meta.url).href)})
      process.stdout.write(JSON.stringify(seen.filter((name) => name.startsWith("@ai-sdk") || name === "zod")))
    `
    const loaded = execFileSync(process.execPath, ["--input-type=module", "-e", script], {
      encoding: "utf8",
      timeout: 20_000,
      env: { PATH: process.env["PATH"] }
    })
    assert.strictEqual(loaded, "[]")
  })
})
