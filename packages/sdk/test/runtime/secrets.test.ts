/** Known secrets in every place where a session says something that is kept (RUN-174, RT-321). */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Turns } from "../../src/effect.ts"
import { KnownSecrets } from "../../src/runtime/Secrets.ts"
import { create, journal, openRuntime, outcome, scene, start, stores } from "./Kit.ts"
import { programmable } from "./Programmable.ts"

const pem = '-----BEGIN "KEY"-----\nAbCdEf\\0123456789\n-----END "KEY"-----'
const word = "canary-7f3a-value"
const telling = "AbCdEf"

const said = (text: string): string => `${text} ${word} ${pem} ${JSON.stringify({ [pem]: JSON.stringify(pem) })}`

describe("known secrets", () => {
  for (const kind of stores) {
    it.live(`are in no event, key, artifact or mime over ${kind.name} [RUN-174] [RT-321] [RT-211]`, () =>
      scene(kind, (root, store) =>
        Effect.gen(function* () {
          const ids: Array<string> = []
          const driver = programmable({
            capabilities: { mcp: "stdio", attachments: { image: true, pdf: true, audio: true, file: true } },
            turn: ({ context, emit, finish, input }) =>
              Effect.gen(function* () {
                const { sessionId } = input.binding
                const put = (mime: string, bytes: Uint8Array) =>
                  Effect.map(Effect.orDie(context.artifacts.put(sessionId, mime, bytes)), (id) => void ids.push(id))
                yield* put(`text/${word}`, Buffer.from(said("a resource")))
                // The value lies over the end of a chunk of the store.
                yield* put("image/png", Buffer.concat([Buffer.alloc((1 << 20) - 5, 0xff), Buffer.from(word)]))
                const deltas = said("x".repeat(4_090)) + said("y".repeat(4_090))
                yield* emit(
                  { type: "text-delta", delta: deltas, messageId: input.assistantMessageId, partId: "p" },
                  ...[...said("slowly")].map(
                    (delta) =>
                      ({ type: "text-delta", delta, messageId: input.assistantMessageId, partId: "q" }) as const
                  ),
                  {
                    type: "tool-output",
                    toolCallId: "c",
                    output: { [word]: said("z"), [`${word}!`]: [{ [pem]: pem }], large: said("w".repeat(100_000)) }
                  },
                  {
                    type: "tool-output",
                    toolCallId: "d",
                    output: Array.from({ length: 5_000 }, () => ({ [pem]: word }))
                  },
                  finish(said("the end"))
                )
              })
          })
          const runtime = yield* openRuntime(store, driver)
          const mcp = { files: { type: "stdio", command: "/bin/files", env: { TOKEN: word, KEY: pem } } }
          const session = yield* runtime.run(create(root, { mcp }))
          const data = Buffer.from(said("a file")).toString("base64")
          yield* runtime.run(
            Effect.flatMap(Effect.service(Turns), (turns) =>
              turns.start({
                sessionId: session.id,
                messageId: "a",
                parts: [{ type: "file", mime: "text/plain", filename: "a.txt", data }]
              })
            )
          )
          yield* runtime.run(outcome(session.id, "a"))
          const events = yield* runtime.run(journal(session.id))
          const artifacts = events.flatMap((event) => event.artifacts ?? []).map(({ artifactId }) => artifactId)
          assert.isAtLeast(artifacts.length, 2)
          const [first] = events.flatMap(({ payload }) => (payload.type === "user-message" ? payload.parts : []))
          assert.isTrue(first?.type === "file" && first.artifactId !== undefined)
          for (const id of [...ids, ...artifacts, first?.type === "file" ? (first.artifactId ?? "") : ""]) {
            const row = yield* store.artifact(id)
            const bytes = Buffer.from(yield* store.artifactBytes(id, 0, 32 << 20))
            assert.strictEqual(row?.bytes, bytes.length)
            const whole = `${row?.mime} ${bytes.toString("latin1")}`
            assert.include(whole, "[redacted:files.")
            assert.notInclude(whole, word)
            assert.notInclude(whole, telling)
          }
          const all = JSON.stringify([events, yield* runtime.run(outcome(session.id, "a"))])
          assert.notInclude(all, word)
          assert.notInclude(all, telling)
          const output = events.map(({ payload }) => payload).find((payload) => payload.type === "tool-output")
          assert.deepStrictEqual(Object.keys(output?.type === "tool-output" ? (output.output as object) : {}), [
            "[redacted:files.TOKEN]",
            "[redacted:files.TOKEN]!",
            "large"
          ])
          yield* runtime.close()
          if (kind.name !== "sqlite") return
          for (const file of readdirSync(join(root, "state"))) {
            const bytes = readFileSync(join(root, "state", file))
            assert.isFalse(bytes.includes(word) || bytes.includes(telling), file)
          }
        })
      )
    )
  }

  it.live("a mark names no server of another session [RUN-174] [ACP-218]", () =>
    scene(stores[0] ?? assert.fail("no store"), (root, store) =>
      Effect.gen(function* () {
        const driver = programmable({
          capabilities: { mcp: "stdio" },
          turn: ({ emit, finish }) => emit(finish(`it is ${word}`))
        })
        const runtime = yield* openRuntime(store, driver)
        const servers = (...names: ReadonlyArray<string>) =>
          Object.fromEntries(names.map((name) => [name, { type: "stdio", command: "/bin/x", env: { TOKEN: word } }]))
        for (const [mcp, mark] of [
          [servers("one"), "[redacted:one.TOKEN]"],
          [servers("two"), "[redacted:two.TOKEN]"],
          [servers("two", "three"), "[redacted:secret]"],
          [{}, "[redacted:secret]"]
        ] as const) {
          const session = yield* runtime.run(create(root, { mcp }))
          yield* runtime.run(start(session.id, "a"))
          yield* runtime.run(outcome(session.id, "a"))
          const all = JSON.stringify(yield* runtime.run(journal(session.id)))
          assert.include(all, `it is ${mark}`)
          assert.strictEqual(all.match(/\[redacted:/g)?.length, all.split(mark).length - 1)
        }
        yield* runtime.close()
      })
    )
  )

  it("what is forgotten is told by what other names it has, and is ordinary text without any [RUN-174]", () => {
    const known = new KnownSecrets()
    const log = new KnownSecrets()
    known.add("kept", word)
    known.follow(log.take)
    known.add("failed", word)
    known.add("failed", `${word}-more`)
    assert.deepStrictEqual([known.text(word), log.text(`${word}-more`)], ["[redacted:secret]", "[redacted:failed]"])
    known.forget("failed", word)
    known.forget("failed", `${word}-more`)
    for (const each of [known, log]) assert.strictEqual(each.text(`${word}-more`), "[redacted:kept]-more")
    known.forget("kept", word)
    const value = { a: word }
    for (const each of [known, log]) assert.strictEqual(each.value(value), value)
  })
})
