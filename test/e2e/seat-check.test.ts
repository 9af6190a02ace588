/**
 * The check of seat runners on our own runner: both programs as they are built, or from source where nothing is built.
 *
 * The whole check waits for a minute and a half. Here its long watches are a tenth, with a seat whose own periods are short; a
 * promise whose periods a seat cannot change has a run of its own. `tackroom-conformance runner --profile tackroom` without a
 * scale is the real thing.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { checkPreset, refusalReactions, reactionTo } from "@tackroom/protocol/seat"
import { parse } from "effect/encoding/Yaml"
import { readPreset } from "../../packages/runner/src/conformance/runner/Preset.ts"
import * as Rows from "../../packages/runner/src/conformance/runner/checks/PermissionRows.ts"
import { root } from "./architecture/Sources.ts"

const program = (name: string, source: string): string => {
  const built = join(root, "packages/runner/dist/bin", `${name}.cjs`)
  return existsSync(built) ? built : join(root, "packages/runner/src", source)
}

const conformance = program("tackroom-conformance", "conformance/cli.ts")
const seat = program("tackroom-seat", "main.ts")

const preset = `format: 1
name: fake
command: tackroom-seat
maintainer: the project
runner: true
launch_result: true
resume: true
first_input: true
passes_model: true
limits:
  - a prompt whose whole text is /abort cannot be sent
`

interface Report {
  readonly results: ReadonlyArray<{ readonly id: string; readonly verdict: string; readonly reason?: string }>
}

const check = (folder: string, name: string, flags: ReadonlyArray<string>): Promise<Report> =>
  new Promise((resolve, reject) => {
    const json = join(folder, `${name}.json`)
    const short = ["--liveness", "5", "--idle-liveness", "1", "--open-timeout", "3"]
    const command = [process.execPath, seat, "--harness", "fake", "--model-flag", "--model", ...short, "--", "{agent}"]
    const kit = ["runner", "--profile", "tackroom", "--preset", join(folder, "fake.yaml"), "--patience", "4"]
    const child = spawn(process.execPath, [conformance, ...kit, "--json", json, ...flags, "--", ...command], {
      stdio: ["ignore", "ignore", "pipe"]
    })
    let error = ""
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      error += text
    })
    child.once("error", reject)
    child.once("close", (code) => {
      if (code === 0 || code === 1 || code === 2) resolve(JSON.parse(readFileSync(json, "utf8")) as Report)
      else reject(new Error(`the check ended with ${code}: ${error}`))
    })
  })

const notPassed = ({ results }: Report): ReadonlyArray<string> =>
  results.filter(({ verdict }) => verdict !== "pass").map(({ id, reason, verdict }) => `${id} ${verdict}: ${reason}`)

describe("tackroom-seat", () => {
  it("keeps every promise of the runner check", { timeout: 240_000 }, async () => {
    const folder = mkdtempSync(join(tmpdir(), "tackroom-check-"))
    try {
      writeFileSync(join(folder, "fake.yaml"), preset)
      const [all, streaming] = await Promise.all([
        check(folder, "all", ["--jobs", "6", "--time-scale", "0.1", "--skip", "CHK-047"]),
        check(folder, "streaming", ["--time-scale", "0.4", "--only", "CHK-047"])
      ])
      assert.deepStrictEqual(notPassed(all), ["CHK-047 skip: excluded"])
      assert.deepStrictEqual(notPassed(streaming), [])
      assert.isAbove(all.results.length, 80)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

/** The check shares nothing with the codecs of protocol, so that no mistake is made twice. Here both must agree. */
describe("what the runner check takes for right", () => {
  const base = ["format: 1", "name: otter", "command: otter-seat", "runner: true", "launch_result: true"]
  const changes: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
    ["nothing", []],
    ["another format", ["format: 2"]],
    ["a format of another type", ['format: "1"']],
    ["another name", ["name: badger"]],
    ["no name", ["name: -otter"]],
    ["a command as a list", ["command: [otter-seat, --fast]"]],
    ["an empty command", ['command: ""']],
    ["an empty list", ["command: []"]],
    ["a command with a number", ["command: [otter, 1]"]],
    ["no launch_result", ["launch_result: false"]],
    ["a plain preset that resumes", ["runner: false", "launch_result: false", "resume: true"]],
    ["a switch that is text", ["resume: on"]],
    ["all switches", ["resume: true", "first_input: true", "passes_model: true"]],
    ["names_conversation beside runner", ["names_conversation: true"]],
    ["names_conversation off", ["names_conversation: false"]],
    ["limits that are text", ["limits: none"]],
    ["no limits at all", ["limits: []"]],
    ["a limit without words", ['limits: [""]']],
    ["a long limit", [`limits: ["${"x".repeat(501)}"]`]],
    ["many limits", [`limits: [${Array.from({ length: 51 }, () => "x").join(", ")}]`]],
    ["a maintainer", ["maintainer: somebody"]],
    ["a maintainer without a name", ['maintainer: ""']],
    ["an unknown key", ["colour: green"]],
    ["a key nearly known", ["runer: true"]]
  ]
  const text = (lines: ReadonlyArray<string>): string => {
    const changed = new Set(lines.map((line) => line.split(":")[0]))
    return [...base.filter((line) => !changed.has(line.split(":")[0])), ...lines, ""].join("\n")
  }

  for (const [name, lines] of changes) {
    it(`a preset with ${name} is judged as protocol judges it`, () => {
      const errors = checkPreset(parse(text(lines)), "otter").problems.filter(({ severity }) => severity === "error")
      const { problems } = readPreset(text(lines), "otter.yaml")
      assert.strictEqual(problems.length > 0, errors.length > 0, JSON.stringify({ problems, errors }))
    })
  }

  it("refusals of a permission request mean what protocol says they mean", () => {
    const { denied, maybeLive, notCurrent, revoked, unlisted, unsupported } = Rows
    const meant = { cancelled: "cancel", held: "refuse_and_hold", permitted: "permit" } as const
    const rows = [denied, unsupported, ...notCurrent, revoked, ...maybeLive, ...unlisted]
    const codes = rows.map((row) => [row.name.split(" ").slice(1).join(" "), meant[row.meant]] as const)
    for (const [code, reaction] of codes) assert.strictEqual(reactionTo(code), reaction, code)
    assert.includeMembers(
      codes.map(([code]) => code),
      Object.keys(refusalReactions)
    )
  })
})
