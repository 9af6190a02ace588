/**
 * The host is ended by SIGKILL everywhere and started again on the same state directory; a client with what it knows goes
 * on. Two matrices: real kills (at each event a client sees, and at random moments), and the store as it is after each
 * single transaction and within each (its write-ahead log cut there).
 */
import { assert, describe, it } from "@effect/vitest"
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { drive, nothingKnown, type Known, type Plan } from "./support/Drive.ts"
import { commitsOf, readStored, readWal, walPath, type Stored } from "./support/Journal.ts"
import { makeUnownedLab, type Lab } from "./support/Lab.ts"
import { effectsOf, isEnd, proveAnswers, proveStore } from "./support/Proof.ts"
import { HostGone, type Loose, type RawHost } from "./support/RawHost.ts"
import { random, seedOf } from "./support/Random.ts"

const output = "Done: list.md"
const call = (tool: string, args: object) => ({ call: { tool, arguments: args } })

const scenario = (pause: number) => ({
  default: [
    [
      { thinking: "A list." },
      { delay_ms: 40 },
      { text: "I look first" },
      // Long enough for what is said to be journaled before the response is complete.
      { delay_ms: 40 },
      { text: " — é𝄞." },
      call("files.read", { path: "notes.txt" })
    ],
    [
      { text: "Then I write." },
      call("files.write", { path: "list.md", content: "- tent" }),
      call("shell.run", { command: `echo ran >> lines; echo out; sleep ${pause}` })
    ],
    [call("ask_user", { question: "Which year?" })],
    [{ text: "Done:" }, { delay_ms: 40 }, { text: " list.md" }, { usage: { input: 10, output: 5 } }]
  ]
})

const makeTrialLab = (pause: number): Lab =>
  makeUnownedLab({
    scenarios: { assistant: scenario(pause) },
    agents: [{ id: "assistant", tools: ["files.read", "files.write", "shell.run"] }]
  })

const planOf = (lab: Lab): Plan => ({
  agent: "assistant",
  workspace: lab.workspace,
  creationId: "c-1",
  submissionId: "m-1",
  text: "Write a packing list",
  answer: (interruption) => (interruption.kind === "approval" ? { decision: "once" } : { answer: "2025" })
})

const emptyWorkspace = (lab: Lab): void => {
  rmSync(lab.workspace, { recursive: true, force: true })
  mkdirSync(lab.workspace)
  writeFileSync(join(lab.workspace, "notes.txt"), "tent\n")
}

/** Runs until the host is gone or the run is over. */
const driveUntilGone = async (host: RawHost, plan: Plan, known: Known, onEvent?: (event: Loose) => void) => {
  try {
    await host.call("initialize", { protocol_version: 1 })
    await drive(host, plan, known, onEvent)
  } catch (error) {
    if (!(error instanceof HostGone)) throw error
  }
}

/** A new host takes the run to its end; then everything is asked, and looked up, again. */
const goOn = async (lab: Lab, plan: Plan, known: Known, before: Stored | undefined, thorough: boolean) => {
  const host = await lab.open()
  await drive(host, plan, known)
  await proveAnswers(host, plan, known, output)
  assert.deepStrictEqual(await host.close(), { code: 0, signal: null })
  proveStore(lab, known, before)
  if (!thorough) return
  const third = await lab.open()
  await proveAnswers(third, plan, known, output)
  assert.deepStrictEqual(await third.close(), { code: 0, signal: null })
}

/** Trials in `width` lanes, each lane with a folder of its own. A failure names the trial. */
const inLanes = async <T>(
  width: number,
  trials: ReadonlyArray<T>,
  pause: number,
  one: (lab: Lab, trial: T, index: number) => Promise<void>
): Promise<void> => {
  const queue = Array.from(trials.entries())
  const lane = async () => {
    const lab = makeTrialLab(pause)
    try {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const [index, trial] = next
        try {
          await one(lab, trial, index)
        } catch (error) {
          queue.length = 0
          throw new Error(`trial ${JSON.stringify(trial)}`, { cause: error })
        }
      }
    } finally {
      await lab.remove()
    }
  }
  await Promise.all(Array.from({ length: width }, lane))
}

const lanes = 2
/** Far above what a busy machine needs; a host that hangs is found by the deadline of the wait. */
const patience = 300_000

const crashAndGoOn = async (
  lab: Lab,
  index: number,
  crash: (host: RawHost) => ((event: Loose) => void) | undefined
) => {
  rmSync(lab.stateDir, { recursive: true, force: true })
  emptyWorkspace(lab)
  const plan = planOf(lab)
  const known = nothingKnown()
  const host = lab.start()
  await driveUntilGone(host, plan, known, crash(host))
  host.kill("SIGKILL")
  await host.exited
  await goOn(lab, plan, known, undefined, index % 5 === 0)
}

