import { assert, describe, it } from "vitest"
import { findEndpoint, hasRig } from "../../src/rig/Endpoint.ts"

const files: Readonly<Record<string, string>> = {
  "/rig/activity-endpoint.json": JSON.stringify({ baseUrl: "http://127.0.0.1:7440", token: "of-the-file" }),
  "/home/op/.openrig/activity-endpoint.json": JSON.stringify({ baseUrl: "http://127.0.0.1:7441", token: "of-home" }),
  "/broken/activity-endpoint.json": "{"
}

const find = (environment: Readonly<Record<string, string>>) => {
  const source = findEndpoint({ OPENRIG_NODE_ID: "n", ...environment }, (file) => files[file])
  const current = source.current()
  return current === undefined ? undefined : [current.base.href, current.token]
}

describe("the endpoint", () => {
  it("is found half by half: from variables, else from the service's file [SEAT-009]", () => {
    const token = { OPENRIG_ACTIVITY_HOOK_TOKEN: "given" }
    assert.deepStrictEqual(find({ ...token, OPENRIG_URL: "http://10.0.0.5:99/base", OPENRIG_PORT: "1" }), [
      "http://10.0.0.5:99/base",
      "given"
    ])
    assert.deepStrictEqual(find({ ...token, OPENRIG_PORT: "81" }), ["http://127.0.0.1:81/", "given"])
    assert.deepStrictEqual(find({ ...token, OPENRIG_HOST: "localhost", OPENRIG_PORT: "81" }), [
      "http://localhost:81/",
      "given"
    ])
    assert.deepStrictEqual(find({ ...token, OPENRIG_HOST: "::1", OPENRIG_PORT: "81" }), ["http://[::1]:81/", "given"])
    assert.deepStrictEqual(find({ ...token, OPENRIG_HOME: "/rig" }), ["http://127.0.0.1:7440/", "given"])
    assert.deepStrictEqual(find({ OPENRIG_URL: "http://a:1", OPENRIG_HOME: "/rig" }), ["http://a:1/", "of-the-file"])
    assert.deepStrictEqual(find({ HOME: "/home/op" }), ["http://127.0.0.1:7441/", "of-home"])
    assert.strictEqual(find({ ...token, OPENRIG_HOME: "/broken" }), undefined)
    assert.strictEqual(find({ OPENRIG_URL: "http://a:1" }), undefined)
  })

  it("is not looked for without any variable of a rig [SEAT-007]", () => {
    const environment = { HOME: "/home/op", PATH: "/bin" }
    assert.isFalse(hasRig(environment))
    assert.strictEqual(findEndpoint(environment, (file) => files[file]).current(), undefined)
  })

  it("is refused when its address holds more than a place, without repeating it [SEAT-281]", () => {
    for (const url of [
      "http://user:pass@a:1",
      "http://a:1/?token=x",
      "http://a:1/#x",
      "http://a:1?",
      "ftp://a",
      "nonsense"
    ]) {
      const source = findEndpoint({ OPENRIG_URL: url, OPENRIG_ACTIVITY_HOOK_TOKEN: "t" }, () => undefined)
      assert.strictEqual(source.current(), undefined, url)
      assert.strictEqual(source.problem, "the address of the rig is not usable")
    }
  })
})
