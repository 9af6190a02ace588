import { assert, describe, it } from "@effect/vitest"
import { builtIns, companions, parseCommand } from "../../src/command/Command.ts"
import { helpText } from "../../src/command/Help.ts"
import { editDistance as distance } from "@tackroom/protocol/text"
import { suggest } from "../../src/command/Suggestion.ts"
import { stateHome } from "@tackroom/sdk/process"
import { hostState } from "../../src/command/StateHome.ts"

describe("the command line", () => {
  it("each built-in name is its own subcommand with its own help [D-18]", () => {
    for (const { name } of builtIns) {
      assert.notStrictEqual(parseCommand([name])._tag, "External", name)
      assert.deepStrictEqual(parseCommand([name, "--help"]), {
        _tag: "Help",
        topic: name === "help" ? undefined : name
      })
      assert.include(helpText(name), "Usage:")
      assert.notStrictEqual(helpText(name), helpText(undefined))
    }
  })

  it("help comes from --help, -h, and help, and on a topic", () => {
    for (const argv of [["--help"], ["-h"], ["help"]]) {
      assert.deepStrictEqual(parseCommand(argv), { _tag: "Help", topic: undefined })
    }
    assert.deepStrictEqual(parseCommand(["help", "run"]), { _tag: "Help", topic: "run" })
    assert.deepStrictEqual(parseCommand(["run", "a", "-h"]), { _tag: "Help", topic: "run" })
  })

  it("a help flag behind -- is a word of the prompt", () => {
    assert.deepStrictEqual(parseCommand(["run", "--", "--help"]), { _tag: "Run", args: ["--", "--help"] })
  })

  it("any other name is another program, which gets all arguments, help flags included [D-18]", () => {
    assert.deepStrictEqual(parseCommand(["rig", "serve", "--help"]), {
      _tag: "External",
      name: "rig",
      args: ["serve", "--help"]
    })
    assert.deepStrictEqual(parseCommand(["help", "rig"]), { _tag: "External", name: "rig", args: ["--help"] })
  })

  it("what cannot be part of a program's name is refused", () => {
    for (const name of ["../evil", "a/b", "Run", "", "--nope", "a b", "rig;ls"]) {
      assert.strictEqual(parseCommand([name])._tag, "Usage", name)
    }
    assert.strictEqual(parseCommand([])._tag, "Usage")
  })
})

describe("help", () => {
  it("the overview names every subcommand and companion, in at most 80 columns", () => {
    const text = helpText(undefined)
    for (const name of [...builtIns, ...companions].map((entry) => entry.name)) assert.include(text, `  ${name} `)
    for (const topic of [undefined, ...builtIns.map(({ name }) => name)]) {
      for (const line of helpText(topic).split("\n")) assert.isAtMost(line.length, 80, line)
    }
  })

  it("the help of run tells every flag and exit code", () => {
    const text = helpText("run")
    for (const flag of ["project", "agent", "model", "key-env", "base-url", "session", "state-dir", "config"]) {
      assert.include(text, `--${flag}`)
    }
    for (const flag of ["approve", "json", "quiet", "run-id", "help"]) assert.include(text, `--${flag}`)
    for (const code of ["0 completed", "1 failed", "2 usage", "3 could not start"]) assert.include(text, code)
  })
})

describe("suggestions", () => {
  it("counts the edits between two words, a swap as one", () => {
    assert.strictEqual(distance("run", "run"), 0)
    assert.strictEqual(distance("rnu", "run"), 1)
    assert.strictEqual(distance("", "run"), 3)
    assert.strictEqual(distance("sevre", "serve"), 1)
  })

  it("offers the nearest name and nothing when none is near", () => {
    const names = [...builtIns.map(({ name }) => name), "version"]
    assert.strictEqual(suggest("rnu", names), "run")
    assert.strictEqual(suggest("harness", names), "harness-stdio")
    assert.strictEqual(suggest("toolrunner", names), "tool-runner")
    assert.strictEqual(suggest("versoin", names), "version")
    assert.isUndefined(suggest("deploy", names))
  })
})

describe("the home of the state [D-42]", () => {
  const machine = (platform: NodeJS.Platform, env: Record<string, string> = {}) => ({ platform, home: "/home/a", env })

  it("is TACKROOM_HOME when it is set, host/ in it is the host's", () => {
    assert.strictEqual(stateHome(machine("linux", { TACKROOM_HOME: "/srv/t" })), "/srv/t")
    assert.strictEqual(hostState(machine("darwin", { TACKROOM_HOME: "/srv/t" })), "/srv/t/host")
  })

  it("is the platform's directory for state otherwise", () => {
    assert.strictEqual(stateHome(machine("linux")), "/home/a/.local/state/tackroom")
    assert.strictEqual(stateHome(machine("linux", { XDG_STATE_HOME: "/x" })), "/x/tackroom")
    assert.strictEqual(stateHome(machine("linux", { XDG_STATE_HOME: "relative" })), "/home/a/.local/state/tackroom")
    assert.strictEqual(stateHome(machine("linux", { TACKROOM_HOME: "" })), "/home/a/.local/state/tackroom")
    assert.strictEqual(stateHome(machine("darwin")), "/home/a/Library/Application Support/tackroom")
  })
})
