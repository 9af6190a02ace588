/**
 * What an application may expect of the client, as a list of cases over a host that somebody else provides: the same
 * cases run over a child process and over a host in this process (D-27).
 *
 * The host must have agents with these ids: `talker` answers at once with a text that holds the message; `many` writes
 * at least as many events as its message says, then ends; `asker` asks for an approval and ends after the answer;
 * `questioner` asks a question and ends after the answer; `sleeper` works until it is cancelled.
 */
import { assert } from "@effect/vitest"
import { Conflict, InvalidCursor, InvalidParams, NotFound } from "@tackroom/protocol/run"
import type { AgentSession, ConnectOptions, Host, RunItem } from "../../src/client/index.ts"

export interface ClientEnvironment {
  /** A fresh host over fresh state. It is closed by the case. */
  readonly connect: (options?: ConnectOptions) => Promise<Host>
  /** A directory that exists. */
  readonly workspace: string
}

export interface ClientCase {
  readonly name: string
  readonly run: (environment: ClientEnvironment) => Promise<void>
}

const withHost = async (
  environment: ClientEnvironment,
  use: (host: Host, open: (agent: string) => Promise<AgentSession>) => Promise<void>,
  options?: ConnectOptions
): Promise<void> => {
  const host = await environment.connect(options)
  try {
    await use(host, (agent) => host.session({ agent, workspace: environment.workspace }))
  } finally {
    await host.close()
  }
}

const rejects = async (promise: Promise<unknown>, tag: string): Promise<Record<string, unknown>> => {
  try {
    await promise
  } catch (error) {
    assert.strictEqual((error as { _tag?: string })._tag, tag)
    return error as Record<string, unknown>
  }
  assert.fail(`nothing was rejected; expected ${tag}`)
}

const collect = async (run: AsyncIterable<RunItem>): Promise<Array<RunItem>> => {
  const items: Array<RunItem> = []
  for await (const item of run) items.push(item)
  return items
}

