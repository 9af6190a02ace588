import { assert, describe, it } from "@effect/vitest"
import { lookup } from "node:dns/promises"
import { createServer } from "node:http"
import { connect } from "node:net"
import { takeAttempts } from "../setup/loopback.ts"

describe("the network guard of the tests", () => {
  it("refuses a connection to another machine where it is made", () => {
    assert.throws(() => connect(443, "192.0.2.1"), /loopback addresses only/)
    assert.throws(() => connect({ port: 443, host: "::ffff:192.0.2.1" }), /loopback addresses only/)
    assert.strictEqual(takeAttempts().length, 2)
  })

  it("refuses to look up a name", async () => {
    let refused: unknown
    try {
      await lookup("name.invalid")
    } catch (error) {
      refused = error
    }
    assert.match(String(refused), /A look-up of name.invalid/)
    assert.strictEqual(takeAttempts().length, 1)
  })

  it("keeps account of what the caller swallowed", async () => {
    const answer = await fetch("http://192.0.2.1/").catch(() => "swallowed")
    assert.strictEqual(answer, "swallowed")
    assert.deepStrictEqual(takeAttempts(), ["A connection to 192.0.2.1: tests reach loopback addresses only"])
  })

  it("lets loopback through", async () => {
    const server = createServer((_request, response) => response.end("here"))
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve)
    })
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    for (const host of ["127.0.0.1", "localhost"]) {
      const response = await fetch(`http://${host}:${port}/`)
      assert.strictEqual(await response.text(), "here")
    }
    server.close()
    server.closeAllConnections()
    assert.deepStrictEqual(takeAttempts(), [])
  })
})
