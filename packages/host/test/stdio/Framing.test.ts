import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { peer, rssMiB } from "./fixtures/Peer.ts"

const kinds = (answers: ReadonlyArray<{ error?: { data: { kind: string } } }>) =>
  answers.map((answer) => answer.error?.data.kind ?? "result")

/** A host/info request of exactly this many bytes, without a terminator. */
const padded = (id: number, bytes: number): string => {
  const frame = (pad: string) => `{"jsonrpc":"2.0","id":${id},"method":"host/info","params":{"pad":"${pad}"}}`
  return frame("x".repeat(bytes - frame("").length))
}

const limit = 1_048_576
const linux = process.platform === "linux"

describe("frames on stdio", () => {
  it.live(
    "a frame of exactly 1 MiB is accepted, whatever else is in the chunk; one more byte is refused [RUN-003] [RUN-004]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const host = yield* peer()
          host.write(`${padded(1, limit)}\r\n${padded(2, limit + 1)}\n${padded(3, limit - 1)}\n`)
          host.send(4, "host/info")
          const answers = (yield* host.first(5)).slice(1)
          assert.deepStrictEqual(kinds(answers), ["result", "frame_too_large", "result", "result"])
          assert.deepStrictEqual(
            answers.map((answer) => answer.id),
            [1, 2, 3, 4]
          )
          assert.deepStrictEqual(answers[1]?.error?.data, {
            kind: "frame_too_large",
            limit_bytes: limit,
            observed_bytes: limit + 1
          })
        })
      )
  )

  it.live(
    "300 MB without a line feed are discarded in constant memory and get one answer with the frame's id [RUN-004]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const host = yield* peer()
          const before = linux ? rssMiB(host.child.pid!) : 0
          host.write(`{"jsonrpc":"2.0","params":{"id":"not this","text":"`)
          const block = "x".repeat(1_000_000)
          for (let sent = 0; sent < 300; sent++) {
            yield* Effect.callback<void>((resume) => void host.child.stdin!.write(block, () => resume(Effect.void)))
          }
          host.write(`"},"id":"big","method":"host/info"}\n`)
          host.send("next", "host/info")
          const answer = yield* host.answer("next")
          assert.isDefined(answer.result)
          assert.deepStrictEqual(kinds(host.answers.slice(1)), ["frame_too_large", "result"])
          assert.strictEqual(host.answers[1]?.id, "big")
          if (linux) assert.isBelow(rssMiB(host.child.pid!) - before, 128)
        })
      ),
    60_000
  )

  it.live(
    "bytes that are not UTF-8 or not JSON, arrays and bad envelopes are refused and the connection goes on [RUN-005] [RUN-006] [RUN-007] [RUN-008] [RUN-009] [RUN-013] [RUN-014]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const host = yield* peer()
          const deep = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`
          const cases: ReadonlyArray<readonly [string | Uint8Array, string, unknown]> = [
            [Uint8Array.of(0x7b, 0xff, 0xfe, 0x7d), "parse_error", null],
            ["{bad", "parse_error", null],
            [
              `[{"jsonrpc":"2.0","id":1,"method":"provider/set","params":{"name":"batch","api":"responses"}}]`,
              "invalid_request",
              null
            ],
            [`"text"`, "invalid_request", null],
            [`{"jsonrpc":"1.0","id":2,"method":"host/info"}`, "invalid_request", 2],
            [`{"jsonrpc":"2.0","id":3,"method":""}`, "invalid_request", 3],
            [`{"jsonrpc":"2.0","id":4,"method":"host/info","params":[]}`, "invalid_params", 4],
            [`{"jsonrpc":"2.0","id":null,"method":"host/info"}`, "invalid_request", null],
            [`{"jsonrpc":"2.0","id":1.5,"method":"host/info"}`, "invalid_request", null],
            [`{"jsonrpc":"2.0","id":9007199254740993,"method":"host/info"}`, "invalid_request", null],
            [`{"jsonrpc":"2.0","id":"a\\u0000b","method":"host/info"}`, "invalid_request", null],
            [`{"jsonrpc":"2.0","id":"\\ud800","method":"host/info"}`, "invalid_request", null],
            [`{"jsonrpc":"2.0","id":"${"i".repeat(257)}","method":"host/info"}`, "invalid_request", null],
            [`{"jsonrpc":"2.0","id":5,"method":"host/info","params":{"x":${deep(127)}}}`, "invalid_request", 5],
            [`{"jsonrpc":"2.0","id":6,"method":"host/info","params":{"x":${deep(126)}}}`, "result", 6],
            [
              `{"jsonrpc":"2.0","id":7,"method":"host/info","params":{"__proto__":{"a":1},"constructor":1}}`,
              "result",
              7
            ],
            [`{"jsonrpc":"2.0","id":8,"id":"last","method":"host/info"}`, "result", "last"],
            [`\u2028{"jsonrpc":"2.0","id":9,"method":"host/info"}`, "parse_error", null],
            [`{"jsonrpc":"2.0","id":"\u2028 \u0085","method":"host/info"}`, "result", "\u2028 \u0085"],
            [`{"jsonrpc":"2.0","id":-9007199254740991,"method":"host/info"}`, "result", -9007199254740991]
          ]
          host.write("\n  \t \r\n")
          for (const [frame] of cases) {
            host.write(frame)
            host.write("\n")
          }
          const answers = (yield* host.first(cases.length + 1)).slice(1)
          cases.forEach(([frame, kind, id], index) => {
            const answer = answers[index]
            assert.deepStrictEqual([answer?.error?.data.kind ?? "result", answer?.id], [kind, id], String(frame))
          })
          host.send("after", "provider/list")
          assert.deepStrictEqual((yield* host.answer("after")).result, { providers: [] })
          assert.isTrue(host.lines.every((line) => !line.includes("\u2028")))
        })
      )
  )

  it.live(
    "a byte order mark before the first frame is skipped, bytes one at a time are joined, the last frame needs no terminator [RUN-001] [RUN-002] [RUN-015]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const host = yield* peer({ initialize: false })
          const bytes = Buffer.from(`\ufeff{"jsonrpc":"2.0","id":"ä€😀","method":"initialize"}\r\n`)
          for (const byte of bytes) {
            yield* Effect.callback<void>(
              (resume) => void host.child.stdin!.write(Uint8Array.of(byte), () => resume(Effect.void))
            )
          }
          yield* host.answer("ä€😀")
          host.write(`{"jsonrpc":"2.0","id":"last","method":"host/info"}`)
          host.child.stdin!.end()
          yield* host.answer("last")
          assert.deepStrictEqual(yield* host.exit, { code: 0, signal: null })
        })
      )
  )

  it.live("notifications and responses are never answered, only counted [RUN-011] [RUN-012] [RUN-020]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const host = yield* peer()
        host.write(`{"jsonrpc":"2.0","method":"provider/set","params":{"name":"n","api":"responses"}}\n`)
        host.write(`{"jsonrpc":"2.0","method":"no/such"}\n{"jsonrpc":"2.0","method":"no/such","params":7}\n`)
        host.write(`{"jsonrpc":"2.0","id":1,"result":{}}\n{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}\n`)
        host.send("info", "host/info")
        const { counters } = (yield* host.answer("info")).result
        assert.deepStrictEqual(counters, {
          frames_in: 7,
          frames_refused: 0,
          notifications_ignored: 3,
          responses_ignored: 2,
          application_refused: 0,
          progress_dropped: 0,
          log_lines_dropped: 0,
          busy_answers: 0
        })
        host.send("list", "provider/list")
        assert.deepStrictEqual((yield* host.answer("list")).result, { providers: [] })
        assert.strictEqual(host.answers.length, 3)
      })
    )
  )

  it.live("random bytes never stop the connection and every line gets at most one answer [RUN-005] [RUN-010]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const host = yield* peer()
        let seed = 0x5eed
        const next = () => (seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0) >>> 16
        const noise = Uint8Array.from({ length: 500_000 }, () => next() & 0xff)
        let lines = 0
        for (const byte of noise) if (byte === 0x0a) lines += 1
        host.write(noise)
        host.write("\n")
        host.send("after", "host/info")
        yield* host.answer("after")
        assert.isAtMost(host.answers.length, lines + 3)
        assert.isTrue(host.answers.slice(1, -1).every((answer) => answer.error !== undefined && answer.id === null))
      })
    )
  )

  it.live("a result over 1 MiB is an error, and no line is longer than a frame may be [RUN-016]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const host = yield* peer()
        host.send(1, "artifact/read", { session_id: "s", artifact_id: "art_huge" })
        host.send(2, "artifact/read", { session_id: "s", artifact_id: "art_1", length: 524_288 })
        const [, huge, large] = yield* host.first(3)
        assert.strictEqual(huge?.error?.data.kind, "limit_exceeded")
        assert.strictEqual(huge?.error?.data.limit, "frame_bytes")
        assert.strictEqual(large?.result.data.length, 699_052)
      })
    )
  )

  it.live("stray writes of the program go to stderr [RUN-017]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const host = yield* peer({ config: { stray: true } })
        for (let id = 1; id <= 20; id++) {
          host.send(id, "mcp/register", { name: "slow5", transport: { type: "stdio", command: "x" } })
        }
        yield* host.answer(20)
        assert.include(host.stderr(), "stray")
        assert.strictEqual(host.answers.length, 21)
      })
    )
  )

  it.live(
    "an internal failure names a reference that the log has too, and shows nothing of the cause [RUN-019] [RUN-060]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const host = yield* peer()
          host.send(1, "provider/set", { name: "explode", api: "responses" })
          const { error } = yield* host.answer(1)
          assert.strictEqual(error?.data.kind, "internal")
          host.child.stdin!.end()
          yield* host.exit
          const logged = host
            .stderr()
            .trim()
            .split("\n")
            .map((line) => JSON.parse(line) as { ref?: string })
          assert.isTrue(logged.some((line) => line.ref === error?.data.ref))
          assert.notInclude(host.stderr() + JSON.stringify(error), "hunter2")
        })
      )
  )
})
