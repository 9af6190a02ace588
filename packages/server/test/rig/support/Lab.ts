/**
 * A rig service for a test: a home of its own, tmux with a server of its own, listeners on free ports. Real throughout;
 * what the test plays is the runner's side of HTTP and the operator.
 */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import {
  type FeedEvent,
  rigPath,
  type RigRouteName,
  rigRoutes,
  type SeatOutcome,
  type SeatView
} from "@tackroom/protocol/seat"
import { Effect, Exit, Result, Scope } from "effect"
import * as RigService from "../../../src/rig/RigService.ts"
import { type ServiceLog, silent } from "../../../src/rig/ServiceLog.ts"
import { readSettings, type Variables } from "../../../src/rig/Settings.ts"

export interface Reply {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

/** Shell words that write the launch record with this last member. */
export const record = (member: string): string =>
  [
    `printf '{"format":1,"attempt":"%s","harness":"%s",${member}}'`,
    `"$OPENRIG_LAUNCH_ATTEMPT" "$OPENRIG_RUNTIME" > "$OPENRIG_LAUNCH_RESULT.new";`,
    `mv "$OPENRIG_LAUNCH_RESULT.new" "$OPENRIG_LAUNCH_RESULT"`
  ].join(" ")

/** A shell program that tells which conversation it opened and then shows what is typed. */
export const plainRunner = (nativeRef = "c-1"): string =>
  [
    `printf '{"format":1,"attempt":"%s","harness":"%s","nativeRef":"%s","producer":"test"}'`,
    `"$OPENRIG_LAUNCH_ATTEMPT" "$OPENRIG_RUNTIME" "\${OPENRIG_RESUME_REF:-${nativeRef}}" > "$OPENRIG_LAUNCH_RESULT.new";`,
    `mv "$OPENRIG_LAUNCH_RESULT.new" "$OPENRIG_LAUNCH_RESULT"; exec cat`
  ].join(" ")

export interface LabOptions {
  readonly variables?: Variables
  readonly home?: string
  readonly log?: ServiceLog
}

const settingsOf = (home: string, variables: Variables) => Result.getOrThrow(readSettings(variables, home))

export class Lab {
  readonly family: string
  readonly #owned: boolean
  #scope: Scope.Closeable | undefined
  #service: RigService.RigService | undefined
  readonly #variables: Variables
  readonly #log: ServiceLog

  constructor({ variables = {}, home, log = silent }: LabOptions = {}) {
    this.#log = log
    this.family = home ?? fs.mkdtempSync(path.join(os.tmpdir(), "rig-"))
    this.#owned = home === undefined
    this.#variables = { ...process.env, TACKROOM_RIG_PORT: "0", ...variables }
  }

  get home(): string {
    return path.join(this.family, "rig")
  }

  get socket(): string {
    return path.join(this.home, "tmux.sock")
  }

