/** Cases of the store contract about reading: journal pages, messages, rebuilt rows, usage, artifacts, wakeups, copies. */
import type { EventPayload } from "@tackroom/protocol/events"
import { Effect, Fiber, Stream } from "effect"
import { rebuildSession } from "../store/Rebuild.ts"
import type { RuntimeStore } from "../store/RuntimeStore.ts"
import {
  canonical,
  check,
  completion,
  createSession,
  delta,
  entry,
  failsWith,
  harness,
  journalOf,
  readAll,
  same,
  startOfTime,
  startTurn,
  testCase
} from "./storeContractKit.ts"

const odd = "lone \ud800 high, \udc00 low, \0 zero, \u2028, 😀"

const tokens = (input: number | null, output: number | null, cached: number | null) => ({
  input,
  output,
  reasoning: null,
  cache: { read: cached, write: null }
})

/** Fails unless the rows that events make are the stored ones (STO-005). */
export const rebuilds = Effect.fnUntraced(function* (store: RuntimeStore, sessionId: string) {
  const stored = yield* readAll(store, sessionId)
  if (stored === undefined) return
  const rebuilt = yield* rebuildSession(stored.session, stored.turns, stored.journal)
  yield* same("rebuilt session", { ...rebuilt.session, phase: stored.session.phase }, stored.session)
  yield* same("rebuilt messages", rebuilt.messages, stored.messages)
  yield* same("rebuilt todos", rebuilt.todos, stored.todos)
  const shown = (rows: typeof rebuilt.interactions) =>
    rows.map(({ delivered: _delivered, nativeId: _nativeId, ...row }) => row)
  yield* same("rebuilt interactions", shown(rebuilt.interactions), shown(stored.interactions))
  yield* same("rebuilt usage", rebuilt.usage, yield* store.usage(sessionId))
})

