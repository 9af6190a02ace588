/**
 * One case: a runner under test in a fresh seat. A fresh home, folder, port, token and agent; the runner in a pseudo-terminal,
 * or with pipes; and the moves that checks make, each of which says what did not come when it did not.
 *
 * It owns the set-up and the vocabulary. What must hold is the business of the checks.
 */
import { Effect, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import { mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { type Broken, broken, type KitFailed, type Witness } from "../Check.ts"
import * as CaseFolder from "../CaseFolder.ts"
import { type Evidence, masked } from "../Evidence.ts"
import { spawnPiped, type Program, type ProgramSpec } from "../peer/Program.ts"
import { type PtyProgram, spawnPty } from "../peer/Pty.ts"
import { screenText } from "../peer/Screen.ts"
import { deadline, stretch } from "../Timing.ts"
import * as Timeline from "../Timeline.ts"
import * as Agent from "./agent/Agent.ts"
import { outcomeOf, promptText } from "./agent/Frames.ts"
import type { Configuration } from "./Configuration.ts"
import { idText, type JsonObject } from "../Json.ts"
import { isAccepted, isTurnStop } from "./PostKinds.ts"
import { watchRecord } from "./RecordFile.ts"
import * as Rig from "./rig/Rig.ts"
import { environment, type Usual } from "./SeatEnvironment.ts"
import {
  isWork,
  type Post,
  type RecordSeen,
  type RunnerEnded,
  type Seen,
  type SeatTimeline,
  type Submit
} from "./Seen.ts"

const start = "\u001b[200~"
const end = "\u001b[201~"

/** How a case differs from an ordinary new launch in a pane. */
export interface SeatOptions {
  readonly pipes?: boolean
  /** Variables that replace the usual ones; undefined takes one away. */
  readonly env?: (usual: Usual) => Readonly<Record<string, string | undefined>>
  /** What the agent answers to `initialize`, besides the protocol version. */
  readonly capabilities?: JsonObject
  /** What the agent does by itself; replaces the usual. */
  readonly agent?: Readonly<Record<string, Agent.Handler>>
  readonly rig?: (rig: Rig.Rig) => void
}

export interface Turn {
  readonly number: number
  /** The agent's id of the prompt request. */
  readonly id: Agent.RpcId
  readonly at: number
}

export interface Seat extends Usual {
  readonly configuration: Configuration
  readonly timeline: SeatTimeline
  readonly rig: Rig.Rig
  readonly agent: Agent.Agent
  /** The conversation that the agent opens. */
  readonly nativeRef: string
  readonly program: Program
  readonly pty: PtyProgram | undefined

  /** Waits for what must come; five seconds unless told otherwise. */
  readonly until: <A>(what: string, look: () => A | undefined, seconds?: number) => Effect.Effect<A, Broken>
  /** Watches for what must not be, for a stretch of observation. */
  readonly never: (what: string, look: () => unknown, seconds: number) => Effect.Effect<void, Broken>
  /** Lets a stretch of observation pass. */
  readonly pass: (seconds: number) => Effect.Effect<void>
  /** Milliseconds of a time that a promise names. */
  readonly named: (seconds: number) => number

  readonly posts: (after?: number) => ReadonlyArray<Post>
  readonly submits: () => ReadonlyArray<Submit>
  readonly seen: <What extends Seen["what"]>(what: What, after?: number) => ReadonlyArray<Extract<Seen, { what: What }>>
  readonly ended: () => RunnerEnded | undefined
  /** What the pane showed since a time: raw, or as a person sees it. */
  readonly output: (after?: number) => string
  readonly shown: (after?: number) => string
  /** The last launch record that could be read. */
  readonly record: () => JsonObject | undefined

  readonly type: (bytes: string | Uint8Array) => Effect.Effect<void>
  /** A paste as tmux sends it, without Enter. */
  readonly paste: (text: string) => Effect.Effect<void>
  readonly enter: Effect.Effect<void>
  /** A message as tmux sends it: paste, 200 ms, Enter. */
  readonly send: (text: string) => Effect.Effect<void>
  readonly pause: (ms: number) => Effect.Effect<void>

  /** The agent was asked to open its conversation. */
  readonly called: Effect.Effect<void, Broken>
  /** The same, and the pane takes messages. */
  readonly opened: Effect.Effect<void, Broken>
  readonly prompt: (number: number, seconds?: number) => Effect.Effect<Agent.Received, Broken>
  /** Sends a message and waits until the agent has it as a prompt. */
  readonly turn: (text: string) => Effect.Effect<Turn, Broken>
  /** The agent ends a turn. */
  readonly finish: (turn: Turn, reason?: string) => void
  /** Waits for the post that says how the turn that was just finished ended. */
  readonly stopped: (after: number, seconds?: number) => Effect.Effect<Post, Broken>
  readonly accepted: (turn: Turn) => Effect.Effect<Post, Broken>
  /** The agent says something in the open turn. */
  readonly say: (text: string) => void
  readonly tool: (toolCallId: string, kind: string) => void
  /** The agent asks for a permission. */
  readonly ask: (id: Agent.RpcId, request?: Partial<PermissionRequest>) => void
  /** Waits until the agent has its answer. */
  readonly outcome: (id: Agent.RpcId, seconds?: number) => Effect.Effect<string, Broken>
}

export interface PermissionRequest {
  readonly title: string
  readonly kind: string
  readonly options: ReadonlyArray<{ readonly optionId: string; readonly name: string; readonly kind: string }>
}

export const usualOptions: PermissionRequest["options"] = [
  { optionId: "yes-once", name: "Allow", kind: "allow_once" },
  { optionId: "no-once", name: "Reject", kind: "reject_once" }
]

/** Output that came in pieces is shown as one. */
const joined = (seen: ReadonlyArray<Seen>): ReadonlyArray<Evidence> => {
  const entries: Array<Seen> = []
  for (const entry of seen) {
    const last = entries.at(-1)
    if (entry.what === "output" && last?.what === "output") {
      entries[entries.length - 1] = { ...last, text: last.text + entry.text }
    } else entries.push(entry)
  }
  return entries
}

const opens: Agent.Handler = (received, agent) => agent.reply(received.id, {})

const short = (text: string | undefined): string =>
  text === undefined ? "nothing" : JSON.stringify(text.length > 300 ? `${text.slice(0, 300)}…` : text)

export const open = Effect.fn("Seat.open")(function* (
  configuration: Configuration,
  witness: Witness,
  options: SeatOptions = {}
): Effect.fn.Return<Seat, Broken | KitFailed, Scope.Scope> {
  const folder = yield* CaseFolder.make(configuration.keep)
  const home = join(folder, "home")
  const attempt = randomUUID()
  const generation = randomUUID()
  const token = `canary-${randomUUID().replaceAll("-", "")}`
  const nativeRef = `conversation-${randomUUID()}`
  const rigHome = join(folder, "rig")
  const launchFolder = join(rigHome, "launch", attempt)
  const work = join(folder, "work")
  const bin = join(folder, "bin")
  for (const one of [home, launchFolder, work, bin]) mkdirSync(one, { recursive: true, mode: 0o700 })

  const timeline = Timeline.make<Seen>((entry) => {
    if (isWork(entry)) witness.heard()
  })
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => witness.saw(joined(timeline.seen).map((one) => masked(one, [token]))))
  )
  const rig = yield* Rig.make(timeline, token)
  const agent = yield* Agent.make(timeline, {
    folder,
    program: configuration.agentProgram,
    node: configuration.node
  })
  options.rig?.(rig)

  const usually: ReadonlyArray<readonly [string, Agent.Handler]> = [
    [
      "initialize",
      (received) =>
        agent.reply(received.id, {
          protocolVersion: 1,
          agentCapabilities: options.capabilities ?? {},
          agentInfo: { name: "case-agent", version: "1.2.3" },
          authMethods: []
        })
    ],
    ["authenticate", opens],
    ["session/new", (received) => agent.reply(received.id, { sessionId: nativeRef })],
    ["session/load", opens],
    ["session/resume", opens],
    ["session/set_config_option", (received) => agent.reply(received.id, { configOptions: [] })]
  ]
  for (const [method, handler] of [...usually, ...Object.entries(options.agent ?? {})])
    agent.handlers.set(method, handler)

  const recordPath = join(launchFolder, "result.json")
  const readRecord = yield* watchRecord(timeline, launchFolder, recordPath)

  const usual: Usual = {
    folder,
    home,
    rigHome,
    launchFolder,
    recordPath,
    bin,
    attempt,
    generation,
    token,
    url: rig.url,
    port: rig.port
  }
  const { agentName } = configuration
  if (agentName !== undefined) symlinkSync(agent.executable, join(bin, agentName))

  const spec: ProgramSpec = {
    command: configuration.command.map((word) => word.replaceAll("{agent}", agent.executable)),
    cwd: work,
    env: environment(configuration, usual, options.env?.(usual) ?? {}),
    onOutput: (bytes) => {
      timeline.add({ kind: "pane", what: "output", text: Buffer.from(bytes).toString("utf8"), bytes })
    },
    onEnd: ({ code, signal }) => {
      readRecord()
      const how = signal === null ? `code ${code}` : `signal ${signal}`
      timeline.add({ kind: "process", what: "runner-ended", text: `runner ended: ${how}`, code, signal })
    },
    onLeftOver: (group) => {
      const text = `left over in process group ${group}, ended by the kit`
      timeline.add({ kind: "process", what: "left-over", text })
    }
  }
  const pty = options.pipes === true ? undefined : yield* spawnPty(spec)
  const program = pty ?? (yield* spawnPiped(spec))

  const { timing } = configuration
  const until: Seat["until"] = (what, look, seconds = 5) => timeline.until(what, look, deadline(timing, seconds))
  const pause = (ms: number): Effect.Effect<void> => Effect.sleep(ms)

  const bytesOf = (after = -1): Buffer =>
    Buffer.concat(timeline.seen.flatMap((entry) => (entry.what === "output" && entry.at >= after ? [entry.bytes] : [])))
  const type: Seat["type"] = (input) =>
    Effect.sync(() => {
      const bytes = Buffer.from(input)
      timeline.add({ kind: "pane", what: "input", text: `typed ${short(bytes.toString("utf8"))}`, bytes })
      program.write(bytes)
    })
  const paste = (text: string): Effect.Effect<void> => type(`${start}${text}${end}`)
  const enter = type("\r")
  const send: Seat["send"] = (text) => paste(text).pipe(Effect.andThen(pause(200)), Effect.andThen(enter))

  const ended = (): RunnerEnded | undefined => timeline.seen.find((entry) => entry.what === "runner-ended")
  const posts = (after = -1): ReadonlyArray<Post> =>
    timeline.seen.filter((entry): entry is Post => entry.what === "post" && entry.at >= after)

  /** What is there, or nothing more can come because the runner has ended. */
  const orEnded = <A>(what: string, look: () => A | undefined, seconds: number): Effect.Effect<A, Broken> =>
    Effect.flatMap(
      until(what, () => look() ?? ended(), seconds),
      () => {
        const found = look()
        return found === undefined
          ? Effect.fail(broken(`${what}: the runner ended first (${ended()?.text ?? ""})`))
          : Effect.succeed(found)
      }
    )

  const prompt: Seat["prompt"] = (number, seconds = 5) =>
    orEnded(`prompt ${number} at the agent`, () => agent.received("session/prompt")[number - 1], seconds)

  const called = Effect.asVoid(
    orEnded(
      "the agent's conversation",
      () => agent.received().find(({ method }) => /^session\/(?:new|load|resume)$/u.test(method)),
      20
    )
  )

  const update = (content: JsonObject): void =>
    agent.send({ method: "session/update", params: { sessionId: nativeRef, update: content } })

  const seat: Seat = {
    ...usual,
    configuration,
    timeline,
    rig,
    agent,
    nativeRef,
    program,
    pty,
    until,
    never: (what, look, seconds) => timeline.never(what, look, stretch(timing, seconds)),
    pass: (seconds) => pause(stretch(timing, seconds)),
    named: (seconds) => stretch(timing, seconds),
    posts,
    submits: () => timeline.seen.filter((entry): entry is Submit => entry.what === "submit"),
    seen: (what, after = -1) =>
      timeline.seen.filter(
        (entry): entry is Extract<Seen, { what: typeof what }> => entry.what === what && entry.at >= after
      ),
    ended,
    output: (after) => bytesOf(after).toString("utf8"),
    shown: (after) => screenText(bytesOf(after).toString("utf8")),
    record: () =>
      timeline.seen.findLast((entry): entry is RecordSeen => entry.what === "record" && entry.record !== undefined)
        ?.record,
    type,
    paste,
    enter,
    send,
    pause,
    called,
    opened:
      pty === undefined
        ? called
        : Effect.andThen(
            called,
            Effect.asVoid(
              until("bracketed paste in the pane", () => bytesOf().includes("\u001b[?2004h") || undefined, 10)
            )
          ),
    prompt,
    turn: (text) =>
      Effect.gen(function* () {
        const number = agent.received("session/prompt").length + 1
        yield* send(text)
        const received = yield* prompt(number)
        const got = promptText(received)
        if (got !== text) return yield* broken(`prompt ${number} is ${short(got)}, sent was ${short(text)}`)
        if (received.id === undefined) return yield* broken("the prompt is no request: it has no id")
        return { number, id: received.id, at: received.frame.at }
      }),
    finish: (turn, reason = "end_turn") => agent.reply(turn.id, { stopReason: reason }),
    stopped: (after, seconds = 5) => until("the turn's Stop post", () => posts(after).find(isTurnStop), seconds),
    accepted: (turn) =>
      until(`the accepted post of turn ${turn.number}`, () =>
        posts().find((post) => isAccepted(post) && idText(post.body["turnId"]) === String(turn.number))
      ),
    say: (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } }),
    tool: (toolCallId, kind) =>
      update({ sessionUpdate: "tool_call", toolCallId, title: `Tool ${toolCallId}`, kind, status: "in_progress" }),
    ask: (id, request = {}) => {
      const { kind = "edit", options: choices = usualOptions, title = `Edit file-${id}.ts` } = request
      agent.send({
        id,
        method: "session/request_permission",
        params: {
          sessionId: nativeRef,
          toolCall: { toolCallId: `call-${id}`, title, kind, status: "pending" },
          options: choices.map((choice) => ({ ...choice }))
        }
      })
    },
    outcome: (id, seconds = 5) =>
      until(
        `the answer to the agent's request ${id}`,
        () => {
          const frame = agent.answerTo(id)
          return frame === undefined ? undefined : outcomeOf(frame.message)
        },
        seconds
      )
  }
  return seat
})