describe("a host that is ended by SIGKILL", () => {
  it(
    "goes on after a kill at each event it showed [RUN-140, RUN-146, RUN-384, RUN-413, RUN-417, RUN-441, RUN-443, RUN-445, RUN-520, RUN-522, AGT-033, AGT-035, RT-140, RT-180]",
    { timeout: patience },
    async () => {
      const lab = makeTrialLab(0.1)
      emptyWorkspace(lab)
      const known = nothingKnown()
      const host = await lab.open()
      await drive(host, planOf(lab), known)
      await host.close()
      await lab.remove()
      const trials = known.events.map((event) => event.seq)
      assert.isAbove(trials.length, 40)
      await inLanes(lanes, trials, 0.1, (lab, cursor, index) =>
        crashAndGoOn(lab, index, (host) => (event) => {
          if (event.seq === cursor) host.kill("SIGKILL")
        })
      )
    }
  )

  const seed = seedOf("crash")
  it(
    `goes on after a kill at a random moment, seed ${seed} [RUN-384, RUN-443, RUN-522]`,
    { timeout: patience },
    async () => {
      const next = random(seed)
      const trials = Array.from({ length: 16 }, () => Math.floor(next() * 900_000) / 1_000)
      await inLanes(lanes, trials, 0.1, (lab, delayMs, index) =>
        crashAndGoOn(lab, index, (host) => {
          // From its start on, so that start-up and migrations are hit as well.
          setTimeout(() => host.kill("SIGKILL"), delayMs)
          return undefined
        })
      )
    }
  )
})

interface Recording {
  readonly state: string
  readonly wal: Uint8Array
  readonly commits: ReadonlyArray<number>
}

/** One whole run, killed at its end, so that its write-ahead log still holds every transaction. */
const record = async (lab: Lab): Promise<Recording> => {
  emptyWorkspace(lab)
  const host = await lab.open()
  await drive(host, planOf(lab), nothingKnown())
  host.kill("SIGKILL")
  await host.exited
  const state = join(lab.root, "recorded")
  cpSync(lab.stateDir, state, { recursive: true })
  const wal = readWal(state)
  return { state, wal, commits: commitsOf(wal) }
}

/** Puts the workspace where the cut journal says the tools were; `ran` decides about calls without a known end. */
const restoreEffects = (lab: Lab, cut: Stored, ran: boolean) => {
  emptyWorkspace(lab)
  const events = [...cut.events.values()].flat().map((event) => JSON.parse(event.payload))
  const reached = (name: string): "no" | "open" | "ended" => {
    const own = (id: string) => events.filter((event) => (event.toolCallId ?? event.tool_call_id) === id)
    const ids = events.filter((e) => e.type === "tool-start" && (e.toolName ?? e.tool_name) === name)
    const calls = ids.map((e) => own(e.toolCallId ?? e.tool_call_id))
    const dispatched = calls.find((call) => call.some((event) => event.metadata?.dispatch === true))
    if (dispatched === undefined) return "no"
    return dispatched.some(isEnd) ? "ended" : "open"
  }
  const [shell, write] = [reached("shell__run"), reached("files__write")]
  const done = (at: "no" | "open" | "ended") => at === "ended" || (at === "open" && ran)
  if (done(write)) writeFileSync(join(lab.workspace, "list.md"), "- tent")
  if (done(shell)) writeFileSync(join(lab.workspace, "lines"), "ran\n")
  return { shell: shell === "open", write: write === "open" }
}

describe("a store whose last transactions are lost", () => {
  const seed = seedOf("wal")
  it(
    `is taken up after each transaction and within each, seed ${seed} [RUN-140, RUN-384, RUN-520, RUN-522, RT-180, RT-181]`,
    { timeout: patience },
    async () => {
      const next = random(seed)
      const trial = async (lab: Lab, recording: Recording, commit: number) => {
        const end = recording.commits[commit] ?? 0
        const following = recording.commits[commit + 1] ?? recording.wal.length
        // Within a transaction: any byte of what would have been the next one, also within its last frame.
        for (const [length, ran] of [
          [end, false],
          [end + Math.floor(next() * (following - end)), true]
        ] as const) {
          rmSync(lab.stateDir, { recursive: true, force: true })
          cpSync(recording.state, lab.stateDir, { recursive: true })
          rmSync(`${walPath(lab.stateDir).slice(0, -4)}-shm`, { force: true })
          writeFileSync(walPath(lab.stateDir), recording.wal.subarray(0, length))
          const cut = readStored(lab.stateDir)
          const open = restoreEffects(lab, cut, ran)
          if (ran && !open.shell && !open.write && commit % 4 !== 0) continue
          const before = effectsOf(lab.workspace)
          const known = nothingKnown()
          await goOn(lab, planOf(lab), known, cut, false)
          const after = effectsOf(lab.workspace)
          if (open.shell) assert.strictEqual(after.lines, before.lines, "what is unknown is not run again")
          if (open.write) assert.strictEqual(after.list, before.list, "what is unknown is not written again")
        }
      }
      const lane = async (number: number) => {
        const lab = makeTrialLab(0)
        try {
          const recording = await record(lab)
          assert.isAbove(recording.commits.length, 20)
          for (let commit = number; commit < recording.commits.length; commit += lanes) {
            try {
              await trial(lab, recording, commit)
            } catch (error) {
              throw new Error(`transaction ${commit} of ${recording.commits.length}`, { cause: error })
            }
          }
        } finally {
          await lab.remove()
        }
      }
      await Promise.all(Array.from({ length: lanes }, (_, number) => lane(number)))
    }
  )
})
