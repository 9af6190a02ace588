import { assert, describe, it } from "@effect/vitest"
import { McpEntry } from "@tackroom/protocol/events"
import { Schema } from "effect"
import { ConfigInvalid } from "@tackroom/protocol"
import {
  entryProblem,
  isSessionSecret,
  sessionSecretsOf,
  tellingOf,
  withoutValues
} from "../../src/mcp/SessionEntries.ts"
import { resolveEffectiveMcp, toAcpMcpServers, toOpencodeConfig } from "../../src/mcp/index.ts"

const stdio = (command: string, more: Partial<McpEntry> = {}): McpEntry & { readonly type: "stdio" } => ({
  ...more,
  type: "stdio",
  command
})

const files = { name: "files", transport: "stdio", command: "/bin/files", args: ["-r"], env: { TOKEN: "t" } } as const
const web = { name: "web", transport: "remote", url: "https://mcp.example", headers: { authorization: "b" } } as const

describe("which servers a session gets", () => {
  it("a user's entry stands for the managed one of its name, whole [RT-300]", () => {
    const managed = { files: stdio("/managed", { env: { A: "1" } }), own: stdio("/own") }
    const { mcp, status } = resolveEffectiveMcp({ managed, user: { files: stdio("/user") } })
    assert.deepStrictEqual(mcp, {
      files: { name: "files", source: "user", transport: "stdio", command: "/user", args: [], env: {} },
      own: { name: "own", source: "managed", transport: "stdio", command: "/own", args: [], env: {} }
    })
    assert.deepStrictEqual(status, {
      files: { default: true, override: true, control: "generated-config", enabled: true, apply: "applied" },
      own: { default: true, override: false, control: "managed", enabled: true, apply: "applied" }
    })
  })

  it("a disabled entry is left out, an incomplete one is blocked with the field that is missing [RT-301]", () => {
    const { mcp, status } = resolveEffectiveMcp({
      managed: { off: stdio("/managed") },
      user: { off: stdio("/user", { disabled: true }), half: { type: "stdio" }, nowhere: { type: "remote", url: "" } }
    })
    assert.deepStrictEqual(mcp, {})
    assert.deepInclude(status["off"], { enabled: false, apply: "disabled" })
    assert.deepInclude(status["half"], { enabled: true, apply: "blocked", error: "command is missing" })
    assert.deepInclude(status["nowhere"], { apply: "blocked", error: "url is missing" })
  })

  it("strict refuses a managed server that cannot be, and no other [RT-302]", () => {
    const half = { half: { type: "stdio" } } as const
    assert.throws(() => resolveEffectiveMcp({ managed: half, user: {}, strict: true }), ConfigInvalid)
    assert.deepInclude(resolveEffectiveMcp({ managed: half, user: {} }).status["half"], { apply: "blocked" })
    assert.deepInclude(resolveEffectiveMcp({ managed: {}, user: half, strict: true }).status["half"], {
      apply: "blocked"
    })
  })

  it("a server over HTTP is blocked aloud for an agent that reaches none [RT-303]", () => {
    const over = toAcpMcpServers({ files, web }, { http: false })
    assert.deepStrictEqual(over.servers, [
      { name: "files", command: "/bin/files", args: ["-r"], env: [{ name: "TOKEN", value: "t" }] }
    ])
    assert.deepInclude(over.status["web"], { apply: "blocked", error: "the agent takes no MCP server over HTTP" })
    assert.deepStrictEqual(toAcpMcpServers({ web }, { http: true }).servers, [
      { type: "http", name: "web", url: "https://mcp.example", headers: [{ name: "authorization", value: "b" }] }
    ])
  })

  it("opencode has words of its own for both kinds", () => {
    assert.deepStrictEqual(toOpencodeConfig({ files, web }), {
      files: { type: "local", command: ["/bin/files", "-r"], environment: { TOKEN: "t" }, enabled: true },
      web: { type: "remote", url: "https://mcp.example", headers: { authorization: "b" }, enabled: true }
    })
  })

  it("what looks like a variable is text [RT-305]", () => {
    const value = "${HOME}/$USER"
    const { mcp } = resolveEffectiveMcp({
      managed: {},
      user: { a: stdio(value, { args: [value], env: { A: value } }) }
    })
    assert.deepInclude(mcp["a"], { command: value, args: [value], env: { A: value } })
  })
})

describe("the entries of a session", () => {
  it.prop(
    "come apart into names and values, and no value stays behind [RT-304]",
    [Schema.Record(Schema.String, McpEntry)],
    ([entries]) => {
      const stored = withoutValues("ses_1", entries)
      assert.deepStrictEqual(Object.keys(stored.entries), Object.keys(entries))
      for (const [name, entry] of Object.entries(entries)) {
        for (const field of ["env", "headers"] as const) {
          for (const [key, value] of Object.entries(entry[field] ?? {})) {
            const kept = Object.entries(Object.entries(stored.entries).find(([one]) => one === name)?.[1][field] ?? {})
            const named = kept.find(([one]) => one === key)?.[1]
            assert.isObject(named)
            if (typeof value !== "string" || typeof named !== "object") continue
            assert.strictEqual(stored.values.get(named.secret)?.value, value)
            assert.isTrue(isSessionSecret(named.secret))
          }
        }
      }
      const again = withoutValues("ses_1", stored.entries)
      assert.deepStrictEqual(again.entries, stored.entries)
      assert.strictEqual(again.values.size, 0)
    }
  )

  it("a value is a secret unless it plainly is none", () => {
    for (const value of ["production", "http://localhost:3000", "https://api.example.com/"]) {
      assert.strictEqual(tellingOf("env", value)._tag, "Plain", value)
      assert.strictEqual(tellingOf("headers", value)._tag, "Secret", value)
    }
    for (const value of ["Tr0ub4dor", "https://hooks.example/T0/B0/x", "https://a:b@example.com", "https://x/?key=1"]) {
      assert.strictEqual(tellingOf("env", value)._tag, "Secret", value)
    }
    assert.deepStrictEqual(tellingOf("env", "/usr/bin:/bin"), { _tag: "PlainIfPaths", paths: ["/usr/bin", "/bin"] })
  })

  it("name no value of another session, and a wrong field is named without what stands in it", () => {
    const { entries } = withoutValues("ses_1", { a: stdio("/a", { env: { TOKEN: "hidden" } }) })
    assert.strictEqual(sessionSecretsOf(entries).size, 1)
    assert.isUndefined(entryProblem("ses_1", entries))
    assert.strictEqual(entryProblem("ses_2", entries)?.field, "mcp.a.env")
    assert.strictEqual(entryProblem("ses_", entries)?.field, "mcp.a.env")
    const canary = "canary\u0000"
    for (const wrong of [
      { a: stdio("/a", { env: { A: canary } }) },
      { a: stdio("/a", { env: { "A=B": "x" } }) },
      { a: { type: "remote", url: "https://x", headers: { a: "canary\r\nb: c" } } },
      { a: { type: "remote", url: "canary" } },
      { a: { type: "remote", url: "https://me:canary@mcp.example" } },
      { a: { type: "remote", url: "file:///canary" } },
      { a: { type: "stdio" } },
      { "": stdio("/a") }
    ] as ReadonlyArray<Record<string, McpEntry>>) {
      const problem = entryProblem("ses_1", wrong)
      assert.isDefined(problem)
      assert.notInclude(JSON.stringify(problem), "canary")
    }
  })
})
