import { assert, describe, it } from "@effect/vitest"
import { rigDefaults, rigFiles, rigSettings } from "@tackroom/protocol/seat"
import { readFileSync } from "node:fs"
import { diagram } from "../../scripts/Diagram.ts"
import { startReasons } from "../../src/rig/StartRefused.ts"
import { commandNames, commands } from "../../src/rig/command/Commands.ts"
import { helpText } from "../../src/rig/command/Help.ts"

const read = (name: string): string => readFileSync(new URL(`../../${name}`, import.meta.url), "utf8")
const guide = read("docs/operator-guide.md")

describe("the documents", () => {
  it("draw the activity machine as its table says; node packages/server/scripts/generate.ts writes it", () => {
    assert.strictEqual(read("docs/activity.md"), diagram())
  })

  it("name every setting with its default, the files, and the exit codes of a start", () => {
    for (const name of Object.values(rigSettings)) assert.include(guide, `\`${name}\``)
    assert.include(guide, `\`${rigDefaults.port}\``)
    for (const name of [rigFiles.hookToken, rigFiles.operatorToken, rigFiles.endpoint, rigFiles.presets]) {
      assert.include(guide, name)
    }
    for (const code of new Set(Object.values(startReasons))) assert.include(guide, String(code))
  })

  it("state what the local token does not protect from [RIG-007]", () => {
    const section = guide.slice(guide.indexOf("## What the tokens protect"))
    for (const words of ["same user", "any seat", "another user or another machine", "guest"]) {
      assert.include(section.slice(0, section.indexOf("\n## ")), words)
    }
  })

  it("say what a revoked grant does not do, and when nobody is asked [RIG-091]", () => {
    const section = (name: string) => guide.slice(guide.indexOf(`## ${name}`)).split("\n## ")[0] ?? ""
    for (const words of ["revoke-grant", "permitted by its own runner", "seat stop"]) {
      assert.include(section("Guests"), words)
    }
    assert.match(helpText(undefined), /seat revoke-grant +.*permits by itself.*seat stop/u)
    for (const words of ["service is down", "revoked"]) assert.include(section("Permissions"), words)
  })

  it("name only commands that exist", () => {
    const known = commandNames.map((name) => commands[name].words.join(" "))
    const used = [...guide.matchAll(/^tackroom rig ([a-z-]+(?: [a-z-]+)?)/gmu)].map((match) => match[1] ?? "")
    for (const words of used) {
      assert.isTrue(
        known.some((one) => words === one || words.startsWith(`${one} `)),
        words
      )
    }
    for (const name of commandNames) assert.include(helpText(undefined), commands[name].summary)
  })
})
