/**
 * The whole way of a seat with our own programs: the rig service, tmux, `tackroom-seat` and an agent, each a process of its
 * own. What happens is awaited in the service's feed.
 */
import { execFileSync, spawn } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { rigPath, type RigRouteName, rigRoutes } from "@tackroom/protocol/seat"
import { assert, describe, it } from "@effect/vitest"
import { onTestFinished } from "vitest"
import { root } from "./architecture/Sources.ts"

const program = (built: string, source: string): string => {
  const file = join(root, "packages", built)
  return existsSync(file) ? file : join(root, "packages", source)
}
const rigProgram = program("server/dist/bin/tackroom-rig.cjs", "server/src/rig/cli.ts")
const seatProgram = program("runner/dist/bin/tackroom-seat.cjs", "runner/src/main.ts")
const agentProgram = join(root, "test/e2e/programs/otter-agent.ts")

interface FeedEvent {
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}

/** Reads the service's feed from a position; events come to whoever waits for them. */
class Feed {
  readonly #events: Array<FeedEvent> = []
  readonly #waiting = new Set<() => void>()
  readonly ended: Promise<void>

  constructor(url: string, token: string, signal: AbortSignal, after = 0) {
    this.ended = this.#read(url, token, signal, after).catch(() => undefined)
  }

  async #read(url: string, token: string, signal: AbortSignal, after: number): Promise<void> {
    const response = await fetch(`${url}/api/rig/v1/feed?after=${after}`, {
      headers: { authorization: `Bearer ${token}` },
      signal
    })
    const decoder = new TextDecoder()
    let rest = ""
    for await (const chunk of response.body ?? []) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n")
      rest = lines.pop() ?? ""
      for (const line of lines) {
        if (!line.startsWith("data: {")) continue
        this.#events.push(JSON.parse(line.slice("data: ".length)) as FeedEvent)
        for (const look of this.#waiting) look()
      }
    }
  }

  /** The first event after those that were already taken that fits. */
  #taken = 0
  next(fits: (event: FeedEvent) => boolean): Promise<FeedEvent> {
    return new Promise((resolve) => {
      const look = (): void => {
        const at = this.#events.findIndex((event, index) => index >= this.#taken && fits(event))
        if (at < 0) return
        this.#taken = at + 1
        this.#waiting.delete(look)
        resolve(this.#events[at] as FeedEvent)
      }
      this.#waiting.add(look)
      look()
    })
  }
}

const activity =
  (value: string) =>
  ({ data, type }: FeedEvent): boolean =>
    type === "seat.activity" && JSON.stringify(data).includes(`"value":"${value}"`)

describe("a seat of the rig service", () => {
  it("works, asks, is answered by a person behind a killed service, is stopped, and is resumed [RIG-322, SEAT-031, SEAT-220, SEAT-223, SEAT-250, SEAT-Q3]", async () => {
    const home = realpathSync(mkdtempSync(join(tmpdir(), "tkr-")))
    const presets = join(home, "rig", "community-harnesses")
    mkdirSync(presets, { recursive: true, mode: 0o700 })
    const preset = join(presets, "otter.yaml")
    writeFileSync(
      preset,
      JSON.stringify({
        format: 1,
        name: "otter",
        command: [process.execPath, seatProgram, "--preset", preset],
        maintainer: "the project",
        runner: true,
        launch_result: true,
        resume: true,
        limits: ["a prompt whose whole text is /abort cannot be sent"],
        tackroom: { agent_command: [process.execPath, agentProgram] }
      })
    )
    const serve = async () => {
      const child = spawn(process.execPath, [rigProgram, "serve"], {
        env: { ...process.env, TACKROOM_HOME: home, TACKROOM_RIG_PORT: "0" },
        stdio: ["ignore", "pipe", "pipe"]
      })
      const ended = new Promise((resolve) => child.once("close", resolve))
      const url = new Promise<string>((resolve, reject) => {
        const read = (text: string): void => {
          const found = /"the rig service runs","url":"([^"]+)"/u.exec(text)?.[1]
          if (found !== undefined) resolve(found)
        }
        child.stderr.setEncoding("utf8").on("data", read)
        void ended.then(() => reject(new Error("the service ended")))
      })
      return { child, ended, url: await url }
    }
    let service = await serve()
    const { url } = service
    const aborted = new AbortController()
    const socket = join(home, "rig", "tmux.sock")
    onTestFinished(async () => {
      aborted.abort()
      service.child.kill("SIGTERM")
      await service.ended
      try {
        execFileSync("tmux", ["-S", socket, "kill-server"], { stdio: "ignore" })
      } catch {
        // There was none.
      }
      rmSync(home, { recursive: true, force: true })
    })
    const token = readFileSync(join(home, "rig", "operator-token"), "utf8").trim()
    const call = async (
      name: RigRouteName,
      params: Readonly<Record<string, string>> = {},
      body: object = {}
    ): Promise<Readonly<Record<string, unknown>>> => {
      const { method } = rigRoutes[name]
      const response = await fetch(url + rigPath(name, params), {
        method,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        ...(method === "GET" ? {} : { body: JSON.stringify(body) })
      })
      const answer = (await response.json()) as Readonly<Record<string, unknown>>
      assert.strictEqual(response.status, 200, `${name}: ${JSON.stringify(answer)}`)
      return answer
    }
    let feed = new Feed(url, token, aborted.signal)
    const seat = "dev-builder@mill"
    const view = async (): Promise<string> => JSON.stringify((await call("getSeat", { seat }))["seat"])

    await call(
      "createRig",
      {},
      { format: 1, name: "mill", seats: [{ pod: "dev", member: "builder", harness: "otter", cwd: home }] }
    )
    await call("launchSeat", { seat })
    assert.include(await view(), `"nativeRef":"c-81"`)
    await feed.next(activity("idle"))

    // Sent as one message of seven lines, the control word among them: one prompt.
    await call("sendSeat", { seat }, { text: "look\n/abort\nplease", verify: true })
    await feed.next(activity("working"))
    await feed.next(activity("idle"))

    await call("addPerson", {}, { id: "op1", name: "Ann" })
    await call("sendSeat", { seat }, { text: "edit it", raw: true })
    const opened = await feed.next(({ type }) => type === "ask.opened")
    const ask = String(opened.data["askId"])
    assert.include(await view(), `"value":"needs_input"`)
    // The runner reads on at the address that it knows.
    service.child.kill("SIGKILL")
    await service.ended
    service = await serve()
    assert.strictEqual(service.url, url)
    feed = new Feed(url, token, aborted.signal, Number((await call("getSeat", { seat }))["feedCursor"]))
    await call("answerAsk", { ask }, { by: "op1", text: "No." })
    await feed.next(activity("working"))
    await feed.next(activity("idle"))

    const pane = execFileSync("tmux", ["-S", socket, "capture-pane", "-p", "-t", `=${seat}:`], { encoding: "utf8" })
    assert.include(pane, "agent > lines: 8")
    assert.include(pane, "permission > answered: Reject (reject_once)")
    assert.include(pane, "edit: no")
    const pids = execFileSync("tmux", ["-S", socket, "list-panes", "-F", "#{pane_pid}", "-t", `=${seat}:`], {
      encoding: "utf8"
    }).trim()

    const stopped = await call("stopSeat", { seat })
    assert.notInclude(JSON.stringify(stopped), `"pid"`, "something was left running")
    assert.isFalse(existsSync(`/proc/${pids}`))

    await call("launchSeat", { seat })
    await feed.next(activity("idle"))
    assert.match(await view(), /"state":"resumed"/u)
    await call("stopSeat", { seat })
  })
})
