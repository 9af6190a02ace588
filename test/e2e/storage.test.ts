/**
 * A host whose disk gives out: what cannot be made durable is refused, what was said stays true, reads go on, and with
 * room again everything that was accepted is finished.
 */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync, spawnSync } from "node:child_process"
import { mkdirSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { readAll } from "./support/Drive.ts"
import { commitsOf, readStored, readWal, walPath } from "./support/Journal.ts"
import { makeLab, type Lab } from "./support/Lab.ts"
import { hostProgram, type Loose, type RawHost } from "./support/RawHost.ts"

const makeEchoLab = (): Lab =>
  makeLab({ scenarios: { echo: { default: [], exhausted: "echo" } }, agents: [{ id: "echo", planning: true }] })

const text = "0123456789abcdef".repeat(256)

const openSession = async (host: RawHost, lab: Lab, creation = "c-1"): Promise<string> =>
  (await host.call("agent/session", { agent: "echo", workspace: lab.workspace, creation_id: creation })).session
    .session_id

const openSessions = async (host: RawHost, lab: Lab): Promise<ReadonlyArray<string>> => {
  const ids: Array<string> = []
  for (let number = 0; number < 8; number += 1) ids.push(await openSession(host, lab, `c-${number}`))
  return ids
}

interface Accepted {
  readonly session_id: string
  readonly submission_id: string
  /** Whether it came to its end before the disk gave out. */
  readonly inTime: boolean
}

/**
 * Runs messages until a start is refused for want of room. A run that cannot be brought to its end keeps its session
 * (the refusal there is that the session is busy), so the next message goes to another one.
 */
const fill = async (host: RawHost, ids: ReadonlyArray<string>): Promise<ReadonlyArray<Accepted>> => {
  const free = [...ids]
  const accepted: Array<Accepted> = []
  for (;;) {
    const session_id = free[0]
    if (session_id === undefined) return assert.fail("every session is held by a run, and no start was refused")
    const run = { session_id, submission_id: `m-${accepted.length}` }
    const start = await host.ask("run/start", { ...run, text })
    if (start.error !== undefined) {
      assert.strictEqual(start.error.data.kind, "storage_failure", JSON.stringify(start))
      assert.include(["not_written", "unknown"], start.error.data.outcome)
      return accepted
    }
    const end = await host.call("run/wait", { ...run, wait_ms: 2_000 })
    accepted.push({ ...run, inTime: end.status === "completed" })
    if (end.status !== "completed") free.shift()
  }
}

type Shown = ReadonlyMap<string, ReadonlyArray<Loose>>

const readEach = async (host: RawHost, ids: ReadonlyArray<string>): Promise<Shown> => {
  const shown = new Map<string, ReadonlyArray<Loose>>()
  for (const id of ids) shown.set(id, await readAll(host, id))
  return shown
}

/** The host is up, tells what it has, and refuses what it cannot keep. */
const proveFull = async (
  host: RawHost,
  ids: ReadonlyArray<string>
): Promise<{ readonly accepted: ReadonlyArray<Accepted>; readonly shown: Shown }> => {
  const accepted = await fill(host, ids)
  assert.isAbove(accepted.filter((run) => run.inTime).length, 2)
  assert.strictEqual((await host.call("host/info")).state, "ready")
  const shown = await readEach(host, ids)
  for (const id of ids) {
    await host.call("session/state", { session_id: id })
    const refused = await host.ask("run/start", { session_id: id, submission_id: "late", text })
    assert.include(["storage_failure", "invalid_state"], refused.error?.data.kind, JSON.stringify(refused))
  }
  for (const [id, events] of await readEach(host, ids)) {
    const before = shown.get(id) ?? []
    assert.deepStrictEqual(events.slice(0, before.length), before, "what was shown stays")
  }
  // Trying again costs next to nothing.
  assert.isBelow(host.stderr().split("\n").length, 60)
  return { accepted, shown }
}

/** The state of a run at its end. */
const ended = async (host: RawHost, run: { readonly session_id: string; readonly submission_id?: string }) => {
  for (;;) {
    const state = await host.call("run/wait", { ...run, wait_ms: 5_000 })
    if (state.status !== "running") return state
  }
}

/** Waits for the end of each accepted run. Only one that met the full disk may have failed. */
const proveEnds = async (host: RawHost, accepted: ReadonlyArray<Accepted>): Promise<void> => {
  for (const { inTime, session_id, submission_id } of accepted) {
    const state = await ended(host, { session_id, submission_id })
    const ends = [["completed", undefined], ...(inTime ? [] : [["failed", "internal"]])]
    assert.deepInclude(ends, [state.status, state.failure], submission_id)
  }
}

/** After a restart with room again: every accepted run has its end, and no refused one exists. */
const proveAfterwards = async (lab: Lab, accepted: ReadonlyArray<Accepted>, shown: Shown): Promise<void> => {
  const host = await lab.open()
  await proveEnds(host, accepted)
  for (const [id, before] of shown) {
    const late = await host.ask("run/wait", { session_id: id, submission_id: "late", wait_ms: 0 })
    assert.strictEqual(late.error?.data.kind, "not_found", "what was refused is not there")
    const events = await readAll(host, id)
    assert.deepStrictEqual(events.slice(0, before.length), before)
    assert.deepStrictEqual(
      events.map((event) => event.seq),
      events.map((_, index) => index + 1)
    )
    const run = { session_id: id, submission_id: "new" }
    await host.call("run/start", { ...run, text: "and on" })
    assert.strictEqual((await ended(host, run)).final_output, "and on")
  }
  await host.close()
  assert.strictEqual(readStored(lab.stateDir).integrity, "ok")
}

describe("a full disk", () => {
  it("of a file that may not grow: the host refuses, reads, and has lost nothing afterwards [RUN-064, RUN-062, STO-048]", async () => {
    const lab = makeEchoLab()
    // Everything is there before the limit is. 6,144 blocks: of 512 bytes in a plain sh, of 1,024 in bash.
    await (await lab.open()).close()
    const config = JSON.stringify(lab.config)
    const host = lab.start({
      command: [
        "/bin/sh",
        "-c",
        'ulimit -f 6144 && exec "$0" "$@"',
        process.execPath,
        hostProgram,
        "harness-stdio",
        config
      ]
    })
    await host.call("initialize", { protocol_version: 1 })
    const { accepted, shown } = await proveFull(host, await openSessions(host, lab))
    assert.strictEqual((await host.close()).code, 0)
    await proveAfterwards(lab, accepted, shown)
  })

  it("of a small file system: the same, and the host goes on by itself when there is room [RUN-064, STO-048]", async (context) => {
    const lab = makeEchoLab()
    mkdirSync(lab.stateDir, { mode: 0o700 })
    const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs", lab.stateDir]).status === 0
    if (mounted) onTestFinished(() => void execFileSync("umount", ["-l", lab.stateDir]))
    // A disk of one's own cannot be had everywhere; then the first case stands alone.
    if (!mounted) return context.skip("nothing may be mounted here")
    const host = await lab.open()
    const { accepted, shown } = await proveFull(host, await openSessions(host, lab))
    execFileSync("mount", ["-o", "remount,size=64m", lab.stateDir])
    await proveEnds(host, accepted)
    await host.close()
    await proveAfterwards(lab, accepted, shown)
  })
})

describe("a store file that is taken away", () => {
  it("is not written to any more: what is new is refused, what is there is told, and the host goes on [RUN-064]", async () => {
    const lab = makeEchoLab()
    const host = await lab.open()
    const id = await openSession(host, lab)
    const run = { session_id: id, submission_id: "m-0" }
    await host.call("run/start", { ...run, text: "kept" })
    await ended(host, run)
    const before = await readAll(host, id)
    const file = join(lab.stateDir, "agent-runtime.db")
    const aside = `${file}.aside`
    renameSync(file, aside)
    const refused = await host.ask("run/start", { session_id: id, submission_id: "m-1", text: "lost?" })
    assert.strictEqual(refused.error?.data.kind, "storage_failure", JSON.stringify(refused))
    assert.deepStrictEqual(await readAll(host, id), before)
    renameSync(aside, file)
    await host.call("run/start", { session_id: id, submission_id: "m-1", text: "again" })
    assert.strictEqual((await ended(host, { session_id: id, submission_id: "m-1" })).final_output, "again")
    await host.close()
    assert.strictEqual(readStored(lab.stateDir).integrity, "ok")
  })
})

describe("a torn end of the write-ahead log", () => {
  it("costs what was not committed and nothing else, wherever it is torn [STO-041, STO-049]", async () => {
    const lab = makeEchoLab()
    const host = await lab.open()
    const id = await openSession(host, lab)
    await host.call("run/start", { session_id: id, submission_id: "m-0", text: "one" })
    await host.call("run/wait", { session_id: id, wait_ms: 5_000 })
    const events = await readAll(host, id)
    host.kill("SIGKILL")
    await host.exited
    const wal = readWal(lab.stateDir)
    const commits = commitsOf(wal)
    const last = commits.at(-2) ?? 0
    assert.isAbove(wal.length, last)
    for (const [name, bytes] of [
      ["one byte short", wal.subarray(0, wal.length - 1)],
      ["within the last frame", wal.subarray(0, wal.length - 2_000)],
      ["within a frame header", wal.subarray(0, last + 11)],
      ["a flipped bit in the last frame", Uint8Array.from(wal, (byte, at) => (at === last + 100 ? byte ^ 1 : byte))],
      ["zeros behind it", Buffer.concat([wal, Buffer.alloc(8_192)])],
      ["old bytes behind it", Buffer.concat([wal, wal.subarray(0, 9_000)])]
    ] as const) {
      writeFileSync(walPath(lab.stateDir), bytes)
      const cut = readStored(lab.stateDir)
      assert.strictEqual(cut.integrity, "ok", name)
      const stored = cut.events.get(id) ?? []
      assert.deepStrictEqual(
        stored.map((event) => event.seq),
        stored.map((_, index) => index + 1),
        name
      )
      assert.isAtLeast(stored.length, name.endsWith("behind it") ? events.length : 1, name)
    }
    writeFileSync(walPath(lab.stateDir), wal.subarray(0, wal.length - 1))
    const left = readStored(lab.stateDir).events.get(id)?.length ?? 0
    const next = await lab.open()
    const end = await ended(next, { session_id: id })
    assert.deepStrictEqual([end.status, end.final_output], ["completed", "one"])
    const again = await readAll(next, id)
    const kept = again.slice(0, left).map((event) => JSON.stringify(event))
    assert.deepStrictEqual(
      kept,
      events.slice(0, left).map((event) => JSON.stringify(event))
    )
    await next.close()
  })

  it("of a database that is no database at all fails the start and is left as it is [RUN-081, RUN-082, STO-046]", async () => {
    const lab = makeEchoLab()
    await (await lab.open()).close()
    const file = join(lab.stateDir, "agent-runtime.db")
    writeFileSync(file, "this is not a database, it is a letter\n".repeat(200))
    const host = lab.start()
    const refusal = (await host.ask("initialize", { protocol_version: 1 })).error
    assert.deepStrictEqual([refusal?.data.kind, refusal?.data.reason], ["startup_failed", "storage"])
    assert.deepStrictEqual(await host.closed, { code: 4, signal: null })
  })
})
