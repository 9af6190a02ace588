import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit } from "effect"
import { Interactions, Sessions, Turns } from "../../src/effect.ts"
import { create, gate, journal, outcome, programmable, start, stores, types, until, within } from "./Kit.ts"

for (const kind of stores) {
  describe(`cancelling over ${kind.name}`, () => {
    it.live(
      "an acknowledged cancel closes open tools as cancelled, and two aborts are one request [RT-144, RT-160, RT-165, RT-167]",
      () => {
        const held = gate()
        const driver = programmable({
          turn: (s) => Effect.andThen(s.emit({ type: "tool-start", toolCallId: "c", toolName: "t" }), held.pass)
        })
        return within(kind, driver, ({ root }) =>
          Effect.gen(function* () {
            const turns = yield* Turns
            const session = yield* create(root)
            yield* start(session.id, "m")
            yield* held.begun
            const answers = yield* Effect.all([turns.abort(session.id), turns.abort(session.id)], {
              concurrency: "unbounded"
            })
            assert.deepStrictEqual(answers, [
              { ok: true, status: "cancelled" },
              { ok: true, status: "cancelled" }
            ])
            assert.strictEqual(driver.cancels.length, 1)
            const ended = yield* outcome(session.id, "m")
            assert.isTrue(ended.status === "cancelled" && ended.reason === "requested")
            const tail = (yield* journal(session.id)).slice(-3)
            assert.deepStrictEqual(types(tail), ["tool-error", "cancelled", "session-status"])
            assert.deepStrictEqual(yield* turns.abort(session.id), { ok: true, status: "already_idle" })
          })
        )
      }
    )

    it.live(
      "a cancel that is not answered ends the harness's session and is forced [RT-160, RT-144, RT-167, RT-169]",
      () => {
        const held = gate()
        const driver = programmable({
          capabilities: { processScope: "session" },
          turn: (s) => Effect.andThen(s.emit({ type: "tool-start", toolCallId: "c", toolName: "t" }), held.pass),
          driver: () => ({ cancel: () => Effect.never })
        })
        return within(
          kind,
          driver,
          ({ root }) =>
            Effect.gen(function* () {
              const turns = yield* Turns
              const session = yield* create(root)
              yield* start(session.id, "m")
              yield* held.begun
              const abort = yield* Effect.forkChild(turns.abort(session.id))
              yield* Effect.yieldNow
              assert.strictEqual(turns.phase(session.id), "cancelling")
              yield* Effect.flatMap(Effect.exit(start(session.id, "n")), (exit) =>
                Effect.sync(() => assert.isTrue(Exit.isFailure(exit)))
              )
              const { join } = yield* Effect.promise(() => import("effect/Fiber"))
              assert.deepStrictEqual(yield* join(abort), { ok: true, status: "cancelled" })
              assert.deepStrictEqual(driver.closed, [session.id])
              const ended = yield* outcome(session.id, "m")
              assert.isTrue(ended.status === "cancelled" && ended.reason === "forced")
              assert.deepStrictEqual(types((yield* journal(session.id)).slice(-3)), [
                "tool-status",
                "cancelled",
                "session-status"
              ])
            }),
          { cancelGraceMs: 60, killGraceMs: 20 }
        )
      }
    )

    it.live("a shared process is not ended for one turn: the turn fails instead [RT-161]", () => {
      const held = gate()
      const driver = programmable({
        capabilities: { processScope: "shared" },
        turn: () => held.pass,
        driver: () => ({ cancel: () => Effect.never })
      })
      return within(
        kind,
        driver,
        ({ root }) =>
          Effect.gen(function* () {
            const turns = yield* Turns
            const session = yield* create(root)
            yield* start(session.id, "m")
            yield* held.begun
            const answer = yield* turns.abort(session.id)
            assert.isTrue(!answer.ok && answer.status === "failed")
            const ended = yield* outcome(session.id, "m")
            assert.isTrue(ended.status === "failed" && ended.error.code === "cancel_unacknowledged")
            assert.deepStrictEqual(driver.closed, [])
          }),
        { cancelGraceMs: 20, killGraceMs: 20 }
      )
    })

    it.live("a cancel before the harness got the prompt sends nothing [RT-162]", () => {
      const opening = Deferred.makeUnsafe<void>()
      const begun = Deferred.makeUnsafe<void>()
      const driver = programmable({
        driver: (base) => ({
          openSession: (input) =>
            Deferred.succeed(begun, undefined).pipe(
              Effect.andThen(Deferred.await(opening)),
              Effect.andThen(base.openSession(input))
            )
        })
      })
      return within(kind, driver, ({ root }) =>
        Effect.gen(function* () {
          const turns = yield* Turns
          const session = yield* create(root, { open: "lazy" })
          yield* start(session.id, "m")
          yield* Deferred.await(begun)
          assert.deepStrictEqual(yield* turns.abort(session.id), { ok: true, status: "cancelled" })
          assert.deepStrictEqual(driver.prompts, [])
          assert.deepStrictEqual(driver.cancels, [])
          yield* Deferred.succeed(opening, undefined)
        })
      )
    })

    it.live("a cancel that loses against the harness's own end is already_idle [RT-163]", () => {
      const held = gate()
      const driver = programmable({
        turn: (s) => Effect.andThen(held.pass, s.emit(s.finish())),
        driver: () => ({ cancel: () => Effect.as(held.release, "idle" as const) })
      })
      return within(kind, driver, ({ root }) =>
        Effect.gen(function* () {
          const turns = yield* Turns
          const session = yield* create(root)
          yield* start(session.id, "m")
          yield* held.begun
          assert.deepStrictEqual(yield* turns.abort(session.id), { ok: true, status: "already_idle" })
          assert.strictEqual((yield* outcome(session.id, "m")).status, "completed")
        })
      )
    })

    it.live("an abort that names another turn touches nothing [RT-164]", () => {
      const held = gate()
      const driver = programmable({ turn: (s) => Effect.andThen(held.pass, s.emit(s.finish())) })
      return within(kind, driver, ({ root }) =>
        Effect.gen(function* () {
          const turns = yield* Turns
          const session = yield* create(root)
          yield* start(session.id, "m")
          yield* held.begun
          assert.deepStrictEqual(yield* turns.abort(session.id, { turnId: "trn_other" }), {
            ok: true,
            status: "already_idle"
          })
          assert.deepStrictEqual(driver.cancels, [])
          yield* held.release
          assert.strictEqual((yield* outcome(session.id, "m")).status, "completed")
          const nobody = yield* turns.abort("nobody")
          assert.isTrue(!nobody.ok && nobody.status === "not_found")
        })
      )
    })

    it.live("sessions under an open call end with the turn that waits for it; the others go on [RT-166]", () => {
      const held = [gate(), gate(), gate()] as const
      let turn = 0
      const driver = programmable({
        turn: (s) => {
          const own = held[turn++]
          return Effect.andThen(
            s.input.messageId === "parent"
              ? s.emit({ type: "tool-start", toolCallId: "task", toolName: "task" }, { type: "usage", contextUsed: 1 })
              : Effect.void,
            own === undefined ? Effect.never : own.pass
          )
        }
      })
      return within(kind, driver, ({ root }) =>
        Effect.gen(function* () {
          const turns = yield* Turns
          const sessions = yield* Sessions
          const parent = yield* create(root)
          const child = (toolCallId: string | undefined) =>
            Effect.map(
              sessions.createMany([
                {
                  directory: root,
                  harness: parent.harness,
                  title: "c",
                  parentSessionId: parent.id,
                  ...(toolCallId === undefined ? {} : { toolCallId })
                }
              ]),
              ([session]) => session?.id ?? ""
            )
          const foreground = yield* child("task")
          const background = yield* child("done")
          const called = yield* until(parent.id, (payload) => payload.type === "usage")
          yield* start(parent.id, "parent")
          yield* called
          for (const id of [foreground, background]) {
            yield* turns.start({ sessionId: id, messageId: "m", text: "go" }, { own: true })
          }
          yield* held[2].begun
          assert.deepStrictEqual(yield* turns.abort(parent.id), { ok: true, status: "cancelled" })
          const ended = yield* outcome(foreground, "m")
          assert.isTrue(ended.status === "cancelled" && ended.reason === "parent")
          assert.strictEqual(turns.phase(background), "model")
        })
      )
    })

    it.live("a cancel withdraws what the turn asked, and the driver is told [RT-145, RT-263]", () => {
      const reason = Deferred.makeUnsafe<string>()
      const driver = programmable({
        turn: (s) =>
          s.context.ask
            .permission({
              sessionId: s.input.binding.sessionId,
              turnId: s.input.turnId,
              nativeRequestId: "1",
              tool: "shell",
              options: []
            })
            .pipe(
              Effect.asVoid,
              Effect.catch((error) =>
                Effect.andThen(
                  Deferred.succeed(reason, error._tag === "Withdrawn" ? error.reason : "other"),
                  Effect.never
                )
              )
            )
      })
      return within(kind, driver, ({ root }) =>
        Effect.gen(function* () {
          const turns = yield* Turns
          const interactions = yield* Interactions
          const session = yield* create(root)
          const asked = yield* until(session.id, (payload) => payload.type === "permission-request")
          yield* start(session.id, "m")
          yield* asked
          yield* turns.abort(session.id)
          assert.strictEqual(yield* Deferred.await(reason), "cancelled")
          assert.deepStrictEqual(yield* interactions.list({ sessionId: session.id }), [])
          const events = types(yield* journal(session.id))
          assert.isTrue(events.indexOf("interaction-withdrawn") < events.indexOf("cancelled"))
          const sessions = yield* Sessions
          assert.strictEqual((yield* sessions.get(session.id))?.attention, 0)
        })
      )
    })

    it.live("a cancel at any moment of a short turn leaves exactly one terminal event [RT-140, RT-163]", () =>
      within(kind, programmable(), ({ root }) =>
        Effect.gen(function* () {
          const turns = yield* Turns
          const session = yield* create(root)
          for (let i = 0; i < 40; i++) {
            yield* start(session.id, `m${i}`)
            for (let n = 0; n < i; n++) yield* Effect.yieldNow
            yield* turns.abort(session.id)
            yield* outcome(session.id, `m${i}`)
          }
          const events = yield* journal(session.id)
          const ends = new Map<string, number>()
          for (const event of events) {
            if (!["finish", "cancelled", "error"].includes(event.payload.type)) continue
            ends.set(event.turnId ?? "", (ends.get(event.turnId ?? "") ?? 0) + 1)
          }
          assert.strictEqual(ends.size, 40)
          assert.isTrue([...ends.values()].every((count) => count === 1))
        })
      )
    )
  })
}
