/** A host that is killed in the middle of a call of a server's tool (RUN-090, RUN-522, AGT-033). */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import type { HostConfig } from "@tackroom/protocol/run"
import { isGroupAlive } from "@tackroom/sdk/process"
import { Effect } from "effect"
import { agent, at, call, ended, folder, journal, ofType, openHost, say, type Stage } from "../runs/Kit.ts"
import { awaitLine, entry } from "./Kit.ts"

const program = fileURLToPath(new URL("fixtures/host.ts", import.meta.url))

const exited = (child: ReturnType<typeof spawn>) =>
  Effect.callback<void>((resume) => void child.once("exit", () => resume(Effect.void)))

/** Completes when nothing of the group lives; the guard tells nobody of its work, so this asks the system. */
const groupGone = (pgid: number): Effect.Effect<void> =>
  Effect.suspend(() => (isGroupAlive(pgid) ? Effect.andThen(Effect.sleep("20 millis"), groupGone(pgid)) : Effect.void))

describe("a host killed in a call of a server's tool", () => {
  it.live(
    "the call has one end, of unknown outcome, and is not made again; nothing of the server lives [RUN-090] [RUN-522]",
    () =>
      Effect.gen(function* () {
        const place = yield* folder
        const config: HostConfig = {
          stateDir: place.stateDir,
          sandbox: "none",
          providers: [
            {
              name: "script",
              api: "script",
              scenario: place.scenario("script", { default: [[call("manners.hang", {})], [say("Done.")]] })
            }
          ],
          agents: [agent({ approvals: { mode: "never" } })]
        }
        const notes = join(place.root, "notes")
        const given = {
          config,
          workspace: place.workspace,
          mcp: { manners: entry({ notes, grandchild: join(place.root, "pids") }) }
        }
        const host = yield* Effect.acquireRelease(
          Effect.sync(() => spawn(process.execPath, [program, JSON.stringify(given)], { stdio: "inherit" })),
          (child) => Effect.sync(() => void child.kill("SIGKILL"))
        )
        yield* awaitLine(place.root, "notes", "call hang")
        const [group = 0] = readFileSync(join(place.root, "pids"), "utf8").split(" ").map(Number)
        assert.isTrue(isGroupAlive(group))
        host.kill("SIGKILL")
        yield* exited(host)
        // The guard is quicker than the next start, or that ends what is left.
        const opened = yield* Effect.orDie(openHost(config))
        yield* Effect.timeout(groupGone(group), "20 seconds")

        const { session } = yield* opened.api["agent/session"]({
          agent: "helper",
          workspace: place.workspace,
          creationId: "stage"
        })
        const on: Pick<Stage, "api" | "sessionId"> = { api: opened.api, sessionId: session.sessionId }
        assert.strictEqual((yield* ended(on as Stage)).status, "completed")
        const events = yield* journal(on)
        assert.deepStrictEqual(
          [...ofType(events, "tool-status"), ...ofType(events, "tool-output"), ...ofType(events, "tool-error")].map(
            (event) => [event.type, event["status"], at(event, "metadata", "outcome")]
          ),
          [
            ["tool-status", "running", undefined],
            ["tool-status", "uncertain", "unknown"]
          ]
        )
        assert.strictEqual(readFileSync(notes, "utf8").match(/call hang/g)?.length, 1)
      })
  )
})