  get service(): RigService.RigService {
    if (this.#service === undefined) throw new Error("the service is not started")
    return this.#service
  }

  async start(): Promise<this> {
    const scope = Effect.runSync(Scope.make())
    this.#scope = scope
    this.#service = await Effect.runPromise(
      RigService.make({
        settings: settingsOf(this.family, this.#variables),
        variables: this.#variables,
        version: "0.0.0-test",
        log: this.#log
      }).pipe(Scope.provide(scope))
    )
    return this
  }

  /** Ends the service and leaves its seats. */
  async end(): Promise<void> {
    const scope = this.#scope
    this.#scope = undefined
    this.#service = undefined
    if (scope !== undefined) await Effect.runPromise(Scope.close(scope, Exit.void))
  }

  async dispose(): Promise<void> {
    await this.end()
    // A home that another lab made keeps its seats.
    if (!this.#owned) return
    try {
      execFileSync("tmux", ["-S", this.socket, "kill-server"], { stdio: "ignore" })
    } catch {
      // There was none.
    }
    fs.rmSync(this.family, { recursive: true, force: true })
  }

  preset(name: string, fields: Readonly<Record<string, unknown>>): void {
    const folder = path.join(this.home, "community-harnesses")
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
    fs.writeFileSync(
      path.join(folder, `${name}.yaml`),
      JSON.stringify({ format: 1, name, maintainer: "test", limits: [], ...fields })
    )
  }

  /** A runner preset whose program is a shell script. */
  runner(name: string, script: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.preset(name, { command: ["sh", "-c", script], runner: true, launch_result: true, resume: true, ...fields })
  }

  async http(
    method: string,
    target: string,
    options: {
      readonly token?: string
      readonly body?: unknown
      readonly headers?: Readonly<Record<string, string>>
      readonly base?: string
      readonly signal?: AbortSignal
    } = {}
  ): Promise<Reply> {
    const response = await fetch(`${options.base ?? this.service.url}${target}`, {
      method,
      headers: {
        ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
        ...(options.body === undefined ? {} : { "content-type": "application/json" }),
        ...options.headers
      },
      ...(options.body === undefined
        ? {}
        : { body: typeof options.body === "string" ? options.body : JSON.stringify(options.body) }),
      ...(options.signal === undefined ? {} : { signal: options.signal })
    })
    const text = await response.text()
    return { status: response.status, body: text === "" ? {} : (JSON.parse(text) as Reply["body"]) }
  }

  /** A call of the rig API as the operator. */
  api(
    name: RigRouteName,
    params: Readonly<Record<string, string>> = {},
    body?: unknown,
    options: {
      readonly token?: string
      readonly query?: string
      readonly headers?: Readonly<Record<string, string>>
    } = {}
  ): Promise<Reply> {
    const { method } = rigRoutes[name]
    return this.http(method, rigPath(name, params) + (options.query ?? ""), {
      token: options.token ?? this.service.operatorToken,
      ...(method === "GET" ? {} : { body: body ?? {} }),
      ...(options.headers === undefined ? {} : { headers: options.headers })
    })
  }

  /** An activity post with the local token. */
  post(body: Readonly<Record<string, unknown>>, token = this.service.hookToken): Promise<Reply> {
    return this.http("POST", "/api/activity/hooks", { token, body })
  }

  /** Makes a rig `mill` of these seats. */
  rig(...seats: ReadonlyArray<Readonly<Record<string, unknown>>>): Promise<Reply> {
    return this.api(
      "createRig",
      {},
      {
        format: 1,
        name: "mill",
        seats: seats.map((seat) => ({ pod: "dev", harness: "otter", cwd: this.family, ...seat }))
      }
    )
  }

  /** What one seat shows. */
  async seat(reference: string): Promise<SeatView> {
    const reply = await this.api("getSeat", { seat: reference })
    return reply.body["seat"] as SeatView
  }

  /** Starts a seat; how it came out. */
  async launch(seat: string, body: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const reply = await this.api("launchSeat", { seat }, body)
    if (reply.status !== 200) return `${reply.status} ${String(reply.body["code"])}`
    const { outcome, reason } = reply.body["outcome"] as SeatOutcome
    return reason === undefined ? outcome : `${outcome}: ${reason}`
  }

  /** Waits for something that changes at a known place: a file, a view. Bounded, and told of by the condition alone. */
  async until<A>(what: string, look: () => A | undefined | Promise<A | undefined>, boundMs = 20_000): Promise<A> {
    const end = performance.now() + boundMs
    for (;;) {
      const found = await look()
      if (found !== undefined) return found
      if (performance.now() > end) throw new Error(`${what} did not come about`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  /** The next feed event for which a condition holds, from a position on. */
  async feedUntil(after: number, wanted: (event: FeedEvent) => boolean, boundMs = 20_000): Promise<FeedEvent> {
    const abort = AbortSignal.timeout(boundMs)
    const response = await fetch(`${this.service.url}/api/rig/v1/feed?after=${after}`, {
      headers: { authorization: `Bearer ${this.service.operatorToken}` },
      signal: abort
    })
    let rest = ""
    const decoder = new TextDecoder()
    const body = response.body ?? new ReadableStream<Uint8Array>()
    for await (const chunk of body) {
      rest += decoder.decode(chunk, { stream: true })
      const frames = rest.split("\n\n")
      rest = frames.pop() ?? ""
      for (const frame of frames) {
        if (!frame.startsWith("id: ")) continue
        const event = JSON.parse(frame.slice(frame.indexOf("data: ") + 6)) as FeedEvent
        if (wanted(event)) return event
      }
    }
    throw new Error("the feed ended")
  }

  get head(): number {
    return this.service.store.head()
  }

  tmux(...args: ReadonlyArray<string>): string {
    return execFileSync("tmux", ["-S", this.socket, ...args], { encoding: "utf8" })
  }
}
