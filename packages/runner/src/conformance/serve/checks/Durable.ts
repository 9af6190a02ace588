/** The durable session, of programs that have one (SRV-290 to 299). */
import { Effect } from "effect"
import { inside } from "../Driver.ts"
import { prompts, words } from "../../model/Script.ts"
import { demand, type ServeCheck } from "../ServeCheck.ts"

export const durableChecks: ReadonlyArray<ServeCheck> = [
  {
    id: "SRV-292",
    level: "must",
    title: "a session that does not exist is not started anew: the program ends with 3 and no ready",
    capability: "durable_session",
    run: (open) =>
      Effect.gen(function* () {
        const first = yield* open()
        yield* first.ready
        first.program.endInput()
        yield* first.exited(8)
        const second = yield* open({ folder: first.folder, args: ["--session", "no-such-session"] }).pipe(
          Effect.map(() => "ready" as const),
          Effect.catchTag("Broken", () => Effect.succeed("refused" as const))
        )
        yield* demand(second === "refused", "it was ready for a session that does not exist")
      })
  },
  {
    id: "SRV-296",
    level: "must",
    title: "a resumed session tells how its last run ended",
    capability: "durable_session",
    run: (open) =>
      Effect.gen(function* () {
        const first = yield* open()
        const session = String((yield* first.ready).fields["session_id"])
        const { result } = yield* first.run("one", prompts.say(words.done))
        first.program.endInput()
        yield* first.exited(8)
        const second = yield* open({ folder: first.folder, args: ["--session", session] })
        const ready = yield* second.ready
        yield* demand(
          ready.fields["session_id"] === session && ready.fields["resumed"] === true,
          "it is another session"
        )
        const last = ready.fields["last_run"]
        yield* demand(
          inside(last, "answer") === result.fields["answer"],
          `the last run is told as ${JSON.stringify(last)}`
        )
        yield* demand(inside(last, "status") === "completed", "the last run is not told as completed")
        const again = yield* second.run("one", prompts.say("A run id may be used in each process."))
        yield* demand(JSON.stringify(again.result.fields["errors"]) === "[]", "the resumed session does not work")
      })
  },
  {
    id: "SRV-299",
    level: "must",
    title: "a submission id runs once: the same prompt again gets the recorded result, another is refused",
    capability: "submission_id",
    run: (open) =>
      Effect.gen(function* () {
        const first = yield* open()
        const session = String((yield* first.ready).fields["session_id"])
        const once = { submission_id: "order-1" }
        const { result } = yield* first.run("one", prompts.say("Only once."), once)
        yield* first.settled
        const { lines, result: again } = yield* first.run("two", prompts.say("Only once."), once)
        yield* demand(again.fields["duplicate"] === true && lines[0]?.fields["duplicate"] === true, "it ran again")
        yield* demand(again.fields["answer"] === result.fields["answer"], "the recorded result is another")
        yield* first.refusal({ op: "submit", run_id: "three", prompt: prompts.say("Something else."), ...once })
        first.program.endInput()
        yield* first.exited(8)
        const second = yield* open({ folder: first.folder, args: ["--session", session] })
        yield* second.ready
        const { result: later } = yield* second.run("one", prompts.say("Only once."), once)
        yield* demand(later.fields["duplicate"] === true, "another process ran it again")
      })
  }
]
