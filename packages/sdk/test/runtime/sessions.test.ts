import { writeFileSync, symlinkSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { HarnessUnavailable } from "@tackroom/protocol"
import { Capabilities, Config, Events, Health, Sessions, Turns } from "../../src/effect.ts"
import { create, failing, gate, harness, journal, outcome, programmable, start, stores, types, within } from "./Kit.ts"

for (const kind of stores) {
  describe(`sessions over ${kind.name}`, () => {
    it.live("a session is made in its real directory, and wrong places are refused [RT-040, RT-041, RT-049]", () =>
      within(kind, programmable(), ({ root }) =>
        Effect.gen(function* () {
          const sessions = yield* Sessions
          mkdirSync(join(root, "real"))
          symlinkSync(join(root, "real"), join(root, "link"))
          writeFileSync(join(root, "file"), "")
          const session = yield* create(join(root, "link"))
          assert.strictEqual(session.directory, join(root, "real"))
          assert.strictEqual(session.workspaceId, "default")
          for (const directory of ["", "relative", join(root, "missing"), join(root, "file")]) {
            assert.strictEqual(yield* failing(sessions.create({ directory, harness })), "invalid_execution_binding")
          }
          assert.strictEqual(
            yield* failing(sessions.create({ directory: root, harness, workspaceId: " " })),
            "invalid_execution_binding"
          )
          assert.strictEqual(
            yield* failing(sessions.create({ directory: root, harness: { id: "none", access: "native" } })),
            "harness_not_registered"
          )
          assert.strictEqual((yield* sessions.list({})).items.length, 1)
          assert.strictEqual(yield* failing(sessions.get(session.id, root)), "scope_mismatch")
          assert.strictEqual((yield* sessions.get(session.id, join(root, "link")))?.id, session.id)
          assert.isNull(yield* sessions.get("nobody"))
        })
      )
    )

    it.live("creating an id twice is the same session, with other values a conflict [RT-042, RT-045]", () =>
      within(kind, programmable(), ({ root, driver, store }) =>
        Effect.gen(function* () {
          const sessions = yield* Sessions
          mkdirSync(join(root, "other"))
          const first = yield* create(root, { id: "one" })
          const binding = yield* Effect.orDie(store.binding("one"))
          assert.strictEqual(binding?.upstreamSessionId, "up-one")
          const again = yield* create(root, { id: "one" })
          assert.strictEqual(again.id, first.id)
          assert.deepStrictEqual(driver.opened, ["one"])
          assert.strictEqual(yield* failing(create(join(root, "other"), { id: "one" })), "session_conflict")
          assert.strictEqual(yield* failing(create(root, { id: "a/b" })), "session_invalid")
          for (const field of ["handoff", "permissionState", "permissionCeiling"]) {
            assert.strictEqual(
              yield* failing(sessions.create({ directory: root, harness, [field]: "full" } as never)),
              "session_invalid"
            )
          }
          assert.strictEqual(yield* failing(create(root, { title: "x".repeat(201) })), "session_invalid")
          assert.strictEqual(yield* failing(create(root, { instructions: "x".repeat(262_145) })), "session_invalid")
        })
      )
    )

    it.live("a failed opening leaves no row unless it is asked to [RT-044]", () =>
      within(
        kind,
        programmable({
          driver: () => ({
            openSession: () => Effect.fail(new HarnessUnavailable({ harness: "native:test", operation: "openSession" }))
          })
        }),
        ({ root }) =>
          Effect.gen(function* () {
            const sessions = yield* Sessions
            assert.strictEqual(yield* failing(create(root)), "harness_unavailable")
            assert.strictEqual((yield* sessions.list({})).items.length, 0)
            const kept = yield* create(root, { keepOnFailure: true })
            assert.strictEqual(kept.executionAvailability.state, "unavailable")
            const lazy = yield* create(root, { open: "lazy" })
            yield* start(lazy.id, "m")
            const ended = yield* outcome(lazy.id, "m")
            assert.isTrue(ended.status === "failed" && ended.error.code === "harness_error")
          })
      )
    )

    it.live("a deleted session is gone for good, with its children [RT-043, RT-051]", () => {
      const held = gate()
      return within(kind, programmable({ turn: () => held.pass }), ({ root }) =>
        Effect.gen(function* () {
          const sessions = yield* Sessions
          const parent = yield* create(root, { id: "parent" })
          yield* sessions.createMany([
            { directory: root, harness, id: "child", parentSessionId: parent.id, title: "c" }
          ])
          assert.strictEqual(yield* failing(start("child", "m")), "session_read_only")
          yield* start(parent.id, "m")
          yield* held.begun
          yield* sessions.remove(parent.id)
          assert.strictEqual(yield* failing(sessions.row(parent.id)), "session_gone")
          assert.strictEqual(yield* failing(create(root, { id: "parent" })), "session_gone")
          assert.strictEqual(yield* failing(sessions.row("child")), "session_gone")
          assert.strictEqual((yield* sessions.list({})).items.length, 0)
        })
      )
    })

    it.live("titles, tags and archive are row changes; a busy session is not archived [RT-052]", () => {
      const held = gate()
      return within(kind, programmable({ turn: (s) => Effect.andThen(held.pass, s.emit(s.finish())) }), ({ root }) =>
        Effect.gen(function* () {
          const sessions = yield* Sessions
          const session = yield* create(root)
          const updated = yield* sessions.update(session.id, { title: "named", tags: ["a"], metadata: { k: 1 } })
          assert.deepStrictEqual([updated.title, updated.tags, updated.metadata], ["named", ["a"], { k: 1 }])
          yield* start(session.id, "m")
          yield* held.begun
          assert.strictEqual(
            yield* failing(sessions.update(session.id, { time: { archived: true } })),
            "session_turn_in_progress"
          )
          yield* held.release
          yield* outcome(session.id, "m")
          const archived = yield* sessions.update(session.id, { time: { archived: true } })
          assert.isDefined(archived.time.archived)
          assert.strictEqual(yield* failing(start(session.id, "n")), "session_closed")
          yield* sessions.update(session.id, { time: { archived: null } })
          yield* start(session.id, "n")
          yield* outcome(session.id, "n")
        })
      )
    })

    it.live(
      "config changes keep, clear and replace; some fields never change [RT-046, RT-047, RT-048, RT-060, RT-065, RT-068]",
      () =>
        within(
          kind,
          programmable({
            driver: () => ({
              configure: (_binding, update) =>
                Effect.succeed({
                  harness: { id: "test", access: "native" },
                  ...(update.variant === undefined || update.variant === null ? {} : { variant: update.variant })
                })
            })
          }),
          ({ root }) =>
            Effect.gen(function* () {
              const config = yield* Config
              const session = yield* create(root, { instructions: "be kind", variant: "a" })
              const changed = yield* config.update(session.id, { variant: "b", agent: "x" })
              assert.deepStrictEqual([changed.variant, changed.agent, changed.instructions], ["b", "x", "be kind"])
              const cleared = yield* config.update(session.id, { variant: null })
              assert.isUndefined(cleared.variant)
              assert.deepStrictEqual(yield* config.read(session.id), cleared)
              assert.strictEqual(
                yield* failing(config.update(session.id, { instructions: "x" })),
                "session_immutable_field"
              )
              assert.strictEqual(
                yield* failing(config.update(session.id, { permissionCeiling: "full" })),
                "session_invalid"
              )
              assert.strictEqual(
                yield* failing(config.update(session.id, { harness: { id: "other", access: "native" } })),
                "unsupported_operation"
              )
              assert.strictEqual(yield* failing(config.models(root, harness)), "unsupported_operation")
              const [option] = yield* config.options(root)
              assert.isTrue(option !== undefined && !option.ok && option.error.code === "unsupported_operation")
            })
        )
    )

    it.live("pages of the transcript, and cursors of others are refused [RT-184, RT-053]", () =>
      within(kind, programmable(), ({ root }) =>
        Effect.gen(function* () {
          const events = yield* Events
          const session = yield* create(root)
          const other = yield* create(root)
          const turns: Array<string> = []
          for (let i = 0; i < 5; i++) {
            const admission = yield* start(session.id, `m${i}`)
            turns.push(admission.turnId ?? "")
            yield* outcome(session.id, `m${i}`)
          }
          const seen: Array<string> = []
          let before: string | undefined
          do {
            const page = yield* events.page(session.id, { limit: 3, ...(before === undefined ? {} : { before }) })
            seen.unshift(...page.messages.map((message) => message.id))
            before = page.nextCursor
          } while (before !== undefined)
          assert.deepStrictEqual(
            seen,
            [0, 1, 2, 3, 4].flatMap((i) => [`m${i}`, `m${i}_r`])
          )
          const latest = yield* events.page(session.id, { view: "latest-turn" })
          assert.deepStrictEqual(
            latest.messages.map((message) => message.id),
            ["m4", "m4_r"]
          )
          const one = yield* events.page(session.id, { turnId: turns[1] ?? "" })
          assert.deepStrictEqual([one.coverage, one.messages.length], ["complete", 2])
          const cursor = latest.nextCursor ?? ""
          assert.strictEqual(yield* failing(events.page(other.id, { limit: 1, before: cursor })), "cursor_invalid")
          assert.strictEqual(
            yield* failing(events.page(session.id, { limit: 1, before: "nonsense" })),
            "cursor_invalid"
          )
        })
      )
    )

    it.live(
      "large values are cut in the event and whole in the artifact; the harness gets the uncut prompt [RT-210, RT-211, RT-213]",
      () => {
        const output = "line\n".repeat(40_000)
        const prompt = `${"word ".repeat(30_000)}end`
        const driver = programmable({
          turn: (s) =>
            s.emit(
              { type: "tool-start", toolCallId: "c", toolName: "t" },
              { type: "tool-output", toolCallId: "c", output },
              s.finish()
            )
        })
        return within(kind, driver, ({ root }) =>
          Effect.gen(function* () {
            const events = yield* Events
            const { runCollect } = yield* Effect.promise(() => import("effect/Stream"))
            const session = yield* create(root)
            yield* start(session.id, "m", prompt)
            yield* outcome(session.id, "m")
            assert.strictEqual(driver.prompts[0]?.prompt.text, prompt)
            const all = yield* journal(session.id)
            assert.isTrue(all.every((event) => JSON.stringify(event).length <= 262_144))
            const cut = all.find((event) => event.payload.type === "tool-output")
            const reference = cut?.artifacts?.[0]
            assert.strictEqual(reference?.path, "/output")
            const { artifact, bytes } = yield* events.artifact(session.id, reference?.artifactId ?? "")
            assert.strictEqual(artifact.bytes, output.length)
            const chunks = yield* runCollect(bytes)
            assert.strictEqual(Buffer.concat([...chunks]).toString("utf8"), output)
            const message = all.find((event) => event.payload.type === "user-message")
            assert.strictEqual(message?.artifacts?.length, 1)
          })
        )
      }
    )

    it.live("a closed session reopens with its next turn, and health starts nothing [RT-069, RT-053]", () =>
      within(kind, programmable(), ({ root, driver }) =>
        Effect.gen(function* () {
          const sessions = yield* Sessions
          const health = yield* Health
          const capabilities = yield* Capabilities
          assert.deepStrictEqual(yield* health.read(), [{ harness: "native:test", status: "ok" }])
          const session = yield* create(root)
          yield* sessions.close(session.id)
          assert.deepStrictEqual(driver.closed, [session.id])
          yield* start(session.id, "m")
          assert.strictEqual((yield* outcome(session.id, "m")).status, "completed")
          assert.deepStrictEqual(driver.resumed, [session.id])
          assert.strictEqual((yield* capabilities.read(session.id)).harness, "test")
          assert.isTrue(types(yield* journal(session.id)).includes("session-closed"))
        })
      )
    )

    it.live("rows of the embedding package commit with what they belong to, or nothing does [RT-083]", () =>
      within(kind, programmable(), ({ root }) =>
        Effect.gen(function* () {
          const sessions = yield* Sessions
          const turns = yield* Turns
          // Nobody registered this extension: the whole call is taken back.
          const ops = [{ extension: "nobody", op: "put", args: {} }]
          assert.isTrue(
            (yield* Effect.exit(sessions.createMany([{ directory: root, harness, id: "x" }], { ops })))._tag ===
              "Failure"
          )
          assert.isNull(yield* sessions.get("x"))
          const session = yield* create(root)
          const before = yield* journal(session.id)
          const exit = yield* Effect.exit(turns.start({ sessionId: session.id, messageId: "m", text: "go" }, { ops }))
          assert.strictEqual(exit._tag, "Failure")
          assert.deepStrictEqual(yield* journal(session.id), before)
          assert.isFalse((yield* start(session.id, "m")).duplicate)
          yield* outcome(session.id, "m")
        })
      )
    )
  })
}