export const clientCases: ReadonlyArray<ClientCase> = [
  {
    name: "a run gives its events in order, in camelCase, and its result [RUN-572] [RUN-181]",
    run: (environment) =>
      withHost(environment, async (_, open) => {
        const session = await open("talker")
        const run = session.run("good morning")
        const items = await collect(run)
        const result = await run.result
        assert.strictEqual(result.status, "completed")
        assert.include(result.finalOutput ?? "", "good morning")
        assert.deepStrictEqual(
          items.map((item) => item.cursor),
          items.map((_, index) => (items[0]?.cursor ?? 0) + index)
        )
        const message = items.find((item) => item.event?.payload.type === "user-message")?.event
        assert.strictEqual(
          message?.payload.type === "user-message" ? message.payload.messageId : undefined,
          run.submissionId
        )
        assert.isTrue(items.some((item) => item.summary?.type === "message"))
        assert.strictEqual(run.cursors[session.id], items.at(-1)?.cursor)
      })
  },
  {
    name: "many pages joined miss nothing and repeat nothing [RUN-193] [RT-353]",
    run: (environment) =>
      withHost(environment, async (_, open) => {
        const session = await open("many")
        const run = session.run("300")
        const items = await collect(run)
        assert.isAtLeast(items.length, 300)
        assert.deepStrictEqual(
          items.map((item) => item.cursor),
          items.map((_, index) => (items[0]?.cursor ?? 0) + index)
        )
        assert.strictEqual((await run.result).status, "completed")
      })
  },
  {
    name: "iteration that was broken off goes on where it stopped, and cursors start another watcher there [RT-353]",
    run: (environment) =>
      withHost(environment, async (_, open) => {
        const session = await open("many")
        const run = session.run("40")
        const first: Array<number> = []
        for await (const item of run) {
          first.push(item.cursor)
          if (first.length === 10) break
        }
        const { cursors } = run
        const rest = (await collect(run)).map((item) => item.cursor)
        assert.strictEqual(rest[0], (first.at(-1) ?? 0) + 1)
        const other = (await collect(session.watch(run.submissionId, { cursors }))).map((item) => item.cursor)
        assert.deepStrictEqual(other, rest)
      })
  },
  {
    name: "the result comes without anyone reading events",
    run: (environment) =>
      withHost(environment, async (_, open) => {
        const session = await open("many")
        assert.strictEqual((await session.run("50").result).status, "completed")
      })
  },
  {
    name: "repeating a run with its id starts nothing, with another text it is refused [RUN-571]",
    run: (environment) =>
      withHost(environment, async (_, open) => {
        const session = await open("talker")
        const run = session.run("once", { submissionId: "mine" })
        await run.result
        const again = session.run("once", { submissionId: "mine" })
        assert.strictEqual((await again.started)?.duplicate, true)
        assert.strictEqual((await again.result).status, "completed")
        const error = await rejects(session.run("twice", { submissionId: "mine" }).result, "Conflict")
        assert.instanceOf(error, Conflict)
        assert.strictEqual(error["reason"], "submission_text_differs")
      })
  },
  {
    name: "an approval goes to its handler once and the run goes on [RUN-572]",
    run: (environment) => {
      const asked: Array<string> = []
      return withHost(
        environment,
        async (_, open) => {
          const session = await open("asker")
          const run = session.run("ls")
          const items = await collect(run)
          assert.deepStrictEqual(asked.length, 1)
          assert.strictEqual((await run.result).status, "completed")
          assert.isTrue(items.some((item) => item.event?.payload.type === "permission-resolved"))
          assert.deepStrictEqual(run.interruptions, [])
        },
        {
          onApproval: (approval) => {
            asked.push(approval.id)
            return "once"
          }
        }
      )
    }
  },
  {
    name: "a question goes to its handler; one of the run comes before the host's",
    run: (environment) =>
      withHost(
        environment,
        async (_, open) => {
          const session = await open("questioner")
          const run = session.run("which?", { onQuestion: () => Promise.resolve("the blue one") })
          assert.strictEqual((await run.result).status, "completed")
        },
        { onQuestion: () => "not this" }
      )
  },
  {
    name: "without handlers an interruption waits to be answered, and a wait for it does not spin [RUN-414]",
    run: (environment) =>
      withHost(environment, async (_, open) => {
        const session = await open("asker")
        const run = session.run("ls")
        const state = await run.untilInterrupted()
        assert.strictEqual(state.status, "interrupted")
        const pending = run.interruptions[0]
        assert.strictEqual(pending?.kind, "approval")
        const ended = run.result
        assert.isFalse((await run.respond(pending!.id, "deny")).alreadyResolved)
        assert.strictEqual((await ended).status, "completed")
      })
  },
  {
    name: "the same answer again is success, another one is refused [RT-354]",
    run: (environment) =>
      withHost(environment, async (_, open) => {
        const session = await open("asker")
        const run = session.run("ls")
        await run.untilInterrupted()
        const id = run.interruptions[0]!.id
        await run.respond(id, { decision: "once" })
        assert.isTrue((await run.respond(id, { decision: "once" })).alreadyResolved)
        const error = await rejects(run.respond(id, { decision: "deny" }), "Conflict")
        assert.strictEqual(error["response"], "once")
        await run.result
      })
  },
  {
    name: "what a handler throws ends the watching, not the run",
    run: (environment) =>
      withHost(environment, async (_, open) => {
        const session = await open("asker")
        const failing = session.run("ls", {
          onApproval: () => {
            throw new TypeError("a bug of the application")
          }
        })
        const failure = await failing.result.then(
          () => undefined,
          (error: unknown) => error
        )
        assert.instanceOf(failure, TypeError)
        const again = session.watch(failing.submissionId, { onApproval: () => "once" })
        assert.strictEqual((await again.result).status, "completed")
      })
  },
  {
    name: "cancel ends a run, and its watchers see it",
    run: (environment) =>
      withHost(environment, async (_, open) => {
        const session = await open("sleeper")
        const run = session.run("zzz")
        const ended = run.result
        await run.started
        assert.deepStrictEqual((await run.cancel()).cancelled, [session.id])
        assert.strictEqual((await ended).status, "cancelled")
        assert.deepStrictEqual((await session.cancel()).cancelled, [])
      })
  },
  {
    name: "a signal gives up watching and leaves the run alone",
    run: (environment) =>
      withHost(environment, async (_, open) => {
        const session = await open("sleeper")
        const abort = new AbortController()
        const run = session.run("zzz", { signal: abort.signal })
        await run.started
        const ended = run.result
        abort.abort(new RangeError("enough"))
        const failure = await ended.then(
          () => undefined,
          (error: unknown) => error
        )
        assert.instanceOf(failure, RangeError)
        assert.strictEqual((await session.state()).state, "running")
        await session.cancel()
      })
  },
  {
    name: "two runs of two sessions are followed at once over one connection [RUN-035]",
    run: (environment) =>
      withHost(environment, async (_, open) => {
        const one = (await open("many")).run("60")
        const two = (await open("many")).run("60")
        const [first, second] = await Promise.all([collect(one), collect(two)])
        assert.isAtLeast(first.length, 60)
        assert.isAtLeast(second.length, 60)
        assert.deepStrictEqual([(await one.result).status, (await two.result).status], ["completed", "completed"])
      })
  },
  {
    name: "errors of the host arrive as their classes, with their fields [RUN-060] [RUN-061]",
    run: (environment) =>
      withHost(environment, async (host, open) => {
        const missing = await rejects(host.attach("ses_none"), "NotFound")
        assert.instanceOf(missing, NotFound)
        assert.strictEqual(missing["what"], "session")
        const bad = await rejects(host.session({ agent: "talker", workspace: "relative" }), "InvalidParams")
        assert.instanceOf(bad, InvalidParams)
        assert.strictEqual(bad["path"], "workspace")
        const session = await open("talker")
        await session.run("hello").result
        const ahead = await rejects(
          host.request("event/read", { sessionId: session.id, after: 1_000_000 }),
          "InvalidCursor"
        )
        assert.instanceOf(ahead, InvalidCursor)
        assert.isAtLeast(ahead["head"] as number, 1)
      })
  },
  {
    name: "a session that was attached goes on [RUN-356]",
    run: (environment) =>
      withHost(environment, async (host, open) => {
        const session = await open("talker")
        const run = session.run("hello")
        await run.result
        const attached = await host.attach(session.id)
        assert.strictEqual(attached.attached?.runs[0]?.submissionId, run.submissionId)
        assert.strictEqual((await attached.run("again").result).status, "completed")
      })
  },
  {
    name: "a closed session refuses, and a closed host rejects [RT-357]",
    run: async (environment) => {
      const host = await environment.connect()
      const session = await host.session({ agent: "sleeper", workspace: environment.workspace })
      const waiting = session.run("zzz")
      await waiting.started
      const ended = waiting.result
      const statuses: Array<string> = []
      host.onStatus((status) => statuses.push(status))
      const closing = host.close()
      await rejects(ended, "ClientClosed")
      await closing
      await rejects(session.state(), "ClientClosed")
      assert.deepStrictEqual(statuses, ["closed"])
      await host.close()
    }
  }
]
