/** Owns one stubborn child group and says who is who on stdout; the test then kills this program. */
import { Effect } from "effect"
import * as Stream from "effect/Stream"
import { makeProcessOwner } from "../../../src/process/index.ts"

const decoder = new TextDecoder()

const program = Effect.gen(function* () {
  const owner = makeProcessOwner({ instanceId: "crash", environment: process.env })
  const child = yield* owner.spawn({
    role: "harness",
    command: "/bin/sh",
    args: ["-c", "trap '' TERM; /bin/sh -c 'trap \"\" TERM; echo inner $$; while :; do sleep 1; done' & wait"]
  })
  const first = yield* Stream.runHead(child.stdout)
  const guard = (yield* owner.list).find((row) => row.role === "guard")
  const inner = first._tag === "Some" ? decoder.decode(first.value).trim().split(" ")[1] : undefined
  process.stdout.write(`${JSON.stringify({ pgid: child.pgid, guard: guard?.pid, inner: Number(inner) })}\n`)
  yield* child.exit
})

Effect.runFork(Effect.scoped(program))
