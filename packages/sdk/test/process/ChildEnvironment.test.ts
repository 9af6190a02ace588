import { assert, describe, it } from "@effect/vitest"
import { childEnvironment, scrubEnvironment } from "../../src/process/index.ts"

const parent = {
  PATH: "/bin",
  HOME: "/home/u",
  LANG: "C",
  LC_ALL: "C",
  XDG_RUNTIME_DIR: "/run",
  HTTPS_PROXY: "http://p",
  DBUS_SESSION_BUS_ADDRESS: "unix:",
  TACKROOM_LOG_LEVEL: "debug",
  OPENAI_API_KEY: "sk-secret",
  NODE_OPTIONS: "--inspect",
  UNSET: undefined
}

describe("ChildEnvironment", () => {
  it("a harness child gets the short system list and what was named, nothing else [HRN-031]", () => {
    assert.deepStrictEqual(
      { ...childEnvironment(parent, { names: ["OPENAI_API_KEY", "MISSING"], variables: { MODE: "x" } }, "linux") },
      {
        PATH: "/bin",
        HOME: "/home/u",
        LANG: "C",
        LC_ALL: "C",
        XDG_RUNTIME_DIR: "/run",
        HTTPS_PROXY: "http://p",
        OPENAI_API_KEY: "sk-secret",
        MODE: "x"
      }
    )
  })

  it("a host gets the session bus and its log level too [RUN-083]", () => {
    const environment = childEnvironment(parent, { list: "host" }, "linux")
    assert.strictEqual(environment["DBUS_SESSION_BUS_ADDRESS"], "unix:")
    assert.strictEqual(environment["TACKROOM_LOG_LEVEL"], "debug")
    assert.notProperty(environment, "OPENAI_API_KEY")
    assert.notProperty(environment, "NODE_OPTIONS")
  })

  it("a tool child gets no proxy, no XDG directory, and never a name that holds a connection's secret [RUN-085]", () => {
    const environment = childEnvironment(
      parent,
      { list: "tool", names: ["OPENAI_API_KEY"], never: ["OPENAI_API_KEY"] },
      "linux"
    )
    assert.deepStrictEqual(Object.keys(environment).sort(), ["HOME", "LANG", "LC_ALL", "PATH"])
  })

  it("a host removes every other variable from its own environment [RUN-084]", () => {
    const own: Record<string, string | undefined> = { ...parent }
    const removed = scrubEnvironment(own, ["NODE_OPTIONS"], "linux")
    assert.deepStrictEqual([...removed].sort(), ["OPENAI_API_KEY", "UNSET"])
    assert.notProperty(own, "OPENAI_API_KEY")
    assert.strictEqual(own["NODE_OPTIONS"], "--inspect")
  })

  it("on Windows names are compared without case and the system's own names pass [HRN-031] [RUN-083]", () => {
    const environment = childEnvironment(
      { Path: "C:\\bin", SYSTEMROOT: "C:\\W", Secret: "x" },
      { list: "tool" },
      "win32"
    )
    assert.deepStrictEqual({ ...environment }, { Path: "C:\\bin", SYSTEMROOT: "C:\\W" })
  })

  it("a variable called __proto__ is plain data", () => {
    const environment = childEnvironment({}, { variables: JSON.parse('{"__proto__": "x"}') }, "linux")
    assert.deepStrictEqual(Object.keys(environment), ["__proto__"])
  })
})
