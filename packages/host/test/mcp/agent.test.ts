/** The native agent works with the MCP servers of its session (AGT-030, AGT-033, ACP-214, ACP-217, ACP-219). */
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import type { McpEntry } from "@tackroom/protocol/events"
import { Effect, type Scope } from "effect"
import {
  approval,
  at,
  call,
  ended,
  folder,
  interrupted,
  journal,
  ofType,
  respond,
  run,
  say,
  settled,
  type Stage,
  stage,
  type StageOptions,
  start
} from "../runs/Kit.ts"
import { awaitLine, entry } from "./Kit.ts"

const done = [say("Done.")]

/** A session of a scripted agent with servers, when they are up. */
const withServers = (
  options: StageOptions,
  mcp: Readonly<Record<string, McpEntry>> = { manners: entry() }
): Effect.Effect<Stage, never, Scope.Scope> =>
  Effect.gen(function* () {
    const on = yield* stage(options)
    const params = { agent: "helper", workspace: on.folder.workspace }
    const { session } = yield* Effect.orDie(on.host.sessions.create(params, { mcp }))
    const { sessionId } = session
    yield* on.host.clientServers.settled(sessionId)
    return { ...on, sessionId }
  })

describe("an agent with servers of its session", () => {
  it.live(
    "a tool of a server is asked for, recorded, called and ended like any other [AGT-033] [AGT-035] [ACP-219]",
    () =>
      Effect.gen(function* () {
        const on = yield* withServers({
          scenario: [[call("manners.sum", { a: 2, b: 40 })], done],
          agent: { approvals: { mode: "only", tools: [] } }
        })
        yield* start(on)
        // No policy names it, so a person is asked, though the server calls its tool read-only.
        const asked = approval(yield* interrupted(on))
        assert.deepStrictEqual(
          [asked.tool, asked.qualifiedName, asked.category],
          ["manners__sum", "manners.sum", "external"]
        )
        yield* respond(on, asked.id, "once")
        assert.strictEqual((yield* ended(on)).status, "completed")
        const events = yield* journal(on)
        assert.strictEqual(ofType(events, "tool-start")[0]?.["kind"], "mcp")
        const [output] = ofType(events, "tool-output")
        assert.deepStrictEqual(output?.["output"], { sum: 42 })
        assert.deepStrictEqual(output?.["metadata"], { tool: "manners__sum", outcome: "completed" })
        assert.strictEqual(ofType(events, "tool-status").filter((event) => at(event, "metadata", "dispatch")).length, 1)
      })
  )

  it.live("the tools of a session's servers are that session's alone [AGT-030]", () =>
    Effect.gen(function* () {
      const on = yield* withServers({
        scenario: { agents: { helper: [[call("manners.echo", {})], done] } },
        agent: { approvals: { mode: "never" } }
      })
      const { session } = yield* on.api["agent/session"]({ agent: "helper", workspace: on.folder.workspace })
      const other: Stage = { ...on, sessionId: session.sessionId }
      assert.strictEqual((yield* run(other)).status, "completed")
      assert.deepStrictEqual(
        ofType(yield* journal(other), "tool-error").map((event) => at(event, "metadata", "outcome")),
        ["not_run"]
      )
      assert.strictEqual((yield* run(on)).status, "completed")
      assert.strictEqual(ofType(yield* journal(on), "tool-output").length, 1)
    })
  )

  it.live(
    "a cancelled turn does not wait for a server that goes on; the server is told, the outcome unknown [RUN-258] [RUN-472]",
    () =>
      Effect.gen(function* () {
        const place = yield* folder
        const notes = join(place.root, "notes")
        const on = yield* withServers(
          { scenario: [[call("manners.hang", {})], done], agent: { approvals: { mode: "never" } } },
          { manners: entry({ notes }) }
        )
        yield* start(on)
        yield* awaitLine(place.root, "notes", "call hang")
        yield* on.api["run/cancel"]({ sessionId: on.sessionId })
        assert.strictEqual((yield* ended(on)).status, "cancelled")
        yield* awaitLine(place.root, "notes", "cancelled 2")
        const end = ofType(yield* journal(on), "tool-status").find((event) => event["status"] === "uncertain")
        assert.strictEqual(at(end, "metadata", "outcome"), "unknown")
        assert.deepStrictEqual(ofType(yield* journal(on), "tool-error"), [])
      })
  )

  it.live("a session grant covers a server's tool until the tool changes [AGT-120] [AGT-121]", () =>
    Effect.gen(function* () {
      const echo = call("manners.echo", { text: "hi" })
      const on = yield* withServers({
        scenario: [[echo], [echo], [call("manners.change", {})], [call("manners.echo", { words: "hi" })], done]
      })
      yield* start(on)
      const asked: Array<string> = []
      const known: Array<string> = []
      for (const decision of ["session", "once", "deny"] as const) {
        const state = yield* settled(on, "m-1", known)
        const one = state.interruptions.find(({ id }) => !known.includes(id))
        assert.isDefined(one)
        if (one?.kind === "approval") asked.push(one.tool)
        known.push(one?.id ?? "")
        yield* respond(on, one?.id ?? "", decision)
      }
      assert.strictEqual((yield* ended(on)).status, "completed")
      assert.deepStrictEqual(asked, ["manners__echo", "manners__change", "manners__echo"])
      const outputs = ofType(yield* journal(on), "tool-output").map((event) => at(event, "output"))
      assert.deepStrictEqual(outputs, ['{"text":"hi"}', '{"text":"hi"}', "changed"])
    })
  )

  it.live("a tool that changed is asked for also where nothing is, and not for the session [AGT-121] [RUN-256]", () =>
    Effect.gen(function* () {
      const on = yield* withServers({
        scenario: [
          [call("manners.change", {})],
          [call("manners.echo", { words: "hi" }), call("manners.sum", {})],
          done
        ],
        agent: { approvals: { mode: "never" } }
      })
      yield* start(on)
      const asked = approval(yield* interrupted(on))
      assert.deepStrictEqual(
        [asked.tool, asked.decisions, asked.reason],
        ["manners__echo", ["once", "deny"], "binding_changed"]
      )
      yield* respond(on, asked.id, "once")
      yield* ended(on)
      const events = yield* journal(on)
      assert.include(
        ofType(events, "harness-notice").map((event) => event["code"]),
        "binding_changed"
      )
      assert.deepStrictEqual(
        ofType(events, "tool-output").map((event) => event["output"]),
        ["changed", '{"words":"hi"}']
      )
      // Of a tool that is gone nothing is asked, and nothing is run.
      assert.deepStrictEqual(
        ofType(events, "tool-error").map((event) => at(event, "metadata", "outcome")),
        ["not_run"]
      )
    })
  )

  it.live("a server of the official SDK is worked with: the reference server for everything", () =>
    Effect.gen(function* () {
      const program = fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-everything/dist/index.js"))
      const on = yield* withServers(
        {
          scenario: [
            [
              call("everything.echo", { message: "hi" }),
              call("everything.get-structured-content", { location: "New York" }),
              call("everything.get-tiny-image", {}),
              call("everything.echo", { message: 7 })
            ],
            done
          ],
          agent: { approvals: { mode: "never" } }
        },
        { Everything: { type: "stdio", command: process.execPath, args: [program, "stdio"] } }
      )
      assert.strictEqual((yield* run(on)).status, "completed")
      const events = yield* journal(on)
      const [echo, structured, image] = ofType(events, "tool-output")
      assert.strictEqual(echo?.["output"], "Echo: hi")
      assert.hasAllKeys(structured?.["output"], ["temperature", "conditions", "humidity"])
      assert.strictEqual(at(image, "attachments", 0, "mime"), "image/png")
      const artifactId = String(at(image, "attachments", 0, "artifact_id"))
      const artifact = yield* on.api["artifact/read"]({ sessionId: on.sessionId, artifactId })
      assert.deepStrictEqual([artifact.mediaType, artifact.eof], ["image/png", true])
      assert.deepStrictEqual(
        ofType(events, "tool-error").map((event) => at(event, "metadata", "outcome")),
        ["not_run"]
      )
    })
  )
})