export const readCases = [
  testCase(["RT-182", "RT-191", "STO-006"], "every cursor reads exactly what follows it, as it was stored", (bench) =>
    Effect.gen(function* () {
      const { store } = bench
      yield* createSession(store, "ses_a")
      const turn = yield* startTurn(store, "ses_a")
      const stored = yield* store.append("ses_a", turn.fence, [
        delta(turn, odd),
        entry({ type: "tool-start", toolCallId: odd, toolName: odd }, turn.turnId),
        entry({ type: "text-end", messageId: turn.assistantId, partId: odd, channel: "text", text: odd }, turn.turnId)
      ])
      const all = yield* journalOf(store, "ses_a")
      yield* same("what the write answered", stored.events, all.slice(4))
      for (let after = 0; after <= all.length; after++) {
        const page = yield* store.read("ses_a", after, 1000)
        yield* same(`after ${after}`, page, { events: all.slice(after), head: all.length })
      }
      const parts = (yield* store.messages("ses_a", { limit: 10 })).at(-1)?.parts ?? []
      yield* same(
        "ids of parts",
        parts.map((part) => part.id),
        ["part_1", `tool:${odd}`, odd]
      )
      yield* same(
        "ids inside parts",
        parts.map((part) => part.data?.id),
        ["part_1", `tool:${odd}`, odd]
      )
      const again = yield* bench.reopen(store)
      yield* same("after reopening", canonical(yield* journalOf(again, "ses_a")), canonical(all))
      yield* same("parts after reopening", (yield* again.messages("ses_a", { limit: 10 })).at(-1)?.parts, parts)
    })
  ),

  testCase(["STO-008"], "a page is bounded by count and by bytes, and never empty before the head", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const turn = yield* startTurn(store, "ses_a")
      yield* store.append(
        "ses_a",
        turn.fence,
        Array.from({ length: 1500 }, () => delta(turn, "x".repeat(1000)))
      )
      yield* same("limit", (yield* store.read("ses_a", 0, 10)).events.length, 10)
      yield* same("the greatest page", (yield* store.read("ses_a", 0, 5000)).events.length, 1000)
      const small = yield* store.read("ses_a", 4, 1000, 10_000)
      yield* check("bytes", small.events.length > 5 && small.events.length < 10)
      yield* same("one at least", (yield* store.read("ses_a", 4, 1000, 1)).events.length, 1)
      yield* same("at the head", yield* store.read("ses_a", 1504, 10), { events: [], head: 1504 })
      yield* failsWith("an unknown session", "SessionNotFound", store.read("ses_b", 0, 1))
      yield* failsWith("its head", "SessionNotFound", store.head("ses_b"))
    })
  ),

  testCase(["STO-001"], "the time of an event is never below that of the one before it", ({ clock, store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const note = (at?: number) => ({
        ...entry({ type: "harness-notice", code: "x", message: "y" }),
        ...(at === undefined ? {} : { at })
      })
      yield* store.appendUnfenced("ses_a", [note(startOfTime + 500), note(startOfTime + 100), note()])
      clock.advance(600)
      yield* store.appendUnfenced("ses_a", [note(), note(startOfTime)])
      yield* same(
        "times",
        (yield* journalOf(store, "ses_a")).map((event) => event.at - startOfTime),
        [0, 500, 500, 500, 600, 600]
      )
    })
  ),

  testCase(["RT-200", "RT-203", "RT-207"], "a streaming part reads as its deltas, a closed one as its end", (bench) =>
    Effect.gen(function* () {
      const { store } = bench
      yield* createSession(store, "ses_a")
      const turn = yield* startTurn(store, "ses_a")
      const text = "the answer, bit by bit "
      for (const letter of text)
        yield* store.append("ses_a", turn.fence, [delta(turn, letter), delta(turn, "~", "part_2")])
      const parts = (at: RuntimeStore) =>
        Effect.map(at.messages("ses_a", { limit: 1 }), (page) =>
          (page[0]?.parts ?? []).map(({ data, openFromSeq }) => [
            data?.type === "text" ? data.text : undefined,
            openFromSeq
          ])
        )
      yield* same("while it streams", yield* parts(store), [
        [text, 5],
        ["~".repeat(text.length), 6]
      ])
      const again = yield* bench.reopen(store)
      yield* again.append("ses_a", turn.fence, [delta(turn, "!")])
      yield* same("after reopening", yield* parts(again), [
        [`${text}!`, 5],
        ["~".repeat(text.length), 6]
      ])
      yield* again.append("ses_a", turn.fence, [
        entry(
          { type: "text-end", messageId: turn.assistantId, partId: "part_1", channel: "text", text: "authoritative" },
          turn.turnId
        )
      ])
      yield* same("closed", (yield* parts(again))[0], ["authoritative", null])
      yield* rebuilds(again, "ses_a")
    })
  ),

  testCase(["RT-207"], "parts that one append brings whole stand in the order in which they began", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const turn = yield* startTurn(store, "ses_a")
      const end = (partId: string) =>
        entry(
          { type: "text-end", messageId: turn.assistantId, partId, channel: "text", text: `all of ${partId}` },
          turn.turnId
        )
      const inTurn = (text: string, partId: string) => delta(turn, text, partId)
      yield* store.append("ses_a", turn.fence, [inTurn("0", "before")])
      yield* store.append("ses_a", turn.fence, [
        inTurn("1", "first"),
        inTurn("2", "second"),
        end("second"),
        end("first"),
        inTurn("3", "before"),
        end("before"),
        inTurn("4", "open")
      ])
      const [message] = yield* store.messages("ses_a", { limit: 1 })
      yield* same(
        "parts",
        message?.parts.map(({ data }) => (data?.type === "text" ? data.text : undefined)),
        ["all of before", "all of first", "all of second", "4"]
      )
      yield* rebuilds(store, "ses_a")
    })
  ),

  testCase(["STO-005", "RT-172"], "every kind of event rebuilds the rows it made", ({ clock, store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const turn = yield* startTurn(store, "ses_a")
      const id = turn.turnId
      const say = (...payloads: ReadonlyArray<EventPayload>) =>
        Effect.suspend(() => {
          clock.advance(10)
          return store.append(
            "ses_a",
            turn.fence,
            payloads.map((payload) => entry(payload, id))
          )
        })
      yield* say(
        { type: "session-title", title: "Rename", titleSource: "harness" },
        { type: "session-agent", agentId: "builder" },
        { type: "available-commands-update", commands: [{ name: "help", source: "harness" }] },
        { type: "config-update", options: [{ id: "mode", type: "boolean" }], config: { harness, variant: "v" } },
        { type: "step-start", newMessageId: "x" },
        { type: "response-start", responseId: "r1" },
        { type: "thinking-delta", delta: "hm", messageId: turn.assistantId, partId: "t1" },
        { type: "text-end", messageId: turn.assistantId, partId: "t1", channel: "thinking", text: "hm" },
        { type: "text-delta", delta: "wrong", messageId: turn.assistantId, partId: "p1" },
        { type: "text-end", messageId: turn.assistantId, partId: "p1", channel: "text", text: "wrong" },
        { type: "session-retry", message: "again", attempt: 1, delayMs: 5 },
        { type: "response-start", responseId: "r2", attempt: 2 },
        { type: "response-retracted", responseIds: ["r1"], reason: "disconnect" },
        { type: "text-end", messageId: turn.assistantId, partId: "p2", channel: "text", text: "right" }
      )
      yield* say(
        { type: "tool-input", toolCallId: "early", input: { a: 1 } },
        { type: "tool-start", toolCallId: "c1", toolName: "edit", display: { summary: "s" } },
        { type: "tool-input", toolCallId: "c1", input: { path: "a" }, display: { path: "a" } },
        { type: "tool-status", toolCallId: "c1", status: "running" }
      )
      yield* say(
        { type: "tool-output-delta", toolCallId: "c1", delta: "out", stream: "stdout" },
        { type: "file-diff", toolCallId: "c1", path: "a", oldText: "1\n2\n3\n", newText: "1\nx\ny\n3\n" },
        { type: "file-diff", toolCallId: "c1", path: "b", newText: "new\n" },
        { type: "tool-output", toolCallId: "c1", output: "done" },
        { type: "tool-status", toolCallId: "c1", status: "running" },
        { type: "tool-start", toolCallId: "c2", toolName: "shell" },
        { type: "tool-status", toolCallId: "c2", status: "running" },
        { type: "tool-error", toolCallId: "c2", error: "no", code: "denied" },
        { type: "tool-start", toolCallId: "c3", toolName: "shell" },
        { type: "tool-status", toolCallId: "c3", status: "uncertain" },
        {
          type: "todo-update",
          todos: [
            { content: "a", status: "pending" },
            { content: "b", status: "pending" }
          ]
        },
        { type: "todo-update", todos: [{ content: "c", status: "completed" }] },
        { type: "proposed-plan-complete", planMarkdown: "# plan" },
        { type: "image-delta", mimeType: "image/png", artifactId: "art_1" },
        { type: "resource-link-delta", uri: "https://x", name: "x" },
        { type: "session-compaction", phase: "completed", summary: "short" },
        { type: "usage", observation: { kind: "delta", tokens: tokens(1, 2, null) } },
        { type: "question", requestId: "int_q", questions: [{ question: "Why?", options: [] }] },
        { type: "question-answered", requestId: "int_q", answers: [["because"]], origin: "person" },
        { type: "question", requestId: "int_r", questions: [{ question: "Who?", options: [] }] },
        { type: "question-rejected", requestId: "int_r", origin: "person" },
        { type: "permission-request", requestId: "int_p", tool: "t", paths: [], options: [] },
        { type: "interaction-withdrawn", requestId: "int_p", kind: "permission", reason: "cancelled" },
        { type: "session-info", tags: ["x"], metadata: { k: 1 } }
      )
      yield* rebuilds(store, "ses_a")
      const message = (yield* store.messages("ses_a", { limit: 1 }))[0]
      const found = (partId: string) => message?.parts.find((part) => part.id === partId)?.data
      yield* same("withdrawn text", found("p1"), {
        id: "p1",
        messageId: turn.assistantId,
        type: "text",
        text: "wrong",
        retracted: true
      })
      yield* same("text that stays", found("p2"), {
        id: "p2",
        messageId: turn.assistantId,
        type: "text",
        text: "right"
      })
      const c1 = found("tool:c1")
      yield* same("tool", c1?.type === "tool" ? [c1.tool, c1.display, c1.state] : undefined, [
        "edit",
        { summary: "s", path: "a" },
        {
          status: "completed",
          input: { path: "a" },
          output: "done",
          startedAt: new Date(startOfTime + 20).toISOString(),
          endedAt: new Date(startOfTime + 30).toISOString()
        }
      ])
      const c3 = found("tool:c3")
      yield* same("uncertain call", c3?.type === "tool" ? c3.state.status : undefined, "uncertain")
      const patch = found("patch:c1")
      yield* same("patch", patch?.type === "patch" ? patch.files : undefined, [
        { path: "a", additions: 2, deletions: 1 },
        { path: "b", additions: 1, deletions: 0 }
      ])
      yield* same(
        "interactions",
        (yield* store.interactions({ sessionId: "ses_a" })).map((row) => [row.id, row.state]),
        [
          ["int_p", "withdrawn"],
          ["int_q", "resolved"],
          ["int_r", "resolved"]
        ]
      )
      yield* store.settle("ses_a", turn.fence, completion("ses_a", turn))
      yield* store.appendUnfenced("ses_a", [
        {
          ...entry({ type: "text-end", messageId: turn.assistantId, partId: "late", channel: "text", text: "late" }),
          afterTurn: id
        },
        { ...entry({ type: "tool-output", toolCallId: "c3", output: "late" }), afterTurn: id },
        entry({ type: "tool-output", toolCallId: "nobody", output: "outside any turn" }),
        entry({ type: "session-info", archived: true }),
        entry({ type: "session-closed", reason: "closed" })
      ])
      yield* rebuilds(store, "ses_a")
      const late = (yield* store.messages("ses_a", { limit: 1 }))[0]?.parts.map((part) => part.id)
      yield* check("output after the end joins the turn's message", late?.includes("late") === true)
    })
  ),

  testCase(["STO-008"], "messages are read in pages, oldest first in each", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      for (let n = 1; n <= 5; n++) {
        const turn = yield* startTurn(store, "ses_a", n)
        yield* store.settle("ses_a", turn.fence, completion("ses_a", turn))
      }
      const all = yield* store.messages("ses_a", { limit: 100 })
      yield* same("all", all.length, 10)
      const pages: Array<string> = []
      let before: number | undefined
      for (;;) {
        const page = yield* store.messages("ses_a", { limit: 3, ...(before === undefined ? {} : { before }) })
        if (page.length === 0) break
        pages.unshift(...page.map(({ message }) => message.id))
        before = page[0]?.message.ordinal
      }
      yield* same(
        "pages",
        pages,
        all.map(({ message }) => message.id)
      )
      const turn3 = yield* store.messages("ses_a", { limit: 10, turnId: all[4]?.message.turnId ?? "" })
      yield* same("of one turn", turn3, all.slice(4, 6))
      yield* same(
        "turns, newest first",
        (yield* store.turnsOf("ses_a", 2)).map((turn) => turn.startSeq),
        [21, 16]
      )
    })
  ),

  testCase(["STO-005"], "usage adds what is new, once, and keeps what nobody reported unknown", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      yield* same("nothing", yield* store.usage("ses_a"), {
        inputTokens: null,
        outputTokens: null,
        cachedInputTokens: null,
        rounds: 0
      })
      const first = yield* startTurn(store, "ses_a", 1)
      const seen = (observation: Extract<EventPayload, { readonly type: "usage" }>["observation"]): EventPayload => ({
        type: "usage",
        ...(observation === undefined ? {} : { observation })
      })
      yield* store.append("ses_a", first.fence, [
        entry({ type: "response-start", responseId: "r1" }, first.turnId),
        entry({ type: "response-start", responseId: "r1", attempt: 2 }, first.turnId),
        entry(seen({ kind: "delta", tokens: tokens(10, 1, null), providerObservationId: "o1" }), first.turnId),
        entry(seen({ kind: "delta", tokens: tokens(10, 1, null), providerObservationId: "o1" }), first.turnId),
        entry(seen({ kind: "cumulative", tokens: tokens(null, 100, 5), nativeSessionId: "n" }), first.turnId),
        entry({ type: "usage", contextSize: 1 }, first.turnId)
      ])
      yield* store.settle("ses_a", first.fence, completion("ses_a", first))
      const second = yield* startTurn(store, "ses_a", 2)
      yield* store.append("ses_a", second.fence, [
        entry({ type: "response-start", responseId: "r2" }, second.turnId),
        entry(seen({ kind: "cumulative", tokens: tokens(null, 130, 9), nativeSessionId: "n" }), second.turnId),
        entry({ type: "response-start", responseId: "r3" }, second.turnId),
        entry(seen({ kind: "cumulative", tokens: tokens(null, 7, null), nativeSessionId: "n" }), second.turnId),
        entry(seen({ kind: "delta", tokens: tokens(10, 1, null), providerObservationId: "o1" }), second.turnId)
      ])
      // What comes after its turn still counts for it, and what belongs to none counts for the session.
      yield* store.appendUnfenced("ses_a", [
        {
          ...entry(seen({ kind: "delta", tokens: tokens(null, 2, null), providerObservationId: "o2" })),
          afterTurn: first.turnId
        },
        entry(seen({ kind: "cumulative", tokens: tokens(3, null, null), nativeSessionId: "m" }))
      ])
      yield* same("no such turn", yield* store.usage("ses_a", "trn_none"), {
        inputTokens: null,
        outputTokens: null,
        cachedInputTokens: null,
        rounds: 0
      })
      yield* same("first turn", yield* store.usage("ses_a", first.turnId), {
        inputTokens: 10,
        outputTokens: 103,
        cachedInputTokens: 5,
        rounds: 1
      })
      yield* same("second turn", yield* store.usage("ses_a", second.turnId), {
        inputTokens: null,
        outputTokens: 37,
        cachedInputTokens: 4,
        rounds: 2
      })
      yield* same("session", yield* store.usage("ses_a"), {
        inputTokens: 13,
        outputTokens: 140,
        cachedInputTokens: 9,
        rounds: 3
      })
      yield* rebuilds(store, "ses_a")
    })
  ),

  testCase(["RT-211", "RT-212"], "an artifact's row commits with its event; its bytes read in any piece", (bench) =>
    Effect.gen(function* () {
      const { store } = bench
      yield* createSession(store, "ses_a")
      const turn = yield* startTurn(store, "ses_a")
      const bytes = Uint8Array.from({ length: (5 << 19) + 17 }, (_, i) => (i * 31) % 251)
      const row = yield* store.putArtifact("ses_a", "text/plain", bytes)
      yield* same(
        "row",
        [row.bytes, row.mime, row.retained, row.sessionId],
        [bytes.length, "text/plain", true, "ses_a"]
      )
      yield* check("the digest is SHA-256 in hex", /^[0-9a-f]{64}$/u.test(row.sha256) && row.id.startsWith("art_"))
      yield* same("no row before the event", yield* store.artifact(row.id), undefined)
      const artifacts = [{ path: "/output", artifactId: row.id, bytes: row.bytes, mime: row.mime }]
      const done = yield* store.append("ses_a", turn.fence, [
        {
          ...entry({ type: "tool-output", toolCallId: "c1", output: null }, turn.turnId),
          artifacts,
          artifactRows: [row]
        }
      ])
      yield* same("event", done.events[0]?.artifacts, artifacts)
      yield* same("stored event", (yield* store.read("ses_a", 4, 1)).events[0]?.artifacts, artifacts)
      const again = yield* bench.reopen(store)
      yield* same("row", yield* again.artifact(row.id), row)
      for (const [offset, length] of [
        [0, bytes.length],
        [0, 10],
        [(1 << 20) - 3, 6],
        [1 << 20, 1 << 20],
        [bytes.length - 5, 100],
        [bytes.length, 10]
      ] as const) {
        const piece = yield* again.artifactBytes(row.id, offset, length)
        const wanted = bytes.subarray(offset, offset + length)
        yield* check(
          `piece ${offset}+${length}`,
          piece.length === wanted.length && piece.every((byte, i) => byte === wanted[i])
        )
      }
      const large = yield* again.putArtifact("ses_a", "x/y", new Uint8Array((32 << 20) + 1))
      yield* same("too large to keep", [large.retained, large.bytes], [false, (32 << 20) + 1])
    })
  ),

  testCase(["STO-009"], "a wakeup tells of a head that can be read", ({ store }) =>
    Effect.gen(function* () {
      yield* createSession(store, "ses_a")
      const first = yield* Effect.forkChild(
        store.wakeups.pipe(
          Stream.mapEffect((wakeup) =>
            Effect.map(store.head(wakeup.sessionId), (head) => ({ ...wakeup, isCommitted: head >= wakeup.head }))
          ),
          Stream.take(3),
          Stream.runCollect
        ),
        { startImmediately: true }
      )
      for (let i = 0; i < 3; i++)
        yield* store.appendUnfenced("ses_a", [entry({ type: "session-status", status: "idle" })])
      const seen = yield* Fiber.join(first)
      yield* same(
        "seen",
        seen,
        [2, 3, 4].map((head) => ({ sessionId: "ses_a", head, isCommitted: true }))
      )
    })
  ),

  testCase(["STO-022"], "a caller shares nothing with the store", ({ store }) =>
    Effect.gen(function* () {
      const metadata = { list: [1] }
      const payload = { type: "todo-update", todos: [{ content: "a", status: "pending" }] } as const
      yield* createSession(store, "ses_a", { metadata })
      const done = yield* store.appendUnfenced("ses_a", [entry(payload)])
      const before = yield* readAll(store, "ses_a")
      const copy = canonical(before)
      metadata.list.push(2)
      const overwrite = (value: unknown): void => {
        for (const [key, member] of Object.entries(value as object)) {
          if (typeof member === "object" && member !== null) overwrite(member)
          else Reflect.set(value as object, key, "changed")
        }
      }
      overwrite(payload)
      overwrite(done.events[0]?.payload)
      overwrite(before)
      yield* same("stored", canonical(yield* readAll(store, "ses_a")), copy)
    })
  ),

  testCase(["STO-007", "RT-185"], "what was stored is there after reopening, under the same journal id", (bench) =>
    Effect.gen(function* () {
      const { store } = bench
      yield* createSession(store, "ses_a")
      const turn = yield* startTurn(store, "ses_a")
      yield* store.append("ses_a", turn.fence, [delta(turn, "x")])
      const [info, before] = [yield* store.open, yield* readAll(store, "ses_a")]
      const again = yield* bench.reopen(store)
      yield* same("journal", (yield* again.info).journalId, info.journalId)
      yield* same("rows", canonical(yield* readAll(again, "ses_a")), canonical(before))
      yield* failsWith("the closed store", "StoreUnavailable", store.head("ses_a"))
      yield* again.append("ses_a", turn.fence, [delta(turn, "y")])
      yield* same("cursors go on", yield* again.head("ses_a"), 6)
    })
  )
]
