import { readFileSync } from "node:fs"
import {
  checkPreset,
  readLaunchRecord,
  refusalReactions,
  stateReactions,
  activityEvents
} from "@tackroom/protocol/seat"
import * as Yaml from "effect/encoding/Yaml"
import { assert, describe, it } from "vitest"

const read = (name: string): string => readFileSync(new URL(`../../${name}`, import.meta.url), "utf8")
const block = (text: string, language: string): string =>
  new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "su").exec(text)?.[1] ?? ""

describe("what the documents show", () => {
  it("is a preset without a problem", () => {
    assert.deepStrictEqual(checkPreset(Yaml.parse(block(read("README.md"), "yaml")), "claude").problems, [])
  })

  it("is a usable launch record, and every word of the wire", () => {
    const guide = read("docs/runner-author-guide.md")
    const expected = { attempt: "<OPENRIG_LAUNCH_ATTEMPT>", harness: "otter" }
    const record = block(guide, "json").replace("<preset name>", expected.harness)
    assert.isDefined(readLaunchRecord(record, expected))
    for (const word of [...Object.keys(refusalReactions), ...Object.keys(stateReactions)])
      assert.include(guide, `\`${word}\``)
    for (const { hookEvent, subtype } of Object.values(activityEvents))
      assert.include(guide, `\`${hookEvent}\` / \`${subtype}\``)
  })
})
